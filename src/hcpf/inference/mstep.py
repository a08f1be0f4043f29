"""The element's own parameters: the M-step of the bound, given the current factors."""

import numpy as np
from scipy import optimize

from hcpf._series import sum_over_n
from hcpf._types import FloatArray
from hcpf.elements.base import Element
from hcpf.inference import kernels
from hcpf.inference.local import slope_of
from hcpf.inference.problem import Problem
from hcpf.inference.state import State, shift_rates

_VALUE_BINS, _RATE_BINS = 256, 64


def update_theta(state: State, problem: Problem) -> None:
    r"""Solve the mean equation :math:`\kappa\Psi'(\theta) = \sum y / \sum E[n]` for theta.

    Theta reaches the local step only as a shift of every log rate, so nothing is tabulated anew.
    """
    if state.sum_counts <= 0:
        return
    state.element = state.element.with_mean(problem.sum_of_values / state.sum_counts)
    state.slope = slope_of(state.element)
    shift_rates(state, state.slope - problem.local.slope)


def best_dispersion(state: State, problem: Problem, values: FloatArray) -> Element:
    """The element with the dispersion that maximises the sum of log Z at the current rates.

    The objective runs over a histogram of all entries in (value, log rate), at the element's
    current mean; whoever uses the result checks the bound itself.
    """
    log_rate = np.empty(problem.n_observed)
    kernels.log_rates(
        problem.users.entries, state.users, state.items, problem.users.blocks, log_rate
    )
    return _with_best_dispersion(state.element, *_histogram(values, log_rate))


def refit_element(
    element: Element, values: FloatArray, rate: FloatArray, steps: int = 5
) -> Element:
    """Re-estimate the element at given rates: alternate the mean equation and the dispersion."""
    y, rate, weight = _histogram(np.asarray(values, np.float64), np.log(np.maximum(rate, 1e-300)))
    for _ in range(steps):
        counts = float(weight @ sum_over_n(element, y, rate).mean)
        element = element.with_mean(float(weight @ y) / counts)
    return _with_best_dispersion(element, y, rate, weight)


def _with_best_dispersion(
    element: Element, y: FloatArray, rate: FloatArray, weight: FloatArray
) -> Element:
    name = element.dispersion_parameter
    if name is None:
        return element
    mean = float(element.mean)

    def at(value: float) -> Element:
        return element.replace(**{name: value}).with_mean(mean)

    def loss(log_value: float) -> float:
        return -float(weight @ sum_over_n(at(float(np.exp(log_value))), y, rate).log_sum)

    now = float(np.log(element.parameters[name]))
    found = optimize.minimize_scalar(
        loss, bounds=(now - 2.0, now + 2.0), method="bounded", options={"xatol": 1e-5}
    )
    return at(float(np.exp(found.x))) if found.fun < loss(now) else element


def _histogram(
    values: FloatArray, log_rate: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Representative values and rates, and how many entries each stands for."""
    value_code, value_count = _bins(values, _VALUE_BINS)
    rate_code, rate_count = _bins(log_rate, _RATE_BINS)
    cell = value_code * rate_count + rate_code
    size = value_count * rate_count
    weight = np.bincount(cell, minlength=size).astype(np.float64)
    kept = weight > 0
    y = np.bincount(cell, weights=values, minlength=size)[kept] / weight[kept]
    rate = np.bincount(cell, weights=log_rate, minlength=size)[kept] / weight[kept]
    if value_count < _VALUE_BINS:
        y = np.unique(values)[np.flatnonzero(kept) // rate_count]
    return y, np.exp(rate), weight[kept]


def _bins(x: FloatArray, most: int) -> tuple[np.ndarray, int]:
    distinct = np.unique(x)
    if len(distinct) < most:
        return np.searchsorted(distinct, x), len(distinct)
    edges = np.unique(np.quantile(x, np.linspace(0, 1, most + 1)[1:-1]))
    return np.searchsorted(edges, x, side="right"), len(edges) + 1
