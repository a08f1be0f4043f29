"""The benchmarks keep up with the package: they import, and the timed iteration runs."""

import importlib
import json
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from hcpf import evaluate, simulate
from hcpf.report.drawing import LIGHT

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.fixture(autouse=True)
def benchmarks_importable(monkeypatch):
    """Benchmarks are scripts: they import each other by name, from their own folder."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    for name in NAMES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", NAMES)
def test_imports(name):
    module = importlib.import_module(name)
    assert module.__doc__
    assert name in ("common", "sets", "peers", "quality_chart") or callable(module.main)


def test_timed_iteration_runs():
    iteration = importlib.import_module("iteration")
    args = Namespace(
        seed=0, threads=1, entries=300, users=40, items=30, components=3, steps=1, varying=True
    )
    ran = iteration.contestants(args)
    assert {one.name for one in ran} >= {"Gamma, shared", "Gamma, both", "Geometric, item"}
    for one in ran[:4]:
        assert one.attempt(1) > 0


@pytest.fixture
def tiny_folder(tmp_path):
    """A folder with one data set of a few hundred entries, as the benchmarks read them."""
    data = simulate(40, 30, density=0.2, random_state=0).interactions
    rows, columns = data.matrix.nonzero()
    path = tmp_path / "tiny" / "tiny.parquet"
    path.parent.mkdir()
    parquet.write_table(pa.table({"user": rows, "item": columns, "value": data.values}), path)
    return tmp_path


def test_end_to_end_measures_the_same_model(tiny_folder, capsys):
    end_to_end = importlib.import_module("end_to_end")
    checkout = Path("checkout")
    args = Namespace(
        file=tiny_folder / "tiny" / "tiny.parquet", components=3, seed=0, threads=1, settings="{}"
    )
    default = end_to_end.measure(args)
    args.settings = json.dumps({**default["settings"], "n_fits": 1})
    one = end_to_end.measure(args)
    assert one["value model"] == default["value model"]
    assert one["settings"] == default["settings"]
    assert default["wall s"] > 0
    assert default["cpu s"] > 0

    results = {"checkout": {"commit": "x", "default": default, "given": one, "one": one}}
    (tiny_folder / "tiny.json").write_text(json.dumps(results))
    (row,) = end_to_end.tables([args.file, Path("missing.parquet")], [checkout], tiny_folder)
    assert row["Default / given"] == default["wall s"] / one["wall s"]
    assert "| tiny | " in capsys.readouterr().out


def test_simulated_sets_have_their_sizes(tmp_path):
    end_to_end = importlib.import_module("end_to_end")
    sets = importlib.import_module("sets")
    end_to_end.write_simulated(tmp_path)
    args = Namespace(folder=tmp_path, only=None, min_entries=1, max_entries=10**9)
    found = {name: data.values for name, data in sets.each(args)}
    assert {name: len(values) for name, values in found.items()} == {
        "article_views": 33_669,
        "play_counts": 92_834,
    }
    assert found["article_views"].min() == 1
    assert found["article_views"].max() == 100
    assert found["play_counts"].max() == 352_698


@pytest.fixture
def tiny_problem(tmp_path):
    """A stored split of a few hundred entries, and the problem that programs get."""
    common, peers = importlib.import_module("common"), importlib.import_module("peers")
    time_to_quality = importlib.import_module("time_to_quality")
    data = simulate(60, 30, density=0.2, random_state=0).interactions
    time_to_quality.save_split(data, tmp_path / "data" / "tiny")
    folder = tmp_path / "data" / "tiny"
    test = dict(np.load(folder / "test.npz"))
    problem = peers.Problem(
        common.load_matrix(folder / "train"), common.load_matrix(folder / "held_out"),
        float(test["train_share"]), {"element": "gamma"}, 3, 1, 0,
    )  # fmt: skip
    return problem, test, evaluate.split(data, random_state=0)


@pytest.mark.parametrize("title", ["hcpf, one fit", "scikit-learn NMF"])
def test_time_to_quality_scores_as_the_package_does(tiny_problem, title):
    time_to_quality = importlib.import_module("time_to_quality")
    peers = importlib.import_module("peers")
    problem, test, parts = tiny_problem
    fitted = peers.PROGRAMS[title].fit(problem, 20)
    found = time_to_quality.scores(fitted, problem, test)
    assert 0.5 < found["AUC"] < 1
    if title.startswith("hcpf"):
        pairs = evaluate.scoring.pair_scores(fitted.model, parts)
        assert found["NDCG@20"] == pytest.approx(
            evaluate.ranking(fitted.model, parts).ndcg.value, abs=1e-12
        )
        # The model's own likelihood, without that of the values.
        pattern = replace(pairs, log_density=pairs.log_density - pairs.conditional)
        assert found["L"] == pytest.approx(pattern.log_likelihood().value, rel=1e-6)
    else:
        best = fitted.top(np.arange(60), 30)
        for user, items in enumerate(best):
            shown = items[items >= 0]
            seen = problem.train[[user]].indices
            assert sorted([*shown, *seen]) == list(range(30))
            score = fitted.score(np.full(len(shown), user), shown)
            assert np.all(np.diff(score) <= 1e-6 * score.max())


def test_time_to_quality_tells_when_ours_were_as_good(capsys):
    time_to_quality = importlib.import_module("time_to_quality")

    def result(program, *points):
        keys = ("iterations", "seconds", "AUC", "L", "NDCG@20")
        points = [dict(zip(keys, point, strict=True)) for point in points]
        return {"set": "tiny", "program": program, "points": points}

    rows = time_to_quality.table(
        [
            result("hcpf, one fit", (1, 0.1, 0.7, -9.0, 0.1), (2, 0.2, 0.9, -7.0, 0.2)),
            result("hcpf, four fits", (1, 0.4, 0.8, -9.5, 0.1)),
            result("hpfrec", (3, 1.0, 0.6, -9.0, 0.1), (10, 3.0, 0.8, -8.0, 0.1)),
            result("implicit ALS", (15, 2.0, 0.95, None, 0.3)),
        ]
    )
    hpfrec, als = rows[-2:]
    assert (hpfrec["One fit, AUC"], hpfrec["Four fits, AUC"]) == (0.2, 0.4)
    assert (hpfrec["One fit, L"], hpfrec["Four fits, L"]) == (0.2, "never")
    assert (als["One fit, AUC"], "One fit, L" in als) == ("never", False)
    assert "| tiny | implicit ALS |" in capsys.readouterr().out


def test_chart_has_both_themes(tmp_path):
    pytest.importorskip("matplotlib")
    chart = importlib.import_module("quality_chart")
    point = {"iterations": 1, "seconds": 0.5, "AUC": 0.9, "L": None, "NDCG@20": 0.1}
    results = [{"set": "tiny", "program": name, "points": [point]} for name in chart.STYLES]
    chart.draw(results, {"AUC": "AUC", "L": "L"}, tmp_path / "chart.svg")
    drawn = (tmp_path / "chart.svg").read_text()
    assert all(name in drawn for name in (*chart.STYLES, "tiny"))
    assert "prefers-color-scheme:dark" in drawn
    for role in ("ink", "muted", "paper", "grid", "model", "first", "second", "third", "observed"):
        assert f": {chart.full(LIGHT[role])}" in drawn.split("</style>", 1)[1]


def test_code_size_counts_lines_calls_and_imports(tmp_path):
    code_size = importlib.import_module("code_size")
    (tmp_path / "module.py").write_text('"""Doc."""\n\n# why\nx = 1  # not a comment line\n')
    (row, total) = code_size.lines_by_package(tmp_path)
    assert row == {
        "package": "module.py",
        "modules": 1,
        "lines": 4,
        "code": 1,
        "docstrings": 1,
        "comments": 1,
    }
    assert total == {**row, "package": "all"}
    package = str(Path(simulate.__code__.co_filename).parent)
    names = {code.co_name for code in code_size.codes_during(lambda: simulate(5, 5), package)}
    assert "simulate" in names
    chain = code_size.longest_chain()
    assert len(chain) > 5
    assert chain[0].startswith("hcpf.")
