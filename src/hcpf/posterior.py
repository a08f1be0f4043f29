"""The fitted variational posterior: independent gammas for every factor and activity."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hcpf._types import FloatArray


@dataclass(frozen=True, eq=False)
class FactorPosterior:
    r"""One side: :math:`q(s_{uk}) = \mathrm{Gamma}(a_{uk}, b_{uk})`, activities likewise.

    Arrays are stored as they were trained (float32 factors) and read as float64.
    """

    shape_: NDArray[np.float32]
    mean_: NDArray[np.float32]
    activity_a: FloatArray
    activity_b: FloatArray

    @property
    def a(self) -> FloatArray:
        """Shapes, rows x K."""
        return self.shape_.astype(np.float64)

    @property
    def b(self) -> FloatArray:
        """Rates, rows x K."""
        return self.shape_ / self.mean_.astype(np.float64)

    @property
    def mean(self) -> FloatArray:
        """E[s] = a / b."""
        return self.mean_.astype(np.float64)

    @property
    def log_mean(self) -> FloatArray:
        """E[log s] = digamma(a) - log b."""
        return special.psi(self.a) - np.log(self.b)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of both sides of the matrix."""

    users: FactorPosterior
    items: FactorPosterior

    @property
    def n_components(self) -> int:
        """K, the number of components."""
        return self.users.shape_.shape[1]
