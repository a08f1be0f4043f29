"""The normal element, for values that may be negative."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from hcpf._types import FloatArray
from hcpf.elements.base import Element, Parameter, Separable, parameter
from hcpf.elements.conjugate import Conjugate, Part, Sharing
from hcpf.elements.domains import POSITIVE, REAL, REALS
from hcpf.errors import EstimationError


class NormalConjugate(Conjugate):
    """Theta is Normal(chi / nu, 1 / nu)."""

    min_center = -np.inf
    sharing = Sharing(
        lambda chi, nu: Part(0.5 * (np.square(chi / nu) + 1.0 / nu), chi / nu),
        sign=1.0, additive=True,
    )  # fmt: skip

    def moments(self, chi: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
        theta = chi / nu
        return theta, 0.5 * (np.square(theta) + 1.0 / nu)

    def log_normalizer(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return 0.5 * (np.log(2.0 * np.pi / nu) + chi * chi / nu)

    def log_predictive(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray:
        center = chi / nu
        exponent = (y * y + center * (2.0 * nu * y - kappa * chi)) / (nu + kappa)
        return 0.5 * (exponent - np.log1p(kappa / nu))

    def variance_of_mean(self, chi: FloatArray, nu: FloatArray) -> FloatArray:
        return 1.0 / nu

    def predictive_cdf(
        self, y: FloatArray, kappa: FloatArray, chi: FloatArray, nu: FloatArray
    ) -> FloatArray | None:
        variance = kappa + np.square(kappa) / nu
        return special.ndtr((y - kappa * chi / nu) / np.sqrt(variance))

    def sample_mean(self, chi: FloatArray, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        return rng.normal(chi / nu, 1.0 / np.sqrt(nu))


@dataclass(frozen=True, eq=False, repr=False)
class Normal(Element):
    r"""Normal(mean m, variance s2); the sum of n is Normal(n m, n s2).

    :math:`\theta = m/s_2,\ \kappa = s_2,\ \Psi(\theta) = \theta^2/2`
    """

    mean: Parameter = parameter(REAL)
    variance: Parameter = parameter(POSITIVE)

    name = "normal"
    acronym = "N"
    support = REALS
    mean_parameter = "mean"
    kappa_note = ""
    dispersion_parameter = "variance"
    conjugate = NormalConjugate()

    @property
    def theta(self) -> Parameter:
        return self.mean / self.variance

    @property
    def kappa(self) -> Parameter:
        return self.variance

    def log_partition(self, theta: Parameter) -> FloatArray:
        return 0.5 * np.square(theta)

    def log_base_measure(self, y: FloatArray, kappa: Parameter) -> FloatArray:
        return -0.5 * (np.log(2.0 * np.pi * kappa) + np.square(y) / kappa)

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        variance = n * self.variance
        return -0.5 * (np.log(2.0 * np.pi * variance) + np.square(y - n * self.mean) / variance)

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        return special.ndtr((y - n * self.mean) / np.sqrt(n * self.variance))

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        return rng.normal(n * self.mean, np.sqrt(n * self.variance))

    @property
    def form(self) -> Separable:
        m, s2 = self.mean, self.variance
        return Separable(
            c=lambda y: y * m / s2 - 0.5 * np.log(2.0 * np.pi * s2),
            f=lambda n: -0.5 * (n * m * m / s2 + np.log(n)),
            g=lambda y: -0.5 * y * y / s2,
            phi=lambda n: 1.0 / n,
        )

    def scaled_for_observed(self, expected_count: float) -> Self:
        return self.replace(
            mean=self.mean / expected_count, variance=self.variance / expected_count
        )

    @classmethod
    def min_observed_count(cls, values: FloatArray) -> float:
        # n alone gives the values a variance of mean^2 / E[n]; allow it half of the observed one.
        mean, variance = (float(f(values, dtype=np.float64)) for f in (np.mean, np.var))
        return 2.0 * mean**2 / max(variance, 1e-300)

    def parameter_for_mean(self, mean: Parameter) -> Parameter:
        return mean

    def maximize_likelihood(self, y: FloatArray) -> Self:
        """Return the sample mean and variance; equal values raise an EstimationError."""
        given = self.parameters
        mean = given.get("mean", float(y.mean()))
        variance = given.get("variance", float(np.mean(np.square(y - mean))))
        # The mean of equal values may differ from them in the last digit.
        if "variance" not in given and not variance > 1e-30 * mean * mean:
            raise EstimationError(
                f"Normal: all values are close to {mean:g}, so the variance would be 0. Pass "
                "variance=, or use an element for counts (Degenerate if all values are 1)."
            )
        return self.replace(mean=mean, variance=variance)
