"""Rows without an id, returns, repeated pairs and items that are not products."""

import logging

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from data.table_files import by_pair
from hcpf.data import Interactions
from hcpf.data.rows import FrameRows, RowLocator
from hcpf.errors import InputError

RAW = """Invoice,Code,Paid,Date,Customer
1,tea,3.00,2024-01-01,ann
1,POST,5.00,2024-01-01,ann
2,tea,2.00,2024-01-02,ann
3,tea,4.00,2024-01-03,
4,milk,1.10,2024-01-04,bob
5,milk,-1.10,2024-01-05,bob
6,tea,-9.00,2024-01-06,cid
7,jam,2.50,2024-01-07,bob
"""
COLUMNS = {"user": "Customer", "item": "Code", "value": "Paid"}


@pytest.fixture
def read(tmp_path, caplog):
    """Read text; returns the entries and what was logged."""

    def write_and_read(text=RAW, **options):
        path = tmp_path / "sales.csv"
        path.write_text(text)
        caplog.clear()
        with caplog.at_level(logging.INFO, "hcpf"):
            data = Interactions.read(path, **{**COLUMNS, **options})
        return by_pair(data), [record.message for record in caplog.records]

    return write_and_read


def test_from_raw_rows_to_entries(read):
    entries, said = read(returns="net", drop_blank_ids=True, exclude_items="POST")
    assert entries == {("ann", "tea"): 5.0, ("bob", "jam"): 2.5}
    assert said == [
        "Dropped 1 row without an id.",
        "Excluded 1 item with 1 row: POST.",
        "Returns: 2 negative rows subtracted; left out 2 pairs at or below 0.",
        "Summed the rows of repeated pairs (3 rows, 2 pairs), because the column 'Invoice' "
        "makes each row an event (otherwise pass duplicates=...).",
    ]


def test_drop_returns(read):
    entries, said = read(returns="drop", drop_blank_ids=True)
    assert entries == {
        ("ann", "tea"): 5.0, ("ann", "POST"): 5.0, ("bob", "milk"): 1.1, ("bob", "jam"): 2.5,
    }  # fmt: skip
    assert "Returns: dropped 2 rows with a negative value." in said


def test_returns_are_an_error_unasked(read):
    with pytest.raises(InputError) as error:
        read(drop_blank_ids=True)
    assert "'Paid' has negative values: -1.1 in row 7 and -9 in row 8 (row 1" in str(error.value)
    for choice in ("returns='net'", "returns='drop'", "returns='keep'"):
        assert choice in str(error.value)


def test_signed_values_are_kept(read):
    text = "user,item,value\na,x,-1\nb,x,-2\nc,x,3\nd,x,4\n"
    columns = {"user": "user", "item": "item", "value": "value"}
    entries, said = read(text, **columns)
    assert sorted(entries.values()) == [-2, -1, 3, 4]
    assert said == ["value: 2 values of 4 are negative and kept (otherwise pass returns=...)."]
    with pytest.raises(InputError, match="negative values: -1 in row 2"):
        read(text, **columns, returns="error")
    assert len(read(text.replace("value", "amount", 1), **{**columns, "value": "amount"})[0]) == 4


def test_money_is_recognized_by_its_sign(read):
    text = "user,item,x\na,x,£5.00\nb,x,-£1.00\nc,x,£3.00\n"
    with pytest.raises(InputError, match="negative values: -1 in row 3"):
        read(text, user="user", item="item", value="x")


def test_netting_forgives_rounding(read):
    text = "user,item,paid\na,x,0.1\na,x,0.2\na,x,-0.3\nb,x,1\nb,x,1e-7\n"
    entries, _ = read(text, user="user", item="item", value="paid", returns="net")
    assert entries == {("b", "x"): 1.0000001}


def test_nothing_left(read):
    text = "user,item,paid\na,x,1\na,x,-2\n"
    with pytest.raises(InputError, match=r"no rows.*left out 1 pair at or below 0"):
        read(text, user="user", item="item", value="paid", returns="net")
    with pytest.raises(InputError, match=r"no rows.*Excluded 1 item with 2 rows: x"):
        read(text, user="user", item="item", value="paid", exclude_items="x")


def test_net_contradicts_other_ways_to_merge(read):
    with pytest.raises(InputError, match=r"returns='net' .* duplicates='last'"):
        read(returns="net", duplicates="last")


def test_blank_ids_are_counted_in_the_error(read):
    text = "Customer,Code,Paid\n" + ",x,1\n" * 5 + "a,,1\n,,1\n"
    with pytest.raises(InputError) as error:
        read(text)
    assert "'Customer' has no id in rows 2, 3 and 4 (6 rows in total" in str(error.value)
    assert "'Code' has no id in rows 7 and 8 (row 1" in str(error.value)
    assert "drop_blank_ids=True" in str(error.value)


def test_rows_without_a_value(read):
    text = "Customer,Code,Paid\nann,tea,£3\nann,jam,\nbob,tea,N/A\nbob,jam, \ncid,tea,-\n"
    with pytest.raises(InputError) as error:
        read(text)
    assert "'Paid' has no value: row 3, 'N/A' in row 4 and row 5 (4 rows in total" in str(
        error.value
    )
    assert "Pass drop_blank_values=True" in str(error.value)
    entries, said = read(text, drop_blank_values=True)
    assert entries == {("ann", "tea"): 3.0}
    assert "Dropped 4 rows without a value." in said
    with pytest.raises(InputError, match="not numbers: '5k' in row 4"):
        read(text.replace("N/A", "5k"), drop_blank_values=True)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_frames_without_a_value(missing):
    frame = pa.table({"u": ["a", "b"], "i": ["x", "x"], "y": pa.array([1.5, missing])})
    columns = {"user": "u", "item": "i", "value": "y"}
    with pytest.raises(InputError, match=r"no value in row 2 .*drop_blank_values=True"):
        Interactions.from_frame(frame, **columns)
    assert by_pair(Interactions.from_frame(frame, **columns, drop_blank_values=True)) == {
        ("a", "x"): 1.5
    }


def test_a_product_without_one_of_its_factors(read):
    text = "Customer,Code,Paid,n\nann,tea,3,2\nann,jam,,2\nbob,tea,2,\n"
    assert read(text, value="Paid*n", drop_blank_values=True)[0] == {("ann", "tea"): 6.0}


def test_all_problems_and_their_options_come_together(read):
    with pytest.raises(InputError) as error:
        read(RAW.replace("2.50", ""))
    assert str(error.value).endswith(
        "For all of these: drop_blank_ids=True, drop_blank_values=True, returns='net'."
    )


def test_rows_are_found_after_others_were_dropped():
    locator, rows = RowLocator(), FrameRows()
    locator.add(rows, 0, None, 3)
    locator.add(rows, 3, np.array([0, 2]), 2)
    chosen = locator.select(np.array([False, True, True, False, True]))
    assert [chosen.find(position)[1] for position in range(3)] == [1, 2, 5]


def test_totals_with_text_in_the_value_are_dropped_before_values_are_checked(read):
    text = "Customer,Code,Paid\nann,tea,3\n,,Sum\n   ,tea,?\n"
    assert read(text, drop_blank_ids=True)[0] == {("ann", "tea"): 3.0}


def test_integer_ids_with_gaps(read):
    text = "Customer,Code,Paid\n17850,7,3\n,7,1\n12347,8,1\n"
    entries, _ = read(text, drop_blank_ids=True)
    assert entries == {(17850, 7): 3.0, (12347, 8): 1.0}
    frame = pd.DataFrame(
        {"Customer": [17850.0, None, 12347.0], "Code": [7, 7, 8], "Paid": [3, 1, 1]}
    )
    data = Interactions.from_frame(frame, **COLUMNS, drop_blank_ids=True)
    assert by_pair(data) == entries
    assert data.users.dtype == int


@pytest.mark.parametrize("column", ["date", "InvoiceNo", "order_id", "timestamp"])
def test_rows_of_events_are_summed(read, column):
    text = f"user,item,paid,{column}\na,x,1,1\na,x,2,2\n"
    entries, said = read(text, user="user", item="item", value="paid")
    assert entries == {("a", "x"): 3.0}
    assert f"because the column {column!r} makes each row an event" in said[0]


@pytest.mark.parametrize("text", ["user,item,rating,date\na,x,1,1\na,x,2,2\n",
                                  "user,item,paid,color\na,x,1,1\na,x,2,2\n"])  # fmt: skip
def test_other_repeated_pairs_stay_an_error(read, text):
    value = text.split(",")[2]
    with pytest.raises(InputError, match=r"more than once.*duplicates="):
        read(text, user="user", item="item", value=value)


def test_rows_of_a_frame_with_times_are_summed():
    frame = pa.table(
        {"u": ["a", "a"], "i": ["x", "x"], "when": pa.array([1, 2], pa.timestamp("s"))}
    )
    assert Interactions.from_frame(frame, user="u", item="i").values.tolist() == [2.0]


def test_exclude_items_from_a_file(read, tmp_path):
    (tmp_path / "codes.txt").write_text("code\nPOST\nmi*\n\n")
    options = {"returns": "drop", "drop_blank_ids": True}
    entries, said = read(exclude_items=tmp_path / "codes.txt", **options)
    assert {item for _, item in entries} == {"tea", "jam"}
    assert "Excluded 2 items with 3 rows: POST, milk." in said
    assert read(exclude_items=["tea", "P?ST"], **options)[0].keys() == {
        ("bob", "milk"), ("bob", "jam"),
    }  # fmt: skip
    assert "Excluded 0 items with 0 rows." in read(exclude_items="post", **options)[1]


def test_exclude_integers(read):
    text = "Customer,Code,Paid\na,7,3\na,77,1\n"
    assert read(text, exclude_items=7)[0] == {("a", 77): 1.0}


def test_all_problems_are_in_one_message(read):
    with pytest.raises(InputError) as error:
        read()
    message = str(error.value)
    assert "'Customer' has no id in row 5" in message
    assert "drop_blank_ids=True" in message
    assert "'Paid' has negative values: -1.1 in row 7 and -9 in row 8" in message
    assert "returns='net'" in message


def test_dropping_returns_leaves_out_pairs_of_nothing(read):
    text = "user,item,paid\na,x,0\nb,x,2\nb,y,-2\nc,x,0\nc,x,3\n"
    columns = {"user": "user", "item": "item", "value": "paid"}
    entries, said = read(text, **columns, returns="drop", duplicates="sum")
    assert entries == {("b", "x"): 2.0, ("c", "x"): 3.0}
    assert "Returns: dropped 1 row with a negative value; left out 1 pair of 0." in said
