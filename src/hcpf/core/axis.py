"""The two axes of the matrix."""

from enum import Enum


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
