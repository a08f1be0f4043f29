"""Putting interactions into the order of ids that are known already, and joining two sets."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import Csr
from hcpf.data.canonical import CsrArray, Duplicates, plain
from hcpf.data.ids import IdIndex, join
from hcpf.data.interactions import Interactions
from hcpf.errors import InputError


def align_items(data: Interactions, items: IdIndex) -> Interactions:
    """The same rows over the known items, in their order."""
    place = _places(items, data.items, "item", data.matrix.indices)
    return _rearranged(data, None, place, data.users, items.ids)


def align_users(data: Interactions, users: IdIndex) -> Interactions:
    """The same columns over the known users, in their order."""
    busy = np.flatnonzero(np.diff(data.matrix.indptr))
    place = _places(users, data.users, "user", busy)
    return _rearranged(data, place, None, users.ids, data.items)


def joined(data: Interactions, more: Interactions, duplicates: Duplicates) -> Interactions:
    """Both sets of entries; ids new in ``more`` come after those of ``data``."""
    users, u = join(data.users, more.users)
    items, i = join(data.items, more.items)
    first, second = data.matrix.tocoo(), more.matrix.tocoo()
    triples: Any = sparse.coo_array(
        (
            np.concatenate([first.data, second.data]),
            (
                np.concatenate([first.row, u[second.row]]),
                np.concatenate([first.col, i[second.col]]),
            ),
        ),
        shape=(len(users), len(items)),
    )
    return Interactions.from_matrix(triples, users=users, items=items, duplicates=duplicates)


def _places(
    known: IdIndex, ids: NDArray[Any], what: str, used: NDArray[np.integer[Any]]
) -> NDArray[np.int64]:
    """Where ids are among the known ones; an unknown one matters only if it has entries."""
    place = known.known(ids)
    strange = np.intersect1d(np.flatnonzero(place < 0), used)
    if len(strange):
        first = plain(ids[strange[0]])
        method = "fold_in_items" if what == "item" else "fold_in"
        raise InputError(
            f"The {what} {first!r} was not among those fitted ({len(strange)} such {what}s). "
            f"Leave them out, or learn them first: with partial_fit, or with {method}."
        )
    return place


def _rearranged(
    data: Interactions,
    rows: NDArray[np.int64] | None,
    columns: NDArray[np.int64] | None,
    users: NDArray[Any],
    items: NDArray[Any],
) -> Interactions:
    entries: Csr = data.matrix.tocoo()
    row = entries.row if rows is None else rows[entries.row]
    col = entries.col if columns is None else columns[entries.col]
    matrix: CsrArray = sparse.coo_array(
        (entries.data, (row, col)), shape=(len(users), len(items))
    ).tocsr()
    matrix.sort_indices()
    return Interactions(matrix, users, items)
