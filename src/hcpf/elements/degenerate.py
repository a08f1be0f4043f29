"""Elements that are always 1, for Poisson factorization of counts or of observed pairs."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from hcpf._types import FloatArray
from hcpf.elements.base import Element, Parameter
from hcpf.elements.domains import POSITIVE_COUNTS, Support


@dataclass(frozen=True, eq=False, repr=False)
class Degenerate(Element):
    r"""The constant 1, so that y = n (hierarchical Poisson factorization).

    :math:`\theta = 0,\ \kappa = 1,\ \Psi(\theta) = \theta`
    """

    name = "degenerate"
    acronym = "HPF"
    support = POSITIVE_COUNTS
    counts_known = True
    kappa_note = "a value y has y elements, so E[n] is the mean value"

    @property
    def theta(self) -> Parameter:
        return 0.0

    def log_partition(self, theta: Parameter) -> FloatArray:
        return np.asarray(theta, dtype=np.float64)

    def log_base_measure(self, y: FloatArray, kappa: Parameter) -> FloatArray:
        return np.where(np.equal(y, kappa), 0.0, -np.inf)

    @property
    def mean(self) -> Parameter:
        return 1.0

    @property
    def variance(self) -> Parameter:
        return 0.0

    @property
    def highest(self) -> Parameter:
        return 1.0

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        return np.where(y >= n, 1.0, 0.0)

    def compound_cdf(self, y: FloatArray, rate: FloatArray) -> FloatArray | None:
        # The sum is the number of elements itself, a Poisson variable.
        floor = np.floor(np.clip(y, 0.0, 1e300))  # scipy's incomplete gamma fails above
        # Subtract from the smaller of the two tails, whose digits are all there.
        below = special.gammaincc(floor + 1.0, rate) - np.exp(-rate)
        above = -np.expm1(-rate) - special.gammainc(floor + 1.0, rate)
        return np.where(floor < 1, 0.0, np.where(floor < rate, below, above))

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        return n.astype(np.float64)

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return y, y

    def maximize_likelihood(self, y: FloatArray) -> Self:
        """Return the element itself: there is no parameter."""
        return self


@dataclass(frozen=True, eq=False, repr=False)
class Presence(Degenerate):
    """The constant 1 for every observed pair, for any stored value: n = 1.

    This is the paper's binary training, Poisson factorization of which pairs are observed.

    Examples
    --------
    >>> Presence.seen(np.array([3.0, 0.5]))
    array([1., 1.])
    """

    name = "presence"
    acronym = "B"
    support = Support("finite numbers, all counted as 1", True, 1.0, np.isfinite)

    @classmethod
    def seen(cls, values: FloatArray) -> FloatArray:
        return np.ones(len(values))

    def log_base_measure(self, y: FloatArray, kappa: Parameter) -> FloatArray:
        return super().log_base_measure(np.ones_like(y, dtype=np.float64), kappa)

    @property
    def log_prob_zero(self) -> Parameter:
        return -np.inf  # a stored 0 counts as 1

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ones_like(y), np.ones_like(y)
