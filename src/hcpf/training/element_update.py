"""Estimate the element's parameters: the M-step of the ELBO, given the current factors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from hcpf._types import FloatArray
from hcpf.core.collective import LOCAL, Collective, sum_scalar
from hcpf.core.posterior import Posterior
from hcpf.core.shard import Shard, ShardData, sum_of_values
from hcpf.core.theta import pair_means
from hcpf.core.value_model import ValueModel
from hcpf.data.sampling import row_of
from hcpf.distributions.series import sum_over_n
from hcpf.elements.base import Element, Parameter
from hcpf.elements.special import last_rise
from hcpf.model.combine import Combined
from hcpf.training.state import FitState

MAX_COUNT_RATIO = 1_000
"""Of the largest integer parameter, such as trials, to the largest value."""
_VALUE_BINS, _RATE_BINS = 160, 6
_SAMPLE = 30_000  # entries that a histogram is made of, or the edges of its bins
_POOLED_SAMPLE = 2_000  # entries of the same sample under partial pooling
_MIN_DISPERSION_GAIN = 1e-4  # nats per entry; less is not worth rebuilding the data layout
_CHUNK = 1 << 20  # entries whose rates are computed at once
_LEAST_COUNT_GAIN = 1e-6  # nats per entry that doubling a count parameter must gain
_COUNT_STEPS = 128  # candidate values per doubling of a count parameter
_PAIRS = 2048  # pairs whose factors are gathered at once
_LEAST_LOG_RATE = -600.0  # log rate below which n has its smallest value


def update_element(state: FitState, shard: Shard) -> None:
    r"""Solve the mean equation :math:`\kappa\Psi'(\theta) = \sum y / \sum E[n]` for theta.

    In a hurdle model the right-hand side is the mean of the values. Theta reaches the local step
    only as a shift of every log rate, so no table changes. With partial pooling each half-step has
    updated theta, and the element is that of the population.
    """
    pooling = state.pooling
    if pooling is not None:
        state.set_element(pooling.population(state.users, state.items, state.element))
        return
    # With q(n) fixed the ELBO has the slope sum y - kappa Psi'(theta) sum E[n] in theta.
    count = shard.totals.n_entries if state.value_model.hurdle else state.sum_counts
    if count <= 0:
        return
    state.set_element(_with_mean(state.element, shard.totals.sum_of_values / count))
    state.set_shifts(shard)


def has_dispersion(value_model: ValueModel) -> bool:
    """Return whether the value model has a dispersion that training can estimate."""
    element = value_model.element
    if element.count_parameter is not None:
        return not value_model.hurdle and value_model.vary_by is None
    return element.dispersion_parameter is not None


def best_dispersion(state: FitState, shard: Shard, comm: Collective) -> Element:
    """Return the element with the dispersion that maximizes the sum of log Z at the current rates.

    The objective runs over a histogram of (at most a sample of) the entries in value and log rate,
    at the element's current mean; the caller compares the ELBO of both.
    """
    is_pooled = state.pooling is not None
    max_entries = _POOLED_SAMPLE if is_pooled else _SAMPLE
    user, i, values = shard.data.sample_entries(max_entries, comm)
    u = shard.order.rows_of_users()[user]
    log_rate = _log_rates(state, u, i)
    mean = None
    if is_pooled:
        mean = pair_means(state.element, state.users.theta, state.items.theta, u, i)
        mean = comm.gather(mean)
    bins = _bins(state.element, comm.gather(values), comm.gather(log_rate), mean)
    return _with_best_dispersion(state.value_model, bins)


def _log_rates(state: FitState, users: NDArray[np.int64], items: NDArray[np.int64]) -> FloatArray:
    """Return logs of the geometric rates of pairs, given by rows of the layout."""
    # Without the shifts: ``ValueModel.series`` takes the element's normalizer into p(y | n).
    mine, other = state.users.factors, state.items.factors
    log_rate = np.empty(len(users))
    for start in range(0, len(users), _PAIRS):
        part = slice(start, start + _PAIRS)
        u, i = users[part], items[part]
        dot = np.einsum("jk,jk->j", mine.g[u], other.g[i])
        scale = mine.log_scale[u] + other.log_scale[i]
        log_rate[part] = scale + np.log(np.maximum(dot, np.finfo(np.float32).tiny))
    return log_rate


def refit_element(
    value_model: ValueModel,
    data: ShardData,
    posteriors: Sequence[Posterior],
    comm: Collective,
    *,
    dispersion: bool,
) -> Element:
    """Re-estimate the element at the average rates of some fits: means, then the dispersion.

    The posteriors are those of the worker's users and all items.
    """
    bins = _all_bins(value_model.element, data, Combined(posteriors), comm)
    total = sum_scalar(comm, sum_of_values(data.matrix))
    return _refit(value_model, bins, total, dispersion=dispersion, steps=5)


def refit_at_rates(
    value_model: ValueModel, values: FloatArray, rate: FloatArray, *, steps: int
) -> Element:
    """Re-estimate the element, its dispersion included, at given rates."""
    bins = _bins(value_model.element, values, np.log(rate))
    total = float(np.sum(values, dtype=np.float64))
    return _refit(value_model, bins, total, dispersion=True, steps=steps)


def _refit(
    value_model: ValueModel, bins: "_Bins", total: float, *, dispersion: bool, steps: int
) -> Element:
    element = value_model.element
    # Each step computes E[n] under the last mean, as a pass does, and solves the mean equation.
    for _ in range(steps):
        count = 1.0 if value_model.hurdle else sum_over_n(element, bins.y, bins.rate).mean
        counts = float(np.sum(bins.weight * count))
        element = _with_mean(element, total / counts)
    if not dispersion:
        return element
    return _with_best_dispersion(value_model.replace(element=element), bins)


def _with_mean(element: Element, mean: float) -> Element:
    # Rounding must not take the mean beyond the largest value that an element can have.
    return element.with_mean(min(mean, float(element.highest)))


@dataclass(frozen=True, eq=False)
class _Bins:
    """Entries by value (finely, for the density is sharp in it) and by rate (coarsely).

    Where the means of the element differ, single entries.
    """

    y: FloatArray
    rate: FloatArray
    weight: FloatArray
    mean: Parameter

    def log_z(self, value_model: ValueModel, element: Element) -> float:
        """Sum of log Z over all entries, under the element at their means."""
        found = value_model.series(element.with_mean(self.mean), self.y, self.rate)
        return float(self.weight @ found.log_sum)


def _with_best_dispersion(value_model: ValueModel, bins: _Bins) -> Element:
    element = value_model.element
    name = element.dispersion_parameter
    if element.count_parameter is not None:
        return _with_best_count(value_model, bins)
    if name is None:
        return element
    mean = float(element.mean)

    def at(log_value: float) -> Element:
        return element.replace(**{name: float(np.exp(log_value))}).with_mean(mean)

    def loss(log_value: float) -> float:
        return -bins.log_z(value_model, at(log_value))

    now = float(np.log(element.parameters[name]))
    found: Any = optimize.minimize_scalar(
        loss,
        bounds=(now - 5.0, now + 5.0),
        method="bounded",
        options={"xatol": 1e-2},  # a dispersion within 1%: the objective is flat near its maximum
    )
    gain = -float(found.fun) - bins.log_z(value_model, element)
    return at(float(found.x)) if gain > _MIN_DISPERSION_GAIN * bins.weight.sum() else element


def _with_best_count(value_model: ValueModel, bins: _Bins) -> Element:
    """Return the element with the best integer parameter, such as the trials of a binomial.

    In a sum a value may exceed what one element can reach. Maximum likelihood over the values
    alone takes their larger spread for that of one element, and can end at any number of trials.
    """
    element = value_model.element
    name = element.count_parameter
    if name is None or not has_dispersion(value_model):
        return element
    mean, size = float(element.mean), float(bins.weight.sum())

    def at(count: int) -> Element:
        return element.replace(**{name: float(count)}).with_mean(mean)

    @cache
    def log_z(count: int) -> float:
        return bins.log_z(value_model, at(count)) / size

    now, low = int(element.parameters[name]), max(int(np.ceil(mean)), 1)
    most = MAX_COUNT_RATIO * max(int(bins.y.max()), 1)
    near = _climb_by_doubling(log_z, min(max(now, low), most), low, most)
    step = max(1, near // _COUNT_STEPS)  # finer, large counts cannot be told apart
    lowest, highest = max(near // 2, low), min(2 * near, most)

    def rises(index: int) -> bool:
        return log_z(lowest + (index + 1) * step) > log_z(lowest + index * step)

    best = lowest + step * last_rise(rises, 0, (highest - lowest) // step)
    return at(best) if log_z(best) - log_z(now) > _MIN_DISPERSION_GAIN else element


def _climb_by_doubling(score: Callable[[int], float], start: int, low: int, high: int) -> int:
    """Return a count within a factor of two of the maximum of a unimodal score.

    Of counts that hardly differ it is about the smallest: beyond, the element is a Poisson.
    """
    best = start
    while best < high and score(min(2 * best, high)) > score(best) + _LEAST_COUNT_GAIN:
        best = min(2 * best, high)
    if best == start:
        while best > low and score(max(best // 2, low)) > score(best) - _LEAST_COUNT_GAIN:
            best = max(best // 2, low)
    return best


def _bins(
    element: Element, values: FloatArray, log_rate: FloatArray, mean: FloatArray | None = None
) -> _Bins:
    values = np.asarray(values, dtype=np.float64)
    log_rate = np.maximum(log_rate, _LEAST_LOG_RATE)
    if mean is not None:
        return _Bins(values, np.exp(log_rate), np.ones(len(values)), mean)
    step = max(1, len(values) // _SAMPLE)
    histogram = _Histogram(element, values[::step], log_rate[::step])
    histogram.add(values, log_rate)
    return histogram.bins(LOCAL)


def _all_bins(element: Element, data: ShardData, fits: Combined, comm: Collective) -> _Bins:
    """Return all workers' entries by value and by log rate, read piece by piece."""
    matrix = data.matrix

    def read(entry: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        rate = fits.rates(row_of(matrix, entry), matrix.indices[entry])
        values = np.asarray(matrix.data[entry], dtype=np.float64)
        return values, np.log(np.maximum(rate, np.exp(_LEAST_LOG_RATE)))

    first, n_entries = data.entry_numbers(comm)
    step = max(1, n_entries // _SAMPLE)
    sample = read(data.own_entries(np.arange(0, n_entries, step), first))
    histogram = _Histogram(element, *(comm.gather(part) for part in sample))
    for begin in range(0, matrix.nnz, _CHUNK):
        histogram.add(*read(np.arange(begin, min(begin + _CHUNK, matrix.nnz))))
    return histogram.bins(comm)


class _Histogram:
    """Numbers of entries, and sums of values and log rates, in bins set by a sample."""

    def __init__(self, element: Element, values: FloatArray, log_rate: FloatArray) -> None:
        # An integer parameter takes more evaluations, which fewer bins make cheaper.
        coarser = 1 if element.count_parameter is None else 2
        self._element = element
        self._edges = (
            _bin_edges(values, _VALUE_BINS // coarser),
            _bin_edges(log_rate, _RATE_BINS // coarser),
        )
        self._sums = np.zeros((3, (len(self._edges[0]) + 1) * (len(self._edges[1]) + 1)))

    def add(self, values: FloatArray, log_rate: FloatArray) -> None:
        """Add entries; their number does not change the bits of the sums."""
        value_edges, rate_edges = self._edges
        position = np.searchsorted(value_edges, values, side="right") * (len(rate_edges) + 1)
        position += np.searchsorted(rate_edges, log_rate, side="right")
        for sums, column in zip(self._sums, (1.0, values, log_rate), strict=True):
            np.add.at(sums, position, column)

    def bins(self, comm: Collective) -> _Bins:
        """Return the bins that are not empty, of all workers."""
        element = self._element
        sums = comm.sum(self._sums)
        # The average of the counts in a bin is rounded: at fractions a mass is not defined.
        weight, values, log_rate = sums[:, sums[0] > 0]
        y = np.rint(values / weight) if element.support.discrete else values / weight
        return _Bins(y, np.exp(log_rate / weight), weight, float(element.mean))


def _bin_edges(sample: FloatArray, most: int) -> FloatArray:
    """Return edges between bins of about equally many entries, or between few distinct values."""
    distinct = np.unique(sample)
    if len(distinct) > most:
        # Even steps, and ever smaller ones towards both tails.
        tail = 0.5 ** np.arange(1, 24)
        levels = np.concatenate([np.linspace(0, 1, most + 1), tail, 1.0 - tail])
        distinct = np.unique(np.quantile(sample, levels))
    return 0.5 * (distinct[1:] + distinct[:-1])
