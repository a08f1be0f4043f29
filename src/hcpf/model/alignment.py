"""Entries, pairs and exposures that users pass, brought to the ids of a model."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import Csr, FloatArray
from hcpf.core.axis import Axis, Exposure
from hcpf.core.posterior import Posterior
from hcpf.data.canonical import CsrArray, Duplicates, IdArray, plain
from hcpf.data.exposure import check_exposure, pair_exposure, resolve_exposure
from hcpf.data.ids import IdIndex, join, object_array
from hcpf.data.interactions import Interactions
from hcpf.errors import InputError

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel


NEW_ID = "new"
"""The id of a user or item that is folded in without one."""
_NEW_IDS = object_array([NEW_ID])
_NEW_IDS.flags.writeable = False


def as_interactions(X: Any, layer: str | None = None) -> Interactions:
    """Return Interactions as they are, AnnData by its names, and anything else as a matrix."""
    if not isinstance(X, Interactions) and has_names(X):
        return Interactions.from_anndata(X, layer=layer)
    if layer is not None:
        raise InputError(
            f"layer={layer!r} is for AnnData, but X is {type(X).__name__}. Remove layer=."
        )
    return X if isinstance(X, Interactions) else Interactions.from_matrix(X)


def ids_of(data: Interactions, axis: Axis) -> IdArray:
    """Return the ids of the users or of the items."""
    return data.users if axis is Axis.USERS else data.items


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
    """Whether the new rows come with ids."""


def over_known(
    X: Any, axis: Axis, known: IdIndex, *, drop_unknown: bool = False, layer: str | None = None
) -> Aligned:
    """Return the entries of ``X`` over the known rows of an axis: by id, or by position.

    A mapping or a list of known ids gives the entries of a single new row. With ``drop_unknown``
    the entries of other ids are dropped.
    """
    if layer is None and (isinstance(X, Mapping) or _is_id_list(X)):
        return _single_row(X, axis, known, drop_unknown)
    is_items = axis is Axis.ITEMS
    is_frame = is_items and not isinstance(X, Interactions | np.ndarray) and hasattr(X, "columns")
    data = _from_wide_frame(X) if is_frame and layer is None else as_interactions(X, layer)
    if is_frame or has_names(X):
        aligned = align(data, axis, known, drop_unknown=drop_unknown)
        positions = known.known(ids_of(data, axis))
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


def has_names(X: Any) -> bool:
    """Return whether the rows and columns of ``X`` have ids: Interactions, or an AnnData."""
    return isinstance(X, Interactions) or (hasattr(X, "obs_names") and hasattr(X, "var_names"))


def over_both(name: str, pairs: Any, users: IdIndex, items: IdIndex) -> Csr:
    """Return entries as a users x items matrix: by id, or by position for a matrix.

    Entries of unknown users or items are dropped.
    """
    data = as_interactions(pairs)
    shape = len(users), len(items)
    if not has_names(pairs):
        if data.shape != shape:
            raise InputError(f"{name} has shape {data.shape}, but the data have {shape}.")
        return data.matrix
    if _same(data.users, users.ids) and _same(data.items, items.ids):
        return data.matrix
    entries: Csr = data.matrix.tocoo()
    rows, columns = users.known(data.users)[entries.row], items.known(data.items)[entries.col]
    known = (rows >= 0) & (columns >= 0)
    return _matrix(entries.data[known], rows[known], columns[known], shape)


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


def _same(ids: NDArray[Any], others: NDArray[Any]) -> bool:
    return ids is others or np.array_equal(ids, others)


# -- alignment -------------------------------------------------------------------------------------


def align(
    data: Interactions, axis: Axis, known: IdIndex, *, drop_unknown: bool = False
) -> Interactions:
    """Return the same entries over the known rows of an axis, in their order."""
    is_items, entries, ids = axis is Axis.ITEMS, data.matrix.tocoo(), ids_of(data, axis)
    own = entries.col if is_items else entries.row
    positions = known.known(ids)
    unknown = np.intersect1d(np.flatnonzero(positions < 0), own)  # without entries they do no harm
    kept: Any = slice(None)
    if len(unknown):
        if not drop_unknown:
            raise _unknown_error(axis, ids[unknown])
        kept = positions[own] >= 0
    values, rows, columns = entries.data[kept], entries.row[kept], entries.col[kept]
    if is_items:
        users, items, columns = data.users, known.ids, positions[columns]
    else:
        users, items, rows = known.ids, data.items, positions[rows]
    return Interactions(_matrix(values, rows, columns, (len(users), len(items))), users, items)


def joined(data: Interactions, more: Interactions, duplicates: Duplicates) -> Interactions:
    """Return both sets of entries; ids new in ``more`` come after those of ``data``."""
    users, u = join(data.users, more.users)
    items, i = join(data.items, more.items)
    first, second = data.matrix.tocoo(), more.matrix.tocoo()
    values = np.concatenate([first.data, second.data])
    rows = np.concatenate([first.row, u[second.row]])
    columns = np.concatenate([first.col, i[second.col]])
    triples: Any = sparse.coo_array((values, (rows, columns)), shape=(len(users), len(items)))
    return Interactions.from_matrix(triples, users=users, items=items, duplicates=duplicates)


def _unknown_error(axis: Axis, ids: NDArray[Any]) -> InputError:
    what, method = axis.word, "fold_in_items" if axis is Axis.ITEMS else "fold_in"
    return InputError(
        f"Unknown {what} {plain(ids[0])!r} ({len(ids)} unknown {what}s in total). Remove their "
        f'entries (unknown="drop" does), or fit the new {what}s first with partial_fit() or '
        f"{method}()."
    )


def _matrix(values: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> CsrArray:
    matrix: CsrArray = sparse.coo_array((values, (rows, columns)), shape=shape).tocsr()
    matrix.sort_indices()
    return matrix


# -- exposures -------------------------------------------------------------------------------------


def with_exposure(posteriors: tuple[Posterior, ...], exposure: Exposure) -> tuple[Posterior, ...]:
    """Return the same factors with other exposures."""
    users, items = exposure.users, exposure.items
    found = (fit.replace(Axis.USERS, exposure=users) for fit in posteriors)
    return tuple(fit.replace(Axis.ITEMS, exposure=items) for fit in found)


def at_exposure(model: "FittedModel", exposure: Any) -> "FittedModel":
    """Return the model with one exposure of all pairs; itself for None."""
    number = pair_exposure(exposure, ())
    if number is None:
        return model
    users = None if number == 1.0 else np.full(len(model.users), float(number))
    return replace(model, posteriors=with_exposure(model.posteriors, Exposure(users)))


def new_exposure(
    model: "FittedModel",
    axis: Axis,
    given: Any,
    data: Interactions,
    known: NDArray[np.int64] | None,
    source: Any,
) -> FloatArray | None:
    """Return the exposures of new rows; rows that were fitted keep theirs unless they are given.

    ``known`` are the positions of the rows among the fitted ones, -1 for those that are not.
    """
    fitted = model.exposure.axis(axis)
    if fitted is None and given is None:
        return None
    index = IdIndex(axis.value, ids_of(data, axis))
    default = np.full(len(index), np.nan)
    if known is not None:
        is_known = known >= 0
        default[is_known] = 1.0 if fitted is None else fitted[known[is_known]]
    found = resolve_exposure(given, index, source=source, default=default)
    return check_exposure(default, index) if found is None else found


def joined_exposure(
    model: "FittedModel", axis: Axis, given: Any, more: Interactions, data: Interactions,
    source: Any,
) -> FloatArray | None:  # fmt: skip
    """Return the exposures of all rows of ``data``, the fitted ones and those of ``more``."""
    fitted = model.exposure.axis(axis)
    if fitted is None and given is None:
        return None
    own, all_ids = ids_of(more, axis), ids_of(data, axis)
    n_fitted = len(model.index[axis])
    everyone = IdIndex(axis.value, all_ids)
    values = np.full(len(all_ids), np.nan)
    values[:n_fitted] = 1.0 if fitted is None else fitted
    positions = everyone.positions(own)
    found = resolve_exposure(
        given, IdIndex(axis.value, own), source=source, default=values[positions]
    )
    if found is not None:
        values[positions] = found
    return check_exposure(values, everyone)
