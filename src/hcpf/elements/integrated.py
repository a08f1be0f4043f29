"""An element whose theta is known only up to its conjugate posterior, which is integrated out."""

import dataclasses
from dataclasses import dataclass

import numpy as np

from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.base import Element, Parameter, parameter
from hcpf.elements.conjugate import Conjugate
from hcpf.elements.domains import POSITIVE, REAL

# Gauss-Legendre over the levels of theta, for cdfs that are not closed
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_LEVELS, _WEIGHTS = 0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS


@dataclass(frozen=True, eq=False, repr=False)
class Integrated(Element):
    r"""The sum of n elements that share one theta, averaged over :math:`q(\theta\mid\chi,\nu)`.

    The density is closed, because the prior is conjugate:
    :math:`h(y, n\kappa)\,Z(\chi + y, \nu + n\kappa)/Z(\chi, \nu)`. It is what a pair's response
    follows where theta varies. Sums are no longer additive: the elements share their theta.
    """

    base: Element = dataclasses.field(kw_only=True)
    chi: Parameter = parameter(REAL)
    nu: Parameter = parameter(POSITIVE)

    name = "integrated"
    acronym = "INT"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "support", self.base.support)

    @property
    def _prior(self) -> Conjugate:
        assert self.base.conjugate is not None
        return self.base.conjugate

    @property
    def _theta(self) -> tuple[FloatArray, FloatArray]:
        return np.asarray(self.chi), np.asarray(self.nu)

    @property
    def theta(self) -> Parameter:
        """The expectation of theta."""
        return self._prior.moments(*self._theta)[0]

    @property
    def kappa(self) -> Parameter:
        return self.base.kappa

    @property
    def mean(self) -> Parameter:
        return self.base.kappa * self._prior.mean(*self._theta)

    @property
    def variance(self) -> Parameter:
        """The expected variance of one element; what its mean varies by is apart."""
        chi, nu = self._theta
        centre = self._prior.mean(chi, nu)
        bend = self._prior.bend(centre) * self._prior.variance_of_mean(chi, nu)
        return self.base.with_mean(self.mean).variance + self.base.kappa * bend

    @property
    def spread_of_mean(self) -> Parameter:
        chi, nu = self._theta
        return np.square(self.base.kappa) * self._prior.variance_of_mean(chi, nu)

    @property
    def highest(self) -> Parameter:
        return self.base.highest

    def log_partition(self, theta: ArrayLike) -> FloatArray:
        return self.base.log_partition(theta)

    def log_base_measure(self, y: ArrayLike, kappa: ArrayLike) -> FloatArray:
        return self.base.log_base_measure(y, kappa)

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.base.n_range(y)

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        chi, nu = self._theta
        added = n * self.base.kappa
        with np.errstate(all="ignore"):  # where the base measure is 0 the rest need not exist
            inside = self._prior.log_normaliser(chi + y, nu + added)
            inside = inside - self._prior.log_normaliser(chi, nu)
            found = self.base.log_base_measure(y, added) + inside
        low, high = self.n_range(y)
        return np.where((n >= low) & (n <= high), found, -np.inf)

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        closed = self._prior.predictive_cdf(y, n * self.base.kappa, *self._theta)
        if closed is not None:
            return closed
        total: FloatArray | float = 0.0
        for level, weight in zip(_LEVELS, _WEIGHTS, strict=True):
            mean = self.base.kappa * self._prior.quantile_of_mean(level, *self._theta)
            total = total + weight * self.base.with_mean(mean).cdf_unchecked(y, n)
        return np.asarray(total)

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        chi, nu = np.broadcast_arrays(*self._theta)
        mean = self.base.kappa * self._prior.sample_mean(chi, nu, rng)
        return self.base.with_mean(np.broadcast_to(mean, n.shape)).draw(n, rng)
