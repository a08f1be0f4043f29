"""The element that is always 1: with it the model is hierarchical Poisson factorization."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.base import Element, Parameter
from hcpf.elements.domains import POSITIVE_COUNTS


@dataclass(frozen=True, eq=False, repr=False)
class Degenerate(Element):
    r"""The constant 1, so that y = n (hierarchical Poisson factorization).

    :math:`\theta = 0,\ \kappa = 1,\ \Psi(\theta) = \theta`
    """

    name = "degenerate"
    acronym = "HPF"
    support = POSITIVE_COUNTS
    counts_known = True

    @property
    def theta(self) -> Parameter:
        return 0.0

    @property
    def kappa(self) -> Parameter:
        return 1.0

    def log_partition(self, theta: ArrayLike) -> FloatArray:
        return np.asarray(theta, dtype=np.float64)

    def log_base_measure(self, y: ArrayLike, kappa: ArrayLike) -> FloatArray:
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

    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        return n.astype(np.float64)

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return y, y

    def maximize_likelihood(self, y: FloatArray) -> Self:
        """Nothing to estimate."""
        return self
