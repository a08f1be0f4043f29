"""An element whose theta is known only up to its conjugate posterior, which is integrated out."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.base import Element, Parameter, parameter
from hcpf.elements.conjugate import Conjugate
from hcpf.elements.domains import POSITIVE, REAL


@dataclass(frozen=True, eq=False, repr=False)
class Integrated(Element):
    r"""The sum of n elements that share one theta, averaged over :math:`q(\theta\mid\chi,\nu)`.

    The density is closed, because the prior is conjugate:
    :math:`h(y, n\kappa)\,Z(\chi + y, \nu + n\kappa)/Z(\chi, \nu)`. It is what a pair's value
    follows with partial pooling. Sums are no longer additive: the elements share their theta.
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
        center = self._prior.mean(chi, nu)
        bend = self._prior.bend(center) * self._prior.variance_of_mean(chi, nu)
        return self.base.with_mean(self.mean).variance + self.base.kappa * bend

    @property
    def variance_of_mean(self) -> Parameter:
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
            found = self.base.log_base_measure(y, added)
            found = found + self._prior.log_predictive(y, added, chi, nu)
        low, high = self.n_range(y)
        return np.where((n >= low) & (n <= high), found, -np.inf)

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        closed = self._prior.predictive_cdf(y, n * self.base.kappa, *self._theta)
        if closed is not None:
            return closed
        return np.asarray(
            sum(weight * element.cdf_unchecked(y, n) for element, weight in self._at_nodes())
        )

    def compound_cdf(self, y: FloatArray, rate: FloatArray) -> FloatArray | None:
        if type(self.base).compound_cdf is Element.compound_cdf:
            return None
        parts = ((e.compound_cdf(y, rate), weight) for e, weight in self._at_nodes())
        return np.asarray(sum(weight * cdf for cdf, weight in parts if cdf is not None))

    def _at_nodes(self) -> Iterator[tuple[Element, FloatArray]]:
        """Elements at some values of theta, and the weights that average over it."""
        for mean, weight in self._prior.nodes(*self._theta):
            yield self.base.with_mean(self.base.kappa * mean), weight

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        # The elements of one sum share a theta, but every sum has its own.
        chi, nu, n = np.broadcast_arrays(*self._theta, n)
        mean = self.base.kappa * self._prior.sample_mean(chi, nu, rng)
        return self.base.with_mean(mean).draw(n, rng)
