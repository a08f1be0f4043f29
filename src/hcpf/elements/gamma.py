"""The gamma element, for positive continuous values such as money or hours."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from hcpf._types import FloatArray
from hcpf.elements.base import Element, Parameter, Separable, parameter
from hcpf.elements.conjugate import Conjugate, Part, Sharing, inverse_if_positive
from hcpf.elements.domains import POSITIVE, POSITIVE_REALS
from hcpf.elements.special import digamma, log1p_minus, log_poisson, log_rising, root
from hcpf.errors import EstimationError


class GammaConjugate(Conjugate):
    """The rate -theta is Gamma(nu + 1, chi)."""

    sharing = Sharing(
        lambda chi, nu: Part(np.log(chi) - digamma(nu + 1.0), weight=(nu + 1.0) / chi),
        sign=0.0, weighs=True, power=1.0,
    )  # fmt: skip

    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -(nu + 1.0) / chi, np.log(chi) - digamma(nu + 1.0)

    def log_normalizer(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return special.gammaln(nu + 1.0) - (nu + 1.0) * np.log(chi)

    def log_predictive(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray:
        rising = log_rising(nu + 1.0, kappa) - kappa * np.log(chi + y)
        return rising - (nu + 1.0) * np.log1p(y / chi)

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return np.square(chi / nu) * inverse_if_positive(nu - 1.0)

    def predictive_cdf(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray | None:
        y = np.maximum(y, 0.0)
        return special.betainc(kappa, nu + 1.0, y / (y + chi))

    def sample_mean(self, chi: FloatArray, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        return chi / rng.standard_gamma(nu + 1.0)


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
    kappa_note = ""
    dispersion_parameter = "shape"
    conjugate = GammaConjugate()

    @property
    def theta(self) -> Parameter:
        return -self.rate

    @property
    def kappa(self) -> Parameter:
        return self.shape

    def log_partition(self, theta: Parameter) -> FloatArray:
        return -np.log(-theta)

    def log_base_measure(self, y: FloatArray, kappa: Parameter) -> FloatArray:
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
        """Draw sums; where a tiny shape underflows, the smallest positive double is returned."""
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
        """Return the maximum-likelihood element; equal values raise an EstimationError."""
        given = self.parameters
        mean = float(y.mean())
        if "rate" in given:
            return self.replace(shape=_inverse_digamma(float(np.mean(np.log(given["rate"] * y)))))
        if "shape" in given:
            return self.with_mean(mean)
        # log(mean y) - mean(log y), as a mean of positive terms: the difference would cancel.
        gap = -float(np.mean(log1p_minus(y / mean - 1.0)))
        if not gap > 1e-14:
            raise EstimationError(
                f"Gamma: all values are close to {mean:g}, so the shape would be infinite. Pass "
                "shape=, or use an element for counts."
            )
        # The shape a solves log a - psi(a) = gap, and 1/(2a) < log a - psi(a) < 1/a brackets it.
        shape = root(lambda a: _log_minus_digamma(a) / gap - 1.0, 0.5 / gap, 1.0 / gap)
        return self.replace(shape=shape, rate=shape / mean)


def _log_minus_digamma(a: float) -> float:
    if a > 1e3:  # the difference would cancel
        return 1.0 / (2.0 * a) + 1.0 / (12.0 * a * a)
    return float(np.log(a) - special.psi(a))


def _inverse_digamma(target: float) -> float:
    """Solve psi(a) = target; log(a - 1/2) < psi(a) < log a brackets the root."""
    low = max(float(np.exp(target)), 1.0 / (2.0 + abs(target)))
    return root(lambda a: float(special.psi(a)) - target, low, float(np.exp(target)) + 0.5)
