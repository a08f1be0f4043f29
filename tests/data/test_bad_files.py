"""Files that are missing, damaged or wrong: always an InputError that names the file."""

import gzip
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from data.table_files import (
    COLUMNS,
    PACKINGS,
    arrow_bytes,
    csv_bytes,
    file_bytes,
    packed,
    parquet_bytes,
    table,
)
from hcpf.data import Interactions
from hcpf.errors import InputError

ROWS = [("bob", "tea", 3.0), ("ann", "milk", 0.5), ("bob", "milk", 1.5)]
FORMATS = [".csv", ".tsv", ".csv.gz", ".parquet", ".arrow", ".arrows"]
TYPED = {".parquet": parquet_bytes, ".arrow": arrow_bytes}
GOOD = {"who": ["a", "b"], "what": ["x", "y"], "paid": [1.0, 2.0]}


@pytest.fixture
def refuse(tmp_path):
    """Check that a file with these bytes is refused, with its name and the message."""

    def write_and_read(content, ending, message, **options):
        path = tmp_path / f"rows{ending}"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(InputError, match=message) as caught:
            Interactions.read(path, **({**COLUMNS, **options}))
        assert str(caught.value).count(str(path)) == 1
        return str(caught.value)

    return write_and_read


# -- content --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
def test_empty_file(refuse, ending):
    refuse(b"", ending, "empty")


def test_no_rows(refuse):
    for ending in (".csv", ".tsv", ".csv.gz", ".csv.zst"):
        refuse(file_bytes([], ending), ending, "no rows")
    for ending, write in TYPED.items():
        refuse(write(table(ROWS).slice(0, 0)), ending, "no rows")


@pytest.mark.parametrize("content", ["who,what,paid", "\n\n\n", "\ufeff"])
def test_text_with_hardly_anything_in_it(refuse, content):
    refuse(content, ".csv", "Empty CSV|not there|no rows")


@pytest.mark.parametrize("ending", [".csv.gz", ".csv.bz2", ".csv.zst", ".parquet", ".arrow"])
def test_truncated_files(refuse, ending):
    content = file_bytes(ROWS, ending)
    for size in {1, 4, 7, 8, 12, len(content) // 2, len(content) - 9, len(content) - 1}:
        refuse(content[:size], ending, "cannot be read")


def test_truncated_stream(refuse):
    content = arrow_bytes(table(ROWS), stream=True)
    end = 8  # the mark of the end is optional
    for size in (1, 5, 100, len(content) // 2, len(content) - end - 1):
        refuse(content[:size], ".arrows", "cannot be read|no rows")


@pytest.mark.parametrize("ending", [*FORMATS, ".txt", ".feather", *(f".csv{e}" for e in PACKINGS)])
def test_random_bytes(refuse, ending, rng):
    for size in (1, 10, 1000, 100_000):
        refuse(rng.bytes(size), ending, "cannot be read|not there|no such column|neither UTF-8")


def test_dictionary_codes_beyond_the_dictionary(refuse):
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 99], pa.int32()), ["a", "b"], safe=False)
    refuse(arrow_bytes(pa.table({**GOOD, "who": codes})), ".arrow", "out of bounds: 99")


def test_offsets_beyond_the_text_do_not_end_the_process(refuse):
    content, good = arrow_bytes(pa.table(GOOD)), np.array([0, 1, 2], np.int32)
    assert good.tobytes() in content
    bad = np.array([0, 1, 2**30], np.int32)
    refuse(content.replace(good.tobytes(), bad.tobytes()), ".arrow", "out of bounds: 1073741824")


@pytest.mark.parametrize("write", TYPED.values(), ids=TYPED)
def test_typed_text_that_is_not_utf8(refuse, write):
    offsets = pa.py_buffer(np.array([0, 1, 2], np.int32).tobytes())
    ids = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"a\xff"))
    ending = ".parquet" if write is parquet_bytes else ".arrow"
    refuse(write(pa.table({**GOOD, "who": ids})), ending, "UTF-?8")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"wh\xff,what,paid\na,x,1\n", "no such column.*'whÿ'"),
        ("who,what,paid\na,x,1\nb,y\n", "must have 3 columns.*'b,y' in row 3 has 2"),
        ("who,what,paid\na,x,1\nb,y,1,2\n", "'b,y,1,2' in row 3 has 4"),
        ("who,what,paid\nb\n\nc\nd\ne\n", "row 2 has 1, 'c' in row 4 .*row 5.*4 rows in total"),
        ('who,what,paid\na,x,1\n"b,y,2\n', "in row 3 has 1"),
        ("who,what,paid\na,x,1\nb,y,much\n", "not numbers: 'much' in row 3 .row 1 is the header"),
        ('who,what,paid\na,x,"1,234"\n', "thousands or decimals.*Pass decimal="),
        ("who,what,paid\na,x,1\nb,y,true\n", "not numbers: 'true' in row 3"),
        ("who,what,paid\na,x,1\nb,y,\n", "'paid' has no value in row 3"),
        ("who,what,paid\na,x,1\nb,y,NaN\n", "'paid' has no value in row 3"),
        ("who,what,paid\na,x,inf\n", "not numbers: 'inf' in row 2"),
        ("who,what,paid\na,x,1\nb,y,-inf\n", "not numbers: '-inf' in row 3"),
        ("who,what,paid\na,x,1e999\n", "not finite: inf in row 2"),
        ("who,what,paid\na,x,1\n,y,1\n", "'who' has no id in row 3.*drop_blank_ids=True"),
        ('who,what,paid\na,x,1\n"",y,1\n', "'who' has no id in row 3"),
        ("who,what,paid\na,NA,1\n", "'what' has no id in row 2"),
        ("who,what,paid\n" + 9 * ",x,1\n", r"no id in rows 2, 3 and 4 \(9 rows in total"),
        ("who,what,paid\n,x,?\na,x,?\n", r"'who' has no id in row 2.*not numbers: '\?' in row 3"),
    ],
)
def test_bad_text(refuse, content, message):
    refuse(content, ".csv", message)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("who", pa.array(["a", None]), "'who' has no id in row 2"),
        ("what", pa.array([None, 1]), "'what' has no id in row 1"),
        ("who", pa.array([1.5, 2.0]), "'who' holds double"),
        ("who", pa.array([True, False]), "'who' holds bool"),
        ("what", pa.array([[1], [2]]), "'what' holds list"),
        ("what", pa.array([b"a", b"b"]), "'what' holds binary"),
        ("paid", pa.array([1.0, None]), "'paid' has no value in row 2"),
        ("paid", pa.array([1.0, np.nan]), "'paid' has no value in row 2"),
        ("paid", pa.array([-np.inf, 1.0]), "'paid' .* not finite: -inf in row 1"),
        ("paid", pa.array(["1", "two"]), "'paid' .* not numbers: 'two' in row 2"),
        ("paid", pa.array([b"1", b"2"]), "'paid' holds binary"),
    ],
)
def test_bad_typed_columns(refuse, column, values, message):
    for ending, write in TYPED.items():
        refuse(write(pa.table({**GOOD, column: values})), ending, message)


def test_the_row_is_counted_within_the_file(tmp_path, refuse):
    first = tmp_path / "first.csv"
    first.write_bytes(csv_bytes(ROWS))
    for bad, message in ((",x,1", "'who' has no id in row 3"), ("c,x,inf", "'inf' in row 3")):
        second = tmp_path / "second.csv"
        second.write_text(f"who,what,paid\na,y,1\n{bad}\n")
        with pytest.raises(InputError, match=rf"second\.csv: .*{message}"):
            Interactions.read([first, second], **COLUMNS)


def test_files_with_ids_of_different_kinds(tmp_path):
    (tmp_path / "1.csv").write_bytes(csv_bytes(ROWS))
    (tmp_path / "2.parquet").write_bytes(parquet_bytes(pa.table({**GOOD, "who": [1, 2]})))
    with pytest.raises(InputError, match=r"2\.parquet: .*'who' holds strings and then integers"):
        Interactions.read(f"{tmp_path}/*", **COLUMNS)


def test_ids_that_fit_no_type_together(tmp_path):
    for name, ids in (("1", np.array([-1])), ("2", np.array([2**63], np.uint64))):
        content = pa.table({"who": ids, "what": ["x"], "paid": [1.0]})
        (tmp_path / f"{name}.parquet").write_bytes(parquet_bytes(content))
    with pytest.raises(InputError, match=f"'who': the ids -1 and {2**63} do not fit"):
        Interactions.read(f"{tmp_path}/*.parquet", **COLUMNS)


# -- names of files -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["none.csv", "*.parquet", "no/such/folder.csv", "a\0b.csv", "["])
def test_missing_files(tmp_path, name):
    with pytest.raises(InputError, match="there is no such file"):
        Interactions.read(f"{tmp_path}/{name}", **COLUMNS)


def test_one_missing_file_in_a_list(tmp_path):
    (tmp_path / "1.csv").write_bytes(csv_bytes(ROWS))
    with pytest.raises(InputError, match=r"2\.csv: there is no such file"):
        Interactions.read([tmp_path / "1.csv", tmp_path / "2.csv"], **COLUMNS)


def test_a_folder(tmp_path):
    with pytest.raises(InputError, match=f"{tmp_path}: this is a folder without tables"):
        Interactions.read(tmp_path, **COLUMNS)


def test_a_glob_that_finds_folders_only(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="this is not a file"):
        Interactions.read(f"{tmp_path}/*.csv", **COLUMNS)


def test_a_name_that_is_too_long():
    with pytest.raises(InputError, match=r"cannot be read.*too long"):
        Interactions.read("x" * 5000 + ".csv", **COLUMNS)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
@pytest.mark.parametrize("ending", FORMATS)
def test_a_file_that_may_not_be_read(tmp_path, ending):
    path = tmp_path / f"rows{ending}"
    path.write_bytes(file_bytes(ROWS, ending))
    path.chmod(0)
    with pytest.raises(InputError, match=f"{path} cannot be read"):
        Interactions.read(path, **COLUMNS)


@pytest.mark.parametrize("ending", ["", ".gz", ".csv.zip", ".json", ".csv.bak", ".loom"])
def test_unknown_endings(refuse, ending):
    refuse(csv_bytes(ROWS), ending, r"Known extensions: \.csv, \.tsv, .*\.parquet")


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_only_text_may_be_packed(refuse, ending):
    refuse(packed(file_bytes(ROWS, ending), ".gz"), f"{ending}.gz", "only text files")


@pytest.mark.parametrize("ending", FORMATS)
def test_the_content_is_of_another_format(refuse, ending):
    text = ending in (".csv", ".tsv")
    content = file_bytes(ROWS, ".parquet" if text else ".csv")
    refuse(content, ending, "cannot be read|not there|neither UTF-8 nor Windows")


def test_gzip_of_something_else(refuse):
    refuse(gzip.compress(b"\0" * 100), ".csv.gz", "cannot be read|not there")


# -- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"user": "nobody"}, r"user='nobody': there is no such column.*'who', 'what', 'paid'"),
        ({"item": 3}, "item=3: positions are 0 to 2"),
        ({"value": -1}, "value=-1: positions are 0 to 2"),
        ({"item": "who"}, "must be different columns"),
        ({"value": 0}, "must be different columns"),
        ({"user": True}, "user must be the name or the position of a column, got True"),
        ({"user": None}, "requires user= and item="),
        ({"item": 1.0}, "item must be .* got 1.0"),
        ({"value": ["paid"]}, "value must be"),
        ({"value": b"paid"}, "value must be"),
    ],
)
def test_wrong_columns(refuse, columns, message):
    for ending in FORMATS:
        refuse(file_bytes(ROWS, ending), ending, message, **columns)


@pytest.mark.parametrize("value", ["paid", 2, 3])
def test_two_columns_of_one_name(refuse, value):
    content = pa.table([["a"], ["x"], [1.0], [2.0]], names=["who", "what", "paid", "paid"])
    message = "'paid' occurs more than once"
    refuse("who,what,paid,paid\na,x,1,2\n", ".csv", message, value=value)
    refuse(parquet_bytes(content), ".parquet", message, value=value)
    refuse(arrow_bytes(content), ".arrow", message, value=value)


WRONG_ARGUMENTS = [
    *({"path": path} for path in (None, 5, b"rows.csv", object(), [5], [None], {"rows": 1}, [])),
    *({"delimiter": one} for one in (5, "", "::", "é", "\n", "\r", '"', "\0", b",", [","])),
    *({"header": one} for one in (1, "no", [])),
    *({"decimal": one} for one in ("", ".,", 5, b",")),
    *({"encoding": one} for one in ("", "utf-9", "base64", 5)),
    *({"returns": one} for one in ("", None, "sum", 5)),
    *({"duplicates": one} for one in ("", None, "first", 5)),
    *({"drop_blank_ids": one} for one in (None, 1, "yes")),
    *({"exclude_items": one} for one in (None, 1.5, [None], [True], Path("none"))),
    *({"sheet": one} for one in ("Sheet1", 0)),
    *({"sql": one} for one in ("SELECT 1", 5)),
    *({"progress": one} for one in (1, "yes", [], np.array([1, 2]))),
]


@pytest.mark.parametrize("wrong", WRONG_ARGUMENTS, ids=lambda wrong: str(wrong).split(" at 0x")[0])
def test_wrong_arguments(tmp_path, wrong):
    path = tmp_path / "rows.csv"
    path.write_bytes(csv_bytes(ROWS))
    with pytest.raises(InputError, match=f"{next(iter(wrong))}|No file|no such file"):
        Interactions.read(**{"path": path, **COLUMNS, **wrong})
