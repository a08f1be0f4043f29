"""Predictive distribution of an element with theta integrated over its conjugate posterior."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hcpf._types import FloatArray
from hcpf.elements.base import Element, Parameter, parameter
from hcpf.elements.conjugate import Conjugate
from hcpf.elements.domains import POSITIVE, REAL


@dataclass(frozen=True, eq=False, repr=False)
class Integrated(Element):
    r"""The sum of n elements that share one theta, averaged over :math:`q(\theta\mid\chi,\nu)`.

    The density is closed because the prior is conjugate:
    :math:`h(y, n\kappa)\,Z(\chi + y, \nu + n\kappa)/Z(\chi, \nu)`. Values of pairs follow it with
    partial pooling. The elements of a sum are not independent, since they share theta.
    """

    base: Element = dataclasses.field(kw_only=True)
    chi: Parameter = parameter(REAL)
    nu: Parameter = parameter(POSITIVE)

    name = "integrated"
    acronym = "INT"
    shares_theta = True

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
        """The expected variance of one element given theta; see also ``variance_of_mean``.

        Both are infinite where their integrals over theta diverge.
        """
        # Integrating the derivative of Psi' times the density of theta by parts gives
        # E[Psi''] = nu Var(Psi') if E[Psi'] = chi / nu; otherwise both are infinite.
        chi, nu = self._theta
        return self.base.kappa * nu * self._prior.variance_of_mean(chi, nu)

    @property
    def at_expected_mean(self) -> Element:
        return self.base.with_mean(self.mean)

    @property
    def variance_of_mean(self) -> Parameter:
        chi, nu = self._theta
        return np.square(self.base.kappa) * self._prior.variance_of_mean(chi, nu)

    @property
    def highest(self) -> Parameter:
        return self.base.highest

    def log_partition(self, theta: Parameter) -> FloatArray:
        return self.base.log_partition(theta)

    def log_base_measure(self, y: FloatArray, kappa: Parameter) -> FloatArray:
        return self.base.log_base_measure(y, kappa)

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.base.n_range(y)

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        chi, nu = self._theta
        added = n * self.base.kappa
        with np.errstate(all="ignore"):  # the rest may be undefined where the base measure is 0
            density = self.base.log_base_measure(y, added)
            density = density + self._prior.log_predictive(y, added, chi, nu)
        low, high = self.n_range(y)
        return np.where((n >= low) & (n <= high), density, -np.inf)

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
        """Yield the element at nodes of theta, with the weights of a quadrature over theta."""
        for mean, weight in self._prior.nodes(*self._theta):
            yield self.base.with_mean(self.base.kappa * mean), weight

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        # The elements of a sum share one draw of theta.
        chi, nu, n = np.broadcast_arrays(*self._theta, n)
        mean = self.base.kappa * self._prior.sample_mean(chi, nu, rng)
        return self.base.with_mean(mean).draw(n, rng)
