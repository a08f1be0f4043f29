"""The two axes of the matrix, and what training knows of the rows of one."""

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from hcpf._types import FloatArray

if TYPE_CHECKING:
    from hcpf.core.kernels import Factors
    from hcpf.core.theta import ThetaPosterior


class Axis(Enum):
    """Users (rows of the matrix) or items (its columns)."""

    USERS = "users"
    ITEMS = "items"

    @property
    def other(self) -> "Axis":
        """The other axis."""
        return Axis.ITEMS if self is Axis.USERS else Axis.USERS

    @property
    def word(self) -> str:
        """One row of the axis in words: "user" or "item"."""
        return self.value[:-1]


@dataclass(eq=False)
class AxisState:
    """The variational parameters of the rows of one axis: a worker's own users, or all items."""

    axis: Axis
    factors: "Factors"
    mean_sums: FloatArray
    """Per component: the sum of the means over the rows that enter the other axis' rates."""
    theta: "ThetaPosterior | None" = None
    """The theta posterior of the rows; None for a shared mean."""
    exposure: FloatArray | None = None
    """The known multiplier of each row's rates, which its factors hold as well; None is 1."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.factors.a)

    @property
    def n_components(self) -> int:
        """K, the number of components."""
        return self.factors.a.shape[1]

    def set_exposure(self, exposure: FloatArray | None) -> None:
        """Set the exposures before the factors are set."""
        self.exposure = exposure
        if exposure is not None:
            self.factors.exposure[:] = exposure

    def set_multipliers(self, rows: slice = slice(None)) -> None:
        """Set what a dot product is multiplied with, from the scale and the shift of some rows."""
        factors = self.factors
        exponent = factors.log_scale[rows] + factors.shift[rows]
        multiplier = np.exp(np.clip(exponent, -81.0, 81.0))
        if exponent.size and (exponent.min() < -80.0 or exponent.max() > 80.0):
            # As in the kernel: what float32 cannot hold becomes 0 or infinity, the slow path.
            multiplier[exponent < -80.0] = 0.0
            multiplier[exponent > 80.0] = np.inf
        factors.multiplier[rows] = multiplier


def empty_axis(axis: Axis, n_rows: int, n_components: int) -> AxisState:
    """Return the state of an axis whose factors are yet to be set."""
    from hcpf.core.kernels import Factors, padded_rows

    factors = Factors(
        a=np.empty((n_rows, n_components), np.float32),
        mean=np.empty((n_rows, n_components), np.float32),
        g=padded_rows(n_rows, n_components),
        log_scale=np.zeros(n_rows),
        shift=np.zeros(n_rows),
        activity_b=np.ones(n_rows),
        exposure=np.ones(n_rows),
        count=np.zeros(n_rows),
        cross_count=np.zeros(n_rows),
        value_sum=np.zeros(n_rows),
        row_terms=np.zeros((n_rows, 4), np.float32),
    )
    factors.multiplier[:] = 1.0
    return AxisState(axis, factors, np.zeros(n_components))
