"""From tables to shards without holding the rows: one pass over the files, one over a spool.

The first pass numbers the ids and writes each row to a spool, a temporary file. Then users and
items are sorted, rows are dealt out to buckets of neighboring users, and each bucket is merged and
appended to its shard. Memory is bounded by the ids, 130 to 210 bytes each, and one bucket.
"""

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hcpf._progress import progress_bar
from hcpf.data import returns
from hcpf.data.amounts import ParsedAmounts
from hcpf.data.canonical import Duplicates, IdArray
from hcpf.data.columns import TripleBuilder, Triples
from hcpf.data.files.base import Columns
from hcpf.data.read_options import ReadOptions, Returns
from hcpf.data.readers import FileSet, describe_repeated, resolve_duplicates
from hcpf.data.rows import BadRows, RowLocator
from hcpf.data.shards.manifest import Manifest
from hcpf.data.shards.writing import (
    SPOOL,
    Block,
    FolderWriter,
    balanced_cuts,
    folder_writer,
    place_items,
    relabel,
    require_new_users,
)
from hcpf.data.values import ArrowArray, ValueColumn
from hcpf.errors import InputError

BUCKET_ROWS = 1 << 22
"""Rows that are sorted and merged at once: about 60 bytes each."""
SPOOL_ROWS = 1 << 21
"""Rows that are dealt out to the buckets at once."""
_ROW = np.dtype([("user", np.int32), ("item", np.int32), ("value", np.float64)])
_MAX_EXACT_TOTAL = float(1 << 24)
"""Integers that add up to no more than this are exact as float32, whatever rows are merged."""


class SpoolBuilder(TripleBuilder):
    """Writes rows to a file as they are read, users and items numbered by appearance."""

    def __init__(
        self, columns: Columns, spool: Any, *, text_ids: bool, options: ReadOptions
    ) -> None:
        super().__init__(columns, text_ids=text_ids, options=options)
        self._value_name, self._spool = self._values.name, spool
        self.user_rows, self.item_rows = np.zeros(0, np.int64), np.zeros(0, np.int64)
        """The number of rows of each user and item."""
        self._negative_rows = BadRows()
        self.n_negative = self.n_values = self.n_kept = 0
        self.total = 0.0
        """The sum of absolute values."""
        self.are_integers = self.are_float32 = True
        self._amounts: list[ParsedAmounts] = []  # the first of them, for a remark

    def add(
        self, users: ArrowArray, items: ArrowArray, values: ArrowArray | None,
        times: ArrowArray | None = None,
    ) -> None:  # fmt: skip
        """Write the next rows; without values, every row counts 1."""
        assert times is None  # refused before
        n_rows = len(users)
        rows, columns = self._users.encode(users), self._items.encode(items)
        kept = self._usable(rows, columns)
        numbers = self._numbers(pa.repeat(1.0, n_rows) if values is None else values, kept)
        self._n_rows += n_rows
        row = np.arange(self._n_rows - n_rows, self._n_rows)
        if kept is not None:
            row, rows, columns = row[kept], rows[kept], columns[kept]
        if self._options.drop_blank_values and (blank := np.isnan(numbers)).any():
            self._n_blank_values += int(blank.sum())
            used = ~blank
            row, rows, columns, numbers = row[used], rows[used], columns[used], numbers[used]
        negative = numbers < 0.0
        self._note_negative(row[negative], numbers[negative])
        self.n_values += len(numbers)
        if self._options.returns == "drop" and negative.any():
            rows, columns, numbers = (part[~negative] for part in (rows, columns, numbers))
        self._note(rows, columns, numbers)
        out = np.empty(len(rows), _ROW)
        out["user"], out["item"], out["value"] = rows, columns, numbers
        self._spool.write(out.data)

    def _numbers(self, values: ArrowArray, kept: Any) -> NDArray[np.float64]:
        """Return the values of the rows that are kept; bad ones are an error at once."""
        locator = RowLocator()
        column = ValueColumn(self._value_name, drop_blank=self._options.drop_blank_values)
        column.add(values, kept)
        positions = None if kept is None else np.flatnonzero(kept)
        n_kept = len(values) if positions is None else len(positions)
        locator.add(self._source, self._n_rows, positions, n_kept)
        numbers, amounts = column.finish(self._options.decimal, self._bad_rows, locator)
        self._bad_rows.raise_if_any()
        if amounts is not None:
            self.currency = self.currency or amounts.currency
            if not self._amounts and amounts.remark is not None:
                self._amounts.append(amounts)
        if amounts is not None and self._options.decimal is None:
            raise InputError(
                f"Column {self._value_name!r} holds text, whose decimal mark cannot be told from a "
                "part of the rows. Pass decimal='.' or decimal=','."
            )
        return numbers

    def _note_negative(self, rows: NDArray[np.int64], numbers: NDArray[np.float64]) -> None:
        self.n_negative += len(rows)
        self._negative_rows.add(
            returns.describe_problem(self._value_name), returns.ADVICE, self._source, rows,
            returns.REMEDY, returns.first_values(numbers),
        )  # fmt: skip

    def _note(self, rows: Any, columns: Any, numbers: NDArray[np.float64]) -> None:
        self.user_rows = _added(self.user_rows, rows)
        self.item_rows = _added(self.item_rows, columns)
        self.n_kept += len(numbers)
        self.total += float(np.abs(numbers).sum())
        self.are_integers &= bool(np.all(numbers == np.floor(numbers)))
        with np.errstate(over="ignore"):
            self.are_float32 &= bool(np.all(numbers.astype(np.float32) == numbers))

    def check(self) -> None:
        """Describe what was dropped; raise an error on undecided returns, or if no row is left."""
        self._remark(self._amounts)
        if returns.are_undecided(
            self._options.returns, self.n_negative, self.n_values, self._value_name, self.currency
        ):
            self._negative_rows.raise_if_any()
        if self.n_kept == 0:
            self.raise_empty(0)

    def describe_returns(self, n_gone: int) -> list[str]:
        """Return what was done about negative values; ``n_gone`` pairs were left out."""
        return returns.describe(
            self._options.returns, self._value_name, self.n_negative, self.n_values, n_gone
        )

    def raise_empty(self, n_gone: int) -> NoReturn:
        """Raise the error that nothing is left to write."""
        why = " ".join([*self.remarks, *self.describe_returns(n_gone)])
        raise InputError(f"There are no rows: {why}")

    def ids(self) -> tuple[tuple[IdArray, NDArray[np.int32]], tuple[IdArray, NDArray[np.int32]]]:
        """Return the sorted ids of users and items, each with the position of every number."""
        return _sorted(self._users, self.user_rows), _sorted(self._items, self.item_rows)


def _added(counts: NDArray[np.int64], codes: NDArray[np.int32]) -> NDArray[np.int64]:
    more = np.bincount(codes, minlength=len(counts))
    more[: len(counts)] += counts
    return more


def _sorted(column: Any, counts: NDArray[np.int64]) -> tuple[IdArray, NDArray[np.int32]]:
    used = np.flatnonzero(counts).astype(np.int32)
    column.codes.append(used)
    ids, rank = column.finish()
    position = np.full(len(counts), -1, np.int32)
    position[used] = rank
    return ids, position


def stream_to_shards(
    files: FileSet, folder: Path, *, n_shards: int, append: bool, progress: bool | None = None
) -> tuple[Manifest, list[str]]:
    """Write the rows of files as shards; return the manifest and what was decided."""
    columns = files.chosen[0]
    if columns.times is not None:
        raise InputError(
            f"value='{columns.value}*{columns.times}': shards take one column of values. Multiply "
            "them first."
        )
    with folder_writer(folder, append=append) as writer:
        spool = folder / SPOOL
        shutil.rmtree(spool, ignore_errors=True)
        spool.mkdir()
        try:
            with (spool / "rows").open("wb") as rows:

                def make_builder(text_ids: bool) -> SpoolBuilder:
                    rows.seek(0)
                    rows.truncate()  # of what was written before a restart
                    return SpoolBuilder(columns, rows, text_ids=text_ids, options=files.options)

                builder = files.read_rows(make_builder, progress)
            builder.check()
            written = _write(writer, builder, spool, files, n_shards, progress)
        finally:
            shutil.rmtree(spool, ignore_errors=True)
    about_returns = builder.describe_returns(written.n_gone)
    about_pairs = describe_repeated(files.options, files.event, written.n_rows, written.n_entries)
    return written.manifest, [*files.remarks(builder), *about_returns, *about_pairs]


class _Written(NamedTuple):
    manifest: Manifest
    n_gone: int
    """Pairs left out at or below 0."""
    n_rows: int
    """Rows of the pairs that stay."""
    n_entries: int


def _write(
    writer: FolderWriter,
    builder: SpoolBuilder,
    spool: Path,
    files: FileSet,
    n_shards: int,
    progress: bool | None,
) -> _Written:
    """Write the rows of the spool."""
    returns_choice = files.options.returns
    duplicates = resolve_duplicates(files.options, files.event)
    (users, user_at), (items, item_at) = builder.ids()
    require_new_users(writer.folder, writer.before, users)
    all_items, positions = place_items(writer.folder, writer.before, items)
    writer.use_type(_value_type(builder, duplicates))
    rows = np.zeros(len(users), np.int64)
    rows[user_at[user_at >= 0]] = builder.user_rows[user_at >= 0]
    cuts = balanced_cuts(rows, n_shards)
    bounds = _bucket_bounds(rows, cuts)
    _deal_out(spool, bounds, user_at, item_at)
    n_gone = n_settled = n_entries = 0
    with progress_bar(progress, "Writing shards", len(bounds) - 1) as advance:

        def blocks(first: int, last: int) -> Iterator[Block]:
            nonlocal n_gone, n_settled, n_entries
            for number in np.flatnonzero((bounds[:-1] >= first) & (bounds[1:] <= last)).tolist():
                begin, end = int(bounds[number]), int(bounds[number + 1])
                path = spool / str(number)
                triples, n_without = _settled(path, begin, users[begin:end], items, returns_choice)
                matrix = triples.to_matrix(duplicates)
                n_gone, n_settled = n_gone + n_without, n_settled + len(triples.values)
                n_entries += int(matrix.nnz)
                yield relabel(Block(np.diff(matrix.indptr), matrix.indices, matrix.data), positions)
                path.unlink()
                advance(1)

        for first, last in pairwise(cuts.tolist()):
            writer.add_shard(users[first:last], blocks(first, last), len(all_items))
    if n_entries == 0:
        builder.raise_empty(n_gone)
    return _Written(writer.commit(all_items), n_gone, n_settled, n_entries)


def _value_type(builder: SpoolBuilder, duplicates: Duplicates) -> type[np.floating[Any]]:
    """Return float32 if it holds all values exactly, also those that rows add up to."""
    exact = builder.are_float32 and duplicates in ("error", "last")
    exact |= builder.are_integers and builder.total <= _MAX_EXACT_TOTAL
    return np.float32 if exact else np.float64


def _bucket_bounds(rows: NDArray[np.int64], cuts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where buckets of neighboring users begin; none crosses the cut of two shards."""
    ends = np.cumsum(rows)
    steps = np.arange(BUCKET_ROWS, int(ends[-1]), BUCKET_ROWS)
    return np.unique(np.concatenate([cuts, np.searchsorted(ends, steps)]))


def _deal_out(
    spool: Path,
    bounds: NDArray[np.int64],
    user_at: NDArray[np.int32],
    item_at: NDArray[np.int32],
) -> None:
    """Move the rows of the spool to a file per bucket, each in the order of reading."""
    with (spool / "rows").open("rb") as source:
        while len(piece := np.fromfile(source, _ROW, SPOOL_ROWS)):
            piece["user"], piece["item"] = user_at[piece["user"]], item_at[piece["item"]]
            bucket = np.searchsorted(bounds, piece["user"], side="right") - 1
            order = np.argsort(bucket, kind="stable")
            ends = np.searchsorted(bucket[order], np.arange(len(bounds)))
            for number in np.flatnonzero(np.diff(ends)).tolist():
                with (spool / str(number)).open("ab") as file:
                    file.write(piece[order[ends[number] : ends[number + 1]]].data)
    (spool / "rows").unlink()
    for number in range(len(bounds) - 1):
        (spool / str(number)).touch()


def _settled(
    path: Path, first: int, users: IdArray, items: IdArray, choice: Returns
) -> tuple[Triples, int]:
    """Return the rows of a bucket without pairs at or below 0, and the number of these pairs.

    Users and items stay, also those without rows.
    """
    rows = np.fromfile(path, _ROW)

    def triples() -> Triples:
        columns = rows["user"] - np.int32(first), rows["item"].copy(), rows["value"].copy()
        return Triples(*columns, users, items)

    if choice not in ("net", "drop"):
        return triples(), 0
    gone, n_gone = returns.without_value(triples())
    rows = rows[~gone]
    return triples(), n_gone
