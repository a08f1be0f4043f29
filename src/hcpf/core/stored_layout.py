"""Layouts of entries that stay on disk: the same arrays as in memory, in memory-mapped files.

A matrix in shards is laid out without holding its entries. Where the order of the users is that of
a single shard, its files are mapped as they are and only the coordinates are computed. Otherwise
the entries are copied in the order of the layout, a range of rows at a time: all source files are
read in order for each range, and every file is written in order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf.core import kernels
from hcpf.core.kernels import Entries
from hcpf.core.threads import MOST_THREADS, run_in_parallel
from hcpf.data.shards.files import ScratchArray
from hcpf.data.shards.matrix import CHUNK_ENTRIES, StoredMatrix, row_ranges

BLOCK_ENTRIES = 1 << 25
"""Entries that are put in another order at once, 4 bytes per column each."""

Column = NDArray[Any]
ColumnFunction = Callable[[NDArray[Any]], NDArray[Any]]


def map_values(values: Any, function: ColumnFunction, folder: Path) -> NDArray[np.float32]:
    """Return a function of each value, chunk by chunk, as a mapped array."""
    out = ScratchArray(folder, np.float32)
    for first in range(0, len(values), CHUNK_ENTRIES):
        out.append(function(values[first : first + CHUNK_ENTRIES]))
    return out.map()


@dataclass(eq=False)
class StoredEntries:
    """The entries of a stored matrix in the order of a layout; what has been copied is kept."""

    matrix: StoredMatrix
    order: NDArray[np.int64] | None
    """Row r of the layout is row ``order[r]`` of the matrix."""

    @property
    def folder(self) -> Path:
        """Where files are written."""
        return self.matrix.scratch

    @property
    def is_mapped(self) -> bool:
        """Whether the files of the shard are used as they are."""
        return self.order is None and len(self.matrix.shards) == 1

    @cached_property
    def ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the entries of each row of the layout begin and end."""
        sizes = np.diff(self.matrix.indptr)
        sizes = sizes if self.order is None else sizes[self.order]
        stop = np.cumsum(sizes)
        return stop - sizes, stop

    @cached_property
    def index(self) -> NDArray[np.int32]:
        """The item of each entry."""
        if self.is_mapped:
            return self.matrix.indices
        return self._copied([shard.index for shard in self.matrix.shards], np.int32, None)

    def by_user(self, function: ColumnFunction) -> NDArray[np.float32]:
        """Return a function of each entry's value, in the order of the layout."""
        if self.order is None:
            return map_values(self.matrix.data, function, self.folder)
        return self._copied([shard.value for shard in self.matrix.shards], np.float32, function)

    def _copied(
        self, parts: list[Column], dtype: Any, function: ColumnFunction | None
    ) -> NDArray[Any]:
        """Return a column of the shards, in the order of the layout."""
        out = ScratchArray(self.folder, dtype)
        start, stop = self.ends
        for first, last in row_ranges(stop, BLOCK_ENTRIES):
            block = np.empty(int(stop[last - 1] - start[first]), parts[0].dtype)
            self._fill(block, parts, first, last)
            for begin in range(0, len(block), CHUNK_ENTRIES):
                piece = block[begin : begin + CHUNK_ENTRIES]
                out.append(piece if function is None else function(piece))
        return out.map()

    def _fill(self, block: Column, parts: list[Column], first: int, last: int) -> None:
        """Copy the entries of a range of rows of the layout, in the order they have on disk."""
        users = np.arange(first, last) if self.order is None else self.order[first:last]
        by_place = np.argsort(users)
        users, to = users[by_place], (self.ends[0][first:last] - self.ends[0][first])[by_place]
        pointer, n_before = self.matrix.indptr, 0
        for part, shard in zip(parts, self.matrix.shards, strict=True):
            n_users = len(shard.pointer) - 1
            own = slice(*np.searchsorted(users, [n_before, n_before + n_users]))
            offset = pointer[n_before]
            begin, end = (pointer[users[own] + step] - offset for step in (0, 1))
            run_in_parallel(
                kernels.copy_rows, len(begin), begin, end, part, to[own], block, work=len(block)
            )
            n_before += n_users

    # -- by item ------------------------------------------------------------------------------

    @cached_property
    def item_ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the entries of each item begin and end."""
        sizes = self.matrix.entries_per_item()
        stop = np.cumsum(sizes)
        return stop - sizes, stop

    @cached_property
    def item_index(self) -> NDArray[np.int32]:
        """The row of the layout of each entry, by item."""
        shard = self.matrix.shards[0]
        if self.is_mapped and shard.item_index is not None:
            return shard.item_index
        return self._turned(None)

    def by_item(self, function: ColumnFunction, column: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a function of each entry's value by item; ``column`` has it by user."""
        shard = self.matrix.shards[0]
        if self.is_mapped and shard.item_value is not None:
            return map_values(shard.item_value, function, self.folder)
        return self._turned(column)

    def _turned(self, column: NDArray[np.float32] | None) -> NDArray[Any]:
        """Return a column by item, or the rows of the layout by item, a range of items at a time.

        Every thread reads all entries and keeps those of its own items.
        """
        start, stop = self.item_ends
        dtype, nothing = (np.int32 if column is None else np.float32), np.zeros(0, np.float32)
        rows = Entries(*self.ends, self.index, nothing if column is None else column, nothing)
        out = ScratchArray(self.folder, dtype)
        for first, last in row_ranges(stop, BLOCK_ENTRIES):
            block = np.empty(int(stop[last - 1] - start[first]), dtype)
            place = start[first:last] - start[first]
            cuts = np.linspace(0, len(block), MOST_THREADS + 1)[1:-1]
            cuts = first + np.searchsorted(place, cuts)
            bounds = np.concatenate([[first], cuts, [last]])
            outputs = (block, nothing) if column is None else (np.zeros(0, np.int32), block)
            run_in_parallel(
                kernels.transpose_columns, MOST_THREADS, rows, bounds, first, place, *outputs,
                work=float(len(self.index)),
            )  # fmt: skip
            out.append(block)
        return out.map()
