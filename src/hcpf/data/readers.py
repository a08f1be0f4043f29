"""Reading CSV, TSV, Parquet and Arrow files, batch by batch and only the columns asked for."""

import glob
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, ipc, parquet

from hcpf._checks import flag
from hcpf._progress import progress_bar
from hcpf.data.columns import IdColumn, ResponseColumn
from hcpf.data.frames import Column, choose_columns
from hcpf.data.triples import Triples
from hcpf.errors import InputError

Paths = str | Path | Sequence[str | Path]

_PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}
_TABBED = (".tsv", ".tab")
_TEXT = (".csv", *_TABBED, ".txt", ".dat")
_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".feather", ".ipc", ".arrows")
_DELIMITERS = ",\t;|"
_MEGABYTE = 1 << 20
_BLOCK = 16 * _MEGABYTE  # of a text file, read at once
_ROWS = 1 << 19  # of a Parquet file, read at once


@dataclass(frozen=True)
class Wanted:
    """The columns asked for, and how a text file is to be read."""

    user: Column
    item: Column
    response: Column | None
    delimiter: str | None
    header: bool


Batches = Iterator[tuple[Any, int]]
"""Batches with the columns asked for, in that order; and the bytes of the file they stand for."""


def read_triples(
    paths: Paths,
    *,
    user: Column,
    item: Column,
    response: Column | None,
    delimiter: str | None = None,
    header: bool = True,
    progress: bool | None = None,
) -> Triples:
    """Read files that all have the columns asked for."""
    _check_delimiter(delimiter)
    wanted = Wanted(user, item, response, delimiter, flag("header", header))
    if progress is not None:
        progress = flag("progress", progress)
    files = find_files(paths)
    readers = [reader_of(path) for path in files]
    # Only text leaves open whether "12" is a number.
    untyped = all(reader is _read_text for reader in readers)
    users, items = IdColumn(str(user), untyped), IdColumn(str(item), untyped)
    values = ResponseColumn(None if response is None else str(response))
    size = sum(path.stat().st_size for path in files)
    with progress_bar(progress, "Reading", max(size // _MEGABYTE, 1)) as advance:
        for path, reader in zip(files, readers, strict=True):
            with _errors_name(path):
                if not path.stat().st_size:
                    raise InputError("the file is empty.")
                for column in (users, items, values):
                    column.start_file()
                for batch, bytes_read in reader(path, wanted):
                    users.add(batch.column(0))
                    items.add(batch.column(1))
                    third = None if response is None else batch.column(2)
                    values.add(third, batch.num_rows)
                    advance(bytes_read / _MEGABYTE, f"{path.name}")
    with _errors_name(files[0] if len(files) == 1 else f"{files[0]}, …, {files[-1]}"):
        return Triples.gather(users, items, values)


@contextmanager
def _errors_name(path: Path | str) -> Generator[None]:
    """Put the file's name before every message, those of Arrow and of the system included."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {_first_line(error)}") from None


def _check_delimiter(delimiter: Any) -> None:
    if delimiter is None:
        return
    one = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()
    if not one or delimiter in '\0\r\n"':
        raise InputError(f"delimiter must be one ASCII character, got {delimiter!r}.")


def find_files(paths: Paths) -> list[Path]:
    """The files that paths and globs stand for, in order."""
    if isinstance(paths, str | Path):
        paths = [paths]
    try:
        given: list[Any] = list(paths)
    except TypeError:
        given = [paths]
    files = [path for one in given for path in _files_of(one)]
    if not files:
        raise InputError("No file was given.")
    return files


def _files_of(one: Any) -> list[Path]:
    """The files that one path or glob stands for, by name."""
    if not isinstance(one, str | Path):
        raise InputError(f"A path or a list of paths is needed, got {type(one).__name__}.")
    path = Path(one)
    with _errors_name(path):  # a name may be too long, or its folder closed
        if path.is_file():
            return [path]
        if path.is_dir():
            raise InputError('this is a folder: name its files, for example as "*.parquet".')
        found = sorted(Path(name) for name in glob.glob(str(one), recursive=True))  # noqa: PTH207
        files = [name for name in found if name.is_file()]
        if not files:
            raise InputError("this is no file." if found else "there is no such file.")
        return files


def reader_of(path: Path) -> Callable[[Path, Wanted], Batches]:
    """The reader for a file's format, known by its ending."""
    suffix, packing = _ending(path)
    if suffix in _TEXT:
        return _read_text
    if suffix not in _PARQUET + _ARROW:
        known = ", ".join(_TEXT + _PARQUET + _ARROW)
        raise InputError(f"{path}: the ending is none of {known} (text also packed: .csv.gz, …).")
    if packing is not None:
        raise InputError(f"{path}: only text files may be packed. Unpack it first.")
    return _read_parquet if suffix in _PARQUET else _read_arrow


def _ending(path: Path) -> tuple[str, str | None]:
    """The ending that tells the format, and how the file is packed."""
    packing = _PACKED.get(path.suffix.lower())
    if packing is not None:
        path = path.with_suffix("")
    return path.suffix.lower(), packing


def _read_text(path: Path, wanted: Wanted) -> Batches:
    """CSV and TSV. Ids are read as text, so that "007" stays what it is."""
    # Without newlines_in_values a block could end within a quoted id.
    parsing = csv.ParseOptions(
        delimiter=wanted.delimiter or _guess_delimiter(path), newlines_in_values=True
    )
    with _opened(path) as file:
        names = _text_columns(path, parsing, wanted.header)
        chosen = choose_columns(names, wanted.user, wanted.item, wanted.response)
        kinds = {chosen[0]: pa.string(), chosen[1]: pa.string()}
        if chosen[2] is not None:
            kinds[chosen[2]] = pa.float64()
        reader = csv.open_csv(
            file,
            read_options=csv.ReadOptions(
                block_size=_BLOCK,
                use_threads=True,
                column_names=None if wanted.header else names,
            ),
            parse_options=parsing,
            convert_options=csv.ConvertOptions(
                column_types=kinds,
                include_columns=[name for name in chosen if name is not None],
                null_values=["", "NA", "NaN", "nan", "null", "NULL", "None"],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        size, rows, total = path.stat().st_size, 0, 0
        for batch in reader:
            # A packed file does not say how far it is: share out by the batches.
            rows, step = rows + batch.num_rows, min(batch.nbytes, max(size - total, 0))
            total += step
            yield batch, step


def _opened(path: Path) -> Any:
    return pa.input_stream(str(path), compression=_ending(path)[1], buffer_size=_MEGABYTE)


def _text_columns(path: Path, parsing: Any, header: bool) -> list[str]:
    """Names of the columns: from the first line, or f0, f1, ... where it is no header."""
    with _opened(path) as file:
        names = csv.ReadOptions(block_size=_MEGABYTE, autogenerate_column_names=not header)
        return list(csv.open_csv(file, read_options=names, parse_options=parsing).schema.names)


def _guess_delimiter(path: Path) -> str:
    """The delimiter that the first line has most of, quoted names aside."""
    if _ending(path)[0] in _TABBED:
        return "\t"
    with _opened(path) as file:
        start = file.read(1 << 16).decode("utf-8", "replace")
    unquoted = re.sub('"[^"]*"', "", start)
    line = next((line for line in unquoted.splitlines() if line), "")
    return max(_DELIMITERS, key=line.count)


def _read_parquet(path: Path, wanted: Wanted) -> Batches:
    with parquet.ParquetFile(path) as file:
        chosen = choose_columns(
            list(file.schema_arrow.names), wanted.user, wanted.item, wanted.response
        )
        columns = [name for name in chosen if name is not None]
        share = path.stat().st_size / max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(batch_size=_ROWS, columns=columns):
            yield batch.select(columns), int(share * batch.num_rows)


def _read_arrow(path: Path, wanted: Wanted) -> Batches:
    """Arrow files (Feather) and streams."""
    size = path.stat().st_size
    with pa.memory_map(str(path)) as source:
        try:
            file: Any = ipc.open_file(source)
            batches = (file.get_batch(j) for j in range(file.num_record_batches))
            number = max(file.num_record_batches, 1)
        except pa.ArrowInvalid:
            source.seek(0)
            file = ipc.open_stream(source)
            batches, number = iter(file), 1
        chosen = choose_columns(list(file.schema.names), wanted.user, wanted.item, wanted.response)
        columns = [name for name in chosen if name is not None]
        for batch in batches:
            chosen_columns = batch.select(columns)
            # Arrow uses what the file says without a look: a damaged one could end the process.
            chosen_columns.validate(full=True)
            yield chosen_columns, size // number


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    line = lines[0] if lines else type(error).__name__
    no_number = re.search(r"conversion error to double: invalid value '(.*)'", line)
    if no_number is None:
        return line
    return f"the response {no_number[1]!r} is not a number. Drop or correct such rows."
