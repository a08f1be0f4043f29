"""The gamma element, for positive continuous responses such as money or hours."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import optimize, special

from hcpf._special import log1p_minus, log_poisson
from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.base import Element, Parameter, Separable, parameter
from hcpf.elements.domains import POSITIVE, POSITIVE_REALS
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

    @property
    def theta(self) -> Parameter:  # noqa: D102
        return -self.rate

    @property
    def kappa(self) -> Parameter:  # noqa: D102
        return self.shape

    def log_partition(self, theta: ArrayLike) -> FloatArray:  # noqa: D102
        return -np.log(-np.asarray(theta, dtype=np.float64))

    def log_base_measure(self, y: ArrayLike, kappa: ArrayLike) -> FloatArray:  # noqa: D102
        kappa = np.asarray(kappa, dtype=np.float64)
        return (kappa - 1.0) * np.log(y) - special.gammaln(kappa)

    @property
    def mean(self) -> Parameter:  # noqa: D102
        return self.shape / self.rate

    @property
    def variance(self) -> Parameter:  # noqa: D102
        return self.shape / (self.rate * self.rate)

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:  # noqa: D102
        shape = n * self.shape
        return np.log(shape / y) + log_poisson(shape, self.rate * y)

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:  # noqa: D102
        return special.gammainc(n * self.shape, self.rate * np.maximum(y, 0.0))

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw sums; a tiny shape can underflow to 0, which is then the smallest double."""
        return np.maximum(rng.gamma(n * self.shape) / self.rate, np.finfo(np.float64).tiny)

    @property
    def form(self) -> Separable:  # noqa: D102
        a, b = self.shape, self.rate
        return Separable(
            c=lambda y: -np.log(y) - b * y,
            f=lambda n: n * a * np.log(b) - special.gammaln(n * a),
            g=lambda y: a * np.log(y),
            phi=lambda n: n,
        )

    def maximise_likelihood(self, y: FloatArray) -> Self:
        """Maximum likelihood; all values equal is an error (the shape would be infinite)."""
        given = self.parameters
        mean = float(y.mean())
        if "rate" in given:
            # The score in the shape: psi(a) = log b + mean log y.
            target = float(np.log(given["rate"]) + np.mean(np.log(y)))
            return self.replace(shape=_root_of_log(lambda a: float(special.psi(a)) - target))
        if "shape" in given:
            return self.replace(rate=given["shape"] / mean)
        gap = -float(np.mean(log1p_minus(y / mean - 1.0)))  # log mean - mean log
        if not gap > 1e-14:
            raise EstimationError(
                f"All values equal {y[0]:g}: the gamma's shape would be infinite. Give shape=..., "
                "or use an element for counts."
            )
        shape = _root_of_log(lambda a: gap - _log_minus_digamma(a))
        return self.replace(shape=shape, rate=shape / mean)


def _log_minus_digamma(a: float) -> float:
    if a > 1e3:
        return 1.0 / (2.0 * a) + 1.0 / (12.0 * a * a)
    return float(np.log(a) - special.psi(a))


def _root_of_log(increasing: Callable[[float], float]) -> float:
    """The positive root of an increasing function, searched over 32 orders of magnitude."""
    root = optimize.brentq(lambda t: increasing(float(np.exp(t))), -37.0, 37.0, xtol=1e-13, rtol=1e-14)
    return float(np.exp(root))
