"""Known exposures: multipliers of the rates of users and of items."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hcpf._types import FloatArray
from hcpf.core.axis import Axis


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
