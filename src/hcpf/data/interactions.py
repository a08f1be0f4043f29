"""The observed entries of a users x items matrix, with the ids of its rows and columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf.data.canonical import (
    CsrArray,
    Duplicates,
    IdArray,
    check_source,
    plain,
    to_canonical,
)
from hcpf.errors import InputError

Ids = Sequence[Any] | IdArray
ValueArray = NDArray[np.float32] | NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """Observed entries of a users x items matrix; every other pair is missing.

    Build one with ``from_matrix``, which checks its input; the constructor itself only takes what
    is already in the canonical form.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array
        Rows are users. A stored entry is an observed one, an explicit zero included. Column
        indices are sorted and unique within each row, values are float32 or float64, and the
        arrays are read-only.
    users, items : ndarray
        The ids of the rows and of the columns, unique on each side.

    Examples
    --------
    >>> Interactions.from_matrix([[0, 3, 0], [5, 0, 0]], users=["ann", "bob"])
    Interactions(2 users x 3 items, 2 observed, sparsity 0.666667)
    """

    matrix: CsrArray
    users: IdArray
    items: IdArray

    def __post_init__(self) -> None:
        matrix = self.matrix
        if not (
            isinstance(matrix, sparse.csr_array)
            and matrix.ndim == 2
            and matrix.dtype in (np.float32, np.float64)
            and matrix.has_canonical_format
        ):
            raise InputError(
                "Interactions takes a canonical csr_array of float32 or float64; for anything "
                "else use Interactions.from_matrix."
            )
        object.__setattr__(self, "matrix", _read_only_matrix(matrix))
        for name, expected in zip(("users", "items"), self.shape, strict=True):
            ids = _check_length(name, np.asarray(getattr(self, name)), expected)
            object.__setattr__(self, name, _read_only(ids))

    @classmethod
    def from_matrix(
        cls,
        X: Any,
        *,
        users: Ids | None = None,
        items: Ids | None = None,
        duplicates: Duplicates = "error",
    ) -> Self:
        """Read a sparse or a dense matrix whose rows are users.

        Parameters
        ----------
        X : scipy sparse matrix or array of any format, or 2-D array
            Sparse: the stored entries are the observed ones, explicit zeros included. The formats
            that store whole blocks or diagonals (BSR, DIA) and dense arrays cannot tell an
            observed zero from a missing entry: there, zeros are missing. An array that already
            has the right form is used in place, not copied, so do not change it afterwards.
        users, items : sequences of str, int or UUID, optional
            The ids of the rows and of the columns; by default 0, 1, 2, ...
        duplicates : {"error", "sum", "mean", "last"}
            What to do with a pair that is stored more than once.

        Returns
        -------
        Interactions
            Values stay float32 or float64; bool, float16 and integers of up to 16 bits become
            float32, which holds them exactly, and all others float64.
        """
        source = check_source(X)
        row_ids = _check_ids("users", users, source.shape[0])
        column_ids = _check_ids("items", items, source.shape[1])
        return cls(to_canonical(source, duplicates, row_ids, column_ids), row_ids, column_ids)

    @property
    def n_users(self) -> int:
        """The number of rows."""
        return self.shape[0]

    @property
    def n_items(self) -> int:
        """The number of columns."""
        return self.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        n_users, n_items = self.matrix.shape
        return int(n_users), int(n_items)

    @property
    def n_observed(self) -> int:
        """The number of observed entries."""
        return int(self.matrix.nnz)

    @property
    def density(self) -> float:
        """The share of pairs that are observed."""
        return self.n_observed / (self.n_users * self.n_items)

    @property
    def sparsity(self) -> float:
        """The share of pairs that are missing."""
        return 1.0 - self.density

    @property
    def values(self) -> ValueArray:
        """The observed values, user by user, each user's in the order of the items."""
        return self.matrix.data

    def __repr__(self) -> str:
        return (
            f"Interactions({self.n_users} users x {self.n_items} items, "
            f"{self.n_observed} observed, sparsity {self.sparsity:.6f})"
        )


def _check_ids(name: str, ids: Ids | None, expected: int) -> IdArray:
    """Return the ids as an array, or raise an InputError if they do not name each row once."""
    if ids is None:
        return np.arange(expected)
    array = np.asarray(ids)
    if array.dtype.kind in "US" and not isinstance(ids, np.ndarray):
        # NumPy turns a mixture such as [1, "a"] into strings: keep such ids as they are.
        array = array if len({type(x) for x in ids}) < 2 else np.array(ids, dtype=object)
    _check_length(name, array, expected)
    if array.dtype.kind != "O":
        values, counts = np.unique(array, return_counts=True)
        repeated = values[counts > 1][:1]
    else:
        repeated = _repeated_objects(name, array)
    if len(repeated):
        raise InputError(
            f"{name}: the id {plain(repeated[0])!r} occurs more than once. Ids must differ."
        )
    return array


def _repeated_objects(name: str, ids: IdArray) -> list[Any]:
    """Find a repeated id among objects, which need not be sortable."""
    seen: set[Any] = set()
    try:
        for value in ids:
            if value in seen:
                return [value]
            seen.add(value)
    except TypeError as error:
        raise InputError(f"{name}: ids must be str, int or UUID: {error}.") from None
    return []


def _check_length(name: str, ids: IdArray, expected: int) -> IdArray:
    if ids.shape != (expected,):
        side = "rows" if name == "users" else "columns"
        raise InputError(
            f"{name} must be a list of {expected} ids, one for each of the {side}, but its shape "
            f"is {ids.shape}."
        )
    return ids


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view; the caller's own array stays writable."""
    view = array.view()
    view.flags.writeable = False
    return view


def _read_only_matrix(matrix: CsrArray) -> CsrArray:
    parts = (_read_only(matrix.data), _read_only(matrix.indices), _read_only(matrix.indptr))
    frozen = sparse.csr_array(parts, shape=matrix.shape)
    frozen.has_canonical_format = True
    return frozen
