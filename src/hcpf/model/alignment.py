"""Entries and pairs that users pass, brought to the ids of a model."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

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


def as_interactions(X: Any, layer: str | None = None) -> Interactions:
    """Return Interactions as they are, AnnData by its names, and anything else as a matrix."""
    if not isinstance(X, Interactions) and _has_names(X):
        return Interactions.from_anndata(X, layer=layer)
    if layer is not None:
        raise InputError(
            f"layer={layer!r} is for AnnData, but X is {type(X).__name__}. Remove layer=."
        )
    return X if isinstance(X, Interactions) else Interactions.from_matrix(X)


class Aligned(NamedTuple):
    """Entries of new rows over the known rows of the other axis."""

    data: Interactions
    listed: NDArray[np.int64] | None
    """The positions of the known rows that the source has; None for a matrix, which has all."""
    n_unknown: int
    """How many others the source has."""
    are_columns: bool
    """Whether the source has a column for each of them, as a table has; in a list of entries those
    without entries do not occur."""
    has_ids: bool
    """Whether the new rows have ids of their own."""


def over_known(
    X: Any, axis: Axis, known: IdIndex, *, drop_unknown: bool = False, layer: str | None = None
) -> Aligned:
    """Return the entries of ``X`` over the known rows of an axis: by id, or by position.

    A mapping or a list of known ids gives the entries of a single new row. With ``drop_unknown``
    (items only) others are left out.
    """
    if layer is None and (isinstance(X, Mapping) or _is_id_list(X)):
        return _single_row(X, axis, known, drop_unknown)
    is_items = axis is Axis.ITEMS
    is_frame = is_items and not isinstance(X, Interactions | np.ndarray) and hasattr(X, "columns")
    data = _from_wide_frame(X) if is_frame and layer is None else as_interactions(X, layer)
    if is_frame or _has_names(X):
        if is_items:
            aligned = align_items(data, known, drop_unknown=drop_unknown)
        else:
            aligned = align_users(data, known)
        positions = known.known(data.items if is_items else data.users)
        listed = positions[positions >= 0]
        is_table = not isinstance(X, Interactions)
        return Aligned(aligned, listed, len(positions) - len(listed), is_table, has_ids=True)
    size, side = (data.n_items, "columns") if is_items else (data.n_users, "rows")
    if size != len(known):
        raise InputError(f"X has {size} {side}, but {len(known)} {axis.value} are fitted.")
    return Aligned(replace(data, **{axis.value: known.ids}), None, 0, True, has_ids=False)


def _from_wide_frame(frame: Any) -> Interactions:
    """Return the entries of a data frame with a row per user and a column per item, 0 missing."""
    from hcpf.data.frames import matrix_from_frame

    values, users, items = matrix_from_frame(frame)
    return Interactions.from_matrix(values, users=users, items=items)


def _has_names(X: Any) -> bool:
    """Return whether the rows and columns of ``X`` have ids: Interactions, or an AnnData."""
    return isinstance(X, Interactions) or (hasattr(X, "obs_names") and hasattr(X, "var_names"))


def over_both(name: str, pairs: Any, users: IdIndex, items: IdIndex) -> Csr:
    """Return entries as a users x items matrix: by id, or by position for a matrix.

    Entries of unknown users or items are dropped.
    """
    data = as_interactions(pairs)
    shape = len(users), len(items)
    if not _has_names(pairs):
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


def _single_row(X: Any, axis: Axis, known: IdIndex, drop_unknown: bool) -> Aligned:
    """Return one new row of the other axis with the values of known ids, 1 for ids in a list."""
    ids: list[Any] = list(X)
    columns = np.zeros(0, np.int64)
    if ids:
        columns = known.known(ids) if drop_unknown else known.positions(ids)
    order, n_ids = np.flatnonzero(columns >= 0), len(ids)
    order = order[np.argsort(columns[order])]
    columns = columns[order]
    if np.any(columns[1:] == columns[:-1]):
        raise InputError(f"X lists an id twice. Pass a mapping from {axis.word} to value instead.")
    try:
        values = [float(X[one]) for one in ids] if isinstance(X, Mapping) else np.ones(n_ids)
    except (TypeError, ValueError):
        raise InputError(f"X must map ids of {axis.value} to numbers; got {X!r}.") from None
    if not np.isfinite(values).all():
        raise InputError(f"X must map ids of {axis.value} to finite numbers; got {X!r}.")
    parts = np.asarray(values, np.float64)[order], columns.astype(np.int32), [0, len(columns)]
    row: Csr = sparse.csr_array(parts, shape=(1, len(known)))
    if axis is Axis.ITEMS:
        data = Interactions.of_checked(row, _NEW_IDS, known.ids)
    else:
        data = Interactions.of_checked(sparse.csr_array(row.T), known.ids, _NEW_IDS)
    return Aligned(data, columns, n_ids - len(columns), are_columns=False, has_ids=False)


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
