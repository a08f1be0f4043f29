"""From files to entries: open, parse, check, drop, settle returns, merge pairs.

Each step is a function that describes what it did in a sentence; the sentences are printed
by the command line and logged by `Interactions.read`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from hcpf._checks import flag
from hcpf._progress import progress_bar
from hcpf.data.canonical import CsrArray, Duplicates, IdArray
from hcpf.data.columns import TripleBuilder, Triples
from hcpf.data.files import FileColumn, Restart, TableFile, file_errors, find_files, open_file
from hcpf.data.files.base import Columns
from hcpf.data.files.opening import Paths
from hcpf.data.guess import event_column, time_columns
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
    """What reading gives: a canonical matrix with its ids, and what was done on the way."""

    matrix: CsrArray
    users: IdArray
    items: IdArray
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


def read_entries(
    files: Sequence[TableFile],
    *,
    user: Column,
    item: Column,
    value: Column | None,
    options: ReadOptions,
    lenient: bool = False,
    progress: bool | None = None,
) -> ReadEntries:
    """Read files that all have the columns asked for.

    Parameters
    ----------
    files : sequence of TableFile
        At least one.
    user, item, value : str or int
        Columns by name, or by position from 0.
    options : ReadOptions
        How to read and clean the rows.
    lenient : bool
        Whether rows that are an error are dropped and described in ``problems``, returns are netted
        and repeated pairs summed where they would be an error.
    progress : bool, optional
        Whether to show a progress bar; by default only in a terminal.
    """
    chosen = choose_all(files, user, item, value)
    builder = _read_all(files, chosen, options, progress)
    with file_errors(_label(files)):
        triples = builder.finish(drop_bad_rows=lenient)
        if lenient and builder.has_returns and options.duplicates in ("auto", "sum"):
            options = replace(options, returns="net")
        remarks = [remark for file in files for remark in file.remarks] + builder.remarks
        columns = [column for file in files for column in file.columns]
        entries = merge_triples(triples, chosen[0].value, columns, options, remarks, lenient)
    return replace(entries, currency=builder.currency, problems=builder.problems)


def period_of(files: Sequence[TableFile], user: str) -> str:
    """Return the first and the last day of the rows; empty if the files have no dates.

    The column of dates is read for it, unless the files are large.
    """
    columns = [column for file in files for column in file.columns]
    size = sum(file.path.stat().st_size for file in files)
    if size > _MAX_PERIOD_BYTES or not (names := time_columns(columns)):
        return ""
    try:
        times = np.concatenate(
            [parse_times(names[0], [p[1] for p in file.pairs(user, names[0])]) for file in files]
        )
    except InputError:  # numbers of months, say
        return ""
    days = times[~np.isnat(times)].astype("datetime64[D]")
    if not len(days):
        return ""
    first, last = (day.astype(object).strftime("%-d %B %Y") for day in (days.min(), days.max()))
    return first if first == last else f"{first} to {last}"


def read_before_and_after(
    files: Sequence[TableFile],
    *,
    user: Column,
    item: Column,
    value: Column | None,
    time: str,
    moment: np.datetime64,
    options: ReadOptions,
    progress: bool | None = None,
) -> tuple[ReadEntries, ReadEntries]:
    """Read the rows before a moment and those from then on, as two sets of entries.

    Parameters
    ----------
    files, user, item, value, options, progress
        As in `read_entries`.
    time : str
        The column of dates or times.
    moment : datetime64
        The first moment of the later rows.
    """
    chosen = choose_all(files, user, item, value)
    builder = _read_all(files, chosen, options, progress)
    with file_errors(_label(files)):
        triples = builder.finish()
        is_later = _times(files, triples, str(chosen[0].user), time) >= moment
        if is_later.all() or not is_later.any():
            side = "before" if is_later.all() else "on or after"
            raise InputError(f"There are no rows {side} {moment} in column {time!r}.")
        remarks = [remark for file in files for remark in file.remarks] + builder.remarks
        columns = [column for file in files for column in file.columns]
        before, after = (
            merge_triples(triples.select(part), chosen[0].value, columns, options, said)
            for part, said in ((~is_later, remarks), (is_later, ()))
        )
    return before, after


def _times(files: Sequence[TableFile], triples: Triples, user: str, time: str) -> Times:
    """Return the times of triples; every row must have one."""
    of_file: dict[str, Times] = {}
    for file in files:
        if time not in file.names:
            raise InputError(f"There is no column {time!r}. Columns: {', '.join(file.names)}.")
        column = [pair[1] for pair in file.pairs(user, time)]
        of_file[file.label] = parse_times(time, column)
    parts = [of_file[source.label][rows] for source, rows in triples.locator.rows_by_source()]
    times = np.concatenate(parts)
    if n_missing := int(np.isnat(times).sum()):
        raise InputError(f"Column {time!r} has no date in {count(n_missing, 'row')}.")
    return times


def choose_all(
    files: Sequence[TableFile], user: Column, item: Column, value: Column | None
) -> list[Columns]:
    """Return the columns to read of each file."""
    chosen: list[Columns] = []
    for file in files:
        with file_errors(file.path):
            own_value, times = split_product(file.names, value)
            columns = choose_columns(file.names, user, item, own_value)
            if times is not None:
                times = choose_columns(file.names, user, item, times)[2]
            chosen.append(Columns(*columns, times))
    return chosen


def _label(files: Sequence[TableFile]) -> str:
    """Return what messages call the files."""
    return files[0].label if len(files) == 1 else f"{files[0].label}, …, {files[-1].label}"


def merge_triples(
    triples: Triples,
    value: str | None,
    columns: Sequence[FileColumn],
    options: ReadOptions,
    remarks: Sequence[str] = (),
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
    matrix = settled.to_matrix("sum" if is_refused and merge_all else duplicates)
    n_repeated = len(settled.values) - int(matrix.nnz)
    about_pairs = describe_repeated(options, event, len(settled.values), int(matrix.nnz))
    return ReadEntries(
        matrix, settled.users, settled.items, [*remarks, *about_returns, *about_pairs],
        n_repeated if is_refused else 0, duplicates,
    )  # fmt: skip


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


def _read_all(
    files: Sequence[TableFile],
    chosen: Sequence[Columns],
    options: ReadOptions,
    progress: bool | None,
) -> TripleBuilder:
    first = chosen[0]

    def make_builder(text_ids: bool) -> TripleBuilder:
        return TripleBuilder(
            first.user, first.item, str(first.value), times=first.times, text_ids=text_ids,
            options=options,
        )  # fmt: skip

    return read_rows(files, chosen, make_builder, progress)


def read_rows(
    files: Sequence[TableFile],
    chosen: Sequence[Columns],
    make_builder: Callable[[bool], Builder],
    progress: bool | None,
) -> Builder:
    """Read all rows into a builder, from the start again if a file must be read in another way.

    ``make_builder`` is called with whether all ids are text.
    """
    if progress is not None:
        progress = flag("progress", progress)
    n_bytes = sum(file.path.stat().st_size for file in files)
    while True:
        builder = make_builder(all(file.has_text_ids for file in files))
        try:
            with progress_bar(progress, "Reading", max(n_bytes // _MEGABYTE, 1)) as advance:
                for file, columns in zip(files, chosen, strict=True):
                    builder.start_file(file)
                    with file_errors(file.path):
                        for batch, bytes_read in file.batches(columns):
                            values = None if columns.value is None else batch.column(2)
                            times = None if columns.times is None else batch.column(3)
                            builder.add(batch.column(0), batch.column(1), values, times)
                            advance(bytes_read / _MEGABYTE, file.path.name)
            return builder
        except Restart:
            continue


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
