"""The training entries behind each user and each item: how many, their total, and which."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcpf._types import Csr, FloatArray
from hcpf.core.axis import Axis
from hcpf.data.sampling import entry_blocks, row_of
from hcpf.data.shards.matrix import CHUNK_ENTRIES, StoredMatrix
from hcpf.model.combine import Positions

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel


EntryCounts = Mapping[Axis, NDArray[np.int64] | None]
"""The numbers of entries of the users and of the items; None where they are not known."""


def entry_counts(model: "FittedModel", entries: Any = None) -> EntryCounts:
    """Return the numbers of entries behind each user and each item.

    They are those of the training data, else of ``entries`` (users x items). After a fold-in the
    rows of the new axis rest on the new entries, the others on those of the model that they come
    from.
    """
    folded = model.folded
    matrix = entries if model.data is None else model.data.matrix
    counts: dict[Axis, NDArray[np.int64] | None] = {}
    for axis in Axis:
        if folded is not None and axis is not folded.axis:
            counts[axis] = None if folded.model is None else folded.model.entry_counts[axis]
        else:
            counts[axis] = None if matrix is None else count_entries(matrix, axis)
    return counts


def count_entries(matrix: Any, axis: Axis) -> NDArray[np.int64]:
    """Return the number of entries of each row (users) or column (items) of a matrix."""
    if axis is Axis.USERS:
        return np.diff(matrix.indptr).astype(np.int64)
    if isinstance(matrix, StoredMatrix):
        return matrix.entries_per_item()
    return np.bincount(matrix.indices, minlength=matrix.shape[1]).astype(np.int64)


def total_entries(matrix: Csr, axis: Axis) -> FloatArray:
    """Return the sum of the values of each row (users) or column (items) of a matrix."""
    total = np.zeros(matrix.shape[0 if axis is Axis.USERS else 1])
    for users, items, values in entry_blocks(matrix):
        total += np.bincount(users if axis is Axis.USERS else items, values, len(total))
    return total


def entries_of_row(
    matrix: Csr, axis: Axis, row: int
) -> tuple[NDArray[np.integer[Any]], NDArray[Any]]:
    """Return the entries of one row (a user) or column (an item): the others' positions, values."""
    if axis is Axis.USERS:
        own = slice(matrix.indptr[row], matrix.indptr[row + 1])
        return matrix.indices[own], matrix.data[own]
    own = [
        first + np.flatnonzero(matrix.indices[first : first + CHUNK_ENTRIES] == row)
        for first in range(0, matrix.nnz, CHUNK_ENTRIES)
    ]
    chosen = np.concatenate([np.zeros(0, np.int64), *own])
    return row_of(matrix, chosen), matrix.data[chosen]


def entry_columns(counts: EntryCounts, u: Positions, i: Positions) -> dict[str, Any]:
    """Return the columns user_entries and item_entries of pairs, those that are known."""
    rows = {Axis.USERS: u, Axis.ITEMS: i}
    return {
        f"{axis.word}_entries": known[rows[axis]]
        for axis, known in counts.items()
        if known is not None
    }
