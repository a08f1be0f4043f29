"""Interactions over the ids of a fitted model, and two sets of interactions joined."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf.data.canonical import CsrArray, Duplicates, plain
from hcpf.data.ids import IdIndex, join
from hcpf.data.interactions import Interactions
from hcpf.errors import InputError


def align_items(data: Interactions, items: IdIndex, *, drop_unknown: bool = False) -> Interactions:
    """Return the same rows over the known items, in their order."""
    entries = data.matrix.tocoo()
    values, rows, columns = entries.data, entries.row, entries.col
    if drop_unknown:
        positions = items.known(data.items)
        kept = positions[columns] >= 0
        values, rows, columns = values[kept], rows[kept], columns[kept]
    else:
        positions = _positions(items, data.items, "item", data.matrix.indices)
    matrix = _matrix(values, rows, positions[columns], (data.n_users, len(items)))
    return Interactions(matrix, data.users, items.ids)


def align_users(data: Interactions, users: IdIndex) -> Interactions:
    """Return the same columns over the known users, in their order."""
    active = np.flatnonzero(np.diff(data.matrix.indptr))
    rows = _positions(users, data.users, "user", active)
    entries = data.matrix.tocoo()
    matrix = _matrix(entries.data, rows[entries.row], entries.col, (len(users), data.n_items))
    return Interactions(matrix, users.ids, data.items)


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


def _positions(
    known: IdIndex, ids: NDArray[Any], what: str, used: NDArray[np.integer[Any]]
) -> NDArray[np.int64]:
    """Return the positions of ids; an unknown one is an error only if it has entries."""
    positions = known.known(ids)
    unknown = np.intersect1d(np.flatnonzero(positions < 0), used)
    if len(unknown):
        method, drop = "fold_in", ""
        if what == "item":
            method, drop = "fold_in_items", ' (unknown="drop" does)'
        raise InputError(
            f"Unknown {what} {plain(ids[unknown[0]])!r} ({len(unknown)} unknown {what}s in total). "
            f"Remove their entries{drop}, or fit the new {what}s first with partial_fit() or "
            f"{method}()."
        )
    return positions


def _matrix(values: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> CsrArray:
    matrix: CsrArray = sparse.coo_array((values, (rows, columns)), shape=shape).tocsr()
    matrix.sort_indices()
    return matrix
