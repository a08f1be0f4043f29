"""Observed responses against those that the model would give."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hcpf._types import FloatArray
from hcpf.estimator import HCPF
from hcpf.evaluate import Split

REPLICATES = 40
_MOST = 5_000  # pairs that are looked at
_BINS = 28
_POINTS = 40
_WIDE = 20.0  # a ratio of quantiles beyond which values are shown on a log scale


@dataclass(frozen=True, eq=False)
class ResponseFit:
    """Responses, and replicates of them drawn from their predictive distributions.

    Attributes
    ----------
    observed : ndarray
        Responses, ascending.
    drawn : ndarray
        Replicates x responses, each replicate ascending.
    discrete : bool
        Whether responses are whole numbers.
    held_out : bool
        Whether the pairs took no part in the fit.
    """

    observed: FloatArray
    drawn: FloatArray
    discrete: bool
    held_out: bool

    @property
    def log(self) -> bool:
        """Whether the values are best shown on a log scale."""
        low, high = np.quantile(self.observed, [0.02, 0.98])
        return bool(min(self.observed[0], self.drawn.min()) > 0 and high > _WIDE * low)

    @property
    def varies(self) -> bool:
        """Whether there is anything to show: not all responses are the same."""
        return bool(self.observed[0] < self.observed[-1])

    def edges(self) -> FloatArray:
        """Edges of bins over all but the most extreme responses."""
        low, high = np.quantile(self.observed, [0.002, 0.995])
        if self.discrete and high - low <= _BINS:
            return np.arange(np.floor(low), np.floor(high) + 2.0) - 0.5
        spaced = np.geomspace if self.log else np.linspace
        edges = spaced(low, high if high > low else self.observed[-1], _BINS + 1)
        # Between whole numbers, so that no bin is empty for want of one.
        return np.unique(np.floor(edges) + 0.5) if self.discrete else edges

    def histogram(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Shares of the responses in each bin, and of each replicate."""
        return _shares(self.observed, edges), np.array([_shares(d, edges) for d in self.drawn])

    def quantiles(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Levels, and the quantiles of the responses and of the replicates there."""
        last = max(0.9, 1.0 - 5.0 / len(self.observed))
        levels = np.unique(np.append(np.linspace(0.01, 0.99, 33), [0.995, 0.998, last]))
        levels = levels[levels <= last]
        return levels, np.quantile(self.observed, levels), np.quantile(self.drawn, levels)

    def tail(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Values, and the share of the responses (and of each replicate) that exceed them."""
        low, high = np.quantile(self.observed, [0.5, 1.0])
        spaced = np.geomspace if self.log else np.linspace
        at = spaced(low, high, _POINTS)
        at = np.unique(np.floor(at)) if self.discrete else at
        at = at[at < high]  # none exceed the largest, which a log scale cannot show
        return at, _above(self.observed, at), np.array([_above(d, at) for d in self.drawn])


def response_fit(model: HCPF, data: Split | None, rng: np.random.Generator) -> ResponseFit:
    """Draw replicates of the held-out responses of ``data``, or of those fitted.

    Parameters
    ----------
    model
        A fitted model; with ``data`` one fitted to its training part.
    data
        The split; None takes the entries that the model was fitted to.
    rng
        Of the choice of pairs and of the replicates.
    """
    users, items, values = _entries(model) if data is None else _held_out(data)
    if len(values) > _MOST:
        some = rng.choice(len(values), _MOST, replace=False)
        users, items, values = users[some], items[some], values[some]
    if model.train_on == "binary":
        values = np.ones_like(values)
    predicted = model.predictive(users, items)
    drawn = np.sort(predicted.observed.sample(REPLICATES, rng=rng), axis=1)
    discrete = model.element_.support.discrete
    return ResponseFit(np.sort(values), drawn, discrete, data is not None)


def _entries(model: HCPF) -> tuple[Any, Any, FloatArray]:
    matrix = model.interactions_.matrix
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return model.users_[rows], model.items_[matrix.indices], matrix.data.astype(np.float64)


def _held_out(data: Split) -> tuple[Any, Any, FloatArray]:
    pairs = data.test
    return data.train.users[pairs.users], data.train.items[pairs.items], pairs.values


def _shares(values: FloatArray, edges: FloatArray) -> FloatArray:
    return np.histogram(values, edges)[0] / len(values)


def _above(ascending: FloatArray, at: FloatArray) -> FloatArray:
    return 1.0 - np.searchsorted(ascending, at, side="right") / len(ascending)
