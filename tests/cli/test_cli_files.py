"""Files as people have them, from the command line: options, messages and what is said."""

import dataclasses
import inspect
import sqlite3

import numpy as np
import pytest

from hcpf import FittedModel
from hcpf.cli import compare, errors, evaluate, fit, info, shard
from hcpf.cli.inputs import Source
from hcpf.data.interactions import Interactions
from hcpf.data.read_options import ReadOptions

RAW = """InvoiceNo,StockCode,Description,Amount,InvoiceDate,CustomerID
1,T1,Tea for two,"£1,003.00",2024-01-01,17850
1,POST,POSTAGE,£5.00,2024-01-01,17850
2,T1,Tea for two,£2.00,2024-01-02,17850
3,T1,Tea?,£4.00,2024-01-03,
4,M1,Café au lait,£1.10,2024-01-04,12347
5,M1,Café au lait,-£1.10,2024-01-05,12347
7,J1,Jam,£2.50,2024-01-07,12347
8,M1,Café au lait,£3.50,2024-01-07,13000
"""
CLEANING = ("--drop-blank-ids", "--returns", "net", "--exclude-items", "POST")


@pytest.fixture
def raw(tmp_path):
    path = tmp_path / "export.csv"
    path.write_bytes(RAW.encode("cp1252"))
    return path


def test_one_declaration_of_the_options_of_reading():
    mine = {field.name: field.default for field in dataclasses.fields(Source)}
    for name in ("data", "user", "item", "value"):
        mine.pop(name)
    theirs = {field.name: field.default for field in dataclasses.fields(ReadOptions)}
    assert mine.keys() == theirs.keys() <= errors._OPTIONS.keys()
    assert {name for name in mine if mine[name] != theirs[name]} == {"exclude_items"}
    assert theirs.keys() <= inspect.signature(Interactions.read).parameters.keys()


@pytest.mark.parametrize(
    "command", [fit.fit, evaluate.evaluate, compare.compare, info.info, shard.shard]
)
def test_every_command_that_reads_data_has_them(command):
    names = {field.name for field in dataclasses.fields(Source)}
    assert names <= inspect.signature(command).parameters.keys()


def test_info_shows_what_was_understood(run_json, invoke, raw):
    about = run_json("info", raw, *CLEANING)
    assert (about["users"], about["items"], about["observed"]) == (3, 3, 3)
    assert about["values"]["max"] == 1005.0
    assert about["reading"] == [
        "export.csv: read as Windows-1252, because it is not UTF-8, e.g. '£1' (otherwise pass "
        "--encoding ...).",
        "Amount: read as money, e.g. '£1,003.00' = 1003.",
        "Dropped 1 row without an id.",
        "Excluded 1 item with 1 row: POST.",
        "Returns: 1 negative row subtracted; left out 1 pair at or below 0.",
        "Summed the rows of repeated pairs (4 rows, 3 pairs), because the column 'InvoiceNo' makes "
        "each row an event (otherwise pass --duplicates ...).",
    ]
    assert "- Amount: read as money" in invoke("info", raw, *CLEANING).stdout


def test_info_describes_the_good_rows_and_lists_what_is_wrong_with_the_others(run, run_json, raw):
    raw.write_bytes(RAW.replace("£2.50", "n/a").replace("£3.50", "").encode("cp1252"))
    about = run_json("info", raw)
    assert about["observed"] == 2  # tea and postage: coffee was returned
    said = " ".join(about["problems"])
    assert "'CustomerID' has no id in row 5 (row 1 is the header). Pass --drop-blank-ids" in said
    assert "'Amount' has no value: 'n/a' in row 8 and row 9 (row 1" in said
    assert "-1.1 in row 7" in said
    assert said.endswith(
        "For all of these: --drop-blank-ids --drop-blank-values --returns net."
    )  # fmt: skip
    result = run(["info", str(raw)])
    assert result.exit_code == 0
    assert "Problems (a fit refuses" in result.stdout
    assert "1 negative row subtracted; left out 1 pair at or below 0" in result.stdout
    assert "Problems" not in run(["info", str(raw), *CLEANING, "--drop-blank-values"]).stdout


def test_info_without_any_good_row_says_why(fails, raw):
    raw.write_text("CustomerID,StockCode,Amount\n,a,1\nx,b,\n")
    said = fails("info", raw)
    assert "There are no rows" in said
    assert "--drop-blank-ids --drop-blank-values" in said


def test_from_a_raw_export_to_names(invoke, raw, tmp_path):
    model = tmp_path / "model"
    said = invoke("fit", raw, "-o", model, *CLEANING, "-K", 2, "--fits", 1, "-e", "gamma").stderr
    assert "user = CustomerID, item = StockCode, value = Amount" in said
    assert "Amount: read as money" in said
    result = invoke("recommend", model, 17850, "--names", raw)
    assert "export.csv: names of items from Description, by StockCode." in result.stderr
    assert "Café au lait" in result.stdout
    lists = tmp_path / "lists.xlsx"
    invoke("recommend", model, "--all", "--names", raw, "-o", lists)
    assert run_pairs(lists)["17850", "J1"] == "Jam"


def run_pairs(path):
    from hcpf.data.files import open_file

    file = open_file(path)
    (users, items), *_ = file.pairs("user", "item")
    (_, names), *_ = file.pairs("user", "name")
    ids = zip(users.to_pylist(), items.to_pylist(), strict=True)
    return dict(zip(ids, names.to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "'CustomerID' has no id in row 5 (row 1 is the header). Pass --drop-blank-ids"),
        (("--drop-blank-ids",), "negative values: -1.1 in row 7 (row 1 is the header). If these "
         "are returns, pass --returns net"),
        (("--encoding", "utf-9"), "--encoding utf-9 is unknown"),
        (("--decimal", ";"), "decimal must be '.' or ','"),
        (("--sheet", "Sheet1"), "this file has no sheets. Remove --sheet"),
        (("--sql", "SELECT 1"), "a query requires a database"),
        (("--exclude-items", "*", "--drop-blank-ids"), "There are no rows"),
    ],
)  # fmt: skip
def test_mistakes_name_the_option(fails, raw, tmp_path, options, message):
    assert message in fails("fit", raw, "-o", tmp_path / "model", *options)


def test_an_amount_that_cannot_be_read_is_never_dropped(fails, tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text("Customer,Product,Amount,Discount\na,x,much,1\nb,x,little,2\n")
    message = fails("info", path)
    assert (
        "'Amount' has values that are not numbers: 'much' in row 2 and 'little' in row" in message
    )
    path.write_text('Customer,Product,Amount\na,x,"1,234"\nb,x,950\n')
    assert "Pass --decimal . or ," in fails("info", path)


def test_a_query(run_json, tmp_path):
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE sales (customer, product, paid)")
    connection.execute("INSERT INTO sales VALUES (1, 'x', 2.5), (2, 'x', 3.5)")
    connection.commit()
    connection.close()
    query = "SELECT customer, product, paid FROM sales WHERE paid > 3"
    assert run_json("info", path, "--sql", query)["observed"] == 1


@pytest.mark.parametrize("target", ["file/model", "file/deeper/model"])
def test_output_is_checked_before_data_are_read(fails, tmp_path, target):
    (tmp_path / "file").write_text("")
    message = fails("fit", tmp_path / "missing.csv", "-o", tmp_path / target)
    assert "cannot be written" in message
    scores = fails("evaluate", tmp_path / "missing.csv", "-o", tmp_path / target)
    assert "cannot be written" in scores


def test_cells_in_an_h5ad_file(invoke, fails, tmp_path):
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    counts = np.random.default_rng(0).poisson(0.8, (30, 12)).astype(np.float32)
    adata = anndata.AnnData(
        np.log1p(counts),
        obs=pandas.DataFrame(index=[f"c{j}" for j in range(30)]),
        var=pandas.DataFrame(index=[f"g{j}" for j in range(12)]),
        layers={"counts": counts},
    )
    path, model = tmp_path / "cells.h5ad", tmp_path / "model"
    adata.write_h5ad(path)
    small = ("-K", 2, "--fits", 1, "--max-iter", 5, "-e", "poisson")
    done = invoke("fit", path, "--layer", "counts", "-o", model, *small)
    assert "fractions" not in done.stderr
    data = FittedModel.load(model).data
    np.testing.assert_array_equal(data.matrix.toarray(), counts)
    remark = invoke("info", path).stderr + invoke("info", path).stdout
    assert "looks normalized" in remark
    assert "--layer counts" in remark
    assert "Remove --user cell" in fails("fit", path, "--user", "cell", "-o", model, "--overwrite")


def test_a_few_zeros_name_the_option_that_leaves_them_out(run, tmp_path):
    path = tmp_path / "gifts.csv"
    rows = [f"u{u},i{i},{0 if u == i == 3 else 1.5 + u * i}" for u in range(9) for i in range(8)]
    path.write_text("\n".join(["user,item,amount", *rows]))
    said = run(["info", str(path)]).stderr
    assert "1 of the 72 is not above 0; without such rows, which --returns drop leaves out" in said
    assert run(["info", str(path), "--returns", "drop"]).stderr.count("not above 0") == 0
