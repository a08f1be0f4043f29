"""Names of items from mappings and files: one contract for commands and reports."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from hcpf.data.names import item_labels, read_names
from hcpf.errors import InputError

ITEMS = np.array([7, 8, 9])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "id,name\n7,tea\n8,\n"),
        ("a.csv", "group,name,id\n1,tea,7\n1,,8\n"),
        ("a.csv", "product,description\n7,tea\n"),
        ("a.tsv", "id\tname\n7\ttea\n"),
    ],
)
def test_text_files(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8-sig")
    assert item_labels(ITEMS, read_names(path, ITEMS)) == ["tea", "8", "9"]


def test_parquet_and_mappings(tmp_path):
    path = tmp_path / "names.parquet"
    parquet.write_table(pa.table({"id": [7, 8], "name": ["tea", None]}), path)
    assert read_names(str(path), ITEMS) == {"7": "tea"}
    assert read_names({np.int64(8): "milk", 9: ""}, ITEMS) == {"8": "milk"}
    assert read_names(None, ITEMS) == {}


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "id\n7\n", "id,name\n7,\xff"])
def test_files_without_names_of_the_items(text, tmp_path):
    path = tmp_path / "names.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError):
        read_names(path, ITEMS)
    with pytest.raises(InputError):
        read_names(path.rename(tmp_path / "names.parquet"), ITEMS)


@pytest.mark.parametrize("source", [3, "no such file.csv", {"no such id": "name"}])
def test_refuses(source):
    with pytest.raises(InputError):
        read_names(source, ITEMS)
