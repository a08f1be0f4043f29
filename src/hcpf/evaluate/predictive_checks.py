"""Posterior predictive checks: data compared with data drawn from the fitted model."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf._checks import generator
from hcpf._types import FloatArray
from hcpf.core.axis import Axis
from hcpf.data.sampling import row_of
from hcpf.evaluate.splits import Split
from hcpf.model.entry_counts import count_entries
from hcpf.model.fitted import FittedModel
from hcpf.model.resolve import fitted_model, trained_matrix, training_data

_REPLICATES = 40
_MAX_VALUES = 5_000  # values that are compared
_BINS, _TAIL_POINTS = 28, 40
_LOG_SCALE_RATIO = 20.0  # of two quantiles, beyond which values are shown on a log scale

_MAX_PAIRS = 40_000_000  # pairs whose probabilities are computed for the activity check
_PAIRS_AT_ONCE = 1 << 21
_MIN_ROWS = 200  # rows that are drawn, however long they are
_ACTIVITY_POINTS = 36


@dataclass(frozen=True, eq=False)
class Band:
    """A curve of the data, compared with the same curve of replicates drawn from the model.

    Attributes
    ----------
    at, observed : ndarray
        Positions and the data's curve there; of a histogram, ``at`` has the edges of the bins.
    mean, low, high : ndarray
        Mean of the replicates, and the range that holds 90% of them.
    """

    at: FloatArray
    observed: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class ValueCheck:
    """Values of observed pairs, compared with replicates from their predictive distributions.

    Attributes
    ----------
    n_values : int
        Number of values compared.
    held_out : bool
        Whether the pairs took no part in training.
    log_scale : bool
        Whether the values are best shown on a log scale.
    histogram, tail : Band
        Share of the values in bins, and share above given values.
    quantiles, model_quantiles : ndarray
        Quantiles of the data and of the replicates at the same levels.
    median, model_median, percentile_99, model_percentile_99 : float
        Values that half, and one in a hundred, exceed.
    """

    n_values: int
    held_out: bool
    log_scale: bool
    histogram: Band
    tail: Band
    quantiles: FloatArray
    model_quantiles: FloatArray
    median: float
    model_median: float
    percentile_99: float
    model_percentile_99: float

    @property
    def bin_centers(self) -> FloatArray:
        """Centers of the histogram's bins, on a log scale the geometric ones."""
        low, high = self.histogram.at[:-1], self.histogram.at[1:]
        return np.sqrt(low * high) if self.log_scale else 0.5 * (low + high)


def check_values(
    model: Any, data: Split | None, random_state: int | np.random.Generator | None = 0
) -> ValueCheck | None:
    """Compare the values of observed pairs with draws from the model.

    Parameters
    ----------
    model
        A fitted model; with ``data`` one that was fitted to its training part.
    data
        The split whose test pairs are compared; None takes the entries the model was fitted to.
    random_state
        Seed or generator of the choice of pairs and of the draws.

    Returns
    -------
    ValueCheck or None
        None where all values are the same.
    """
    model, rng = fitted_model(model), generator(random_state)
    users, items, values = _fitted_entries(model, rng) if data is None else _test_entries(data, rng)
    values = np.sort(model.element.seen(values))
    drawn = np.sort(
        model.predict_distribution(users, items).observed.sample(_REPLICATES, rng=rng), axis=1
    )
    if values[0] == values[-1]:
        return None
    discrete, log_scale = model.element.support.discrete, _on_log_scale(values, drawn)
    edges = _edges(values, discrete, log_scale)
    levels, at = _levels(len(values)), _tail_positions(values, discrete, log_scale)
    (median, high), (model_median, model_high) = (
        np.quantile(x, [0.5, 0.99]).tolist() for x in (values, drawn)
    )
    return ValueCheck(
        n_values=len(values),
        held_out=data is not None,
        log_scale=log_scale,
        histogram=_band(edges, _shares(values, edges), [_shares(x, edges) for x in drawn]),
        tail=_band(at, _share_above(values, at), [_share_above(x, at) for x in drawn]),
        quantiles=np.quantile(values, levels),
        model_quantiles=np.quantile(drawn, levels),
        median=median,
        model_median=model_median,
        percentile_99=high,
        model_percentile_99=model_high,
    )


def _fitted_entries(model: FittedModel, rng: np.random.Generator) -> tuple[Any, Any, FloatArray]:
    matrix = trained_matrix(model)
    chosen = _draw_entries(matrix.nnz, rng)
    users, items = model.users[row_of(matrix, chosen)], model.items[matrix.indices[chosen]]
    return users, items, matrix.data[chosen].astype(np.float64)


def _test_entries(data: Split, rng: np.random.Generator) -> tuple[Any, Any, FloatArray]:
    pairs, train = data.test, data.train
    chosen = _draw_entries(len(pairs), rng)
    users, items = train.users[pairs.users[chosen]], train.items[pairs.items[chosen]]
    return users, items, pairs.values[chosen]


def _draw_entries(n_entries: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the positions of the entries that are compared; all if they are few."""
    if n_entries <= _MAX_VALUES:
        return np.arange(n_entries)
    return rng.choice(n_entries, _MAX_VALUES, replace=False)


def _on_log_scale(values: FloatArray, drawn: FloatArray) -> bool:
    low, high = np.quantile(values, [0.02, 0.98])
    return bool(min(values[0], drawn.min()) > 0 and high > _LOG_SCALE_RATIO * low)


def _edges(values: FloatArray, discrete: bool, log_scale: bool) -> FloatArray:
    """Return edges of bins over all but the most extreme values."""
    low, high = np.quantile(values, [0.002, 0.995])
    if discrete and high - low <= _BINS:
        return np.arange(np.floor(low), np.floor(high) + 2.0) - 0.5
    spaced = np.geomspace if log_scale else np.linspace
    edges = spaced(low, high if high > low else values[-1], _BINS + 1)
    # Edges lie between integers: every bin then holds at least one.
    return np.unique(np.floor(edges) + 0.5) if discrete else edges


def _levels(n_values: int) -> FloatArray:
    last = max(0.9, 1.0 - 5.0 / n_values)
    levels = np.unique(np.append(np.linspace(0.01, 0.99, 33), [0.995, 0.998, last]))
    return levels[levels <= last]


def _tail_positions(values: FloatArray, discrete: bool, log_scale: bool) -> FloatArray:
    low, high = np.quantile(values, [0.5, 1.0])
    at = (np.geomspace if log_scale else np.linspace)(low, high, _TAIL_POINTS)
    at = np.unique(np.floor(at)) if discrete else at
    return at[at < high]  # none exceed the largest, and a log scale cannot show 0


def _shares(values: FloatArray, edges: FloatArray) -> FloatArray:
    return np.histogram(values, edges)[0] / len(values)


def _share_above(ascending: FloatArray, at: FloatArray) -> FloatArray:
    return 1.0 - np.searchsorted(ascending, at, side="right") / len(ascending)


def _band(at: FloatArray, observed: FloatArray, replicates: list[FloatArray]) -> Band:
    low, high = np.quantile(replicates, [0.05, 0.95], axis=0)
    return Band(at, observed, np.mean(replicates, axis=0), low, high)


@dataclass(frozen=True, eq=False)
class ActivityCheck:
    """Numbers of entries of users (or items): in the data, and in one draw from the model."""

    observed: FloatArray
    drawn: FloatArray

    def share_with_at_least(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return numbers of entries, and the shares of rows (observed, drawn) that reach them."""
        largest = max(self.observed.max(), self.drawn.max(), 2.0)
        at = np.unique(np.round(np.geomspace(1.0, largest, _ACTIVITY_POINTS)))
        return at, _share_reaching(self.observed, at), _share_reaching(self.drawn, at)


def check_activity(model: FittedModel, axis: Axis, rng: np.random.Generator) -> ActivityCheck:
    """Compare the activity of users, or the popularity of items, with a draw from the model.

    The draw is given the fitted factors, so it checks the fit and is not a prediction. Where
    there are too many pairs, a random sample of the rows is drawn.
    """
    matrix = training_data(model).matrix
    n_rows, width = matrix.shape if axis is Axis.USERS else matrix.shape[::-1]
    counts = count_entries(matrix, axis)
    fits = [
        (fit.axis(axis).exposed_mean_, fit.axis(axis.other).exposed_mean_)
        for fit in model.posteriors
    ]
    size = max(_MIN_ROWS, _MAX_PAIRS // width)
    rows = np.arange(n_rows) if n_rows <= size else np.sort(rng.choice(n_rows, size, replace=False))
    drawn = np.empty(len(rows))
    step = max(1, _PAIRS_AT_ONCE // width)
    for first in range(0, len(rows), step):
        block = slice(first, first + step)
        rate = sum(own[rows[block]] @ other.T for own, other in fits) / np.float32(len(fits))
        draws = rng.random(rate.shape, np.float32) < -np.expm1(-rate)
        drawn[block] = np.sum(draws, axis=1)
    return ActivityCheck(counts[rows].astype(np.float64), drawn)


def _share_reaching(values: FloatArray, at: FloatArray) -> FloatArray:
    return 1.0 - np.searchsorted(np.sort(values), at, side="left") / len(values)
