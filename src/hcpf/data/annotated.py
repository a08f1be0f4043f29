"""AnnData, in memory or in an .h5ad file, read in pieces of rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._checks import flag
from hcpf._progress import progress_bar
from hcpf.data.canonical import CsrArray, IdArray, check_source, to_canonical
from hcpf.data.ids import check_ids
from hcpf.data.interactions import Interactions
from hcpf.data.read_options import ReadOptions
from hcpf.errors import InputError, MissingDependencyError

H5AD = ".h5ad"
_PIECE = 1 << 20  # entries read at once


Counts = tuple[Interactions, Sequence[str]]
"""Cells x genes without zeros, and what looks wrong about them."""


class _Source(NamedTuple):
    """A matrix that rows are sliced from, with its names and what else there is to read."""

    matrix: Any
    users: Any
    items: Any
    name: str
    layers: Sequence[str]
    has_raw: bool


def from_anndata(adata: Any, layer: str | None, use_raw: bool) -> Counts:
    """Read an AnnData; a matrix that is still in its file is read in pieces."""
    if not all(hasattr(adata, name) for name in ("X", "layers", "obs_names", "var_names")):
        raise InputError(f"adata must be an AnnData, got {type(adata).__name__}.")
    raw = getattr(adata, "raw", None)
    layers = list(adata.layers)
    _check_choice(layer, use_raw, layers, raw is not None)
    matrix, names = adata.X, adata.var_names
    if use_raw:
        assert raw is not None
        matrix, names = raw.X, raw.var_names
    elif layer is not None:
        matrix = adata.layers[layer]
    if matrix is None:
        raise InputError("adata has no X. Pass layer=.")
    source = _Source(
        matrix, np.asarray(adata.obs_names, dtype=object), np.asarray(names, dtype=object),
        _name(layer, use_raw), layers, raw is not None,
    )  # fmt: skip
    return _read(source, progress=False)


def find_h5ad(paths: Any, **columns: Any) -> Path | None:
    """Return the .h5ad file that ``paths`` is, or None; it has to be alone and has no columns."""
    given: list[Any] = (
        list(paths) if isinstance(paths, Sequence) and not isinstance(paths, str) else [paths]
    )
    if not any(str(path).lower().endswith(H5AD) for path in given):
        return None
    from hcpf.data.files import find_files

    files = find_files(given)
    if len(files) > 1:
        raise InputError(
            f"{files[0]}, ...: only one .h5ad file is read at a time. Join them with "
            "anndata.concat() first."
        )
    wrong = [f"{name}={column!r}" for name, column in columns.items() if column is not None]
    if wrong:
        raise InputError(f"{files[0]}: an .h5ad file has no columns. Remove {', '.join(wrong)}.")
    return files[0]


def read_h5ad(path: Path, options: ReadOptions, progress: bool | None = None) -> Counts:
    """Read one matrix of an .h5ad file, and nothing else of it."""
    try:
        import anndata
        import h5py
    except ImportError:
        raise MissingDependencyError.of_extra(".h5ad files require anndata", "anndata") from None
    try:
        with h5py.File(path, "r") as file:
            if "_index" in file["obs"].attrs:
                return _read(_source_in(file, options.layer, options.use_raw), progress)
        # Files of old versions of anndata have another layout.
        return from_anndata(anndata.read_h5ad(path), options.layer, options.use_raw)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (OSError, KeyError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as AnnData: {str(error).splitlines()[0]}"
        ) from None


def _source_in(file: Any, layer: str | None, use_raw: bool) -> _Source:
    from anndata.io import sparse_dataset

    layers, has_raw = list(file.get("layers", ())), "raw" in file
    _check_choice(layer, use_raw, layers, has_raw)
    place = "raw/X" if use_raw else "X" if layer is None else f"layers/{layer}"
    if place not in file:
        raise InputError("the file has no X. Pass layer=.")
    stored, var = file[place], file["raw/var" if use_raw else "var"]
    matrix = sparse_dataset(stored) if hasattr(stored, "keys") else stored
    return _Source(matrix, _index(file["obs"]), _index(var), _name(layer, use_raw), layers, has_raw)


def _index(frame: Any) -> NDArray[Any]:
    from anndata.io import read_elem

    return np.asarray(read_elem(frame[frame.attrs["_index"]]), dtype=object)


def _check_choice(layer: Any, use_raw: Any, layers: list[str], has_raw: bool) -> None:
    if flag("use_raw", use_raw):
        if layer is not None:
            raise InputError(f"layer={layer!r} and use_raw=True are two matrices. Pass one.")
        if not has_raw:
            raise InputError("use_raw=True: there is no raw. Remove use_raw=True.")
    if layer is not None and not (isinstance(layer, str) and layer in layers):
        raise InputError(f"layer={layer!r}: there is no such layer. Layers: {layers}.")


def _name(layer: str | None, use_raw: bool) -> str:
    return "raw.X" if use_raw else "X" if layer is None else f"The layer {layer!r}"


def _read(source: _Source, progress: bool | None) -> Counts:
    shape = source.matrix.shape
    users = check_ids("users", source.users, shape[0])
    items = check_ids("items", source.items, shape[1])
    reader = _Reader(users, items, _max_entries(source.matrix))
    with progress_bar(progress, "Reading", shape[0]) as advance:
        for piece in _pieces(source.matrix):
            reader.add(piece)
            advance(piece.shape[0])
    return Interactions(reader.finish(), users, items), _remark(source, reader)


class _Reader:
    """Appends pieces of rows to arrays of the final size, so memory is needed once."""

    def __init__(self, users: IdArray, items: IdArray, max_entries: int) -> None:
        self._users, self._items, self._max_entries = users, items, max_entries
        self._pointer = np.zeros(len(users) + 1, np.int64)
        self._n_rows = 0
        self._values = self._columns = np.zeros(0, np.float32)
        self.is_negative = self.is_fractional = False

    def add(self, piece: Any) -> None:
        """Append some rows; zeros are dropped."""
        first, last = self._n_rows, self._n_rows + piece.shape[0]
        matrix = to_canonical(check_source(piece), "error", self._users[first:last], self._items)
        if not np.all(matrix.data):
            matrix = matrix.copy()
            matrix.eliminate_zeros()
        if not first:
            self._values = np.empty(self._max_entries, matrix.dtype)
            self._columns = np.empty(self._max_entries, np.int32)
        start = self._pointer[first]
        self._pointer[first + 1 : last + 1] = start + matrix.indptr[1:]
        self._values[start : start + matrix.nnz] = matrix.data
        self._columns[start : start + matrix.nnz] = matrix.indices
        self._n_rows = last
        self.is_negative |= bool(np.any(matrix.data < 0))
        self.is_fractional |= bool(np.any(matrix.data != np.rint(matrix.data)))

    def finish(self) -> CsrArray:
        """Return all rows."""
        size = int(self._pointer[-1])
        index = np.int32 if size <= np.iinfo(np.int32).max else np.int64
        columns, pointer = (
            part.astype(index, copy=False) for part in (self._columns, self._pointer)
        )
        shape = len(self._users), len(self._items)
        return sparse.csr_array((self._values[:size], columns[:size], pointer), shape=shape)


def _max_entries(matrix: Any) -> int:
    """Return how many entries are stored; a dense matrix is read for it."""
    if sparse.issparse(matrix):
        return int(matrix.nnz)
    if _is_sparse(matrix):
        return int(matrix.group["data"].shape[0])
    return sum(int(np.count_nonzero(piece)) for piece in _pieces(matrix))


def _pieces(matrix: Any) -> Iterator[Any]:
    """Yield consecutive rows, at least one of them."""
    n_rows, n_columns = matrix.shape
    is_sparse = _is_sparse(matrix)
    if is_sparse and matrix.format != "csr":  # rows cannot be sliced without reading all of it
        yield matrix.to_memory() if hasattr(matrix, "to_memory") else matrix
        return
    n_stored = _max_entries(matrix) if is_sparse else n_rows * n_columns
    size = max(1, int(_PIECE * n_rows / max(n_stored, 1)))
    for first in range(0, max(n_rows, 1), size):
        yield matrix[first : first + size]


def _is_sparse(matrix: Any) -> bool:
    """Return whether a matrix is sparse, in memory or (with to_memory) in a file."""
    return sparse.issparse(matrix) or hasattr(matrix, "to_memory")


def _remark(source: _Source, read: _Reader) -> list[str]:
    """Return a sentence if the values do not look like counts."""
    if not read.is_negative and not read.is_fractional:
        return []
    looks = (
        "negative values: it looks scaled" if read.is_negative else "fractions: it looks normalized"
    )
    other = [f"layer={name!r}" for name in source.layers if repr(name) not in source.name]
    other += ["use_raw=True"] * (source.has_raw and source.name != "raw.X")
    advice = f" Raw counts may be in {' or '.join(other)}." if other else ""
    return [f"{source.name} has {looks}, but the model is one of raw counts.{advice}"]
