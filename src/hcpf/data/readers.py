"""Reading CSV, TSV, Parquet and Arrow files, batch by batch and only the columns asked for."""

import glob
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, ipc, parquet

from hcpf._progress import progress_bar
from hcpf.data.columns import IdColumn, ResponseColumn
from hcpf.data.frames import Column, choose_columns
from hcpf.data.triples import Triples
from hcpf.errors import InputError

Paths = str | Path | Sequence[str | Path]

_PACKED = {".gz", ".bz2", ".zst", ".lz4", ".br"}
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
    wanted = Wanted(user, item, response, delimiter, header)
    files = find_files(paths)
    users = IdColumn(str(user), as_numbers=True)
    items = IdColumn(str(item), as_numbers=True)
    values = ResponseColumn(None if response is None else str(response))
    size = sum(path.stat().st_size for path in files)
    with progress_bar(progress, "Reading", max(size // _MEGABYTE, 1)) as advance:
        for path in files:
            try:
                for batch, bytes_read in reader_of(path)(path, wanted):
                    users.add(batch.column(0))
                    items.add(batch.column(1))
                    third = None if response is None else batch.column(2)
                    values.add(third, batch.num_rows)
                    advance(bytes_read / _MEGABYTE, f"{path.name}")
            except InputError as error:
                raise InputError(f"{path}: {error}") from None
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                raise InputError(f"{path} cannot be read: {_first_line(error)}") from None
    return Triples.gather(users, items, values)


def find_files(paths: Paths) -> list[Path]:
    """The files that paths and globs stand for, in order."""
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    files: list[Path] = []
    for one in given:
        if not isinstance(one, str | Path):
            raise InputError(f"A path or a list of paths is needed, got {type(one).__name__}.")
        path = Path(one)
        if path.is_file():
            files.append(path)
        elif path.is_dir():
            raise InputError(f'{path} is a folder: name its files, for example "{path}/*.parquet".')
        else:
            found = sorted(Path(name) for name in glob.glob(str(one), recursive=True))  # noqa: PTH207
            files += [name for name in found if name.is_file()]
            if not found:
                raise InputError(f"{one}: there is no such file.")
    if not files:
        raise InputError("No file was given.")
    return files


def reader_of(path: Path) -> Callable[[Path, Wanted], Batches]:
    """The reader for a file's format, known by its ending."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffixes = [suffix for suffix in suffixes if suffix not in _PACKED]
    suffix = suffixes[-1] if suffixes else ""
    readers = {
        ".csv": _read_text, ".tsv": _read_text, ".tab": _read_text, ".txt": _read_text,
        ".dat": _read_text,
        ".parquet": _read_parquet, ".pq": _read_parquet,
        ".arrow": _read_arrow, ".feather": _read_arrow, ".ipc": _read_arrow,
        ".arrows": _read_arrow,
    }  # fmt: skip
    if suffix not in readers:
        raise InputError(f"{path}: the ending is none of {', '.join(readers)} (or packed: .gz, …).")
    return readers[suffix]


def _read_text(path: Path, wanted: Wanted) -> Batches:
    """CSV and TSV. Ids are read as text, so that "007" stays what it is."""
    delimiter = wanted.delimiter or _guess_delimiter(path)
    if len(delimiter) != 1:
        raise InputError(f"delimiter must be one character, got {delimiter!r}.")
    parsing = csv.ParseOptions(delimiter=delimiter)
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
    return pa.input_stream(str(path), compression="detect", buffer_size=_MEGABYTE)


def _text_columns(path: Path, parsing: Any, header: bool) -> list[str]:
    """Names of the columns: from the first line, or f0, f1, ... where it is no header."""
    with _opened(path) as file:
        names = csv.ReadOptions(block_size=_MEGABYTE, autogenerate_column_names=not header)
        return list(csv.open_csv(file, read_options=names, parse_options=parsing).schema.names)


def _guess_delimiter(path: Path) -> str:
    """The delimiter that the first line has most of: comma, tab, semicolon or bar."""
    with _opened(path) as file:
        line = file.read(1 << 16).split(b"\n", 1)[0].decode("utf-8", "replace")
    if path.suffix.lower() in (".tsv", ".tab") or "\t" in line:
        return "\t"
    return max(",;|", key=line.count)


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
    with pa.memory_map(str(path)) if size else _opened(path) as source:
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
            yield batch.select(columns), size // number


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
