"""The element of data that say only which pairs were observed."""

from dataclasses import dataclass

import numpy as np

from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.base import Parameter
from hcpf.elements.degenerate import Degenerate
from hcpf.elements.domains import Support


@dataclass(frozen=True, eq=False, repr=False)
class Presence(Degenerate):
    """The constant 1 for every observed pair, whatever value is stored: n = 1.

    It is the paper's binary training: Poisson factorization of the pattern of observed pairs.

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

    def log_base_measure(self, y: ArrayLike, kappa: ArrayLike) -> FloatArray:
        return super().log_base_measure(np.ones_like(y, dtype=np.float64), kappa)

    @property
    def log_prob_zero(self) -> Parameter:
        return -np.inf  # a stored 0 counts as 1

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ones_like(y), np.ones_like(y)
