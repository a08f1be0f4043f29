"""What ``recommend`` and ``similar_items`` return: columns, in rows a person can read."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.data.canonical import IdArray, plain
from hcpf.data.ids import as_ids
from hcpf.errors import InputError, MissingDependencyError

_SHOWN = 20


@dataclass(frozen=True, eq=False, repr=False)
class _Columns:
    """Columns of equal length."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """One tuple for each row."""
        return zip(*(map(plain, column) for column in self.columns().values()), strict=True)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def select(self, rows: Any) -> Any:
        """Some of the rows, chosen as NumPy would."""
        return type(self)(**{name: column[rows] for name, column in self.columns().items()})

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table``."""
        import pyarrow as pa

        columns: dict[str, Any] = {}
        for name, column in self.columns().items():
            text = column.dtype.kind == "O"  # strings, or UUIDs
            columns[name] = pa.array(map(str, column), pa.string()) if text else pa.array(column)
        return pa.table(columns)

    def to_frame(self, backend: str = "pandas") -> Any:
        """A data frame of pandas, polars or pyarrow."""
        table = self.to_arrow()
        try:
            if backend == "pandas":
                return table.to_pandas()
            if backend == "polars":
                import polars

                return polars.from_arrow(table)
        except ImportError as error:
            raise MissingDependencyError(f"{backend} is not installed: {error}.") from None
        if backend == "pyarrow":
            return table
        raise InputError(f"backend must be 'pandas', 'polars' or 'pyarrow', got {backend!r}.")

    def __repr__(self) -> str:
        names = list(self.columns())
        lines = [names] + [[_cell(value) for value in row] for row in self.select(slice(_SHOWN))]
        widths = [max(len(line[j]) for line in lines) for j in range(len(names))]
        text = ["  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) for line in lines]
        more = [f"... {len(self) - _SHOWN} more rows"] if len(self) > _SHOWN else []
        return "\n".join(text + more)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, eq=False, repr=False)
class Recommendations(_Columns):
    """Items for users, best first; one row for each.

    Attributes
    ----------
    user, item : ndarray
        Ids.
    rank : ndarray
        1, 2, ... within each user.
    probability, response, expected : ndarray
        Probability that the pair is observed; expected response if it is; and their product, the
        expected total.
    """

    user: IdArray
    item: IdArray
    rank: NDArray[np.int64]
    probability: FloatArray
    response: FloatArray
    expected: FloatArray

    def of(self, user: Any) -> "Recommendations":
        """The rows of one user."""
        if as_ids("user", user).ndim:
            raise InputError("of takes one user, not a list of them.")
        return self.select(np.flatnonzero(self.user == user))


@dataclass(frozen=True, eq=False, repr=False)
class Neighbours(_Columns):
    """Ids, for each the ones most like it, best first.

    Attributes
    ----------
    of, id : ndarray
        The id asked for, and the one like it.
    similarity : ndarray
        Cosine of the two profiles of rates, between 0 and 1.
    """

    of: IdArray
    id: IdArray
    similarity: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(_Columns):
    """Where the rate of one pair comes from; the parts add up to it.

    Attributes
    ----------
    source : ndarray
        The user's own items by their contribution, and last what the prior gives.
    rate : ndarray
        The part of the rate that each accounts for.
    share : ndarray
        The same as a share of the whole.
    """

    source: IdArray
    rate: FloatArray
    share: FloatArray
