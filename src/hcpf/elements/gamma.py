"""The gamma element, for positive continuous responses such as money or hours."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.base import Element, Parameter, Separable, parameter
from hcpf.elements.conjugate import GammaConjugate
from hcpf.elements.domains import POSITIVE, POSITIVE_REALS
from hcpf.elements.search import root
from hcpf.elements.special import log1p_minus, log_poisson
from hcpf.errors import EstimationError


@dataclass(frozen=True, eq=False, repr=False)
class Gamma(Element):
    r"""Gamma(shape a, rate b), mean a/b; the sum of n is Gamma(n a, b).

    :math:`\theta = -b,\ \kappa = a,\ \Psi(\theta) = -\log(-\theta)`
    """

    shape: Parameter = parameter(POSITIVE)
    rate: Parameter = parameter(POSITIVE)

    name = "gamma"
    acronym = "GA"
    support = POSITIVE_REALS
    mean_parameter = "rate"
    dispersion_parameter = "shape"
    conjugate = GammaConjugate()

    @property
    def theta(self) -> Parameter:
        return -self.rate

    @property
    def kappa(self) -> Parameter:
        return self.shape

    def log_partition(self, theta: ArrayLike) -> FloatArray:
        return -np.log(-np.asarray(theta, dtype=np.float64))

    def log_base_measure(self, y: ArrayLike, kappa: ArrayLike) -> FloatArray:
        kappa = np.asarray(kappa, dtype=np.float64)
        return (kappa - 1.0) * np.log(y) - special.gammaln(kappa)

    @property
    def mean(self) -> Parameter:
        return self.shape / self.rate

    @property
    def variance(self) -> Parameter:
        return self.shape / (self.rate * self.rate)

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        shape = n * self.shape
        return np.log(shape / y) + log_poisson(shape, self.rate * y)

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        return special.gammainc(n * self.shape, self.rate * np.maximum(y, 0.0))

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw sums; a tiny shape can underflow to 0, which is then the smallest double."""
        return np.maximum(rng.gamma(n * self.shape) / self.rate, np.finfo(np.float64).tiny)

    @property
    def form(self) -> Separable:
        a, b = self.shape, self.rate
        return Separable(
            c=lambda y: -np.log(y) - b * y,
            f=lambda n: n * a * np.log(b) - special.gammaln(n * a),
            g=lambda y: a * np.log(y),
            phi=lambda n: n,
        )

    def scaled_for_observed(self, expected_count: float) -> Self:
        return self.replace(shape=self.shape / expected_count)

    def parameter_for_mean(self, mean: Parameter) -> Parameter:
        return self.shape / mean

    def maximize_likelihood(self, y: FloatArray) -> Self:
        """Maximum likelihood; values that are all equal are an error (an infinite shape)."""
        given = self.parameters
        mean = float(y.mean())
        if "rate" in given:
            return self.replace(shape=_inverse_digamma(float(np.mean(np.log(given["rate"] * y)))))
        if "shape" in given:
            return self.with_mean(mean)
        gap = -float(np.mean(log1p_minus(y / mean - 1.0)))  # log mean - mean log
        if not gap > 1e-14:
            raise EstimationError(
                f"All values are next to {mean:g}: the gamma's shape would be infinite. Give "
                "shape=..., or use an element for counts."
            )
        # 1/(2a) < log a - psi(a) < 1/a bracket the root.
        shape = root(lambda a: _log_minus_digamma(a) / gap - 1.0, 0.5 / gap, 1.0 / gap)
        return self.replace(shape=shape, rate=shape / mean)


def _log_minus_digamma(a: float) -> float:
    if a > 1e3:
        return 1.0 / (2.0 * a) + 1.0 / (12.0 * a * a)
    return float(np.log(a) - special.psi(a))


def _inverse_digamma(target: float) -> float:
    """Solve psi(a) = t for a, between bounds that come from log(a - 1/2) < psi(a) < log a."""
    low = max(float(np.exp(target)), 1.0 / (2.0 + abs(target)))
    return root(lambda a: float(special.psi(a)) - target, low, float(np.exp(target)) + 0.5)
