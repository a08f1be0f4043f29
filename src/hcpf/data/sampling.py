"""Positions and subsets of the stored entries of sparse matrices."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import Csr
from hcpf.data.shards.matrix import CHUNK_ENTRIES, StoredMatrix


def locate(
    matrix: Csr, rows: NDArray[np.integer[Any]], cols: NDArray[np.integer[Any]]
) -> NDArray[np.int64]:
    """Return the positions at which a matrix with sorted rows stores pairs, -1 if it does not.

    A binary search for all pairs at once, without a key per stored entry.
    """
    low = matrix.indptr[rows].astype(np.int64)
    stop = matrix.indptr[rows + 1].astype(np.int64)
    high = stop.copy()
    while np.any(low < high):
        middle = (low + high) // 2
        # Where the search has ended, middle may be one past the last entry.
        below = matrix.indices[np.minimum(middle, matrix.nnz - 1)] < cols
        open_ = low < high
        low = np.where(open_ & below, middle + 1, low)
        high = np.where(open_ & ~below, middle, high)
    inside = low < stop
    positions = np.where(inside, low, 0)
    if matrix.nnz:
        inside &= matrix.indices[positions] == cols
    return np.where(inside, positions, -1)


def select(matrix: Csr, mask: NDArray[np.bool_]) -> Csr:
    """Return a matrix of the stored entries that ``mask`` marks."""
    # List the rarer of the two, which avoids an 8-byte number per entry.
    is_common = 2 * np.count_nonzero(mask) > len(mask)
    before = np.searchsorted(np.flatnonzero(~mask if is_common else mask), matrix.indptr)
    pointer = matrix.indptr - before if is_common else before
    return sparse.csr_array((matrix.data[mask], matrix.indices[mask], pointer), shape=matrix.shape)


def without(matrix: Csr, pairs: Csr | None) -> Csr:
    """Return a matrix without the entries of the pairs that another one stores, if there is one."""
    if pairs is None:
        return matrix
    marked = pairs.tocoo()
    positions = locate(matrix, marked.row, marked.col)
    return drop_entries(matrix, positions[positions >= 0])


def as_marks(matrix: Csr) -> Csr:
    """Return a matrix with a 1 for every pair that another one stores, also for a stored 0."""
    ones = np.ones(matrix.nnz, np.float32)
    return sparse.csr_array((ones, matrix.indices[:], matrix.indptr), shape=matrix.shape)


def union(matrix: Csr | None, other: Csr | None) -> Csr | None:
    """Return a matrix that marks the pairs stored in either of two; None if both are None."""
    marks = [as_marks(one) for one in (matrix, other) if one is not None]
    if len(marks) < 2:
        return marks[0] if marks else None
    return as_marks(marks[0] + marks[1])


def drop_entries(matrix: Csr, entries: NDArray[np.int64]) -> Csr:
    """Return a matrix without the entries at some positions; the same one if there are none."""
    if isinstance(matrix, StoredMatrix):
        return matrix.without(np.unique(entries))
    kept = np.ones(matrix.nnz, dtype=np.bool_)
    kept[entries] = False
    return matrix if kept.all() else select(matrix, kept)


def sample_rows(matrix: Csr, max_entries: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return random rows with about ``max_entries`` entries, sorted; all rows if they suffice."""
    return sample_by_sizes(np.diff(matrix.indptr), max_entries, rng)


def sample_by_sizes(
    sizes: NDArray[Any], max_entries: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return random rows, given their numbers of entries; see ``sample_rows``."""
    if sizes.sum() <= max_entries:
        return np.arange(len(sizes))
    order = rng.permutation(len(sizes))
    entries = np.cumsum(sizes[order])
    return np.sort(order[: max(int(np.searchsorted(entries, max_entries)), 1)])


def row_of_entries(matrix: Csr) -> NDArray[np.int64]:
    """Return the row of every stored entry."""
    return np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))


def row_of(matrix: Csr, entry: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of the stored entries at the given positions."""
    return np.searchsorted(matrix.indptr, entry, side="right") - 1


def entry_blocks(
    matrix: Csr, size: int = CHUNK_ENTRIES
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]]:
    """Yield the rows, columns and values of the stored entries in order, ``size`` at a time."""
    for first in range(0, matrix.nnz, size):
        block = slice(first, min(first + size, matrix.nnz))
        rows = row_of(matrix, np.arange(block.start, block.stop))
        yield rows, matrix.indices[block], matrix.data[block]


def sample_values(matrix: Csr, max_values: int = 1 << 20) -> NDArray[Any]:
    """Return the values; of entries on disk an evenly spread sample with the extremes of all."""
    if isinstance(matrix, StoredMatrix):
        return matrix.sample_values(max_values)
    return matrix.data


def pair_keys(matrix: Csr) -> NDArray[np.int64]:
    """Return one number per stored pair, row * n_columns + column."""
    return row_of_entries(matrix) * matrix.shape[1] + matrix.indices[:]
