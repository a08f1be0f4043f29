"""The inverse Gaussian element, for positive responses with a heavy tail."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.base import Element, Parameter, Separable, parameter
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

    @property
    def theta(self) -> Parameter:  # noqa: D102
        return -self.shape / (2.0 * self.mean * self.mean)

    @property
    def kappa(self) -> Parameter:  # noqa: D102
        return self.shape**0.5

    def log_partition(self, theta: ArrayLike) -> FloatArray:  # noqa: D102
        return -np.sqrt(-2.0 * np.asarray(theta, dtype=np.float64))

    def log_base_measure(self, y: ArrayLike, kappa: ArrayLike) -> FloatArray:  # noqa: D102
        y, kappa = np.asarray(y, dtype=np.float64), np.asarray(kappa, dtype=np.float64)
        return np.log(kappa) - 0.5 * np.log(2.0 * np.pi * y**3) - kappa * kappa / (2.0 * y)

    @property
    def variance(self) -> Parameter:  # noqa: D102
        return self.mean**3 / self.shape

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:  # noqa: D102
        m, shape = self.mean, self.shape
        deviation = np.square((y - n * m) / m) / y
        front = np.log(n) + 0.5 * np.log(shape / (2.0 * np.pi)) - 1.5 * np.log(y)
        return front - 0.5 * shape * deviation

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:  # noqa: D102
        mean, shape = n * self.mean, n * n * self.shape
        positive = np.maximum(y, np.finfo(np.float64).tiny)
        scale = np.sqrt(shape / positive)
        lower = special.ndtr(scale * (positive / mean - 1.0))
        # e^(2l/m) overflows on its own; its product with the tail never does.
        upper = np.exp(2.0 * shape / mean + special.log_ndtr(-scale * (positive / mean + 1.0)))
        return np.where(y > 0, np.minimum(lower + upper, 1.0), 0.0)

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:  # noqa: D102
        return rng.wald(n * self.mean, n * n * self.shape)

    @property
    def form(self) -> Separable:  # noqa: D102
        m, shape = self.mean, self.shape
        return Separable(
            c=lambda y: 0.5 * np.log(shape / (2.0 * np.pi * y**3)) - shape * y / (2.0 * m * m),
            f=lambda n: np.log(n) + n * shape / m,
            g=lambda y: -shape / (2.0 * y),
            phi=lambda n: n * n,
        )

    def maximise_likelihood(self, y: FloatArray) -> Self:
        """Sample mean, and the harmonic form for the shape; all values equal is an error."""
        given = self.parameters
        mean = given.get("mean", float(y.mean()))
        if "shape" in given:
            return self.replace(mean=mean)
        spread = float(np.mean(np.square((y - mean) / mean) / y))
        if not spread * mean > 1e-28:
            raise EstimationError(
                f"All values equal {y[0]:g}: the inverse Gaussian's shape would be infinite. "
                "Give shape=..., or use an element for counts."
            )
        return self.replace(mean=mean, shape=1.0 / spread)
