"""The zero-truncated Poisson element, for counts from 1."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import special

from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.base import Element, Parameter, parameter
from hcpf.elements.by_mode import TruncatedPoissonMode, truncated_poisson_rate
from hcpf.elements.domains import POSITIVE, POSITIVE_COUNTS
from hcpf.elements.lattice import circle, masses_from_characteristic
from hcpf.elements.mixture import poisson_mixture
from hcpf.elements.sampling import sum_of_draws, truncated_poisson
from hcpf.elements.special import (
    log_characteristic_truncated_poisson,
    log_expm1,
    truncated_poisson_moments,
)
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
    mean_parameter = "rate"
    conjugate = TruncatedPoissonMode()

    @property
    def theta(self) -> Parameter:
        return np.log(self.rate)

    @property
    def kappa(self) -> Parameter:
        return 1.0

    def log_partition(self, theta: ArrayLike) -> FloatArray:
        return log_expm1(np.exp(np.asarray(theta, dtype=np.float64)))

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        return y * self.theta - n * log_expm1(self.rate) + self.log_base_measure(y, n)

    def log_base_measure(self, y: ArrayLike, kappa: ArrayLike) -> FloatArray:
        y, kappa = np.asarray(y, dtype=np.float64), np.asarray(kappa, dtype=np.float64)
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

    def compound_cdf(self, y: FloatArray, rate: FloatArray) -> FloatArray | None:
        """Pr(0 < X+ <= y): X+ is also a sum of plain Poissons, of which those at 0 do not show.

        There are 1/(1 - e^-l) times as many of these.
        """
        each = np.broadcast_to(self.rate, y.shape)
        whole = np.floor(np.clip(y, 0.0, 1e300))  # the incomplete gamma fails beyond

        def part(pick: Any, n: FloatArray) -> FloatArray:
            # Pr(1 <= Poisson <= y) = Pr(not 0) - Pr(above y), which does not cancel at small rates
            inner = n * each[pick]
            return -np.expm1(-inner) - special.gammainc(whole[pick] + 1.0, inner)

        return np.maximum(poisson_mixture(rate / -np.expm1(-each), part, 1.0 / each), 0.0)

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ones_like(y), y

    def parameter_for_mean(self, mean: Parameter) -> Parameter:
        return truncated_poisson_rate(np.asarray(mean))

    def maximize_likelihood(self, y: FloatArray) -> Self:
        """Solve mean = l / (1 - e^-l); all values 1 gives the smallest rate allowed, 1e-9."""
        return self.with_mean(float(y.mean()))
