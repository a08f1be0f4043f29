"""The two axes of the matrix, the state of the rows of one, and known exposures."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from hcpf._checks import one_of
from hcpf._types import FloatArray

if TYPE_CHECKING:
    from hcpf.core.kernels import Factors
    from hcpf.core.theta import ThetaPosterior


class Axis(Enum):
    """Users (rows of the matrix) or items (its columns)."""

    USERS = "users"
    ITEMS = "items"

    @classmethod
    def parse(cls, axis: "Axis | str") -> "Axis":
        """Return the axis of "users" or "user", or of "items" or "item"."""
        if isinstance(axis, Axis):
            return axis
        words = {name: one for one in cls for name in (one.value, one.word)}
        return words[one_of("axis", axis, list(words))]

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


@dataclass(frozen=True, eq=False)
class Exposure:
    r"""Exposures of users and items: the rate of a pair is :math:`e_u f_i \sum_k s_{uk} v_{ik}`.

    None is 1 for all rows of an axis.
    """

    users: FloatArray | None = None
    items: FloatArray | None = None

    def axis(self, axis: Axis) -> FloatArray | None:
        """Return the exposures of one axis."""
        return self.users if axis is Axis.USERS else self.items

    def of_users(self, rows: Any) -> "Exposure":
        """Return the exposures of some of the users, chosen as NumPy would, and of all items."""
        return self if self.users is None else replace(self, users=self.users[rows])

    def mean(self, axis: Axis) -> float:
        """Return the average exposure of the rows of an axis."""
        exposure = self.axis(axis)
        return 1.0 if exposure is None else float(np.mean(exposure))


NO_EXPOSURE = Exposure()
"""Exposure 1 for all users and items."""
