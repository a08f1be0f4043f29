"""The geometric element on 1, 2, ..., for counts from 1."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from hcpf._types import FloatArray
from hcpf.elements.base import Element, Parameter, parameter
from hcpf.elements.binomial import log_choose
from hcpf.elements.conjugate import BetaConjugate, inverse_if_positive
from hcpf.elements.domains import POSITIVE_COUNTS, UNIT_INTERVAL, inside_unit
from hcpf.elements.special import digamma, log1mexp, log_binomial


class GeometricConjugate(BetaConjugate):
    """The probability of going on is Beta(chi - nu, nu + 1)."""

    min_center = 1.0

    def trials(self, y: FloatArray, kappa: FloatArray) -> tuple[FloatArray, FloatArray]:
        return y - kappa, kappa

    def shapes(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        return chi - nu, nu + 1.0

    def mean_of(self, p: FloatArray) -> FloatArray:
        return 1.0 / (1.0 - p)

    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        more = digamma(chi - nu)
        return more - digamma(chi + 1.0), more - digamma(nu + 1.0)

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return (chi - nu) * chi / np.square(nu) * inverse_if_positive(nu - 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Geometric(Element):
    r"""Geometric from 1 with probability p of going on: mass (1 - p) p^(y - 1), mean 1/(1 - p).

    :math:`\theta = \log p,\ \kappa = 1,\ \Psi(\theta) = \log\frac{e^\theta}{1 - e^\theta}`, and
    the base measure of the sum of n is :math:`\binom{y-1}{n-1}`.
    """

    probability: Parameter = parameter(UNIT_INTERVAL)

    name = "geometric"
    acronym = "GEO"
    support = POSITIVE_COUNTS
    mean_parameter = "probability"
    conjugate = GeometricConjugate()

    @property
    def theta(self) -> Parameter:
        return np.log(self.probability)

    def log_partition(self, theta: Parameter) -> FloatArray:
        return theta - log1mexp(theta)

    def log_base_measure(self, y: FloatArray, kappa: Parameter) -> FloatArray:
        return log_choose(y - 1.0, kappa - 1.0)

    @property
    def mean(self) -> Parameter:
        return 1.0 / (1.0 - self.probability)

    @property
    def variance(self) -> Parameter:
        return self.probability / np.square(1.0 - self.probability)

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        further = log_binomial(np.maximum(y - n, 0.0), y, self.probability)
        return np.where(y >= n, further + np.log(n / y), -np.inf)

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        further = np.floor(np.maximum(y - n, 0.0))
        return np.where(y >= n, special.betainc(n, further + 1.0, 1.0 - self.probability), 0.0)

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        return n + rng.negative_binomial(n, 1.0 - self.probability)

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ones_like(y), y

    def parameter_for_mean(self, mean: Parameter) -> Parameter:
        return inside_unit((mean - 1.0) / mean)

    def maximize_likelihood(self, y: FloatArray) -> Self:
        """Solve mean = 1/(1 - p); if all values are 1, p is 1e-9."""
        return self.with_mean(float(y.mean()))
