"""The bundled data set, and the script that made it."""

import importlib.resources
import inspect
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasets import make_retail
from hcpf import datasets


@pytest.mark.parametrize("value", ["spend", "quantity", "invoices"])
def test_shape_and_values(value):
    data = datasets.retail(value)
    assert data.shape == (4334, 3659)
    assert data.n_observed == 266_221
    assert data.values.min() > 0
    assert data.users.dtype == np.int64
    if value != "spend":
        np.testing.assert_array_equal(data.values, np.round(data.values))


def test_totals():
    # In pounds, units and invoices; each unit costs at least a little, each invoice has a unit.
    spend, quantity, invoices = map(datasets.retail, ("spend", "quantity", "invoices"))
    assert spend.values.sum() == pytest.approx(8_761_066.65, abs=0.01)
    assert quantity.values.sum() == 5_157_354
    assert invoices.values.max() == 63
    assert (invoices.values <= quantity.values).all()
    assert (quantity.matrix.indices == spend.matrix.indices).all()


def test_spend_is_the_default():
    assert (datasets.retail().values == datasets.retail("spend").values).all()


def test_every_product_has_a_name():
    names = datasets.retail_products()
    assert set(names) == set(datasets.retail().items)
    assert all(name == name.strip() and len(name) > 2 for name in names.values())
    assert names["85123A"] == "White hanging heart t-light holder"
    assert not {"POST", "M", "D", "DOT", "PADS", "C2", "BANK CHARGES"} & set(names)


def test_files_are_small_and_their_license_is_beside_them():
    folder = importlib.resources.files("hcpf.datasets")
    sizes = [
        len((folder / name).read_bytes()) for name in ("retail.parquet", "retail_products.parquet")
    ]
    assert sum(sizes) < 1.5e6
    text = (folder / "LICENSE-retail.txt").read_text()
    assert "CC BY 4.0" in text
    assert "10.24432/C5BW33" in text


LINES = [
    # invoice, code, description, quantity, price, customer
    ("1", "85123A", "WHITE  HEART ", 2, "2,55", 12),
    ("1", "85123a", "WHITE  HEART ", 1, "2.55", 12),  # the same product in small letters
    ("2", "85123A", "white heart, wet", 1, "2,55", 12),
    ("3", "22423", "CAKESTAND.", 4, "0,1", 13),
    ("C4", "85123A", "CANCELLED", -1, "2,55", 12),
    ("C4", "85123A", "CANCELLED", 1, "2,55", 12),
    ("5", "85123A", "NOBODY", 5, "2,55", None),
    ("6", "85123A", "NOBODY", 5, "2,55", 0),
    ("7", "POST", "POSTAGE", 1, "18,00", 12),
    ("8", "gift_0001_20", "voucher", 1, "20,00", 12),
    ("9", "22423", "FREE", 1, "0", 13),
    ("10", "22423", "DAMAGED", -7, "1", 13),
]


def test_the_script_leaves_out_and_adds_up(tmp_path):
    names = ["InvoiceNo", "StockCode", "Description", "Quantity", "UnitPrice", "CustomerID"]
    source = tmp_path / "lines.parquet"
    pq.write_table(pa.table(dict(zip(names, zip(*LINES, strict=True), strict=True))), source)
    make_retail.main(source, tmp_path)
    assert pq.read_table(tmp_path / "retail.parquet").to_pylist() == [
        {"customer": 12, "product": "85123A", "pence": 1020, "quantity": 4, "invoices": 2},
        {"customer": 13, "product": "22423", "pence": 40, "quantity": 4, "invoices": 1},
    ]
    assert pq.read_table(tmp_path / "retail_products.parquet").to_pylist() == [
        {"product": "22423", "name": "Cakestand"},
        {"product": "85123A", "name": "White heart"},
    ]


def test_bundled_files_are_what_the_script_makes(shared_data, tmp_path):
    make_retail.main(shared_data / "online_retail_raw" / "online_retail_raw.parquet", tmp_path)
    folder = importlib.resources.files("hcpf.datasets")
    for name in ("retail.parquet", "retail_products.parquet"):
        with (folder / name).open("rb") as bundled:
            assert pq.read_table(tmp_path / name).equals(pq.read_table(bundled))


def test_the_page_lists_every_reader_with_its_default():
    page = Path(__file__).resolve().parents[2] / "docs" / "datasets.md"
    rows = re.findall(r"^\| `(\w+)` .* \| (\w+) \|$", page.read_text(), flags=re.M)
    others = {"download", "downloads", "retail", "retail_products"}
    readers = {name: getattr(datasets, name) for name in set(datasets.__all__) - others}
    donations = inspect.signature(readers.pop("donations")).parameters["duplicates"].default
    defaults = {name: reader.duplicates for name, reader in readers.items()}
    assert dict(rows) == defaults | {"donations": donations}
