"""Writing (user, item, value) rows in every format, and reading interactions back as a dict."""

import csv
import io

import pyarrow as pa
from pyarrow import ipc, parquet

NAMES = ("who", "what", "paid")
COLUMNS = {"user": "who", "item": "what", "value": "paid", "returns": "keep"}
PACKINGS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}


def by_pair(data):
    """{(user id, item id): value} with plain Python ids."""
    entries = data.matrix.tocoo()
    users, items = data.users.tolist(), data.items.tolist()
    return {
        (users[row], items[column]): value
        for row, column, value in zip(entries.row, entries.col, entries.data.tolist(), strict=True)
    }


def assert_holds(data, expected):
    """The pairs and values expected, ids sorted, and no id that has none of the pairs."""
    assert by_pair(data) == expected
    assert data.users.tolist() == sorted({user for user, _ in expected})
    assert data.items.tolist() == sorted({item for _, item in expected})
    assert data.n_observed == len(expected)


def table(rows):
    return pa.table({name: [row[k] for row in rows] for k, name in enumerate(NAMES)})


def csv_bytes(rows, delimiter=",", header=NAMES, end="\n"):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    writer.writerows([header, *rows] if header else rows)
    return text.getvalue().encode()


def parquet_bytes(content, **options):
    buffer = io.BytesIO()
    parquet.write_table(content, buffer, **options)
    return buffer.getvalue()


def arrow_bytes(content, stream=False, chunk=None, **options):
    buffer = io.BytesIO()
    kind = ipc.new_stream if stream else ipc.new_file
    with kind(buffer, content.schema, **options) as writer:
        writer.write_table(content, max_chunksize=chunk)
    return buffer.getvalue()


def packed(content, ending):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, PACKINGS[ending]) as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


def file_bytes(rows, ending):
    """The rows in the format that the ending stands for."""
    if ending in (".parquet", ".pq"):
        return parquet_bytes(table(rows))
    if ending in (".arrow", ".feather", ".ipc"):
        return arrow_bytes(table(rows))
    if ending == ".arrows":
        return arrow_bytes(table(rows), stream=True)
    for packing in PACKINGS:
        if ending.endswith(packing):
            return packed(file_bytes(rows, ending.removesuffix(packing)), packing)
    return csv_bytes(rows, "\t" if ending in (".tsv", ".tab") else ",")
