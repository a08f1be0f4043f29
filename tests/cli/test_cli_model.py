"""hcpf recommend, predict, simulate and info."""

import json
import re
from itertools import pairwise

import pytest
from pyarrow import csv, parquet

from hcpf.cli.output import bars
from hcpf.data.summary import histogram
from hcpf.model.fitted import FittedModel


def rows(text):
    lines = [line.split("\t") for line in text.splitlines()]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def test_recommend_into_a_pipe_is_tab_separated(run, model):
    result = run(["recommend", str(model), "c3", "c4", "-n", "4"])
    assert result.exit_code == 0, result.output
    found = rows(result.stdout)
    expected = FittedModel.load(model).recommend(["c3", "c4"], 4)
    assert [row["item"] for row in found] == list(expected.item)
    shown = [float(row["probability"]) for row in found]
    assert shown == [float(f"{p:.4g}") for p in expected.probability]
    assert result.stderr == ""


@pytest.mark.parametrize("by", ["probability", "value", "expected_value"])
def test_recommend_by(run_json, model, by):
    found = run_json("recommend", model, "c3", "-n", 3, "--by", by)
    assert [row["rank"] for row in found] == [1, 2, 3]
    assert sorted((row[by] for row in found), reverse=True) == [row[by] for row in found]


def test_lists_that_are_not_sorted_by_probability_say_so(run, sales, tmp_path):
    from hcpf import HCPF, Interactions

    data = Interactions.read(sales, user="customer", item="product", value="spend")
    path, lists = tmp_path / "model", tmp_path / "lists.csv"
    HCPF(5, element="gamma", n_fits=4, max_iter=5, random_state=0).fit(data).save(path)
    why = "Ranked by the consensus of the fits"
    assert why in run(["recommend", str(path), "--all", "-o", str(lists)]).stderr
    rows = csv.read_csv(lists).to_pylist()
    assert any(
        after["user"] == before["user"] and after["probability"] > before["probability"]
        for before, after in pairwise(rows)
    )
    args = ["recommend", str(path), "--all", "-o", str(lists), "--overwrite"]
    assert why not in run([*args, "--by", "probability"]).stderr


def test_recommend_names_and_seen(run_json, model, tmp_path):
    names = tmp_path / "names.csv"
    names.write_text("id,name\n" + "".join(f"p{i},Product {i}\n" for i in range(40)))
    found = run_json("recommend", model, "c3", "-n", 40, "--seen", "--names", names)
    assert len(found) == 40
    assert all(row["name"] == f"Product {row['item'][1:]}" for row in found)
    assert len(run_json("recommend", model, "c3", "-n", 40)) < 40


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv"])
def test_recommend_all_to_a_file(run_json, fails, model, tmp_path, ending):
    path = tmp_path / f"lists.{ending}"
    found = run_json("recommend", model, "--all", "-n", 2, "-o", path)
    assert found == {"path": str(path), "users": 60, "rows": 120}
    reader = {"parquet": parquet.read_table, "csv": csv.read_csv}.get(ending)
    if reader:
        assert reader(path).column_names[:3] == ["user", "item", "rank"]
    assert "--overwrite" in fails("recommend", model, "--all", "-o", path)
    run_json("recommend", model, "c1", "-o", path, "--overwrite")
    assert list(tmp_path.iterdir()) == [path]


def test_recommend_refuses(fails, model, tmp_path):
    assert "Pass one or more users" in fails("recommend", model, code=2)
    assert "--all requires a file" in fails("recommend", model, "--all", code=2)
    assert "unknown id 'nobody'" in fails("recommend", model, "nobody")
    assert ".parquet, .csv, .tsv" in fails("recommend", model, "c1", "-o", tmp_path / "a.doc")
    assert "hcpf fit DATA" in fails("recommend", tmp_path / "nothing", "c1")
    assert "no manifest.json" in fails("recommend", tmp_path, "c1")
    assert "no such file" in fails("recommend", model, "c1", "--names", tmp_path / "n.csv")


def test_predict_a_pair(run_json, run, model):
    found = run_json("predict", model, "--user", "c3", "--item", "p5", "--item", "p6")
    loaded = FittedModel.load(model)
    expected = loaded.predict_distribution(["c3", "c3"], ["p5", "p6"])
    assert [row["item"] for row in found] == ["p5", "p6"]
    assert [row["probability"] for row in found] == list(expected.prob_observed)
    assert [row["value"] for row in found] == list(expected.mean_observed)
    low, high = expected.observed.interval(0.9)
    assert [(row["low"], row["high"]) for row in found] == list(zip(low, high, strict=True))
    text = run(["predict", str(model), "--user", "c3", "--item", "p5"]).stdout
    assert float(rows(text)[0]["expected_value"]) == pytest.approx(
        found[0]["expected_value"], rel=5e-4
    )


def test_predict_pairs_of_a_file_in_its_order(run, run_json, fails, model, tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("item,user\np5,c9\np1,c2\np5,c9\n")
    found = run_json("predict", model, "--pairs", path)
    wanted = [("c9", "p5"), ("c2", "p1"), ("c9", "p5")]
    assert [(row["user"], row["item"]) for row in found] == wanted
    path.write_text("item,user\np5,c9\np1,zz\n")
    assert "--skip-unknown" in fails("predict", model, "--pairs", path)
    result = run(["predict", str(model), "--pairs", str(path), "--skip-unknown"])
    assert len(rows(result.stdout)) == 1
    assert "Skipped 1 pairs" in result.stderr


def test_predict_refuses(fails, model):
    for options in ([], ["--user", "c1"], ["--user", "c1", "--item", "p1", "--pairs", "x.csv"]):
        assert "--pairs FILE, or --all" in fails("predict", model, *options, code=2)
    assert "--all requires a file" in fails("predict", model, "--all", code=2)
    assert "unknown id 'x'" in fails("predict", model, "--user", "x", "--item", "p1")


def test_ids_that_are_numbers(run_json, fails, counts, tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text(re.sub(r"(?<![a-z])[cp](?=\d)", "", counts.read_text()))
    quick = ["-e", "poisson", "-K", 2, "--fits", 1, "--max-iter", 1, "--threads", 1]
    run_json("fit", path, "-o", tmp_path / "m", *quick)
    assert run_json("recommend", tmp_path / "m", "7", "-n", 1)[0]["user"] == 7
    assert "--user seven: unknown user. User ids in this model are integers" in fails(
        "recommend", tmp_path / "m", "seven"
    )


def test_simulate(run, run_json, fails, tmp_path):
    path = tmp_path / "drawn.csv"
    options = ["-e", "gamma:2,0.05", "--density", 0.1]
    found = run_json("simulate", 30, 20, "-o", path, *options)
    assert (found["users"], found["items"]) == (30, 20)
    table = csv.read_csv(path)
    assert table.column_names == ["user", "item", "value"]
    assert table.num_rows == found["observed"]
    assert "--overwrite" in fails("simulate", 30, 20, "-o", path)
    assert run_json("simulate", 30, 20, "-o", path, "--overwrite", *options) == found
    like = run_json(
        "simulate", "--like", "netflix", "--scale", 0.0005, "-o", tmp_path / "n.parquet"
    )
    assert like["element"]["name"] == "binomial"
    assert "9 users x 9 items" in run(["simulate", "9", "9", "-o", str(tmp_path / "b.tsv")]).stdout


def test_simulate_refuses(fails, tmp_path):
    path = tmp_path / "a.csv"
    assert "USERS and ITEMS" in fails("simulate", "-o", path, code=2)
    assert "USERS and ITEMS" in fails("simulate", 30, "-o", path, code=2)
    assert "pass all parameters" in fails("simulate", 9, 9, "-o", path, "-e", "gamma")
    assert "Unknown data set" in fails("simulate", "--like", "x", "-o", path)
    assert "strictly between 0 and 1" in fails("simulate", 9, 9, "-o", path, "--density", 2)
    assert "End its name in" in fails("simulate", 9, 9, "-o", tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_info_of_data(run, run_json, sales):
    found = run_json("info", sales)
    assert (found["kind"], found["users"], found["items"]) == ("data", 60, 40)
    assert found["elements"] == ["normal", "gamma", "inverse_gaussian"]
    assert sum(one["count"] for one in found["histogram"]) == found["observed"]
    text = run(["info", str(sales)]).stdout
    assert "60 users x 40 items" in text
    assert "█" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("lines", "warning"),
    [
        ([f"u{j},i{j % 7},1" for j in range(50)], "every value is 1"),
        ([f"u{j},i{j % 7},{1 + (j == 0)}" for j in range(50)], "nearly constant"),
        ([f"u{j // 7},i{j % 7},{1 + j % 3}" for j in range(35)], "dense: 100"),
        ([f"u{j},i{j % 7},{10 ** (5 * (j == 0)) * 1.5}" for j in range(50)], "heavy tail"),
        ([f"u{j},i{j % 7},{1 + 999 * (j == 3)}" for j in range(50)], "one user, u3, has"),
        (["a,x,1", "a,x,2", "b,x,3"], "1 row repeats a pair"),
        ([f"u{j},i{j % 7},{j % 5 + 1}" for j in range(50)], "100.0% of the users have one entry"),
        (
            [f"u{j},{'POST' if j < 3 else 'BANK FEE' if j == 3 else j},2" for j in range(50)],
            "ids without a digit, unlike all other items: POST, BANK FEE. If these are not "
            "products, exclude them: --exclude-items POST --exclude-items 'BANK FEE'.",
        ),
    ],
)
def test_info_warns(run_json, tmp_path, lines, warning):
    path = tmp_path / "data.csv"
    path.write_text("\n".join(["user,item,value", *lines]) + "\n")
    assert any(warning in text for text in run_json("info", path)["warnings"])


def test_info_of_a_model(run, run_json, fails, model, tmp_path):
    found = run_json("info", model)
    assert found["kind"] == "model"
    assert found["element"]["name"] == "gamma"
    assert set(found["priors"]) >= {"user_shape", "item_activity_mean"}
    assert (found["passes"], found["ended"], found["version"]) == (5, "max_iter", "0.1.0")
    text = run(["info", str(model)]).stdout
    assert "not converged at the limit of 5" in text
    assert "on disk" in text
    assert "is not a model" in fails("info", tmp_path)
    assert "no such file" in fails("info", tmp_path / "nothing.csv")


def test_histogram_loses_nothing(rng):
    for values in (rng.lognormal(0, 3, 1000), rng.normal(size=500), rng.poisson(3.0, 300) * 1.0):
        assert sum(bin.count for bin in histogram(values)) == len(values)
    lines = bars([{"low": 1, "high": 1, "count": 3}, {"low": 2, "high": 2, "count": 1}])
    assert lines[0].startswith("1  █")
    assert lines[0].rstrip().endswith("75.0%")


def test_json_has_no_nan(run, model):
    text = run(["info", str(model), "--json"]).stdout
    json.loads(text, parse_constant=lambda word: pytest.fail(word))
