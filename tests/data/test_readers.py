"""Files: every format, ending, delimiter and quirk of CSV gives the rows that were written."""

import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.table_files import (
    COLUMNS,
    PACKINGS,
    arrow_bytes,
    assert_holds,
    by_pair,
    csv_bytes,
    file_bytes,
    parquet_bytes,
    table,
)
from hcpf.data import Interactions
from hcpf.data.files import opening, text
from hcpf.errors import InputError

ROWS = [("bob", "tea", 3.0), ("ann", "milk", 0.0), ("bob", "milk", -1.5)]
EXPECTED = {(user, item): value for user, item, value in ROWS}
TEXT = [".csv", ".tsv", ".tab", ".txt", ".dat", ".CSV", *(f".csv{end}" for end in PACKINGS)]
BINARY = [".parquet", ".pq", ".arrow", ".feather", ".ipc", ".arrows"]
PLACES = {"user": 0, "item": 1, "value": 2}


@pytest.fixture
def read(tmp_path):
    """Write the bytes to a file with the ending given, and read that."""

    def write_and_read(content, ending=".csv", **options):
        path = tmp_path / f"rows{ending}"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return Interactions.read(path, **({**COLUMNS, **options}))

    return write_and_read


@pytest.mark.parametrize("ending", TEXT + BINARY)
def test_every_ending(read, ending):
    assert_holds(read(file_bytes(ROWS, ending), ending), EXPECTED)
    assert_holds(read(file_bytes(ROWS, ending), ending, **PLACES), EXPECTED)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow"])
def test_without_a_response_every_row_counts_one(read, ending):
    data = read(file_bytes(ROWS, ending), ending, value=None)
    assert data.values.tolist() == [1.0, 1.0, 1.0]


def test_a_stream_is_known_whatever_its_ending(read):
    assert_holds(read(arrow_bytes(table(ROWS), stream=True), ".arrow"), EXPECTED)
    assert_holds(read(arrow_bytes(table(ROWS)), ".arrows"), EXPECTED)


# -- many files and batches -----------------------------------------------------------------------


@pytest.fixture
def parts(tmp_path):
    """Three files, in three formats, in which the pair (bob, tea) has the values 3, 5 and 1."""
    contents = {"part-1.csv": 3.0, "part-2.parquet": 5.0, "part-3.arrow": 1.0}
    for k, (name, value) in enumerate(contents.items()):
        rows = [("bob", "tea", value), (f"user {k}", "tea", float(k))]
        (tmp_path / name).write_bytes(file_bytes(rows, Path(name).suffix))
    return tmp_path


@pytest.mark.parametrize(("policy", "value"), [("sum", 9.0), ("mean", 3.0), ("last", 1.0)])
def test_duplicates_across_files(parts, policy, value):
    data = Interactions.read(f"{parts}/part-*", **COLUMNS, duplicates=policy)
    others = {(f"user {k}", "tea"): float(k) for k in range(3)}
    assert_holds(data, {("bob", "tea"): value, **others})


def test_last_is_in_the_order_of_the_list(parts):
    paths = [parts / "part-3.arrow", str(parts / "part-2.parquet")]
    data = Interactions.read(paths, **COLUMNS, duplicates="last")
    assert by_pair(data)["bob", "tea"] == 5.0


def test_duplicates_across_files_are_an_error_unasked(parts):
    with pytest.raises(InputError, match=r"user 'bob' and item 'tea'.*2 surplus entries"):
        Interactions.read(parts / "part-?.*", **COLUMNS)


def test_files_may_have_their_columns_in_another_order(tmp_path):
    (tmp_path / "1.csv").write_text("who,what,paid\nann,tea,1\n")
    (tmp_path / "2.csv").write_text("paid;extra;what;who\n2;x;milk;bob\n")
    data = Interactions.read(str(tmp_path / "*.csv"), **COLUMNS)
    assert_holds(data, {("ann", "tea"): 1.0, ("bob", "milk"): 2.0})


def test_text_is_whole_numbers_only_if_it_is_in_all_files(tmp_path):
    (tmp_path / "1.csv").write_text("who,what,paid\n1,7,1\n")
    (tmp_path / "2.csv").write_text("who,what,paid\nb,8,2\n")
    data = Interactions.read(str(tmp_path / "*.csv"), **COLUMNS)
    assert_holds(data, {("1", 7): 1.0, ("b", 8): 2.0})


def test_a_file_whose_name_looks_like_a_glob(tmp_path):
    path = tmp_path / "rows[1].csv"
    path.write_bytes(csv_bytes(ROWS))
    assert_holds(Interactions.read(path, **COLUMNS), EXPECTED)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(text, "_BLOCK_BYTES", 64)
    monkeypatch.setattr(text, "_MEGABYTE", 64)
    monkeypatch.setattr(opening, "BATCH_ROWS", 3)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".arrow"])
@pytest.mark.parametrize("policy", ["sum", "mean", "last"])
def test_duplicates_across_batches(read, small_blocks, ending, policy, rng):
    cells = [(int(u), f"{i}", float(v)) for u, i, v in rng.integers(0, 9, (300, 3))]
    cells = [(f"user {u}", f"item {i}", v) for u, i, v in cells]
    content = file_bytes(cells, ending)
    if ending == ".arrow":
        content = arrow_bytes(table(cells), chunk=7)
    values = {}
    for user, item, value in cells:
        values.setdefault((user, item), []).append(value)
    reduce = {"sum": sum, "mean": lambda x: sum(x) / len(x), "last": lambda x: x[-1]}[policy]
    expected = {pair: reduce(found) for pair, found in values.items()}
    found = by_pair(read(content, ending, duplicates=policy))
    assert found == pytest.approx(expected, rel=1e-15)


def test_a_quoted_line_break_may_fall_on_the_end_of_a_block(read, small_blocks):
    # Not \r\n: Arrow drops the \n of one that a block's end divides, even within quotes.
    cells = [(f"user\n{k}", f'"{k}\n",', float(k)) for k in range(200)]
    assert_holds(read(csv_bytes(cells)), {(user, item): value for user, item, value in cells})


# -- CSV ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_guessed_with_any_line_end_and_mark(read, delimiter):
    for end in ("\n", "\r\n", "\r"):
        for mark in (b"", b"\xef\xbb\xbf"):
            assert_holds(read(mark + csv_bytes(ROWS, delimiter, end=end)), EXPECTED)


def test_delimiters_within_quotes_do_not_count(read):
    assert_holds(read('"a,b,c,d,e";what;who;paid\n0;tea;ann;2\n'), {("ann", "tea"): 2.0})


def test_a_delimiter_that_is_given(read):
    content = csv_bytes([("a,b", "c;d", 1.0)], " ")
    assert_holds(read(content, delimiter=" "), {("a,b", "c;d"): 1.0})


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "BOM"])
def test_without_a_header_columns_go_by_place(read, mark):
    data = read(mark + csv_bytes(ROWS, header=None), header=False, **PLACES)
    assert_holds(data, EXPECTED)
    assert_holds(read("9,ann,tea\n", header=False, user=1, item=2, value=0), {("ann", "tea"): 9})


def test_blank_lines_and_a_missing_last_line_end(read):
    assert_holds(read("\nwho,what,paid\n\nann,tea,1\n\n\nbob,tea,2"), {
        ("ann", "tea"): 1.0, ("bob", "tea"): 2.0,
    })  # fmt: skip


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (["007", "7"], ["007", "7"]),
        (["10", "9", "-1"], [-1, 9, 10]),
        (["1.0", "1"], ["1", "1.0"]),
        ([str(2**63 - 1), "1"], [1, 2**63 - 1]),
        ([str(2**64 - 1), "1"], [1, 2**64 - 1]),
        ([str(10**30), "1"], ["1", str(10**30)]),
        (["true", "false"], ["false", "true"]),
        (["2020-01-01", "1e5"], ["1e5", "2020-01-01"]),
        ([" a", "a", "a "], [" a", "a", "a "]),
        (["Ünï", "日本", "🎉", "a\u0301"], sorted(["Ünï", "日本", "🎉", "a\u0301"])),
        (['"NA"', '"null"'], ["NA", "null"]),
        (['"7"', "8"], [7, 8]),
    ],
)
def test_ids_in_text(read, text, ids):
    lines = "".join(f"{one},x,1\n" for one in text)
    data = read(f"who,what,paid\n{lines}")
    assert data.users.tolist() == ids
    assert {type(one) for one in data.users.tolist()} == {type(ids[0])}


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".arrows"])
def test_text_in_typed_files_stays_text(read, ending):
    assert_holds(read(file_bytes([("12", "7", 1.0)], ending), ending), {("12", "7"): 1.0})


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(
                str.strip
            ),
            st.sampled_from(["x", "a,b", 'q"', "-\n", "\r\n-", ";|\t", "'"]),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
        min_size=1,
        max_size=8,
        unique_by=lambda row: row[:2],
    ),
    st.sampled_from(",;|\t"),
)
def test_any_text_survives_quoting(tmp_path_factory, cells, delimiter):
    path = tmp_path_factory.mktemp("quoted") / "rows.csv"
    quoted = [[f'"{text.replace(chr(34), chr(34) * 2)}"' for text in row[:2]] for row in cells]
    lines = [delimiter.join([*ids, repr(row[2])]) for ids, row in zip(quoted, cells, strict=True)]
    path.write_bytes(("\n".join([delimiter.join(["who", "what", "paid"]), *lines])).encode())
    found = by_pair(Interactions.read(path, **COLUMNS, delimiter=delimiter))
    assert {(str(user), item): value for (user, item), value in found.items()} == {
        (user, item): value for user, item, value in cells
    }


# -- Parquet and Arrow ----------------------------------------------------------------------------

TYPES = {
    "int16": (pa.array([3, -1], pa.int16()), [3, -1]),
    "uint64": (pa.array([2**64 - 1, 0], pa.uint64()), [2**64 - 1, 0]),
    "category": (pa.array(["b", "a"]).dictionary_encode(), ["b", "a"]),
    "large text": (pa.array(["b", "a"], pa.large_string()), ["b", "a"]),
    "uuid": (
        pa.array([uuid.UUID(int=9).bytes, uuid.UUID(int=1).bytes], pa.uuid()),
        [uuid.UUID(int=9), uuid.UUID(int=1)],
    ),
    "16 bytes": (
        pa.array([uuid.UUID(int=9).bytes, uuid.UUID(int=1).bytes], pa.binary(16)),
        [uuid.UUID(int=9), uuid.UUID(int=1)],
    ),
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("write", [parquet_bytes, arrow_bytes])
def test_ids_of_typed_files(read, kind, write):
    column, ids = TYPES[kind]
    content = write(pa.table({"who": column, "what": [1, 2], "paid": pa.array([7, 8], pa.int8())}))
    ending = ".parquet" if write is parquet_bytes else ".arrow"
    assert_holds(read(content, ending), {(ids[0], 1): 7.0, (ids[1], 2): 8.0})


def test_int64_and_uint64_files_together(tmp_path):
    for name, ids in (("1", np.array([5])), ("2", np.array([2**63], np.uint64))):
        content = pa.table({"who": ids, "what": ["x"], "paid": [1.0]})
        (tmp_path / f"{name}.parquet").write_bytes(parquet_bytes(content))
    data = Interactions.read(f"{tmp_path}/*.parquet", **COLUMNS)
    assert_holds(data, {(5, "x"): 1.0, (2**63, "x"): 1.0})


def test_of_parquet_other_columns_are_not_read(read):
    content = table(ROWS).append_column("broken", pa.array([b"\xff"] * 3).cast(pa.binary()))
    assert_holds(read(parquet_bytes(content, row_group_size=1), ".parquet"), EXPECTED)


def test_a_progress_bar_can_be_shown(read, capsys):
    assert_holds(read(csv_bytes(ROWS), progress=True), EXPECTED)
    assert "rows.csv" in capsys.readouterr().err
    read(csv_bytes(ROWS), progress=False)
    assert capsys.readouterr().err == ""
