"""Damaged files: either an InputError or the rows that are there; no crash, and no hang.

HCPF_FUZZ=20 runs 20 times as many examples; --hypothesis-show-statistics counts the outcomes.
"""

import os
from datetime import timedelta
from io import BytesIO
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyarrow import ipc, parquet

from data.table_files import COLUMNS, NAMES, arrow_bytes, by_pair, csv_bytes, packed, parquet_bytes
from hcpf.data import Interactions
from hcpf.errors import InputError

TIMES = int(os.environ.get("HCPF_FUZZ", "1"))
ENDINGS = [".csv", ".tsv", ".csv.gz", ".csv.zst", ".csv.br", ".parquet", ".arrow", ".arrows"]

PLAIN = pa.table({"who": ["b", "a", "b"], "what": [10, 20, 30], "paid": [1.0, 2.0, 3.0]})
CODED = pa.table(
    {
        "who": pa.array(["b", "a", "b"]).dictionary_encode(),
        "what": pa.array(["x", "longer than twelve bytes", ""], pa.string_view()),
        "paid": pa.array([1, 2, 3], pa.int8()),
    }
)
TEXT = csv_bytes([("a,b", "x", 1.0), ("007", 'y\n"z"', 0.5), ("Ünï", "日本", -2e-3)])
SEEDS = {
    ".csv": [TEXT, b"\xef\xbb\xbfwho;what;paid\r\n7;8;1\r\n9;8;2\r\n"],
    ".csv.gz": [packed(TEXT, ".gz")],
    ".csv.zst": [packed(TEXT, ".zst")],
    ".csv.br": [packed(TEXT, ".br")],
    ".parquet": [
        parquet_bytes(PLAIN),
        parquet_bytes(PLAIN, compression="zstd", version="1.0", row_group_size=1),
        parquet_bytes(PLAIN, use_dictionary=False, compression="none", data_page_version="2.0"),
        parquet_bytes(CODED),
    ],
    ".arrow": [
        arrow_bytes(PLAIN, chunk=2),
        arrow_bytes(CODED),
        arrow_bytes(PLAIN, options=ipc.IpcWriteOptions(compression="zstd")),
    ],
    ".arrows": [
        arrow_bytes(PLAIN, stream=True, chunk=2),
        arrow_bytes(CODED, stream=True),
        arrow_bytes(PLAIN, stream=True, options=ipc.IpcWriteOptions(compression="lz4")),
    ],
}


def fuzzed(examples):
    return settings(max_examples=examples * TIMES, deadline=timedelta(seconds=20))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


def outcome(folder, content, ending, **options):
    """The interactions read, checked; or None where an InputError names the file."""
    path = folder / f"rows{ending}"
    path.unlink(missing_ok=True)  # a new file: the old one may still be mapped
    path.write_bytes(content)
    try:
        data = Interactions.read(path, **COLUMNS, duplicates="last", **options)
    except InputError as error:
        event(f"{ending} refused")
        message = str(error)
    else:
        event(f"{ending} read")
        assert_sound(data)
        return data
    assert str(path) in message
    return None


def assert_sound(data):
    assert data.n_observed > 0
    assert np.isfinite(data.values).all()
    assert data.matrix.has_canonical_format
    for ids in (data.users, data.items):
        assert all(one < other for one, other in pairwise(ids))
    assert (np.diff(data.matrix.indptr) > 0).all()


# -- damage ---------------------------------------------------------------------------------------

place = st.integers(0, 2**12)
damage = st.one_of(
    st.tuples(st.just("flip"), place, st.integers(0, 7)),
    st.tuples(st.just("set"), place, st.sampled_from([0, 1, 127, 128, 255]) | st.integers(0, 255)),
    st.tuples(st.just("cut"), place, st.integers(1, 40)),
    st.tuples(st.just("put"), place, st.binary(min_size=1, max_size=8)),
    st.tuples(st.just("repeat"), place, st.integers(1, 40)),
    st.tuples(st.just("end"), place, st.none()),
)


def damaged(content, steps):
    out = bytearray(content)
    for kind, where, how in steps:
        at = where % max(len(out), 1)
        if kind == "flip" and out:
            out[at] ^= 1 << how
        elif kind == "set" and out:
            out[at] = how
        elif kind == "cut":
            del out[at : at + how]
        elif kind == "put":
            out[at:at] = how
        elif kind == "repeat":
            out[at:at] = out[at : at + how]
        elif kind == "end":
            del out[at:]
    return bytes(out)


def as_arrow_sees_it(content, ending):
    """{(user, item): last value} by way of Arrow's own conversion to Python."""
    if ending == ".parquet":
        content = parquet.ParquetFile(BytesIO(content)).read()
    else:
        try:
            content = ipc.open_file(BytesIO(content)).read_all()
        except pa.ArrowInvalid:
            content = ipc.open_stream(BytesIO(content)).read_all()
    columns = [content[name].to_pylist() for name in NAMES]
    return {(user, item): value for user, item, value in zip(*columns, strict=True)}


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".arrows"])
@given(data=st.data())
@fuzzed(150)
def test_damaged_typed_files(folder, ending, data):
    seed = data.draw(st.sampled_from(SEEDS[ending]))
    content = damaged(seed, data.draw(st.lists(damage, max_size=4)))
    found = outcome(folder, content, ending)
    if found is not None:
        assert by_pair(found) == as_arrow_sees_it(content, ending)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".csv.zst", ".csv.br"])
@given(data=st.data())
@fuzzed(80)
def test_damaged_text_files(folder, ending, data):
    seed = data.draw(st.sampled_from(SEEDS[ending]))
    content = damaged(seed, data.draw(st.lists(damage, max_size=4)))
    found = outcome(folder, content, ending)
    if found is not None and ending == ".csv":
        assert_ids_are_from(content, found)


def assert_ids_are_from(content, found):
    text = content.decode("utf-8", "replace").replace('"', "")
    for one in [*found.users.tolist(), *found.items.tolist()]:
        assert str(one).replace('"', "") in text


# -- anything -------------------------------------------------------------------------------------


@given(st.binary(max_size=300), st.sampled_from(ENDINGS))
@fuzzed(200)
def test_random_bytes(folder, content, ending):
    assert outcome(folder, content, ending) is None


rows_and_rubbish = st.lists(
    st.sampled_from(
        ["a,b,1\n", 'a,"b\n",2\r\n', '"a""",é,-.5\n', "\n", " ", '"', ",", "1", "\0", "\r"]
    )
    | st.text('ab1.-,;"\n\r\t|é \0', max_size=5),
    max_size=6,
).map("".join)


@given(rows_and_rubbish, st.booleans(), st.sampled_from([None, ",", ";"]))
@fuzzed(300)
def test_random_text_after_a_header(folder, text, quoted, delimiter):
    header = '"who","what","paid"\n' if quoted else "who,what,paid\n"
    content = (header + text).encode()
    found = outcome(folder, content, ".csv", delimiter=delimiter)
    if found is not None:
        assert_ids_are_from(content, found)


cell = st.text('ab1 "\n,', max_size=3).map(lambda text: '"' + text.replace('"', '""') + '"')


@given(st.lists(st.tuples(cell, cell, st.sampled_from(["1", "0", "-2.5", "", "x", "nan"]))))
@fuzzed(100)
def test_rows_of_which_some_have_no_value(folder, rows):
    content = "\n".join(["who,what,paid", *map(",".join, rows)]).encode()
    found = outcome(folder, content, ".csv")
    has_ids = all(text[1:-1].strip() for row in rows for text in row[:2])
    good = bool(rows) and has_ids and all(value in ("1", "0", "-2.5") for *_, value in rows)
    assert (found is not None) == good
    if found is not None:
        pairs = [[text[1:-1].replace('""', '"') for text in row[:2]] for row in rows]
        expected = {tuple(pair): float(row[2]) for pair, row in zip(pairs, rows, strict=True)}
        assert {(str(u), str(i)): v for (u, i), v in by_pair(found).items()} == expected
