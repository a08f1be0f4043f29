"""Columns that update, fold-in and evaluate --like take from the model, and paths mixed up."""

import pytest

from cli.conftest import write_csv
from hcpf import Interactions
from hcpf.data.words import Words
from hcpf.model.fitted import FittedModel

ROWS = [f"c{u},p{i},{1 + (u + i) % 3},{5.0 + 1.5 * (7 * u + i) % 11}" for u in range(20) for i in
        range(12) if (u * i + u + i) % 3 == 1]  # fmt: skip
HEADER = "customer,product,quantity,worth"


@pytest.fixture(scope="module")
def orders(tmp_path_factory):
    """A file of which the column of quantities is detected."""
    path = tmp_path_factory.mktemp("orders") / "orders.csv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return path


@pytest.fixture(scope="module")
def worth(orders, invoke):
    """A model of the other column."""
    path = orders.parent / "model"
    settings = ("--element", "gamma", "-K", 2, "--fits", 1, "--max-iter", 3)
    invoke("fit", orders, "--value", "worth", *settings, "-o", path)
    return path


def test_the_columns_are_those_of_the_model(invoke, orders, worth, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text(f"{HEADER}\nn1,p1,2,40.0\nn1,p3,1,12.5\n")
    assert "value = worth" in invoke("evaluate", orders, "--like", worth).stderr
    assert "value = worth" in invoke("fold-in", worth, new).stderr
    assert "value = worth" in invoke("update", worth, new, "-o", tmp_path / "updated").stderr
    entries = FittedModel.load(tmp_path / "updated").data
    assert entries.matrix.toarray()[entries.users == "n1"].max() == 40.0


def test_a_given_column_is_taken_with_a_remark(invoke, orders, worth):
    said = invoke("evaluate", orders, "--like", worth, "--item", "customer", "--user", "product")
    assert "user = product, item = customer, value = worth" in said.stderr
    assert "fitted to" not in said.stderr


def test_values_with_another_name_are_mentioned(invoke, worth, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("customer,product,quantity\nn1,p1,2\n")
    said = invoke("fold-in", worth, new).stderr
    assert "The model was fitted to worths, not to quantity (otherwise pass --value)." in said


def test_an_updated_model_names_both_files(invoke, worth, tmp_path):
    new = tmp_path / "later.csv"
    new.write_text(f"{HEADER}\nn1,p1,2,40.0\n")
    invoke("update", worth, new, "-o", tmp_path / "updated")
    assert FittedModel.load(tmp_path / "updated").words.source == "orders.csv and later.csv"
    periods = [Words(period=period) for period in ("", "2 May 2024", "3 May 2024")]
    assert periods[0].joined(periods[1]).period == "2 May 2024"
    assert periods[1].joined(periods[2]).period == "2 May 2024 and 3 May 2024"
    both = periods[1].joined(periods[2])
    assert both.joined(periods[1]) == both.joined(periods[2]) == both


def test_a_model_is_not_data_and_data_are_not_a_model(fails, orders, worth, tmp_path):
    assert f"{worth} is a saved model. Pass data" in fails("fit", worth, "-o", tmp_path / "x")
    said = fails("recommend", orders, "c1")
    assert f"{orders} is a file, but a model is a folder that hcpf fit wrote." in said


def test_ids_of_another_kind_are_shown(fails, invoke, tmp_path):
    data = Interactions.from_arrays([1, 2, 3, 3], [10, 11, 10, 11], [2.0, 1.5, 3.0, 2.5])
    sales, model = write_csv(tmp_path / "sales.csv", data), tmp_path / "model"
    sales.write_text(sales.read_text().replace("p", "").replace("roduct", "product"))
    invoke("fit", sales, "--element", "gamma", "-K", 1, "--fits", 1, "--max-iter", 2, "-o", model)
    new = tmp_path / "new.csv"
    new.write_text("customer,product,spend\nc9,0,2.5\nc9,VOUCHER,1.5\n")
    said = fails("fold-in", model, new)
    assert "the fitted ids are integers, but these are strings, for example 'VOUCHER'." in said
    assert "for example 0" in said


def test_new_rows_whose_ids_happen_to_be_integers(invoke, run_json, tmp_path):
    """Codes such as 22423 and 85123A are strings to a model, and integers to a file of a few."""
    sales = tmp_path / "sales.csv"
    rows = [f"{u},{i},{1.5 + (u * i) % 5}" for u in range(6) for i in (22423, 22720)]
    sales.write_text("\n".join(["customer,product,spend", *rows, "7x,85123A,2.5"]) + "\n")
    model, new = tmp_path / "model", tmp_path / "new.csv"
    invoke("fit", sales, "--element", "gamma", "-K", 1, "--fits", 1, "--max-iter", 2, "-o", model)
    new.write_text("customer,product,spend\n77,22423,2.5\n")
    assert [row["item"] for row in run_json("fold-in", model, new)] == ["22720", "85123A"]
    invoke("update", model, new)
    updated = FittedModel.load(model)
    assert "77" in updated.users
    assert set(updated.items) == {"22423", "22720", "85123A"}
