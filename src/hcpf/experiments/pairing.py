"""Averages over splits, and differences of two cells paired by test pair."""

from collections.abc import Iterable, Sequence

import numpy as np

from hcpf._types import FloatArray
from hcpf.evaluate.scoring import Score, mean_score
from hcpf.experiments.cells import Cell

_PARTS = {"likelihood": ("observed", "missing"), "value": ("value",), "auc": ("above", "below")}


def average(scores: Sequence[Score]) -> Score | None:
    """Return the mean over splits, with the larger of two standard errors.

    One is that of the pairs within the splits, the other that of the splits; neither alone holds
    both sources of error.
    """
    if not scores:
        return None
    values = np.array([score.value for score in scores])
    within = float(np.sqrt(np.sum([score.error**2 for score in scores]))) / len(scores)
    if len(scores) == 1:
        return Score(float(values[0]), within)
    return Score(float(values.mean()), float(np.fmax(within, mean_score(values).error)))


def average_score(cells: Iterable[Cell], name: str) -> Score | None:
    """Return the average of a score over the splits of a cell."""
    return average([score for cell in cells if (score := cell.score(name)) is not None])


def difference(first: Iterable[Cell], second: Iterable[Cell], name: str) -> Score | None:
    """Return how much the first is above the second, over the splits that both have.

    ``name`` is "likelihood", "value" or "auc".
    """
    others = {cell.split: cell for cell in second}
    pairs = [(cell, others[cell.split]) for cell in first if cell.split in others]
    found = [_of_split(one, other, name) for one, other in pairs]
    return average([score for score in found if score is not None])


def _of_split(one: Cell, other: Cell, name: str) -> Score | None:
    a, b = one.score(name), other.score(name)
    if a is None or b is None or one.pairs != other.pairs:
        return None
    parts = [_block_error(one, other, part) for part in _PARTS[name]]
    if name == "likelihood":
        n_missing, n_observed = one.sizes
        total = n_missing + n_observed
        parts = [1000.0 * n_observed / total * parts[0], 1000.0 * n_missing / total * parts[1]]
    return Score(a.value - b.value, float(np.hypot.reduce(parts)))


def _block_error(one: Cell, other: Cell, part: str) -> float:
    """Return the standard error of the mean difference, from the means of groups of pairs."""
    gap: FloatArray = np.subtract(one.blocks[part], other.blocks[part])
    return mean_score(gap).error


def per_entry(score: Score, cell: Cell) -> Score:
    """Return a likelihood per 1,000 pairs in nats per observed test pair."""
    n_missing, n_observed = cell.sizes
    scale = (n_missing + n_observed) / n_observed / 1000.0
    return Score(scale * score.value, scale * score.error)
