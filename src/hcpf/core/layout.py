"""The entries of one axis as the kernels read them.

A ``Layout`` holds the entries of one axis in CSR form, with the coordinate that finds each entry's
row of the count tables. The *listed pairs* are those whose means enter the rates one by one: the
excluded pairs (subtracted from the sums over all rows), or, when training on observed entries only,
the observed ones. ``UserOrder`` shuffles users for minibatches.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hcpf._types import Csr
from hcpf.core import kernels
from hcpf.core.kernels import Entries, ListedPairs

MAX_BLOCKS = 128
"""Fixed blocks of rows: the unit of parallel work, for any number of threads."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The entries of the rows of one axis."""

    entries: Entries
    listed: ListedPairs
    blocks: NDArray[np.int64]
    """Boundaries of the blocks of rows that a half-step does: blocks[b] to blocks[b + 1]."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.entries.start)

    @property
    def degrees(self) -> NDArray[np.int64]:
        """The number of entries of each row."""
        return self.entries.stop - self.entries.start

    @cached_property
    def work(self) -> float:
        """The size of a half-step over the blocks, in entries; a row counts as four."""
        first, last = self.blocks[0], self.blocks[-1]
        n_entries = int(np.sum(self.entries.stop[first:last] - self.entries.start[first:last]))
        return n_entries + 4.0 * (last - first)

    def owner(self, entry: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row of each of some entries, given by position."""
        rows = np.flatnonzero(self.degrees)
        rows = rows[np.argsort(self.entries.start[rows])]
        return rows[np.searchsorted(self.entries.start[rows], entry, side="right") - 1]

    def window(self, first: int, last: int) -> "Layout":
        """Return the same layout, of which a half-step does the rows ``first`` to ``last``."""
        return Layout(self.entries, self.listed, row_blocks(self.entries, first, last))


@dataclass(frozen=True, eq=False)
class UserOrder:
    """How the users of a shard are ordered in its layout, and where they stand among all users."""

    order: NDArray[np.int64] | None
    """Row r of the layout is user ``order[r]`` of the shard; None keeps them as they are."""
    position: NDArray[np.int64]
    """The position of each row among all workers' users in their common order, ascending."""
    n_users: int
    """The number of users of all workers."""

    @classmethod
    def of(
        cls, numbers: NDArray[np.int64], n_users: int, permutation: NDArray[np.int64] | None
    ) -> "UserOrder":
        """Order users, given by their numbers among all, by a permutation of all of them."""
        if permutation is None:
            return cls(None, numbers, n_users)
        position = np.argsort(permutation)[numbers]
        order = np.argsort(position)
        return cls(order, position[order], n_users)

    def rows_of_users(self) -> NDArray[np.int64]:
        """Return the row of the layout of each user of the shard."""
        return np.arange(len(self.position)) if self.order is None else np.argsort(self.order)


def lay_out_rows(
    matrix: Csr,
    coordinate: NDArray[np.float32],
    value: NDArray[np.float32] | None,
    excluded: Csr | None,
    *,
    lists_entries: bool,
) -> Layout:
    """Lay out the rows of a matrix alone.

    The listed pairs are the entries themselves, or else the excluded pairs.
    """
    entries = entries_of(matrix, coordinate, None, value)
    listed = none_listed(matrix.shape[0])
    if lists_entries:
        listed = listed_pairs(entries, 1.0)
    elif excluded is not None and excluded.nnz:
        nothing = np.zeros(excluded.nnz, np.float32)
        listed = listed_pairs(entries_of(excluded, nothing, None), -1.0)
    return Layout(entries, listed, row_blocks(entries))


def row_blocks(entries: Entries, first: int = 0, last: int | None = None) -> NDArray[np.int64]:
    """Return boundaries of at most ``MAX_BLOCKS`` blocks of rows of about the same work."""
    last = len(entries.start) if last is None else last
    work = np.cumsum(entries.stop[first:last] - entries.start[first:last] + 4)
    if last <= first:
        return np.array([first, first], dtype=np.int64)
    cuts = np.searchsorted(work, np.linspace(0, work[-1], MAX_BLOCKS + 1)[1:-1], side="right")
    return np.unique(np.concatenate([[first], first + cuts, [last]])).astype(np.int64)


def entries_of(
    matrix: Csr,
    coordinate: NDArray[np.float32],
    order: NDArray[np.int64] | None,
    value: NDArray[np.float32] | None = None,
) -> Entries:
    """The rows of a matrix, in another order if one is given; the entries stay where they are."""
    pointer = matrix.indptr.astype(np.int64)
    start, stop = pointer[:-1], pointer[1:]
    if order is not None:
        start, stop = start[order], stop[order]
    # Numba compiles every kernel once more for read-only arrays: a copy is cheaper.
    index = np.require(matrix.indices, np.int32, ["C", "W"])
    value = np.zeros(0, np.float32) if value is None else value
    return Entries(start, stop, index, coordinate, value)


def transposed(rows: Entries, n_columns: int) -> Entries:
    """The same entries by column, each column's in the order of the rows."""
    pointer = np.zeros(n_columns + 1, np.int64)
    np.cumsum(np.bincount(rows.index, minlength=n_columns), out=pointer[1:])
    columns = Entries(pointer[:-1], pointer[1:], *(np.empty_like(column) for column in rows[2:]))
    kernels.transpose(rows, pointer[:-1].copy(), columns)
    return columns


def listed_pairs(entries: Entries, sign: float) -> ListedPairs:
    """Return the pairs of entries as listed pairs; excluded ones have the sign -1."""
    return ListedPairs(entries.start, entries.stop, entries.index, sign)


def none_listed(n_rows: int) -> ListedPairs:
    """Return the listed pairs of rows that have none."""
    nothing = np.zeros(n_rows, dtype=np.int64)
    return ListedPairs(nothing, nothing, np.zeros(0, dtype=np.int32), 0.0)
