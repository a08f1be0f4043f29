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


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "id\n7\n", "id,name\n7,\x00\xff"])
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


SALES = "Invoice,Code,Description,Paid\n1,7,tea,2\n2,7,tea,3\n3,7,?,1\n4,8,milk,1\n5,8,,1\n"


def test_names_from_the_data_themselves(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text(SALES)
    said = []
    assert read_names(path, ITEMS, said.append) == {"7": "tea", "8": "milk"}
    assert said == ["sales.csv: names of items from Description, by Code."]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("Invoice,Code,Remark,Paid", "cannot tell which column has the names"),
        ("Invoice,Paid,Description,Code", "names of items from Description, by Paid"),
        ("Rechnung,Artikel,Titel,Betrag", "names of items from Titel, by Artikel"),
    ],
)
def test_columns_of_names(tmp_path, header, message):
    path = tmp_path / "sales.csv"
    path.write_text(SALES.replace(SALES.split("\n")[0], header))
    said = []
    try:
        read_names(path, ITEMS, said.append)
    except InputError as error:
        said.append(str(error))
    assert message in said[0]


@pytest.mark.parametrize(
    "text",
    [
        "Order no,Product code,Product,Paid\n1,7,tea,2\n2,8,milk,3\n",
        "Film;Film ID;Stars;Seen on\ntea;7;2;May\nmilk;8;3;May\n",
    ],
)
def test_a_column_called_like_that_of_the_ids(tmp_path, text):
    path = tmp_path / "sales.csv"
    path.write_text(text)
    assert read_names(path, ITEMS) == {"7": "tea", "8": "milk"}


def test_a_column_that_is_given(tmp_path):
    path = tmp_path / "sales: May.csv"
    path.write_text("Code,Remark,Group,Paid\n7,tea,drinks,2\n8,bread,food,1\n")
    assert read_names(f"{path}:Remark", ITEMS) == {"7": "tea", "8": "bread"}
    assert read_names(f"{path}:Group", ITEMS) == {"7": "drinks", "8": "food"}
    with pytest.raises(InputError, match=r"there is no column 'Colour'\. Columns: Code, Remark"):
        read_names(f"{path}:Colour", ITEMS)
    with pytest.raises(InputError, match=r"Name it as in 'sales: May\.csv:COLUMN'"):
        read_names(path, ITEMS)
    with pytest.raises(InputError, match="no such file"):
        read_names("C:/sales.csv", ITEMS)


def test_no_column_has_the_items(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text("Code,Name,Paid\nx,tea,5\n")
    with pytest.raises(InputError, match="no column has the ids of the data, for example"):
        read_names(path, ITEMS)


def test_numbers_of_orders_that_contain_the_ids_of_items(tmp_path):
    path = tmp_path / "loans.csv"
    rows = [f"{loan},{7 + loan % 3},{('tea', 'milk', 'jam')[loan % 3]}" for loan in range(40)]
    for first in ("loan_id", "id"):
        path.write_text("\n".join([f"{first},book_id,title", *rows]))
        assert read_names(path, ITEMS) == {"7": "tea", "8": "milk", "9": "jam"}


def test_a_column_of_few_numbers_that_are_ids_of_items_too(tmp_path):
    path = tmp_path / "catalog.csv"
    rows = [f"{i % 3 + 1},{i},name {i}" for i in range(1, 500)]
    path.write_text("\n".join(["category,code,name", *rows]))
    assert read_names(path, np.arange(1, 30))["5"] == "name 5"
