"""The one table of elements that drives the shared tests, and values that suit them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from hcpf import elements
from hcpf.elements import Element


@dataclass(frozen=True)
class Case:
    """An element, and the distribution of the sum of n of it where scipy has one."""

    element: Element
    scipy: Callable[[int], Any] | None = None

    def __repr__(self) -> str:
        return repr(self.element)


def _normal(mean, variance):
    return Case(
        elements.Normal(mean, variance), lambda n: stats.norm(n * mean, np.sqrt(n * variance))
    )


def _gamma(shape, rate):
    return Case(elements.Gamma(shape, rate), lambda n: stats.gamma(n * shape, scale=1 / rate))


def _inverse_gaussian(mean, shape):
    def twin(n: int):
        total = n * n * shape
        return stats.invgauss(n * mean / total, scale=total)

    return Case(elements.InverseGaussian(mean, shape), twin)


def _poisson(rate):
    return Case(elements.Poisson(rate), lambda n: stats.poisson(n * rate))


def _binomial(trials, p):
    return Case(elements.Binomial(trials, p), lambda n: stats.binom(n * trials, p))


def _negative_binomial(successes, p):
    # The p of scipy is our 1 - p.
    return Case(
        elements.NegativeBinomial(successes, p), lambda n: stats.nbinom(n * successes, 1 - p)
    )


def _zero_truncated_poisson(rate):
    return Case(elements.ZeroTruncatedPoisson(rate))


def _logarithmic(p):
    return Case(elements.Logarithmic(p))


def _geometric(p):
    return Case(elements.Geometric(p), lambda n: stats.nbinom(n, 1 - p, loc=n))


CASES = (
    _normal(0.7, 2.0),
    _normal(-30.0, 0.01),
    _normal(0.0, 400.0),
    _gamma(2.0, 0.05),
    _gamma(0.3, 1.5),
    _gamma(150.0, 3.0),
    _inverse_gaussian(3.0, 4.0),
    _inverse_gaussian(0.2, 9.0),
    _inverse_gaussian(20.0, 5.0),
    _poisson(0.8),
    _poisson(0.001),
    _poisson(40.0),
    _binomial(5, 0.7),
    _binomial(1, 0.2),
    _binomial(80, 0.03),
    _negative_binomial(2.5, 0.3),
    _negative_binomial(0.2, 0.9),
    _negative_binomial(1000.0, 0.01),
    _zero_truncated_poisson(0.5),
    _zero_truncated_poisson(1e-6),
    _zero_truncated_poisson(25.0),
    _logarithmic(0.6),
    _logarithmic(0.001),
    _logarithmic(0.97),
    _geometric(0.4),
    _geometric(0.01),
    _geometric(0.9),
    Case(elements.Degenerate()),
)
"""Each element with everyday parameters first, then towards the ends of their ranges."""

EVERYDAY = tuple(
    next(case for case in CASES if type(case.element) is family) for family in elements.ALL
)
"""One case for each element."""

NEEDING_PARAMETERS = tuple(family for family in elements.ALL if family.domains())


def moments(element: Element, n: int) -> tuple[float, float]:
    """The mean and the standard deviation of the sum of n."""
    return float(n * element.mean), float(np.sqrt(n * element.variance))


def whole_numbers(element: Element, n: int = 1) -> np.ndarray:
    """Consecutive values of a discrete element that hold all of the sum of n."""
    mean, spread = moments(element, n)
    return np.arange(element.support.lowest, np.ceil(mean + 45 * spread) + 60)


def some_values(element: Element, n: int = 1) -> np.ndarray:
    """Values, in order, over the range in which the sum of n lies."""
    mean, spread = moments(element, n)
    if element.support.discrete:
        low = max(element.support.lowest, np.floor(mean - 5 * spread))
        return np.unique(np.round(np.linspace(low, np.ceil(mean + 6 * spread) + 2, 23)))
    steps = np.linspace(-3.0, 3.0, 23)
    if element.support.lowest < 0:
        return mean + spread * steps
    return mean * np.exp(steps * np.log1p(spread / mean))


def mass(element: Element, n: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A fine grid, the density on it, and the weights that integrate against it.

    For positive elements the grid is even in log y, where the integrand dies out on either side
    and the trapezoid rule converges faster than any power of its step.
    """
    mean, spread = moments(element, n)
    if element.support.discrete:
        y = whole_numbers(element, n)
        weights = np.ones_like(y)
    elif element.support.lowest < 0:
        y = np.linspace(mean - 12 * spread, mean + 12 * spread, 2001)
        weights = np.full_like(y, y[1] - y[0])
    else:
        u = np.linspace(np.log(mean) - 200, np.log(mean + 60 * spread) + 2, 20001)
        y = np.exp(u)
        weights = y * (u[1] - u[0])
    return y, np.exp(element.log_density(y, n)), weights
