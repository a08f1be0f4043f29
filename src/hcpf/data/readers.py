"""From files to entries: open, parse, check, drop, settle returns, merge pairs.

Each step is a function of its own that says what it did in a sentence; the sentences are printed
by the command line and logged by `Interactions.read`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hcpf._checks import flag
from hcpf._progress import progress_bar
from hcpf.data.canonical import CsrArray, Duplicates, IdArray
from hcpf.data.choose import Column, choose_columns
from hcpf.data.columns import TripleBuilder, Triples, count
from hcpf.data.files import FileColumn, Restart, TableFile, file_errors, find_files, open_file
from hcpf.data.files.base import Columns
from hcpf.data.files.opening import Paths
from hcpf.data.guess import event_column, has_amounts
from hcpf.data.read_options import ReadOptions
from hcpf.data.returns import settle_returns
from hcpf.errors import InputError

_MEGABYTE = 1 << 20


@dataclass(frozen=True, eq=False)
class Entries:
    """What reading gives: a canonical matrix with its ids, and what was done on the way."""

    matrix: CsrArray
    users: IdArray
    items: IdArray
    remarks: Sequence[str]
    n_repeated: int
    """Rows that repeat a pair although that is an error, and were summed nevertheless."""
    duplicates: Duplicates
    """How the rows of a repeated pair are merged."""


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
    merge_all: bool = False,
    progress: bool | None = None,
) -> Entries:
    """Read files that all have the columns asked for.

    Parameters
    ----------
    files : sequence of TableFile
        At least one.
    user, item, value : str or int
        Columns by name, or by position from 0.
    options : ReadOptions
        How to read and clean the rows.
    merge_all : bool
        Whether repeated pairs are summed where they would be an error.
    progress : bool, optional
        Whether to show a progress bar; by default only in a terminal.
    """
    if progress is not None:
        progress = flag("progress", progress)
    chosen: list[Columns] = []
    for file in files:
        with file_errors(file.path):
            chosen.append(Columns(*choose_columns(file.names, user, item, value)))
    builder = _read_all(files, chosen, options, progress)
    where = files[0].label if len(files) == 1 else f"{files[0].label}, …, {files[-1].label}"
    columns = [column for file in files for column in file.columns]
    with file_errors(where):
        triples = builder.finish()
        remarks = [remark for file in files for remark in file.remarks] + builder.remarks
        return merge_triples(triples, chosen[0].value, columns, options, remarks, merge_all)


def merge_triples(
    triples: Triples,
    value: str | None,
    columns: Sequence[FileColumn],
    options: ReadOptions,
    remarks: Sequence[str] = (),
    merge_all: bool = False,
) -> Entries:
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
    settled, about_returns = settle_returns(
        triples, str(value), options.returns,
        has_amounts=triples.has_currency or (value is not None and has_amounts(value)),
    )  # fmt: skip
    if not len(settled.values):
        raise InputError(f"There are no rows: {' '.join([*remarks, *about_returns])}")
    event = event_column(columns, value)
    duplicates = _resolve_duplicates(options, event)
    is_refused = duplicates == "error"
    matrix = settled.to_matrix("sum" if is_refused and merge_all else duplicates)
    n_repeated = len(settled.values) - int(matrix.nnz)
    about_pairs: list[str] = []
    if n_repeated and options.duplicates == "auto" and not is_refused:
        reason = f", because {event} makes each row an event" if event else ""
        about_pairs.append(
            f"Summed the rows of repeated pairs ({len(settled.values):,} rows, "
            f"{count(int(matrix.nnz), 'pair')}){reason} (otherwise pass duplicates=...)."
        )
    return Entries(
        matrix, settled.users, settled.items, [*remarks, *about_returns, *about_pairs],
        n_repeated if is_refused else 0, duplicates,
    )  # fmt: skip


def _resolve_duplicates(options: ReadOptions, event: str | None) -> Duplicates:
    if options.duplicates != "auto":
        return options.duplicates
    return "sum" if event is not None or options.returns == "net" else "error"


def _read_all(
    files: Sequence[TableFile],
    chosen: Sequence[Columns],
    options: ReadOptions,
    progress: bool | None,
) -> TripleBuilder:
    """Read all rows; from the start again when a file turns out to need another way to read it."""
    while True:
        try:
            return _read_once(files, chosen, options, progress)
        except Restart:
            continue


def _read_once(
    files: Sequence[TableFile],
    chosen: Sequence[Columns],
    options: ReadOptions,
    progress: bool | None,
) -> TripleBuilder:
    text_ids = all(file.has_text_ids for file in files)
    first = chosen[0]
    builder = TripleBuilder(
        first.user, first.item, str(first.value), text_ids=text_ids, options=options
    )
    n_bytes = sum(file.path.stat().st_size for file in files)
    with progress_bar(progress, "Reading", max(n_bytes // _MEGABYTE, 1)) as advance:
        for file, columns in zip(files, chosen, strict=True):
            builder.start_file(file)
            with file_errors(file.path):
                for batch, bytes_read in file.batches(columns):
                    values = None if columns.value is None else batch.column(2)
                    builder.add(batch.column(0), batch.column(1), values)
                    advance(bytes_read / _MEGABYTE, file.path.name)
    return builder
