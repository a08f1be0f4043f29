"""From files to entries: open, parse, check, drop, settle returns, merge pairs.

Each step is a function that describes what it did in a sentence; the sentences are printed
by the command line and logged by `Interactions.read`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np

from hcpf._checks import flag
from hcpf._progress import progress_bar
from hcpf._types import BoolArray
from hcpf.data.canonical import Duplicates
from hcpf.data.columns import TripleBuilder, Triples
from hcpf.data.files import FileColumn, Restart, TableFile, file_errors, find_files, open_file
from hcpf.data.files.base import Columns
from hcpf.data.files.opening import Paths
from hcpf.data.guess import event_column, time_columns
from hcpf.data.interactions import Interactions
from hcpf.data.read_options import Column, ReadOptions, Returns, choose_columns, split_product
from hcpf.data.returns import describe, without_value
from hcpf.data.times import Times, parse_times
from hcpf.data.words import count
from hcpf.errors import InputError

_MEGABYTE = 1 << 20
_MAX_PERIOD_BYTES = 200 * _MEGABYTE

Builder = TypeVar("Builder", bound=TripleBuilder)


@dataclass(frozen=True, eq=False)
class ReadEntries:
    """What reading gives: the entries, and what was done on the way."""

    data: Interactions
    remarks: Sequence[str]
    n_repeated: int
    """Rows that repeat a pair although that is an error, and were summed nevertheless."""
    duplicates: Duplicates
    """How the rows of a repeated pair are merged."""
    currency: str = ""
    """The currency of the values; empty if they have none."""
    problems: Sequence[str] = ()
    """What is wrong with rows that were dropped although they are an error, and what to do."""


def open_files(paths: Paths, options: ReadOptions) -> list[TableFile]:
    """Open the files of paths and globs."""
    return [open_file(path, options) for path in find_files(paths)]


@dataclass(frozen=True, eq=False)
class FileSet:
    """Files that are read as one table, with the columns of each and how rows are cleaned."""

    files: Sequence[TableFile]
    """At least one."""
    chosen: Sequence[Columns]
    """The columns to read of each file."""
    options: ReadOptions

    @classmethod
    def of(
        cls, files: Sequence[TableFile], user: Column, item: Column, value: Column | None,
        options: ReadOptions,
    ) -> Self:  # fmt: skip
        """Choose the columns, by name or by position from 0, which all files must have."""
        chosen: list[Columns] = []
        for file in files:
            with file_errors(file.path):
                own_value, times = split_product(file.names, value)
                columns = choose_columns(file.names, user, item, own_value)
                if times is not None:
                    times = choose_columns(file.names, user, item, times)[2]
                chosen.append(Columns(*columns, times))
        return cls(files, chosen, options)

    @property
    def columns(self) -> list[FileColumn]:
        """All columns of all files."""
        return [column for file in self.files for column in file.columns]

    @property
    def event(self) -> str | None:
        """A column that makes each row an event; None if there is none."""
        return event_column(self.columns, self.chosen[0].value)

    def remarks(self, builder: TripleBuilder) -> list[str]:
        """Return what was decided while the rows were read."""
        return [remark for file in self.files for remark in file.remarks] + builder.remarks

    def entries(self, *, lenient: bool = False, progress: bool | None = None) -> ReadEntries:
        """Read the entries.

        Parameters
        ----------
        lenient : bool
            Whether rows that are an error are dropped and described in ``problems``, returns are
            netted and repeated pairs summed where they would be an error.
        progress : bool, optional
            Whether to show a progress bar; by default only in a terminal.
        """
        builder, options = self._read(progress), self.options
        with file_errors(self._label):
            triples = builder.finish(drop_bad_rows=lenient)
            if lenient and builder.has_returns and options.duplicates in ("auto", "sum"):
                options = replace(options, returns="net")
            value, remarks = self.chosen[0].value, self.remarks(builder)
            entries = merge_triples(triples, value, self.columns, options, remarks, lenient)
        return replace(entries, currency=builder.currency, problems=builder.problems)

    def entries_before_and_after(
        self, time: str, moment: np.datetime64
    ) -> tuple[ReadEntries, ReadEntries]:
        """Read the rows before a moment and those from then on, as two sets of entries.

        ``time`` is the column of dates or times.
        """
        builder = self._read(None)
        with file_errors(self._label):
            triples = builder.finish()
            is_later = self._times(triples, time) >= moment
            if is_later.all() or not is_later.any():
                side = "before" if is_later.all() else "on or after"
                raise InputError(f"There are no rows {side} {moment} in column {time!r}.")

            def merged(part: BoolArray, remarks: Sequence[str]) -> ReadEntries:
                kept, value = triples.select(part), self.chosen[0].value
                return merge_triples(kept, value, self.columns, self.options, remarks)

            return merged(~is_later, self.remarks(builder)), merged(is_later, ())

    def _times(self, triples: Triples, time: str) -> Times:
        """Return the times of triples; every row must have one."""
        of_file: dict[str, Times] = {}
        for file in self.files:
            if time not in file.names:
                raise InputError(f"There is no column {time!r}. Columns: {', '.join(file.names)}.")
            of_file[file.label] = _column_of_times(file, self.chosen[0].user, time)
        parts = [of_file[source.label][rows] for source, rows in triples.locator.rows_by_source()]
        times = np.concatenate(parts)
        if n_missing := int(np.isnat(times).sum()):
            raise InputError(f"Column {time!r} has no date in {count(n_missing, 'row')}.")
        return times

    @property
    def _label(self) -> str:
        """What messages call the files."""
        first, last = self.files[0].label, self.files[-1].label
        return first if len(self.files) == 1 else f"{first}, …, {last}"

    def _read(self, progress: bool | None) -> TripleBuilder:
        def make_builder(text_ids: bool) -> TripleBuilder:
            return TripleBuilder(self.chosen[0], text_ids=text_ids, options=self.options)

        return self.read_rows(make_builder, progress)

    def read_rows(self, make_builder: Callable[[bool], Builder], progress: bool | None) -> Builder:
        """Read all rows into a builder, from the start again if a file must be read otherwise.

        ``make_builder`` is called with whether all ids are text.
        """
        if progress is not None:
            progress = flag("progress", progress)
        n_bytes = sum(file.path.stat().st_size for file in self.files)
        while True:
            builder = make_builder(all(file.has_text_ids for file in self.files))
            try:
                with progress_bar(progress, "Reading", max(n_bytes // _MEGABYTE, 1)) as advance:
                    for file, columns in zip(self.files, self.chosen, strict=True):
                        builder.start_file(file)
                        with file_errors(file.path):
                            for batch, bytes_read in file.batches(columns):
                                builder.add(*_parts(batch, columns))
                                advance(bytes_read / _MEGABYTE, file.path.name)
                return builder
            except Restart:
                continue


def _parts(batch: Any, columns: Columns) -> tuple[Any, Any, Any, Any]:
    """Return users, items, values and what they are multiplied by; None for those without one."""
    values = None if columns.value is None else batch.column(2)
    times = None if columns.times is None else batch.column(3)
    return batch.column(0), batch.column(1), values, times


def period_of(files: Sequence[TableFile], user: str) -> str:
    """Return the first and the last day of the rows; empty if the files have no dates.

    The column of dates is read for it, unless the files are large.
    """
    columns = [column for file in files for column in file.columns]
    size = sum(file.path.stat().st_size for file in files)
    if size > _MAX_PERIOD_BYTES or not (names := time_columns(columns)):
        return ""
    try:
        times = np.concatenate([_column_of_times(file, user, names[0]) for file in files])
    except InputError:  # numbers of months, say
        return ""
    days = times[~np.isnat(times)].astype("datetime64[D]")
    if not len(days):
        return ""
    first, last = (day.astype(object).strftime("%-d %B %Y") for day in (days.min(), days.max()))
    return first if first == last else f"{first} to {last}"


def _column_of_times(file: TableFile, user: str, time: str) -> Times:
    return parse_times(time, [pair[1] for pair in file.pairs(user, time)])


def merge_triples(
    triples: Triples,
    value: str | None,
    columns: Sequence[FileColumn],
    options: ReadOptions,
    remarks: Sequence[str],
    merge_all: bool = False,
) -> ReadEntries:
    """Settle returns, and merge the rows of repeated pairs.

    Parameters
    ----------
    triples : Triples
        All rows.
    value : str or None
        The column of the values.
    columns : sequence of FileColumn
        All columns of the table, of which one may tell that the rows are events.
    options : ReadOptions
        What to do with returns and repeated pairs.
    remarks : sequence of str
        What was decided so far.
    merge_all : bool
        Whether repeated pairs are summed where they would be an error.
    """
    settled, about_returns = settle_returns(triples, str(value), options.returns)
    if not len(settled.values):
        raise InputError(f"There are no rows: {' '.join([*remarks, *about_returns])}")
    event = event_column(columns, value)
    duplicates = resolve_duplicates(options, event)
    is_refused = duplicates == "error"
    data = settled.to_interactions("sum" if is_refused and merge_all else duplicates)
    n_rows = len(settled.values)
    about_pairs = describe_repeated(options, event, n_rows, data.n_observed)
    remarks = [*remarks, *about_returns, *about_pairs]
    n_refused = n_rows - data.n_observed if is_refused else 0
    return ReadEntries(data, remarks, n_refused, duplicates)


def resolve_duplicates(options: ReadOptions, event: str | None) -> Duplicates:
    """Return how repeated pairs are merged; ``event`` is a column that makes rows events."""
    if options.duplicates != "auto":
        return options.duplicates
    return "sum" if event is not None or options.returns == "net" else "error"


def describe_repeated(
    options: ReadOptions, event: str | None, n_rows: int, n_pairs: int
) -> list[str]:
    """Return in a sentence that repeated pairs were summed although nobody asked for it."""
    is_summed = options.duplicates == "auto" and resolve_duplicates(options, event) == "sum"
    if n_rows == n_pairs or not is_summed:
        return []
    reason = f", because the column {event!r} makes each row an event" if event else ""
    return [
        f"Summed the rows of repeated pairs ({n_rows:,} rows, {count(n_pairs, 'pair')}){reason} "
        "(otherwise pass duplicates=...)."
    ]


# -- returns and corrections -----------------------------------------------------------------------


def settle_returns(triples: Triples, name: str, returns: Returns) -> tuple[Triples, list[str]]:
    """Return triples without returns, and what was done in a sentence.

    Negative values that are an error were found before, with all other bad rows.

    Parameters
    ----------
    triples : Triples
        All rows.
    name : str
        The column of the values, for messages.
    returns : {"auto", "net", "drop", "keep", "error"}
        "net" leaves out pairs whose rows add up to 0 or less, "drop" leaves out negative rows and
        then pairs of 0, all others do nothing.
    """
    negative, n_gone = triples.values < 0.0, 0
    if returns == "drop" and negative.any():
        triples = triples.select(~negative)
    if returns in ("drop", "net"):
        gone, n_gone = without_value(triples)
        triples = triples.select(~gone) if n_gone else triples
    return triples, describe(returns, name, int(negative.sum()), len(negative), n_gone)
