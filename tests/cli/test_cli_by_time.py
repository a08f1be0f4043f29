"""``hcpf evaluate --by-time``: train before a date, test after it."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from hcpf import Interactions
from hcpf.cli.app import app
from hcpf.evaluate import split_by_time

HEADER = "Customer,Product,Paid,Date\n"


def orders(rng, n):
    users, items = rng.integers(0, 60, n), rng.integers(0, 30, n)
    days = np.datetime64("2024-01-01") + rng.integers(0, 100, n)
    paid = rng.gamma(2.0, 10.0, n).round(2)
    lines = [
        f"c{u},p{i},£{y:.2f},{d.astype(object):%d.%m.%Y}"
        for u, i, y, d in zip(users, items, paid, days, strict=True)
    ]
    return HEADER + "\n".join(lines) + "\n"


def run(*arguments):
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def test_train_before_and_test_after(tmp_path):
    path = tmp_path / "orders.csv"
    path.write_text(orders(np.random.default_rng(0), 900))
    options = ("--element", "gamma", "-K", 2, "--fits", 1, "--max-iter", 5)
    result = run(path, "--by-time", "2024-03-01", "--json", *options)
    assert result.exit_code == 0, result.output
    assert "time = Date (detected; else --time)" in result.stderr
    found = json.loads(result.stdout)

    rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    day = [(r[3][6:], r[3][3:5], r[3][:2]) for r in rows]
    before = {(r[0], r[1]) for r, d in zip(rows, day, strict=True) if d < ("2024", "03", "01")}
    after = {(r[0], r[1]) for r, d in zip(rows, day, strict=True) if d >= ("2024", "03", "01")}
    users, items = {u for u, _ in before}, {i for _, i in before}
    new = {(u, i) for u, i in after - before if u in users and i in items}
    assert found["test"] == len(new)
    assert found["train"] == len(before) - round(0.01 * len(before))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--by-time", "soon"), "'soon' is not a date"),
        (("--by-time", "2030-01-01"), "no rows on or after 2030-01-01"),
        (("--by-time", "2001-01-01"), "no rows before 2001-01-01"),
        (("--by-time", "2024-02-01", "--time", "When"), "no column 'When'"),
        (("--time", "Date"), "--time requires --by-time"),
    ],
)
def test_mistakes(options, message, tmp_path):
    path = tmp_path / "orders.csv"
    path.write_text(orders(np.random.default_rng(1), 50))
    result = run(path, *options)
    assert result.exit_code == 1
    assert message in result.stderr


def test_dates_that_are_not_found_are_asked_for(tmp_path):
    path = tmp_path / "orders.csv"
    path.write_text("customer,product,spend\na,x,1\nb,y,2\n")
    said = run(path, "--by-time", "2024-03-01").stderr
    assert "Cannot tell which column has the dates: pass --time COLUMN. Columns: customer" in said


def test_values_are_those_of_each_period():
    early = Interactions.from_arrays(["a", "a", "b"], ["x", "y", "x"], [1.0, 2.0, 3.0])
    late = Interactions.from_arrays(
        ["a", "b", "c", "b"], ["x", "y", "x", "z"], [9.0, 8.0, 7.0, 6.0]
    )
    parts = split_by_time(early, late, validation=0.0, random_state=0)
    assert parts.train.values.tolist() == [1.0, 2.0, 3.0]
    assert parts.test.values.tolist() == [8.0]
    assert parts.held_out.nnz == 1  # every other pair is observed: there is no missing one
