"""The element's own parameters: the M-step of the bound, given the current factors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from hcpf._types import FloatArray, IntArray
from hcpf.core.count_tables import slope_of
from hcpf.core.layout import Problem
from hcpf.core.state import State, set_shifts
from hcpf.core.value_model import ValueModel
from hcpf.distributions.series import sum_over_n
from hcpf.elements.base import Element, Parameter

_VALUE_BINS, _RATE_BINS = 160, 6
_SAMPLE = 30_000  # entries that a histogram is made of, or the edges of its bins
_VARYING_SAMPLE = 2_000  # entries, where each has its own mean
_WORTH_MOVING = 1e-4  # nats for each entry: a new dispersion means that data are laid out anew
_PAIRS = 2048  # pairs whose factors are gathered at once
_LEAST_LOG_RATE = -600.0  # below, n is at its least

ValuesOf = Callable[[NDArray[np.int64]], FloatArray]
"""Gives the values of entries of the problem, by position."""


def update_theta(state: State, problem: Problem) -> None:
    r"""Solve the mean equation :math:`\kappa\Psi'(\theta) = \sum y / \sum E[n]` for theta.

    Where a value is one element, that is the mean of the values.

    Theta reaches the local step only as a shift of every log rate, so nothing is tabulated anew.
    Where it varies each half-step has updated it, and the element is that of the population.
    """
    if state.varying is not None:
        state.element = state.varying.population(state.element)
        state.slope = slope_of(problem.value_model.replace(element=state.element))
        return
    count = problem.n_observed if problem.value_model.hurdle else state.sum_counts
    if count <= 0:
        return
    state.element = _with_mean(state.element, problem.sum_of_values / count)
    state.slope = slope_of(problem.value_model.replace(element=state.element))
    set_shifts(state, problem)


def best_dispersion(state: State, problem: Problem, values_of: ValuesOf) -> Element:
    """The element with the dispersion that maximises the sum of log Z at the current rates.

    The objective runs over a histogram of (at most a sample of) the entries in value and log rate,
    at the element's current mean; whoever uses the result checks the bound itself.
    """
    rows, varying = problem.users.entries, state.varying
    most = _SAMPLE if varying is None else _VARYING_SAMPLE
    sampled = np.linspace(0, problem.n_observed - 1, min(problem.n_observed, most))
    entry = sampled.astype(np.int64)
    users, items = problem.users.owner(entry), rows.index[entry]
    log_rate = np.empty(len(entry))
    for start in range(0, len(entry), _PAIRS):
        part = slice(start, start + _PAIRS)
        u, i = users[part], items[part]
        dot = np.einsum("jk,jk->j", state.users.g[u], state.items.g[i])
        scale = state.users.log_scale[u] + state.items.log_scale[i]
        log_rate[part] = scale + np.log(np.maximum(dot, np.finfo(np.float32).tiny))
    mean = None if varying is None else varying.means(state.element, users, items)
    value_model = problem.value_model.replace(element=state.element)
    return _with_best_dispersion(
        value_model, _cells(state.element, values_of(entry), log_rate, mean)
    )


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
    return at(float(found.x)) if gain > _WORTH_MOVING * cells.weight.sum() else element


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
