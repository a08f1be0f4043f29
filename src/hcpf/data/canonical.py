"""Conversion of any matrix to canonical CSR: sorted, unique, finite; nothing summed silently."""

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import BoolArray, IntArray
from hcpf.data.exact import inexact_integers
from hcpf.errors import InputError

CsrArray = Any
"""A ``scipy.sparse.csr_array``, whose attributes scipy leaves without types."""
Duplicates = Literal["error", "sum", "mean", "last"]
IdArray = NDArray[Any]

_MAX_INT32 = np.iinfo(np.int32).max
_MAX_INT64 = np.iinfo(np.int64).max


def check_n_pairs(rows: int, columns: int) -> None:
    """Raise an InputError where the number of pairs does not fit in 64 bits."""
    if rows * columns > _MAX_INT64:
        raise InputError(
            f"{rows} x {columns} pairs are more than 64-bit integers can count. Remove users and "
            "items without entries, and number the others from 0."
        )


def check_source(X: Any) -> Any:
    """Return a sparse matrix as it is and anything else as an array, both 2-D and numeric."""
    source = X if sparse.issparse(X) else _dense(X)
    shape, dtype = source.shape, source.dtype
    if len(shape) != 2:
        raise InputError(f"X must have 2 dimensions, users x items, but its shape is {shape}.")
    if 0 in shape:
        raise InputError(f"X must have at least one row and one column, but its shape is {shape}.")
    check_n_pairs(int(shape[0]), int(shape[1]))
    for size, side in zip(shape, ("rows", "columns"), strict=True):
        if size > _MAX_INT32:
            raise InputError(
                f"X has {size:,} {side}; the limit is {_MAX_INT32:,}. Remove users and items "
                "without entries, and number the others from 0."
            )
    if dtype.kind not in "buif":
        raise InputError(
            f"X must hold real numbers, but its dtype is {dtype}. Convert it to float64 first."
        )
    if dtype.kind in "iu":
        _check_exact(source)
    return source


def _check_exact(source: Any) -> None:
    """Raise an InputError if an integer is one that floats cannot hold."""
    integers = np.asarray(source.tocoo(copy=False).data if sparse.issparse(source) else source)
    inexact = inexact_integers(integers)
    if inexact.any():
        raise InputError(
            f"X has the integer {integers[inexact][0]}, which 64-bit floats cannot hold exactly. "
            "Divide the values, for example by 1000."
        )


def to_canonical(source: Any, duplicates: Duplicates, users: IdArray, items: IdArray) -> CsrArray:
    """Convert a checked source to canonical CSR, merging duplicated pairs as asked.

    Arrays that already have the right form are used in place.
    """
    if not isinstance(duplicates, str) or duplicates not in get_args(Duplicates):
        known = ", ".join(map(repr, get_args(Duplicates)))
        raise InputError(f"duplicates must be one of {known}, got {duplicates!r}.")
    with np.errstate(over="ignore"):  # values that overflow become inf, an error below
        matrix = _to_sorted_csr(source)
    _check_finite(matrix, users, items, "Remove missing entries (in a dense array, set them to 0).")
    if matrix.has_canonical_format:
        return matrix
    with np.errstate(over="ignore"):
        merged = _merge_duplicates(matrix, duplicates, users, items)
    _check_finite(merged, users, items, "It is the sum of duplicates. Scale the values down.")
    return merged


def _check_finite(matrix: CsrArray, users: IdArray, items: IdArray, advice: str) -> None:
    finite = np.isfinite(matrix.data)
    if not finite.all():
        first = int(np.argmin(finite))
        raise InputError(
            f"{name_pair(matrix, first, users, items)} has the value {matrix.data[first]:g}; "
            f"values must be finite. {advice}"
        )


def _dense(X: Any) -> NDArray[Any]:
    """Return a dense matrix; raise an InputError for types that NumPy would misread."""
    if X is None:
        raise InputError("X must be Interactions, a sparse matrix or a 2-D array, not None.")
    if hasattr(X, "columns"):
        raise InputError(
            "X is a data frame. If its rows are (user, item, value), pass "
            "Interactions.from_frame(X, user=..., item=..., value=...); if its columns are the "
            "items, Interactions.from_matrix(X.to_numpy(), items=...)."
        )
    if isinstance(X, np.ma.MaskedArray):
        raise InputError(
            "X is a masked array, which is not supported. Pass X.filled(0) to treat masked entries "
            "as missing."
        )
    try:
        return np.asarray(X)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"X must be a scipy sparse matrix or a 2-D array, got {type(X).__name__}: {error}."
        ) from None


def _to_sorted_csr(source: Any) -> CsrArray:
    """Convert to CSR with sorted indices, duplicated pairs side by side in their first order."""
    matrix = _to_csr(source)
    largest = max(matrix.nnz, *matrix.shape)
    index_dtype = np.int32 if largest <= _MAX_INT32 else np.int64
    matrix = sparse.csr_array(
        (
            matrix.data,
            matrix.indices.astype(index_dtype, copy=False),
            matrix.indptr.astype(index_dtype, copy=False),
        ),
        shape=matrix.shape,
    )
    # Two conversions are two stable counting sorts, linear in time; sort_indices is not stable.
    return matrix if matrix.has_sorted_indices else matrix.tocsc().tocsr()


def _to_csr(source: Any) -> CsrArray:
    dtype = _value_dtype(source.dtype)
    form = getattr(source, "format", "dense")
    if form == "dense":
        rows, columns = np.nonzero(source)
        return from_triples(source[rows, columns].astype(dtype), rows, columns, source.shape)
    if form == "lil":
        source, form = source.tocsr(), "csr"
    if form in ("csr", "csc"):
        return _from_compressed(source, form, dtype)
    entries: Any = source.tocoo(copy=False)
    data, rows, columns = entries.data, entries.row, entries.col
    if form in ("bsr", "dia"):
        stored = data != 0
        data, rows, columns = data[stored], rows[stored], columns[stored]
    return from_triples(data.astype(dtype, copy=False), rows, columns, source.shape)


def _value_dtype(dtype: Any) -> Any:
    """Return float32 if it holds every value of ``dtype`` exactly, otherwise float64."""
    wide = np.result_type(dtype, np.float32)
    return wide if wide == np.float32 else np.dtype(np.float64)


def _from_compressed(source: Any, form: str, dtype: Any) -> CsrArray:
    compressed: Any = sparse.csr_array if form == "csr" else sparse.csc_array
    try:
        # A new object with the same arrays does not inherit flags that may be wrong.
        matrix = compressed(
            (source.data.astype(dtype, copy=False), source.indices, source.indptr),
            shape=source.shape,
        )
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise InputError(
            f"X is not a valid {form.upper()} matrix: {error}. Rebuild it, for example from its "
            "(row, column, value) triples."
        ) from None
    return matrix.tocsr()


def from_triples(
    data: NDArray[Any], rows: IntArray, columns: IntArray, shape: tuple[int, int]
) -> CsrArray:
    """Return a CSR matrix of (row, column, value) triples; duplicates stay side by side."""
    triples: Any = sparse.coo_array((data, (rows, columns)), shape=shape)
    # The flag keeps scipy from summing duplicates, which are merged later.
    triples.has_canonical_format = True
    return triples.tocsr()


def _merge_duplicates(
    matrix: CsrArray, duplicates: Duplicates, users: IdArray, items: IdArray
) -> CsrArray:
    """Merge the runs of equal pairs in a matrix with sorted indices."""
    data, indices, indptr = matrix.data, matrix.indices, matrix.indptr
    first = _starts_of_runs(indices, indptr)
    starts = np.flatnonzero(first)
    if duplicates == "error":
        more = len(indices) - len(starts)
        raise InputError(
            f"{name_pair(matrix, int(np.argmin(first)), users, items)} is stored more than once "
            f"({more} surplus {'entries' if more > 1 else 'entry'} in total). Remove the "
            'duplicates, or pass duplicates="sum", "mean" or "last".'
        )
    ends = np.append(starts[1:], len(indices))
    if duplicates == "last":
        merged = data[ends - 1]
    else:
        merged = np.add.reduceat(data, starts, dtype=np.float64)
        if duplicates == "mean":
            merged /= ends - starts
    before = np.concatenate([[0], np.cumsum(first)])
    return sparse.csr_array(
        (merged, indices[starts], before[indptr].astype(indptr.dtype)), shape=matrix.shape
    )


def _starts_of_runs(indices: IntArray, indptr: IntArray) -> BoolArray:
    first = np.ones(len(indices), dtype=np.bool_)
    np.not_equal(indices[1:], indices[:-1], out=first[1:])
    first[indptr[:-1][np.diff(indptr) > 0]] = True
    return first


def name_pair(matrix: CsrArray, position: int, users: IdArray, items: IdArray) -> str:
    """Return words for the pair of the stored entry at ``position``, with its ids."""
    row = int(np.searchsorted(matrix.indptr, position, side="right")) - 1
    column = int(matrix.indices[position])
    return f"The pair of user {plain(users[row])!r} and item {plain(items[column])!r}"


def plain(value: Any) -> Any:
    """Return an id as Python shows it: 3 and 'a', not np.int64(3) and np.str_('a')."""
    return value.item() if isinstance(value, np.generic) else value
