"""Writing a folder of shards: one writer at a time, and nothing counts before the manifest."""

import shutil
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf.data.canonical import CsrArray, IdArray, plain
from hcpf.data.id_files import read_ids, write_ids
from hcpf.data.ids import IdIndex, join
from hcpf.data.shards.files import ArrayFile, FileRecord, map_array, record_of
from hcpf.data.shards.manifest import MANIFEST, Manifest, ShardRecord, ValueSummary, read_manifest
from hcpf.data.shards.matrix import CHUNK_ENTRIES, row_ranges
from hcpf.errors import ShardError
from hcpf.io import locked, os_errors

ITEM_BLOCK_ENTRIES = 1 << 25
"""Entries that are put in the order of the items at once: about 20 bytes each."""
SCRATCH = "scratch"
"""The subfolder for what a fit computes from the shards; it is not part of them."""
SPOOL = ".spool"
"""The subfolder for rows of tables on their way into shards."""


class Block(NamedTuple):
    """The entries of the next users: how many each has, and their items and values in order."""

    sizes: NDArray[Any]
    items: NDArray[Any]
    values: NDArray[Any]


@dataclass(eq=False)
class FolderWriter:
    """Writes shards to a folder that it has locked."""

    folder: Path
    before: Manifest | None
    """What the folder held before; None for a new one."""
    dtype: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.float64))
    """Of the values."""
    records: list[ShardRecord] = field(default_factory=list[ShardRecord])
    summary: ValueSummary = field(default_factory=ValueSummary)

    def use_type(self, dtype: Any) -> None:
        """Write values as float32 or float64; all shards of a folder have the same type."""
        dtype = np.dtype(dtype)
        if self.before is not None and self.before.dtype != dtype.name:
            if dtype == np.float64:
                raise ShardError(
                    "These values need float64, but the shards hold float32. Write all of them to "
                    "a new folder."
                )
            dtype = np.dtype(np.float64)
        self.dtype = dtype

    def add_shard(self, users: IdArray, blocks: Iterable[Block], n_items: int) -> None:
        """Write one shard of users, whose entries come in blocks."""
        number = len(self.records) + (0 if self.before is None else len(self.before.shards))
        path = self.folder / f"shard-{number:04d}"
        path.mkdir()
        files: dict[str, FileRecord] = {}
        n_entries = self._write_by_user(path, blocks, files)
        write_ids(path / "users.parquet", users, ShardError)
        files["users.parquet"] = record_of(path / "users.parquet")
        write_by_item(path, (len(users), n_items), n_entries, self.dtype, files)
        self.records.append(ShardRecord(path.name, len(users), n_items, n_entries, files))

    def _write_by_user(
        self, path: Path, blocks: Iterable[Block], files: dict[str, FileRecord]
    ) -> int:
        n_entries = 0
        with (
            ArrayFile(path / "pointer.npy", np.int64) as pointer,
            ArrayFile(path / "index.npy", np.int32) as index,
            ArrayFile(path / "value.npy", self.dtype) as value,
        ):
            pointer.append(np.zeros(1))
            for sizes, items, values in blocks:
                stored = np.asarray(values).astype(self.dtype, copy=False)
                self.summary = self.summary.merge(ValueSummary.of(stored))
                pointer.append(n_entries + np.cumsum(sizes))
                index.append(items)
                value.append(stored)
                n_entries += len(items)
            for file in (pointer, index, value):
                files[file.path.name] = file.finish()
        return n_entries

    def commit(self, items: IdArray) -> Manifest:
        """Write the items' ids and then the manifest, which makes everything count."""
        n_before = 0 if self.before is None else len(self.before.shards)
        name = f"items-{n_before + len(self.records):04d}.parquet"
        path = self.folder / name
        path.unlink(missing_ok=True)
        write_ids(path, items, ShardError)
        shards = (() if self.before is None else self.before.shards) + tuple(self.records)
        summary = self.summary if self.before is None else self.before.summary.merge(self.summary)
        manifest = Manifest(
            len(items), self.dtype.name, summary, (name, record_of(path)), shards
        ).write(self.folder)
        if self.before is not None and self.before.items[0] != name:
            with suppress(OSError):
                (self.folder / self.before.items[0]).unlink()
        return manifest


def write_by_item(
    path: Path,
    shape: tuple[int, int],
    n_entries: int,
    dtype: Any,
    files: dict[str, FileRecord],
) -> None:
    """Write a shard's entries in the order of its items, from those in the order of its users.

    The entries of some items at a time are collected from all users and sorted, so that memory is
    bounded and every file is written in order; what is read again is in the page cache, or at least
    faster to read than to write.
    """
    pointer = map_array(path / "pointer.npy", np.int64, shape[0] + 1)
    index = map_array(path / "index.npy", np.int32, n_entries)
    value = map_array(path / "value.npy", dtype, n_entries)
    ends = np.zeros(shape[1] + 1, np.int64)
    for first in range(0, n_entries, CHUNK_ENTRIES):
        counts = np.bincount(index[first : first + CHUNK_ENTRIES], minlength=shape[1])
        ends[1:] += counts
    np.cumsum(ends, out=ends)
    with (
        ArrayFile(path / "item_pointer.npy", np.int64) as item_pointer,
        ArrayFile(path / "item_index.npy", np.int32) as item_index,
        ArrayFile(path / "item_value.npy", dtype) as item_value,
    ):
        item_pointer.append(ends)
        for first, last in row_ranges(ends[1:], ITEM_BLOCK_ENTRIES):
            size = int(ends[last] - ends[first])
            turned = _turn(pointer, index, value, size, first, last)
            item_index.append(turned.indices)
            item_value.append(turned.data)
        for file in (item_pointer, item_index, item_value):
            files[file.path.name] = file.finish()


def _turn(
    pointer: NDArray[np.int64],
    index: NDArray[np.int32],
    value: NDArray[Any],
    n_entries: int,
    first: int,
    last: int,
) -> CsrArray:
    """Return the entries of a range of items by item, each item's in the order of the users."""
    n_users, done = len(pointer) - 1, 0
    users, items = np.empty(n_entries, np.int32), np.empty(n_entries, np.int32)
    values = np.empty(n_entries, value.dtype)
    for begin, end in _user_ranges(pointer, 0, n_users):
        part = slice(int(pointer[begin]), int(pointer[end]))
        columns = index[part]
        kept = np.flatnonzero((columns >= first) & (columns < last))
        sizes, own = np.diff(pointer[begin : end + 1]), slice(done, done + len(kept))
        users[own] = np.repeat(np.arange(begin, end, dtype=np.int32), sizes)[kept]
        items[own] = columns[kept] - np.int32(first)
        values[own] = value[part][kept]
        done += len(kept)
    turned: Any = sparse.coo_array((values, (items, users)), shape=(last - first, n_users))
    turned.has_canonical_format = True  # pairs are unique: scipy need not look for duplicates
    return turned.tocsr()


def _user_ranges(pointer: NDArray[Any], first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of users whose entries are read at once."""
    starts = np.arange(pointer[first], pointer[last], CHUNK_ENTRIES)
    cuts = np.searchsorted(pointer[first:last], starts) + first
    return pairwise(np.unique([first, *cuts.tolist(), last]).tolist())


@contextmanager
def folder_writer(folder: Path, *, append: bool) -> Generator[FolderWriter]:
    """Lock a folder and yield its writer; what fails leaves the folder as it was."""
    with os_errors(ShardError, f"Shards cannot be written to {folder}"):
        made = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with _only_writer(folder):
                before = _prepare(folder, append)
                writer = FolderWriter(folder, before)
                try:
                    yield writer
                except BaseException:
                    _remove_uncommitted(folder)
                    raise
        except BaseException:
            if made:
                with suppress(OSError):  # it is not empty
                    folder.rmdir()
            raise


@contextmanager
def _only_writer(folder: Path) -> Generator[None]:
    with suppress(BlockingIOError), locked(folder, wait=False):
        yield
        return
    raise ShardError(f"Another process writes shards to {folder}. Wait for it to end.")


def _prepare(folder: Path, append: bool) -> Manifest | None:
    """Return the manifest to append to, and remove what an interrupted writer left behind."""
    has_shards = (folder / MANIFEST).exists()
    if append and not has_shards:
        raise ShardError(f"{folder} has no shards to append to. Remove append=True.")
    if has_shards and not append:
        read_manifest(folder)  # another kind of folder gets another message
        raise ShardError(
            f"{folder} contains shards already. Pass append=True to add users, or another folder."
        )
    others = [path.name for path in folder.iterdir() if not _is_ours(path)]
    if others:
        raise ShardError(
            f"{folder} contains other files, for example {sorted(others)[0]}. Pass another folder."
        )
    before = read_manifest(folder) if has_shards else None
    _remove_uncommitted(folder)
    return before


def _is_ours(path: Path) -> bool:
    name = path.name
    if name.startswith(("shard-", "items-", SPOOL)) or name in (MANIFEST, SCRATCH):
        return True
    return name.startswith(f".{MANIFEST}.") and name.endswith(".part")


def _remove_uncommitted(folder: Path) -> None:
    """Remove shards and ids that the manifest does not list."""
    kept: set[str] = set()
    if (folder / MANIFEST).exists():
        manifest = read_manifest(folder)
        kept = {manifest.items[0], *(shard.name for shard in manifest.shards)}
    for path in folder.iterdir():
        if path.name.startswith(("shard-", "items-", SPOOL)) and path.name not in kept:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()


def balanced_cuts(sizes: NDArray[Any], n_shards: int) -> NDArray[np.int64]:
    """Return where to cut a list of users into ranges of about as many entries each."""
    n_shards = min(n_shards, len(sizes))
    ends = np.cumsum(np.asarray(sizes) + 1.0)  # users without entries count a little
    inner = np.searchsorted(ends, np.arange(1, n_shards) * (ends[-1] / n_shards), side="left") + 1
    cuts, steps = np.concatenate([[0], inner, [len(sizes)]]), np.arange(n_shards + 1)
    # Every shard has at least one user, whatever their sizes.
    cuts = np.maximum.accumulate(cuts - steps) + steps
    return np.minimum(cuts, len(sizes) - n_shards + steps)


def matrix_blocks(matrix: CsrArray, first: int, last: int) -> Iterator[Block]:
    """Yield the entries of a range of rows of a matrix in memory."""
    pointer = matrix.indptr
    for begin, end in _user_ranges(pointer, first, last):
        part = slice(int(pointer[begin]), int(pointer[end]))
        sizes = np.diff(pointer[begin : end + 1])
        yield Block(sizes, matrix.indices[part], matrix.data[part])


def split_blocks(blocks: Iterable[Block], cuts: NDArray[np.int64]) -> Iterator[Iterator[Block]]:
    """Yield the blocks of each range of users; each must be read before the next is asked for."""
    source, rest = iter(blocks), list[Block]()

    def take(n_users: int) -> Iterator[Block]:
        while n_users > 0:
            block = rest.pop() if rest else next(source)
            n_own = min(len(block.sizes), n_users)
            n_entries = int(np.sum(block.sizes[:n_own]))
            if n_own < len(block.sizes):
                rest.append(
                    Block(block.sizes[n_own:], block.items[n_entries:], block.values[n_entries:])
                )
            yield Block(block.sizes[:n_own], block.items[:n_entries], block.values[:n_entries])
            n_users -= n_own

    for n_users in np.diff(cuts).tolist():
        yield take(n_users)


def place_items(folder: Path, before: Manifest | None, items: IdArray) -> tuple[IdArray, Any]:
    """Return all items, those known before first, and the positions of ``items`` among them."""
    if before is None:
        return items, None
    known = read_ids(folder / before.items[0], before.n_items, ShardError)
    joined, positions = join(known, items)
    return joined, positions


def require_new_users(folder: Path, before: Manifest | None, users: IdArray) -> None:
    """Refuse users who are in the folder already: their entries would be in two shards."""
    if before is None:
        return
    for shard in before.shards:
        known = read_ids(folder / shard.name / "users.parquet", shard.n_users, ShardError)
        positions = IdIndex("users", known).known(users)
        if np.any(positions >= 0):
            both = users[positions >= 0]
            raise ShardError(
                f"{len(both):,} users are in {folder} already, for example {plain(both[0])!r}, and "
                "all entries of a user belong to one shard. Write all data to a new folder."
            )


def relabel(block: Block, positions: Any) -> Block:
    """Return a block whose items are numbered as in the folder, sorted within each user."""
    if positions is None:
        return block
    items = positions[block.items]
    row = np.repeat(np.arange(len(block.sizes)), block.sizes)
    order = np.lexsort((items, row))
    return Block(block.sizes, items[order], block.values[order])
