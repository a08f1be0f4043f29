"""The benchmarks keep up with the package: they import, and the timed iteration runs."""

import importlib
import sys
from argparse import Namespace
from pathlib import Path

import pytest

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
