"""A users x items matrix whose entries stay in memory-mapped files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import Csr
from hcpf.data.shards.files import ScratchArray
from hcpf.data.shards.manifest import ValueSummary
from hcpf.errors import InputError
from hcpf.io import fingerprint

CHUNK_ENTRIES = 1 << 22
"""Entries that are read at once where they are read in order."""


class EntriesOnDiskError(InputError, AttributeError):
    """Something needs the entries in memory that are in shards."""

    def __init__(self) -> None:
        super().__init__(
            "This requires the entries in memory, but they are in shards. Use some of the users, "
            "with shards.sample(max_entries), or all of them, with shards.to_memory()."
        )


@dataclass(frozen=True, eq=False)
class ShardArrays:
    """The arrays of one shard, by user and by item; indices count within the shard."""

    pointer: NDArray[np.int64]
    index: NDArray[np.int32]
    value: NDArray[Any]
    item_pointer: NDArray[np.int64] | None = None
    item_index: NDArray[np.int32] | None = None
    item_value: NDArray[Any] | None = None
    """By item; None where entries were left out."""

    def with_ones(self) -> "ShardArrays":
        """Return the same entries with the value 1, which takes no memory."""
        ones = np.broadcast_to(np.float32(1.0), self.index.shape)
        return replace(self, value=ones, item_value=None if self.item_index is None else ones)


class JoinedArray(NDArrayOperatorsMixin):
    """Several arrays one after the other, read by slice or by position and never joined.

    Anything else that arrays offer is an EntriesOnDiskError.
    """

    def __init__(self, parts: Sequence[NDArray[Any]]) -> None:
        self.parts = tuple(parts)
        self.dtype = self.parts[0].dtype
        self._ends = np.cumsum([len(part) for part in self.parts])

    def __len__(self) -> int:
        return int(self._ends[-1])

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self)

    @property
    def shape(self) -> tuple[int]:
        """The length, as arrays have it."""
        return (len(self),)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        if isinstance(key, slice):
            first, last, step = key.indices(len(self))
            if step == 1:
                return self._range(first, last)
            key = np.arange(first, last, step)
        positions = np.asarray(key)
        if positions.dtype.kind not in "iu":
            raise EntriesOnDiskError
        positions = np.where(positions < 0, positions + len(self), positions)
        if positions.size and not 0 <= positions.min() <= positions.max() < len(self):
            raise IndexError(f"index {key} is out of range for {len(self)} values")
        out = np.empty(positions.shape, self.dtype)
        number = np.searchsorted(self._ends, positions, side="right")
        for j, part in enumerate(self.parts):
            own = number == j
            out[own] = part[positions[own] - (self._ends[j] - len(part))]
        return out if out.ndim else out[()]

    def _range(self, first: int, last: int) -> NDArray[Any]:
        pieces: list[NDArray[Any]] = []
        for part, end in zip(self.parts, self._ends.tolist(), strict=True):
            begin = end - len(part)
            if first < end and last > begin:
                pieces.append(part[max(first - begin, 0) : last - begin])
        if len(pieces) == 1:
            return pieces[0]
        return np.concatenate(pieces) if pieces else np.zeros(0, self.dtype)

    def __iter__(self) -> Iterator[Any]:
        raise EntriesOnDiskError

    def __array__(self, *args: Any, **options: Any) -> NDArray[Any]:
        raise EntriesOnDiskError

    def __array_ufunc__(self, *args: Any, **options: Any) -> Any:
        raise EntriesOnDiskError  # of operators, too

    def __getattr__(self, name: str) -> Any:
        raise _unsupported(name)


class StoredMatrix:
    """A matrix of shards, as far as a ``scipy.sparse.csr_array`` can be read without loading it.

    It has ``shape``, ``nnz``, ``dtype``, ``indptr`` (in memory), ``indices`` and ``data`` (mapped);
    some rows of it are a ``csr_array`` in memory. Anything else that scipy offers is an InputError.
    """

    ndim = 2

    def __init__(
        self,
        shards: Sequence[ShardArrays],
        n_items: int,
        summary: ValueSummary,
        identity: str,
        scratch: Path,
    ) -> None:
        self.shards = tuple(shards)
        self.dtype = self.shards[0].value.dtype
        self.summary = summary
        """Of all values in the folder, also those of shards that are not here."""
        self.identity = identity
        """Matrices that share it have the same entries."""
        self.scratch = scratch
        """Where files may be written that are derived from the entries."""
        self.indptr = _joined_pointers([shard.pointer for shard in self.shards])
        self.shape = len(self.indptr) - 1, n_items
        self.indices: Any = _joined([shard.index for shard in self.shards])
        self.data: Any = _joined([shard.value for shard in self.shards])

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return int(self.indptr[-1])

    def with_ones(self) -> "StoredMatrix":
        """Return the same pairs with the value 1."""
        shards = [shard.with_ones() for shard in self.shards]
        summary = ValueSummary(self.summary.n, float(self.summary.n), 1.0, 1.0)
        identity = f"{self.identity} ones"
        return StoredMatrix(shards, self.shape[1], summary, identity, self.scratch)

    def sample_values(self, max_values: int) -> NDArray[np.float64]:
        """Return evenly spread values; all of them if they are no more than ``max_values``.

        Where some are left out, the extremes of all are added, and a value that is not an integer
        if there is one: what holds for all values of the sample holds for all.
        """
        step = max(1, -(-self.nnz // max_values))
        values = np.asarray(self.data[::step], np.float64)
        return values if step == 1 else np.append(values, self.summary.extremes)

    def chunks(self) -> Iterator[tuple[slice, NDArray[np.int32], NDArray[Any]]]:
        """Yield the entries in order: where they stand, their columns and their values."""
        for first in range(0, self.nnz, CHUNK_ENTRIES):
            part = slice(first, min(first + CHUNK_ENTRIES, self.nnz))
            yield part, self.indices[part], self.data[part]

    def entries_per_item(self) -> NDArray[np.int64]:
        """Return the number of entries of each item."""
        counts = np.zeros(self.shape[1], np.int64)
        if all(shard.item_pointer is not None for shard in self.shards):
            for shard in self.shards:
                counts += np.diff(np.asarray(shard.item_pointer))
            return counts
        for _, columns, _ in self.chunks():
            counts += np.bincount(columns, minlength=len(counts))
        return counts

    def take(self, entries: NDArray[np.int64]) -> Csr:
        """Return the entries at some positions, ascending, as a matrix in memory."""
        rows = np.searchsorted(self.indptr, entries, side="right") - 1
        pointer = np.searchsorted(rows, np.arange(self.shape[0] + 1))
        columns = self.data[entries], self.indices[entries], pointer
        return sparse.csr_array(columns, shape=self.shape)

    def without(self, entries: NDArray[np.int64]) -> "StoredMatrix":
        """Return the matrix without the entries at some positions, ascending.

        The others are copied to temporary files.
        """
        if not len(entries):
            return self
        index, value = ScratchArray(self.scratch, np.int32), ScratchArray(self.scratch, self.dtype)
        for part, columns, values in self.chunks():
            own = slice(*np.searchsorted(entries, [part.start, part.stop]))
            index.append(np.delete(columns, entries[own] - part.start))
            value.append(np.delete(values, entries[own] - part.start))
        pointer = self.indptr - np.searchsorted(entries, self.indptr)
        identity = f"{self.identity} without {fingerprint(entries)}"
        arrays = ShardArrays(pointer, index.map(), value.map())
        return StoredMatrix([arrays], self.shape[1], self.summary, identity, self.scratch)

    def __getitem__(self, rows: Any) -> Csr:
        if isinstance(rows, tuple):
            raise EntriesOnDiskError
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(self.shape[0]))
        rows = np.atleast_1d(np.asarray(rows))
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        sizes = (self.indptr[rows + 1] - self.indptr[rows]).astype(np.int64)
        pointer = np.concatenate([[0], np.cumsum(sizes)])
        if len(rows) and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
            entry: Any = slice(int(self.indptr[rows[0]]), int(self.indptr[rows[-1] + 1]))
        else:
            entry = np.repeat(self.indptr[rows] - pointer[:-1], sizes) + np.arange(pointer[-1])
        parts = np.array(self.data[entry]), np.array(self.indices[entry]), pointer
        return sparse.csr_array(parts, shape=(len(rows), self.shape[1]))

    def __getattr__(self, name: str) -> Any:
        raise _unsupported(name)


def _unsupported(name: str) -> AttributeError:
    """Return the error on an attribute that only entries in memory have."""
    if name.startswith("__"):  # protocols that are tried, such as copying
        return AttributeError(name)
    return EntriesOnDiskError()


def row_ranges(stop: NDArray[np.int64], max_entries: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows with a limited number of entries, or of one row with more."""
    first, n_before = 0, 0
    while first < len(stop):
        last = int(np.searchsorted(stop, n_before + max_entries, side="right"))
        last = max(last, first + 1)
        yield first, last
        first, n_before = last, int(stop[last - 1])


def _joined(parts: list[NDArray[Any]]) -> Any:
    return parts[0] if len(parts) == 1 else JoinedArray(parts)


def _joined_pointers(pointers: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    sizes = [np.diff(pointer) for pointer in pointers]
    return np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
