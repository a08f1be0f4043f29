"""Ids of every kind: the form they are kept in, finding them, joining them, and text to numbers."""

import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcpf.data.ids import IdIndex, as_ids, integers_if_exact, join
from hcpf.errors import InputError

WIDE = 2**53  # from here on float64 cannot tell neighbors apart
UUIDS = [uuid.UUID(int=k) for k in (3, 1, 2)]


@pytest.mark.parametrize(
    "ids",
    [
        np.array(["b", "a"]),
        np.array(["b", "a"], dtype=np.dtypes.StringDType()),
        np.array(["b", np.str_("a")], dtype=object),
        pd.Series(["b", "a"]),
        pd.Series(["b", "a"], dtype="category"),
        pd.Categorical(["b", "a"]),
        pd.Index(["b", "a"]),
        pl.Series(["b", "a"]),
        pa.array(["b", "a"]),
        pa.chunked_array([["b"], ["a"]]),
        ("b", "a"),
        {"b": 1, "a": 2}.keys(),
    ],
    ids=lambda ids: type(ids).__name__,
)
def test_text_of_any_container_becomes_plain_strings_in_order(ids):
    found = as_ids("users", ids)
    assert found.tolist() == ["b", "a"]
    assert {type(value) for value in found} == {str}


@pytest.mark.parametrize(
    ("ids", "dtype"),
    [
        ([3, -1], np.int64),
        (np.array([3, 1], np.int8), np.int64),
        (np.array([3, 1], np.uint32), np.int64),
        (np.array([3, 1], np.uint64), np.uint64),
        ([2**63, 1], np.uint64),
        ([2**63 - 1, -(2**63)], np.int64),
        ([np.int32(3), np.uint64(1)], np.int64),
        (pl.Series([3, 1]), np.int64),
    ],
)
def test_whole_numbers_keep_their_value(ids, dtype):
    found = as_ids("users", ids)
    assert found.dtype == dtype
    assert found.tolist() == [int(value) for value in ids]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ({"a", "b"}, "a set has no order"),
        (frozenset({"a"}), "a frozenset has no order"),
        ({"a": 1}, "a dict has no order"),
        (pl.Series([1, None]), "float64"),
        (pd.Series(["a", None]), "None is NoneType"),
        (pd.Series([1, None], dtype="Int64"), "NAType|float64"),
        ([2**63, -1], "64 bits"),
        ([np.bool_(True)], "bool"),
        (np.array([b"a"]), "ids must be"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "datetime64"),
        ([1, True], "True is bool"),
        ([["a"], ["b", "c"]], "is list"),
        (1.5, "got float"),
        (None, "got NoneType"),
        (object(), "got object"),
    ],
)
def test_what_is_no_id(ids, message):
    with pytest.raises(InputError, match=message) as caught:
        as_ids("users", ids)
    assert "users" in str(caught.value)


# -- positions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [["b", "a", "c"], [30, -10, 20], UUIDS])
def test_positions_are_where_the_ids_are(ids):
    index = IdIndex("users", as_ids("users", ids))
    assert index.positions([ids[2], ids[0]]).tolist() == [2, 0]
    assert index.positions(ids[1]).shape == ()
    assert index.positions([[ids[1]], [ids[2]]]).tolist() == [[1], [2]]
    assert len(index) == 3


@pytest.mark.parametrize(
    ("ids", "strange", "shown"),
    [(["a"], ["a", "z"], "'z'"), ([1], [1, 7], "7"), (UUIDS, [uuid.UUID(int=9)], "UUID")],
)
def test_a_strange_id_is_named(ids, strange, shown):
    index = IdIndex("users", as_ids("users", ids))
    with pytest.raises(InputError, match=rf"users: unknown id {shown}"):
        index.positions(strange)
    assert index.known(strange)[-1] == -1


@pytest.mark.parametrize(("mine", "theirs"), [(["a"], [1]), ([1], ["1"]), (UUIDS, ["a"])])
def test_ids_of_another_kind_are_refused(mine, theirs):
    with pytest.raises(InputError, match=r"fitted ids are .*, but these are"):
        IdIndex("users", as_ids("users", mine)).known(theirs)


@pytest.mark.parametrize(("mine", "theirs"), [(np.int64, np.uint64), (np.uint64, np.int64)])
def test_large_ids_are_told_apart_across_signedness(mine, theirs):
    ids = np.array([WIDE + 2, WIDE, WIDE + 1, 2**63 - 1], dtype=mine)
    asked = np.array([WIDE, WIDE + 1, WIDE + 2, WIDE + 3, 2**63 - 1], dtype=theirs)
    assert IdIndex("users", ids).known(asked).tolist() == [1, 2, 0, -1, 3]


def test_an_id_that_wraps_around_is_not_found():
    unsigned = IdIndex("users", np.array([2**64 - 1, 5], np.uint64))
    assert unsigned.known(np.array([-1, 5])).tolist() == [-1, 1]
    signed = IdIndex("users", np.array([-1, 5]))
    assert signed.known(np.array([2**64 - 1, 5], np.uint64)).tolist() == [-1, 1]


@given(
    st.lists(st.integers(-5, 5) | st.integers(WIDE - 3, WIDE + 3), min_size=1, unique=True),
    st.lists(st.integers(-5, 5) | st.integers(WIDE - 3, WIDE + 3)),
)
def test_known_agrees_with_a_dictionary(ids, asked):
    places = {value: place for place, value in enumerate(ids)}
    found = IdIndex("users", np.array(ids)).known(np.array(asked, dtype=np.int64))
    assert found.tolist() == [places.get(value, -1) for value in asked]


# -- join -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "more", "all_ids", "place"),
    [
        (["b", "a"], ["c", "a"], ["b", "a", "c"], [2, 1]),
        ([5, 3], [3, 4, 9], [5, 3, 4, 9], [1, 2, 3]),
        (UUIDS[:2], UUIDS[1:], UUIDS, [1, 2]),
        ([5], [2**63, 5], [5, 2**63], [1, 0]),
        ([2**63], [5, 2**63], [2**63, 5], [1, 0]),
        ([-5], np.array([7], np.uint64), [-5, 7], [1]),
    ],
)
def test_join_puts_new_ids_last(ids, more, all_ids, place):
    joined, found = join(as_ids("users", ids), as_ids("users", more))
    assert joined.tolist() == all_ids
    assert found.tolist() == place
    assert joined.dtype.kind in "iuO"


def test_join_of_negative_and_huge_ids_is_refused():
    with pytest.raises(InputError, match=f"-1 and {2**63} do not fit"):
        join(np.array([-1]), np.array([2**63], np.uint64))


# -- text to numbers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (["12", "7", "-3", "0"], [12, 7, -3, 0]),
        ([str(2**63 - 1), str(-(2**63))], [2**63 - 1, -(2**63)]),
        ([str(2**64 - 1), "1"], [2**64 - 1, 1]),
    ],
)
def test_whole_numbers(text, ids):
    found = integers_if_exact(text)
    assert found.tolist() == ids
    assert found.dtype.kind in "iu"


@pytest.mark.parametrize(
    "text", ["007", "-0", "+1", " 1", "1 ", "1_000", "1.0", "1e3", "٣", "１", "", "x", "9" * 5000]
)
def test_text_that_numbers_would_change_stays_text(text):
    assert integers_if_exact(["5", text]).tolist() == ["5", text]


@pytest.mark.parametrize("text", [str(2**64), str(-(2**63) - 1)])
def test_numbers_beyond_64_bits_stay_text(text):
    assert integers_if_exact([text]).tolist() == [text]


def test_negative_and_huge_numbers_together_stay_text():
    assert integers_if_exact(["-1", str(2**63)]).tolist() == ["-1", str(2**63)]


@pytest.mark.parametrize(
    ("ids", "asked", "hint"),
    [
        (["apple", "pear", "plum"], "aple", r"unknown id 'aple'\. Similar ids: apple"),
        ([12347, 12348], 12437, r"unknown id 12437\. Similar ids: 12347"),
        (
            ["apple", "pear"],
            "zebra",
            r"unknown id 'zebra'\. Ids are strings, for example apple\.",
        ),
    ],
)
def test_an_unknown_id_is_answered_with_known_ones(ids, asked, hint):
    with pytest.raises(InputError, match=hint):
        IdIndex("items", as_ids("items", ids)).positions([asked])
