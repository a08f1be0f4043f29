"""Entries and pairs that users pass, brought to the ids of a model."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import Csr
from hcpf.core.axis import Axis
from hcpf.data.align import align_items, align_users
from hcpf.data.ids import IdIndex, object_array
from hcpf.data.interactions import Interactions
from hcpf.errors import InputError

NEW_ID = "new"
"""The id of a user or item that is folded in without one."""
_NEW_IDS = object_array([NEW_ID])
_NEW_IDS.flags.writeable = False


def as_interactions(X: Any) -> Interactions:
    """Return Interactions as they are, AnnData by its names, and anything else as a matrix."""
    if isinstance(X, Interactions):
        return X
    if hasattr(X, "obs_names") and hasattr(X, "var_names"):
        return Interactions.from_anndata(X)
    return Interactions.from_matrix(X)


def over_known(X: Any, axis: Axis, known: IdIndex) -> Interactions:
    """Return the entries of ``X`` over the known rows of an axis: by id, or by position.

    A mapping or a list of known ids gives the entries of a single new row.
    """
    if isinstance(X, Mapping) or _is_id_list(X):
        return _single_row(X, axis, known)
    data, is_items = as_interactions(X), axis is Axis.ITEMS
    if data is X:
        return (align_items if is_items else align_users)(data, known)
    size, side = (data.n_items, "columns") if is_items else (data.n_users, "rows")
    if size != len(known):
        raise InputError(f"X has {size} {side}, but {len(known)} {axis.value} are fitted.")
    return replace(data, **{axis.value: known.ids})


def over_both(name: str, pairs: Any, users: IdIndex, items: IdIndex) -> Csr:
    """Return entries as a users x items matrix: by id, or by position for a matrix.

    Entries of unknown users or items are dropped.
    """
    data = as_interactions(pairs)
    shape = len(users), len(items)
    if data is not pairs:
        if data.shape != shape:
            raise InputError(f"{name} has shape {data.shape}, but the data have {shape}.")
        return data.matrix
    if _same(data.users, users.ids) and _same(data.items, items.ids):
        return data.matrix
    entries: Csr = data.matrix.tocoo()
    rows, columns = users.known(data.users)[entries.row], items.known(data.items)[entries.col]
    known = (rows >= 0) & (columns >= 0)
    aligned: Csr = sparse.csr_array(
        (entries.data[known], (rows[known], columns[known])), shape=shape
    )
    aligned.sort_indices()
    return aligned


def _is_id_list(X: Any) -> bool:
    """Return whether ``X`` is a flat list, which cannot be a matrix."""
    if not isinstance(X, list | tuple) or not X:
        return False
    return all(np.ndim(one) == 0 for one in cast("list[Any]", X))


def _single_row(X: Any, axis: Axis, known: IdIndex) -> Interactions:
    """Return one new row of the other axis with the values of known ids, 1 for ids in a list."""
    ids: list[Any] = list(X)
    columns = known.positions(ids) if ids else np.zeros(0, np.int64)
    if len(set(columns.tolist())) < len(ids):
        raise InputError(f"X lists an id twice. Pass a mapping from {axis.word} to value instead.")
    try:
        values = [float(X[one]) for one in ids] if isinstance(X, Mapping) else np.ones(len(ids))
    except (TypeError, ValueError):
        raise InputError(f"X must map ids of {axis.value} to numbers; got {X!r}.") from None
    order = np.argsort(columns)
    parts = np.asarray(values, np.float64)[order], columns[order].astype(np.int32), [0, len(ids)]
    if not np.isfinite(parts[0]).all():
        raise InputError(f"X must map ids of {axis.value} to finite numbers; got {X!r}.")
    row: Csr = sparse.csr_array(parts, shape=(1, len(known)))
    if axis is Axis.ITEMS:
        return Interactions.of_checked(row, _NEW_IDS, known.ids)
    return Interactions.of_checked(sparse.csr_array(row.T), known.ids, _NEW_IDS)


def union(marks: Csr | None, more: Csr | None) -> Csr | None:
    """Return a matrix that marks the pairs stored in either of two matrices."""
    given = [_ones(matrix) for matrix in (marks, more) if matrix is not None]
    if len(given) < 2:
        return given[0] if given else None
    return _ones(given[0] + given[1])


def _ones(matrix: Csr) -> Csr:
    ones = np.ones(matrix.nnz, np.float32)  # a stored 0 marks a pair, too, but sums drop it
    return sparse.csr_array((ones, matrix.indices, matrix.indptr), shape=matrix.shape)


def _same(ids: NDArray[Any], others: NDArray[Any]) -> bool:
    return ids is others or np.array_equal(ids, others)
