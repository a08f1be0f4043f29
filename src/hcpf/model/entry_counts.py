"""How many training entries there are behind each user and each item."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcpf.core.axis import Axis
from hcpf.data.shards.matrix import StoredMatrix
from hcpf.model.combine import Positions

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel


def entry_counts(model: "FittedModel", axis: Axis) -> NDArray[np.int64] | None:
    """Return the number of entries of each row; None if the training data are not known.

    After a fold-in the rows of the new axis rest on the new entries, the others on those of the
    model that they come from.
    """
    folded = model.folded
    if folded is not None and axis is not folded.axis:
        return None if folded.model is None else entry_counts(folded.model, axis)
    return None if model.data is None else count_entries(model.data.matrix, axis)


def count_entries(matrix: Any, axis: Axis) -> NDArray[np.int64]:
    """Return the number of entries of each row (users) or column (items) of a matrix."""
    if axis is Axis.USERS:
        return np.diff(matrix.indptr).astype(np.int64)
    if isinstance(matrix, StoredMatrix):
        return matrix.entries_per_item()
    return np.bincount(matrix.indices, minlength=matrix.shape[1]).astype(np.int64)


def entry_columns(model: "FittedModel", u: Positions, i: Positions) -> dict[str, Any]:
    """Return the columns user_entries and item_entries of pairs, those that are known."""
    counts = {axis.word: entry_counts(model, axis) for axis in Axis}
    rows = {"user": u, "item": i}
    return {
        f"{word}_entries": known[rows[word]] for word, known in counts.items() if known is not None
    }
