"""How many items users have, and how many users items have, against the model."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from hcpf._types import FloatArray
from hcpf.estimator import HCPF

_PAIRS = 40_000_000  # pairs whose probabilities are looked at
_BLOCK = 1 << 21  # pairs at once
_LEAST = 200  # rows looked at, however wide they are
_POINTS = 36


@dataclass(frozen=True, eq=False)
class Degrees:
    """Observed entries of rows, and as many rows drawn from the fitted model.

    Attributes
    ----------
    observed, expected, drawn : ndarray
        Of the same rows: entries in the data, expected by the model, and in one draw from it.
    """

    observed: FloatArray
    expected: FloatArray
    drawn: FloatArray

    def at_least(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Numbers of entries, and the shares of rows (observed, drawn) with as many or more."""
        most = max(self.observed.max(), self.drawn.max(), 2.0)
        at = np.unique(np.round(np.geomspace(1.0, most, _POINTS)))
        return at, _reaching(self.observed, at), _reaching(self.drawn, at)


def degrees(model: HCPF, side: Literal["users", "items"], rng: np.random.Generator) -> Degrees:
    """Entries of users (or items), expected and drawn given the fitted factors.

    Where users x items is too much, a random sample of the rows is looked at.
    """
    matrix = model.interactions_.matrix
    counts = [np.diff(matrix.indptr), np.bincount(matrix.indices, minlength=matrix.shape[1])]
    fits = [(fit.users.mean_, fit.items.mean_) for fit in model.posteriors_]
    if side == "items":
        counts, fits = counts[::-1], [pair[::-1] for pair in fits]
    size, width = len(counts[0]), len(counts[1])
    most = max(_LEAST, _PAIRS // width)
    rows = np.arange(size) if size <= most else np.sort(rng.choice(size, most, replace=False))
    expected, drawn = np.empty(len(rows)), np.empty(len(rows))
    step = max(1, _BLOCK // width)
    for first in range(0, len(rows), step):
        part = slice(first, first + step)
        rate = sum(own[rows[part]] @ other.T for own, other in fits) / np.float32(len(fits))
        probability = -np.expm1(-rate)
        expected[part] = probability.sum(axis=1, dtype=np.float64)
        drawn[part] = np.sum(rng.random(probability.shape, np.float32) < probability, axis=1)
    return Degrees(counts[0][rows].astype(np.float64), expected, drawn)


def _reaching(values: FloatArray, at: FloatArray) -> FloatArray:
    return 1.0 - np.searchsorted(np.sort(values), at, side="left") / len(values)
