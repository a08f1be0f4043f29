"""The Poisson element, for counts whose observed value may be 0."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from hcpf._types import FloatArray
from hcpf.elements.base import Element, Parameter, Separable, parameter
from hcpf.elements.conjugate import Conjugate, Part, Sharing
from hcpf.elements.domains import COUNTS, POSITIVE, SMALLEST
from hcpf.elements.special import digamma, log_poisson, log_rising


class PoissonConjugate(Conjugate):
    """The rate exp(theta) is Gamma(chi, nu)."""

    sharing = Sharing(
        lambda chi, nu: Part(np.zeros_like(chi), chi / nu),
        sign=1.0, spread=lambda chi, nu: 1.0 / chi,
        nu_at=lambda center, spread: 1.0 / (spread * center),
    )  # fmt: skip

    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        return digamma(chi) - np.log(nu), chi / nu

    def log_normalizer(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return special.gammaln(chi) - chi * np.log(nu)

    def log_predictive(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray:
        rising = log_rising(chi, y) - y * np.log(nu + kappa)
        return rising - chi * np.log1p(kappa / nu)

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return chi / np.square(nu)

    def predictive_cdf(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray | None:
        floor = np.floor(np.clip(y, 0.0, 1e300))
        inside = special.betainc(chi, floor + 1.0, nu / (nu + kappa))
        return np.where(y >= 0, inside, 0.0)

    def sample_mean(self, chi: FloatArray, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        return np.maximum(rng.standard_gamma(chi) / nu, np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False, repr=False)
class Poisson(Element):
    r"""Poisson(rate l); the sum of n is Poisson(n l).

    :math:`\theta = \log l,\ \kappa = 1,\ \Psi(\theta) = e^\theta`
    """

    rate: Parameter = parameter(POSITIVE)

    name = "poisson"
    acronym = "PO"
    support = COUNTS
    mean_parameter = "rate"
    kappa_note = ""
    conjugate = PoissonConjugate()

    @property
    def theta(self) -> Parameter:
        return np.log(self.rate)

    def log_partition(self, theta: Parameter) -> FloatArray:
        return np.exp(theta)

    def log_base_measure(self, y: FloatArray, kappa: Parameter) -> FloatArray:
        return special.xlogy(y, kappa) - special.gammaln(y + 1.0)

    @property
    def mean(self) -> Parameter:
        return self.rate

    @property
    def variance(self) -> Parameter:
        return self.rate

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        return log_poisson(y, n * self.rate)

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        floor = np.floor(np.clip(y, 0.0, 1e300))  # scipy's incomplete gamma fails above
        return np.where(y >= 0, special.gammaincc(floor + 1.0, n * self.rate), 0.0)

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        return rng.poisson(n * self.rate).astype(np.float64)

    @property
    def form(self) -> Separable:
        rate = self.rate
        return Separable(
            c=lambda y: special.xlogy(y, rate) - special.gammaln(y + 1.0),
            f=lambda n: -n * rate,
            g=lambda y: y,
            phi=np.log,
        )

    def scaled_for_observed(self, expected_count: float) -> Self:
        return self.replace(rate=self.rate / expected_count)

    def parameter_for_mean(self, mean: Parameter) -> Parameter:
        return np.maximum(mean, SMALLEST)

    def maximize_likelihood(self, y: FloatArray) -> Self:
        """Return the element with the sample mean; only zeros give the minimum rate, 1e-9."""
        return self.with_mean(float(y.mean()))
