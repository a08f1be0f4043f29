"""The zero-truncated Poisson element, for counts from 1."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import optimize, special

from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.base import Element, Parameter, parameter
from hcpf.elements.domains import POSITIVE, POSITIVE_COUNTS, SMALLEST
from hcpf.elements.sampling import sum_of_draws, truncated_poisson
from hcpf.elements.stirling import log_stirling2


@dataclass(frozen=True, eq=False, repr=False)
class ZeroTruncatedPoisson(Element):
    r"""Poisson(rate l) given that it is not 0.

    :math:`\theta = \log l,\ \kappa = 1,\ \Psi(\theta) = \log(e^{e^\theta} - 1)`, and the base
    measure of the sum of n is :math:`n!\,S_2(y, n)/y!`, the number the paper prints as an
    alternating sum.
    """

    rate: Parameter = parameter(POSITIVE)

    name = "zero_truncated_poisson"
    acronym = "ZTP"
    support = POSITIVE_COUNTS

    @property
    def theta(self) -> Parameter:  # noqa: D102
        return np.log(self.rate)

    @property
    def kappa(self) -> Parameter:  # noqa: D102
        return 1.0

    def log_partition(self, theta: ArrayLike) -> FloatArray:  # noqa: D102
        rate = np.exp(np.asarray(theta, dtype=np.float64))
        return rate + np.log(-np.expm1(-rate))

    def log_base_measure(self, y: ArrayLike, kappa: ArrayLike) -> FloatArray:  # noqa: D102
        y, kappa = np.asarray(y, dtype=np.float64), np.asarray(kappa, dtype=np.float64)
        return special.gammaln(kappa + 1.0) + log_stirling2(y, kappa) - special.gammaln(y + 1.0)

    @property
    def mean(self) -> Parameter:  # noqa: D102
        return self.rate / -np.expm1(-self.rate)

    @property
    def variance(self) -> Parameter:  # noqa: D102
        return self.mean * (1.0 + self.rate - self.mean)

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:  # noqa: D102
        return sum_of_draws(n, self.rate, lambda rate: truncated_poisson(rate, rng))

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:  # noqa: D102
        return np.ones_like(y), y

    def maximise_likelihood(self, y: FloatArray) -> Self:
        """Solve mean = l / (1 - e^-l); all values 1 gives the smallest rate allowed, 1e-9."""
        mean = float(y.mean())
        if mean - 1.0 <= SMALLEST:
            return self.replace(rate=SMALLEST)
        # 1 + l/2 <= mean(l) <= 1 + l bracket the root.
        low, high = mean - 1.0, min(2.0 * (mean - 1.0), mean)
        excess = _excess(low, mean), _excess(high, mean)
        if excess[0] * excess[1] >= 0:
            return self.replace(rate=low if abs(excess[0]) < abs(excess[1]) else high)
        root = optimize.brentq(_excess, low, high, args=(mean,), xtol=1e-15, rtol=1e-14)
        return self.replace(rate=float(root))


def _excess(rate: float, mean: float) -> float:
    return float(rate / -np.expm1(-rate) - mean)
