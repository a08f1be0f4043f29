"""The benchmarks keep up with the package: they import, and the timed iteration runs."""

import importlib
import json
import sys
from argparse import Namespace
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from hcpf import simulate

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
    assert name in ("common", "sets") or callable(module.main)


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
