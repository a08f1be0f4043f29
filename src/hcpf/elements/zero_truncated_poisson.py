"""The zero-truncated Poisson element, for counts from 1."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np
from scipy import special

from hcpf._types import FloatArray
from hcpf.elements.base import Element, Parameter, parameter
from hcpf.elements.conjugate import MeanInverse, ModeConjugate
from hcpf.elements.domains import POSITIVE, POSITIVE_COUNTS, SMALLEST
from hcpf.elements.special import (
    log_characteristic_truncated_poisson,
    log_expm1,
    truncated_poisson_excess,
    truncated_poisson_moments,
)
from hcpf.elements.stirling import log_stirling2
from hcpf.elements.sums import (
    circle,
    masses_from_characteristic,
    poisson_mixture,
    sum_of_draws,
    truncated_poisson,
)

_NO_TRUNCATION = 50.0
"""A Poisson variable with this mean is 0 with a probability below rounding."""


class ZeroTruncatedPoissonConjugate(ModeConjugate):
    """Psi(theta) = log(exp(e^theta) - 1), with theta = log l."""

    def theta_at(self, mean: FloatArray) -> FloatArray:
        return np.log(rate_for_mean(mean))

    def psi(self, theta: FloatArray) -> FloatArray:
        return log_expm1(np.exp(theta))

    def position(self, theta: FloatArray) -> FloatArray:
        return theta

    def theta_of(self, position: FloatArray) -> FloatArray:
        return position

    def slope(self, theta: FloatArray) -> FloatArray:
        return np.ones_like(theta)

    def excess_at(self, theta: FloatArray) -> FloatArray:
        return truncated_poisson_excess(np.exp(theta))

    def curvature(self, theta: FloatArray) -> FloatArray:
        return truncated_poisson_moments(np.exp(theta))[1]

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return np.asarray(
            sum(weight * np.square(mean - chi / nu) for mean, weight in self.nodes(chi, nu))
        )


def rate_for_mean(mean: FloatArray) -> FloatArray:
    """Solve mean = l / (1 - e^-l) for l, elementwise; 1e-9 where the mean is 1."""
    mean = np.asarray(mean, dtype=np.float64)
    log_rate = _log_rate_for_mean()
    with np.errstate(divide="ignore"):
        x = np.log(np.log(np.maximum(mean, 1.0)))
    rate = np.exp(log_rate(x))
    return np.where(x <= log_rate.low, SMALLEST, np.where(mean < _NO_TRUNCATION, rate, mean))


@cache
def _log_rate_for_mean() -> MeanInverse:
    """Tabulate log l; the log of the mean l / (1 - e^-l) is l/2 - l^2/24 + ... near 0."""
    log_rate = MeanInverse.nodes(np.log(SMALLEST), np.log(_NO_TRUNCATION))
    rate = np.exp(log_rate)
    small = rate < 1e-3
    prob_positive = -np.expm1(-rate)
    log_mean = np.where(small, rate * (0.5 - rate / 24.0), np.log(rate / prob_positive))
    slope = np.where(small, rate * (0.5 - rate / 12.0), 1.0 - rate * np.exp(-rate) / prob_positive)
    return MeanInverse(log_rate, log_mean, slope)


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
    mean_parameter = "rate"
    conjugate = ZeroTruncatedPoissonConjugate()

    @property
    def theta(self) -> Parameter:
        return np.log(self.rate)

    def log_partition(self, theta: Parameter) -> FloatArray:
        return log_expm1(np.exp(theta))

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        return y * self.theta - n * log_expm1(self.rate) + self.log_base_measure(y, n)

    def log_base_measure(self, y: FloatArray, kappa: Parameter) -> FloatArray:
        return special.gammaln(kappa + 1.0) + log_stirling2(y, kappa) - special.gammaln(y + 1.0)

    @property
    def mean(self) -> Parameter:
        return truncated_poisson_moments(self.rate)[0]

    @property
    def variance(self) -> Parameter:
        return truncated_poisson_moments(self.rate)[1]

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        return sum_of_draws(n, self.rate, lambda rate: truncated_poisson(rate, rng))

    def masses(self, values: FloatArray, n: float) -> FloatArray:
        characteristic = log_characteristic_truncated_poisson(self.rate, circle(values))
        return masses_from_characteristic(characteristic, values, n)

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        if np.any(n != 1):
            return super().cdf_unchecked(y, n)
        rate = np.asarray(self.rate)
        floor = np.floor(np.clip(y, 0.0, 1e300))  # scipy's incomplete gamma fails above
        above = special.gammainc(floor + 1.0, rate) / -np.expm1(-rate)
        return np.where(y >= 1, 1.0 - above, 0.0)

    def compound_cdf(self, y: FloatArray, rate: FloatArray) -> FloatArray | None:
        # X+ is also a sum of Poissons that are not truncated: those equal to 0 add nothing, and
        # there are 1/(1 - e^-l) times as many.
        rates = np.broadcast_to(self.rate, y.shape)
        floor = np.floor(np.clip(y, 0.0, 1e300))  # scipy's incomplete gamma fails above

        def part(index: Any, n: FloatArray) -> FloatArray:
            # Pr(1 <= Poisson <= y) = Pr(not 0) - Pr(above y) does not cancel at small rates.
            total = n * rates[index]
            return -np.expm1(-total) - special.gammainc(floor[index] + 1.0, total)

        return np.maximum(poisson_mixture(rate / -np.expm1(-rates), part, 1.0 / rates), 0.0)

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ones_like(y), y

    def parameter_for_mean(self, mean: Parameter) -> Parameter:
        return rate_for_mean(np.asarray(mean))

    def maximize_likelihood(self, y: FloatArray) -> Self:
        """Solve mean = l / (1 - e^-l); if all values are 1, the rate is 1e-9."""
        return self.with_mean(float(y.mean()))
