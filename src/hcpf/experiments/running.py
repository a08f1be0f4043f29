"""Compute the cells of the paper's tables: what is left, what it costs, and one after the other."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hcpf.data.interactions import Interactions
from hcpf.errors import InputError
from hcpf.experiments.cells import (
    BASELINES,
    Cell,
    Recipe,
    append_result,
    cells_for,
    compute,
    read_results,
    read_set,
    split_of,
)

RESULTS = "results.jsonl"
_SECONDS = {"auto": 6e-7, "cavi": 6e-7, "algorithm1": 8e-6}
"""Seconds of a fit per entry and component; replaced by what the finished cells took."""
_FIXED_WORK = 1e6  # entries times components that take as long as what does not depend on them


@dataclass(eq=False)
class Plan:
    """The cells that some tables need, and those that were computed before."""

    recipe: Recipe
    sets: Mapping[str, Path]
    cells: list[Cell]
    """Smallest data sets first."""
    n_entries: dict[str, int]
    done: dict[tuple[Any, ...], Cell] = field(default_factory=dict[tuple[Any, ...], Cell])

    @property
    def left(self) -> list[Cell]:
        """The cells still to be computed."""
        return [cell for cell in self.cells if cell.key not in self.done]

    @property
    def finished(self) -> list[Cell]:
        """The cells of the plan that were computed."""
        return [self.done[cell.key] for cell in self.cells if cell.key in self.done]

    def seconds(self, cell: Cell) -> float:
        """Return the expected time of a cell, from the times of those done where there are any."""
        return self._pace(cell.solver) * self._work(cell)

    def _work(self, cell: Cell) -> float:
        return float(self.n_entries[cell.dataset]) * max(cell.n_components, 1) + _FIXED_WORK

    def _pace(self, solver: str) -> float:
        done = [c for c in self.done.values() if c.solver == solver and c.dataset in self.n_entries]
        spent, work = sum(c.seconds or 0.0 for c in done), sum(map(self._work, done))
        return spent / work if spent > 0 else _SECONDS.get(solver, 1e-6)

    def cost(self, cells: Iterable[Cell]) -> float:
        """Return the expected seconds of some cells."""
        return sum(map(self.seconds, cells))

    def cost_by_set(self) -> dict[str, tuple[int, float]]:
        """Return the number of cells left and their expected seconds by data set."""
        out: dict[str, tuple[int, float]] = {}
        for cell in self.left:
            number, seconds = out.get(cell.dataset, (0, 0.0))
            out[cell.dataset] = number + 1, seconds + self.seconds(cell)
        return out


def make_plan(
    tables: Iterable[str], sets: Mapping[str, Path], results: Path, recipe: Recipe, n_splits: int
) -> Plan:
    """Find out which cells the tables need and which of them are in the results file."""
    tables, cells, n_entries = tuple(tables), list[Cell](), dict[str, int]()
    for name, path in sets.items():
        data = read_set(path)
        n_entries[name] = data.n_observed
        cells += cells_for(tables, name, data.values.astype(np.float64), recipe, n_splits)
    done = {cell.key: cell for cell in read_results(results)}
    return Plan(recipe, sets, cells, n_entries, done)


def run(
    plan: Plan,
    results: Path,
    *,
    budget: float = float("inf"),
    n_threads: int | None = None,
    finished: Callable[[Cell], object] = lambda cell: None,
) -> None:
    """Compute the cells that are left, appending each to the results file as it ends.

    A cell that is not expected to end within the budget, in seconds, is not begun.
    """
    began = time.perf_counter()
    data: Interactions | None = None
    current: tuple[str, int] | None = None
    parts: Any = None
    for cell in plan.left:
        if time.perf_counter() - began + plan.seconds(cell) > budget:
            continue
        if current is None or current[0] != cell.dataset:
            data, current = read_set(plan.sets[cell.dataset]), None
        assert data is not None
        if current != (cell.dataset, cell.split):
            parts, current = split_of(data, cell.split), (cell.dataset, cell.split)
        found = compute(cell, parts, plan.recipe, n_threads)
        append_result(results, found)
        plan.done[found.key] = found
        finished(found)


def parse_duration(text: str) -> float:
    """Return the seconds of a text such as 90s, 30m or 1h30m.

    >>> parse_duration("1h30m"), parse_duration("45")
    (5400.0, 45.0)
    """
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0}
    found = re.findall(r"(\d+(?:\.\d+)?)\s*([hms]?)", text.strip().lower())
    if not found or "".join(n + u for n, u in found) != text.strip().lower().replace(" ", ""):
        raise InputError(f"--budget {text}: not a duration. Write for example 90s, 30m or 1h30m.")
    return sum(float(number) * units[unit] for number, unit in found)


def baseline_of(cell: Cell, kind: str, done: Mapping[tuple[Any, ...], Cell]) -> Cell | None:
    """Return popularity or the constant rate with the same element on the same split."""
    assert kind in BASELINES
    acronym = cell.model.partition("-")[2]
    key = (cell.dataset, f"{kind}-{acronym}", "F", cell.split, "any", "any", 0, cell.version)
    return done.get(key)
