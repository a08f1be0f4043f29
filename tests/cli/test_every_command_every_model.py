"""Every command that takes a model, on every kind of model, fitted through the command line."""

import csv
import json
from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np
import pytest
from pyarrow import parquet

QUICK = ("-K", 2, "--max-iter", 3, "--threads", 1)


@dataclass(frozen=True)
class Kind:
    """A kind of model: its data, its options, and the values that its pairs can have."""

    data: str
    options: tuple
    description: str
    lowest: float = 0.0
    highest: float = inf
    discrete: bool = False
    typical: tuple = ()
    shards: int = 0
    """In how many shards the entries stay on disk; 0 for files."""


KINDS = {
    "shared mean": Kind("money", ("-e", "gamma"), "gamma"),
    "per user": Kind(
        "money", ("-e", "gamma", "--vary-by", "user"), "gamma per user", typical=("user",)
    ),
    "per item": Kind(
        "money", ("-e", "gamma", "--vary-by", "item"), "gamma per item", typical=("item",)
    ),
    "both": Kind(
        "money", ("-e", "gamma", "--vary-by", "both"), "gamma per user and item",
        typical=("user", "item"),
    ),
    "normal both": Kind(
        "money", ("-e", "normal", "--vary-by", "both"), "normal per user and item", -inf,
        typical=("user", "item"),
    ),
    "counts": Kind(
        "counts", ("-e", "poisson", "--vary-by", "item"), "poisson per item", discrete=True,
        typical=("item",),
    ),
    "hurdle": Kind("money", ("-e", "gamma", "--hurdle"), "gamma hurdle"),
    "hurdle both": Kind(
        "money", ("-e", "gamma", "--hurdle", "--vary-by", "both"),
        "gamma hurdle per user and item", typical=("user", "item"),
    ),
    "ratings": Kind(
        "ratings", ("-e", "binomial:trials=5", "--hurdle"), "binomial hurdle", highest=5.0,
        discrete=True,
    ),
    "presence": Kind("money", ("-e", "presence"), "presence", 1.0, discrete=True),
    "observed only": Kind("money", ("-e", "gamma", "--train-on", "observed"), "gamma"),
    "several fits": Kind(
        "money", ("-e", "gamma", "--fits", 2, "--vary-by", "item"), "gamma per item",
        typical=("item",),
    ),
    "one shard": Kind(
        "money", ("-e", "gamma", "--vary-by", "user"), "gamma per user", typical=("user",),
        shards=1,
    ),
    "two shards": Kind("money", ("-e", "gamma"), "gamma", shards=2),
    "three shards, both": Kind(
        "money", ("-e", "gamma", "--vary-by", "both"), "gamma per user and item",
        typical=("user", "item"), shards=3,
    ),
}  # fmt: skip


@pytest.fixture(scope="session", params=KINDS)
def fitted(request, invoke, data_files, folder):
    """A kind of model, the folder of one, and the data it was fitted to."""
    kind = KINDS[request.param]
    data, path = data_files[kind.data], folder / request.param.replace(" ", "-")
    fits = () if "--fits" in kind.options else ("--fits", 1)
    if kind.shards:
        invoke("shard", data, "-o", shards_of(path), "--shards", kind.shards)
    about = invoke(
        "fit", source_of(kind, path, data), "-o", path, *QUICK, *fits, *kind.options, "--json"
    )
    assert json.loads(about.stdout)["description"] == kind.description
    return kind, path, data


def shards_of(path):
    return path.with_name(f"{path.name}-data")


def source_of(kind, path, data):
    """What a model was fitted to: the file, or shards written from it."""
    return shards_of(path) if kind.shards else data


def pairs_of(data):
    return {tuple(line.split(",")[:2]) for line in data.read_text().splitlines()[1:]}


def sizes(data):
    """Numbers of users, items and entries of a file."""
    users, items = map(set, zip(*pairs_of(data), strict=True))
    return len(users), len(items), len(pairs_of(data))


def check_predictions(kind, rows, rtol=1e-6):
    """Probabilities are probabilities, and values are those that the element can have."""
    numbers = {
        name: np.array([float(row[name]) for row in rows])
        for name in ("probability", "value", "expected_value", "low", "high")
        if name in rows[0]
    }
    probability, value = numbers["probability"], numbers["value"]
    assert np.all((probability >= 0) & (probability <= 1))
    assert np.all((value >= kind.lowest) & (value <= kind.highest))
    np.testing.assert_allclose(numbers["expected_value"], probability * value, rtol=rtol, atol=1e-9)
    if "low" not in numbers:
        return
    low, high = numbers["low"], numbers["high"]
    assert np.all((kind.lowest <= low) & (low <= high) & (high <= kind.highest))
    if kind.discrete:
        assert np.all(low == np.rint(low))
        assert np.all(high == np.rint(high))
    else:
        assert np.all(low < high)
        assert np.mean((low < value) & (value < high)) > 0.9


def test_info(fitted, invoke):
    kind, path, data = fitted
    about = json.loads(invoke("info", path, "--json").stdout)
    assert about["kind"] == "model"
    assert (about["users"], about["items"], about["observed"]) == sizes(data)
    assert about["hurdle"] == ("--hurdle" in kind.options)
    assert tuple(about["typical_values"] or ()) == kind.typical
    for typical in (about["typical_values"] or {}).values():
        assert typical["new"]["low"] < typical["new"]["median"] < typical["new"]["high"]
        highest, lowest = typical["highest"][0], typical["lowest"][0]
        assert highest["typical_value"] >= typical["fitted"]["median"] >= lowest["typical_value"]
    text = invoke("info", path).stdout
    assert f"{kind.description}" in text
    assert ("Typical value per" in text) == bool(kind.typical)


@pytest.mark.parametrize("by", ["consensus", "value", "expected_value"])
def test_recommend(fitted, invoke, by):
    kind, path, data = fitted
    rows = json.loads(invoke("recommend", path, "c3", "c4", "-n", 3, "--by", by, "--json").stdout)
    assert [(row["user"], row["rank"]) for row in rows] == [
        (user, rank) for user in ("c3", "c4") for rank in (1, 2, 3)
    ]
    check_predictions(kind, rows)
    if by != "consensus":
        assert all(a[by] >= b[by] for a, b in pairwise(rows[:3]))
    assert not pairs_of(data) & {(row["user"], row["item"]) for row in rows}


def test_recommend_all_with_names(fitted, invoke, tmp_path):
    kind, path, data = fitted
    names, lists = tmp_path / "names.csv", tmp_path / "lists.csv"
    names.write_text("id,name\n" + "".join(f"p{i},Product {i}\n" for i in range(70)))
    invoke("recommend", path, "--all", "-n", 2, "-o", lists, "--names", names)
    with lists.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * sizes(data)[0]
    assert all(row["name"] == f"Product {row['item'][1:]}" for row in rows)
    check_predictions(kind, rows, rtol=2e-3)  # text files have four significant digits


def test_everyday_jobs(fitted, invoke, fails, tmp_path):
    """Lists with details, explanations, rows, components, neighbors, new users, more data."""
    kind, path, data = fitted
    rows = json.loads(invoke("recommend", path, "c3", "-n", 3, "--details", "--json").stdout)
    check_predictions(kind, rows)
    assert all(row["user_entries"] > 0 for row in rows)
    about = json.loads(invoke("explain", path, "c3", rows[0]["item"], "--json").stdout)
    shares = [row["share"] for row in about["sources"]]
    assert sum(shares) + about["further_share"] == pytest.approx(1.0)
    assert about["sources"][0]["source"] == rows[0]["reason"]
    for option, id in (("--user", "c3"), ("--item", "p5")):
        row = json.loads(invoke("info", path, option, id, "--json").stdout)
        assert (row["typical_value"] is None) == (option[2:] not in kind.typical)
        if row["next"]:
            check_predictions(kind, row["next"])
        assert id in invoke("info", path, option, id).stdout
    found = json.loads(invoke("components", path, "--json").stdout)
    assert sum(one["share"] for one in found) == pytest.approx(1.0)
    assert invoke("components", path).stdout
    assert len(json.loads(invoke("similar", path, "p5", "-n", 2, "--json").stdout)) == 2
    basket = ("recommend", path, "--basket", "p5", "--basket", "p6", "-n", 2)
    check_predictions(kind, json.loads(invoke(*basket, "--json").stdout))
    new, header = tmp_path / "new.csv", data.read_text().splitlines()[0]
    new.write_text(f"{header}\nn1,p5,2\nn1,p7,3\nn2,p6,1\n")
    check_predictions(kind, json.loads(invoke("fold-in", path, new, "--json").stdout))
    more = ("update", path, new, "-o", tmp_path / "updated", "--threads", 1, "--json")
    if kind.shards:
        assert "fitted to shards, but update requires the entries in memory" in fails(*more)
        return
    assert json.loads(invoke(*more).stdout)["new_users"] == 2


def test_predict(fitted, invoke, tmp_path):
    """Single pairs, pairs of a file and all pairs get the same predictions."""
    kind, path, data = fitted
    everything = tmp_path / "all.parquet"
    invoke("predict", path, "--all", "-o", everything)
    rows = parquet.read_table(everything).to_pylist()
    n_users, n_items, _ = sizes(data)
    assert len(rows) == n_users * n_items
    check_predictions(kind, rows)
    wanted = rows[:: len(rows) // 20]
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("user,item\n" + "".join(f"{r['user']},{r['item']}\n" for r in wanted))
    from_file = json.loads(invoke("predict", path, "--pairs", pairs, "--json").stdout)
    row = wanted[3]
    pair = ("--user", row["user"], "--item", row["item"])
    single = json.loads(invoke("predict", path, *pair, "--json").stdout)
    for name in ("probability", "value", "expected_value", "low", "high"):
        assert single[0][name] == pytest.approx(from_file[3][name], rel=1e-9)
    for name in ("probability", "value", "expected_value"):
        assert [r[name] for r in from_file] == pytest.approx([r[name] for r in wanted], rel=1e-6)
    for exact, interpolated in zip(from_file, wanted, strict=True):
        tolerance = 0.0 if kind.discrete else 0.02 * (exact["high"] - exact["low"])
        for name in ("low", "high"):
            assert abs(exact[name] - interpolated[name]) <= tolerance
    header, line = invoke("predict", path, *pair).stdout.splitlines()
    assert header.split("\t") == list(single[0])
    assert float(line.split("\t")[2]) == pytest.approx(single[0]["probability"], rel=5e-4)


def test_evaluate_and_report(fitted, invoke, tmp_path):
    kind, path, data = fitted
    scores, page = tmp_path / "scores.json", tmp_path / "report.html"
    fits = () if "--fits" in kind.options else ("--fits", 1)
    options = (*QUICK, *fits, *kind.options, "-o", scores)
    source = source_of(kind, path, data)
    found = json.loads(invoke("evaluate", source, *options, "--json").stdout)
    assert found["description"] == kind.description
    observed_only = "observed" in kind.options
    assert (found["ranking"] is None) == observed_only
    assert observed_only or 0.3 < found["scores"]["auc"] <= 1.0
    coverage = found["calibration"].get("coverage_90")
    assert coverage is None or 0.5 < coverage <= 1.0
    assert json.loads(invoke("report", path, "-o", page, "--json").stdout) == {"path": str(page)}
    alone = page.read_text()
    assert alone.startswith("<!doctype html>")
    assert ('<section id="typical"' in alone) == bool(kind.typical)
    invoke("report", path, "-o", page, "--overwrite", "--evaluation", scores)
    assert len(page.read_text()) > len(alone)
