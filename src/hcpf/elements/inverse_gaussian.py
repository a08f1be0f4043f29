"""The inverse Gaussian element, for positive responses with a heavy tail."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.base import Element, Parameter, Separable, parameter
from hcpf.elements.conjugate import InverseGaussianConjugate
from hcpf.elements.domains import POSITIVE, POSITIVE_REALS
from hcpf.errors import EstimationError


@dataclass(frozen=True, eq=False, repr=False)
class InverseGaussian(Element):
    r"""InverseGaussian(mean m, shape l); the sum of n is InverseGaussian(n m, n² l).

    :math:`\theta = -l/(2m^2),\ \kappa = \sqrt{l},\ \Psi(\theta) = -\sqrt{-2\theta}`
    """

    mean: Parameter = parameter(POSITIVE)
    shape: Parameter = parameter(POSITIVE)

    name = "inverse_gaussian"
    acronym = "IG"
    support = POSITIVE_REALS
    mean_parameter = "mean"
    dispersion_parameter = "shape"
    conjugate = InverseGaussianConjugate()

    @property
    def theta(self) -> Parameter:
        return -self.shape / (2.0 * self.mean * self.mean)

    @property
    def kappa(self) -> Parameter:
        return self.shape**0.5

    def log_partition(self, theta: ArrayLike) -> FloatArray:
        return -np.sqrt(-2.0 * np.asarray(theta, dtype=np.float64))

    def log_base_measure(self, y: ArrayLike, kappa: ArrayLike) -> FloatArray:
        y, kappa = np.asarray(y, dtype=np.float64), np.asarray(kappa, dtype=np.float64)
        front = np.log(kappa) - 0.5 * np.log(2.0 * np.pi) - 1.5 * np.log(y)
        return front - kappa * kappa / (2.0 * y)

    @property
    def variance(self) -> Parameter:
        return self.mean**3 / self.shape

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        m, shape = self.mean, self.shape
        deviation = np.square((y - n * m) / m) / y
        front = np.log(n) + 0.5 * np.log(shape / (2.0 * np.pi)) - 1.5 * np.log(y)
        return front - 0.5 * shape * deviation

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        mean, shape = n * self.mean, n * n * self.shape
        inside = np.clip(y, np.finfo(np.float64).tiny, 1e300)
        scale = np.sqrt(shape) / np.sqrt(inside)
        near, far = scale * (inside / mean - 1.0), scale * (inside / mean + 1.0)
        lower = special.ndtr(near)
        # e^(2l/m) Pr(Z < -far), of which the first overflows and the second underflows
        upper = 0.5 * special.erfcx(far / np.sqrt(2.0)) * np.exp(-0.5 * np.square(near))
        return np.where(y > 0, np.minimum(lower + upper, 1.0), 0.0)

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        return rng.wald(n * self.mean, n * n * self.shape)

    @property
    def form(self) -> Separable:
        m, shape = self.mean, self.shape
        return Separable(
            c=lambda y: -1.5 * np.log(y) - shape * y / (2.0 * m * m),
            f=lambda n: np.log(n) + 0.5 * np.log(shape / (2.0 * np.pi)) + n * shape / m,
            g=lambda y: -shape / (2.0 * y),
            phi=lambda n: n * n,
        )

    def scaled_for_observed(self, expected_count: float) -> Self:
        return self.replace(mean=self.mean / expected_count, shape=self.shape / expected_count**2)

    def parameter_for_mean(self, mean: Parameter) -> Parameter:
        return mean

    def maximize_likelihood(self, y: FloatArray) -> Self:
        """Sample mean, and 1/l = avg (y - m)²/(m² y); values that are all equal are an error."""
        given = self.parameters
        mean = given.get("mean", float(y.mean()))
        if "shape" in given:
            return self.with_mean(mean)
        spread = float(np.mean(np.square((y - mean) / mean) / y))
        if not spread * mean > 1e-28:
            raise EstimationError(
                f"All values are next to {mean:g}: the inverse Gaussian's shape would be "
                "infinite. Give shape=..., or use an element for counts."
            )
        return self.replace(mean=mean, shape=1.0 / spread)
