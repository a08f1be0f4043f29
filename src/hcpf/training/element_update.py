"""Estimate the element's parameters: the M-step of the ELBO, given the current factors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from hcpf._types import FloatArray, IntArray
from hcpf.core.collective import Collective
from hcpf.core.layout import Shard
from hcpf.core.theta import pair_means
from hcpf.core.value_model import ValueModel
from hcpf.distributions.series import sum_over_n
from hcpf.elements.base import Element, Parameter
from hcpf.training.state import FitState

_VALUE_BINS, _RATE_BINS = 160, 6
_SAMPLE = 30_000  # entries that a histogram is made of, or the edges of its bins
_POOLED_SAMPLE = 2_000  # entries, where each has its own mean
_MIN_DISPERSION_GAIN = 1e-4  # nats per entry; less is not worth rebuilding the data layout
_PAIRS = 2048  # pairs whose factors are gathered at once
_LEAST_LOG_RATE = -600.0  # below, n is at its least


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
    count = shard.totals.n_entries if state.value_model.hurdle else state.sum_counts
    if count <= 0:
        return
    state.set_element(_with_mean(state.element, shard.totals.sum_of_values / count))
    state.set_shifts(shard)


def best_dispersion(state: FitState, shard: Shard, comm: Collective) -> Element:
    """Return the element with the dispersion that maximizes the sum of log Z at the current rates.

    The objective runs over a histogram of (at most a sample of) the entries in value and log rate,
    at the element's current mean; whoever uses the result checks the ELBO itself.
    """
    is_pooled = state.pooling is not None
    entry = shard.data.sample_entries(_POOLED_SAMPLE if is_pooled else _SAMPLE, comm)
    u, i = shard.users.owner(entry), shard.users.entries.index[entry]
    log_rate, values = _log_rates(state, u, i), shard.values.at(entry)
    mean = None
    if is_pooled:
        mean = pair_means(state.element, state.users.theta, state.items.theta, u, i)
        mean = comm.gather(mean)
    cells = _cells(state.element, comm.gather(values), comm.gather(log_rate), mean)
    return _with_best_dispersion(state.value_model, cells)


def _log_rates(state: FitState, users: NDArray[np.int64], items: NDArray[np.int64]) -> FloatArray:
    """Return logs of the geometric rates of pairs, given by rows of the layout."""
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
    values: FloatArray,
    rate: FloatArray,
    *,
    dispersion: bool,
    steps: int = 5,
) -> Element:
    """Re-estimate the element at given rates: a few mean equations, then the dispersion."""
    element = value_model.element
    cells = _cells(element, values, _log(rate))
    total = float(np.sum(values, dtype=np.float64))
    for _ in range(steps):
        count = 1.0 if value_model.hurdle else sum_over_n(element, cells.y, cells.rate).mean
        counts = float(np.sum(cells.weight * count))
        element = _with_mean(element, total / counts)
    if not dispersion:
        return element
    return _with_best_dispersion(value_model.replace(element=element), cells)


def _log(rate: FloatArray) -> FloatArray:
    return np.log(np.maximum(rate, np.exp(_LEAST_LOG_RATE)))


def _with_mean(element: Element, mean: float) -> Element:
    # Rounding must not take the mean beyond the largest value that an element can have.
    return element.with_mean(min(mean, float(element.highest)))


@dataclass(frozen=True, eq=False)
class _Cells:
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


def _with_best_dispersion(value_model: ValueModel, cells: _Cells) -> Element:
    element = value_model.element
    name = element.dispersion_parameter
    if name is None:
        return element
    mean = float(element.mean)

    def at(log_value: float) -> Element:
        return element.replace(**{name: float(np.exp(log_value))}).with_mean(mean)

    def loss(log_value: float) -> float:
        return -cells.log_z(value_model, at(log_value))

    now = float(np.log(element.parameters[name]))
    found: Any = optimize.minimize_scalar(
        loss,
        bounds=(now - 5.0, now + 5.0),
        method="bounded",
        options={"xatol": 1e-2},
    )
    gain = -float(found.fun) - cells.log_z(value_model, element)
    return at(float(found.x)) if gain > _MIN_DISPERSION_GAIN * cells.weight.sum() else element


def _cells(
    element: Element, values: FloatArray, log_rate: FloatArray, mean: FloatArray | None = None
) -> _Cells:
    values = np.asarray(values, dtype=np.float64)
    log_rate = np.maximum(log_rate, _LEAST_LOG_RATE)
    if mean is not None:
        return _Cells(values, np.exp(log_rate), np.ones(len(values)), mean)
    value_code, value_count = _bins(values, _VALUE_BINS)
    rate_code, rate_count = _bins(log_rate, _RATE_BINS)
    cell = value_code * rate_count + rate_code
    weight = np.bincount(cell, minlength=value_count * rate_count).astype(np.float64)
    kept = weight > 0
    y, rate = (
        np.bincount(cell, weights=column, minlength=len(weight))[kept] / weight[kept]
        for column in (values, log_rate)
    )
    y = np.rint(y) if element.support.discrete else y
    return _Cells(y, np.exp(rate), weight[kept], float(element.mean))


def _bins(x: FloatArray, most: int) -> tuple[IntArray, int]:
    """Bins of about equally many entries, or one for each distinct value where these are few."""
    sample = x[:: max(1, len(x) // _SAMPLE)]
    distinct = np.unique(sample)
    if len(distinct) > most:
        # Even steps, and ever smaller ones towards both tails.
        tail = 0.5 ** np.arange(1, 24)
        levels = np.concatenate([np.linspace(0, 1, most + 1), tail, 1.0 - tail])
        distinct = np.unique(np.quantile(sample, levels))
    middle = 0.5 * (distinct[1:] + distinct[:-1])
    return np.searchsorted(middle, x, side="right"), len(distinct)
