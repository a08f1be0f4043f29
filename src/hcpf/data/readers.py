"""Reading CSV, TSV, Parquet and Arrow files, batch by batch and only the columns asked for."""

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from hcpf._checks import flag
from hcpf._progress import progress_bar
from hcpf.data.columns import TripleBuilder, Triples
from hcpf.data.detect import (
    Layout,
    check_delimiter,
    detect_layout,
    file_errors,
    format_of,
    open_arrow,
    open_text,
)
from hcpf.data.frames import Column, choose_columns
from hcpf.errors import InputError

Paths = str | Path | Sequence[str | Path]

_MEGABYTE = 1 << 20
_BLOCK_BYTES = 16 * _MEGABYTE  # of a text file, read at once
_BATCH_ROWS = 1 << 19  # of a Parquet file, read at once


def read_triples(
    paths: Paths,
    *,
    user: Column,
    item: Column,
    value: Column | None,
    delimiter: str | None = None,
    header: bool = True,
    progress: bool | None = None,
) -> Triples:
    """Read files that all have the columns asked for."""
    check_delimiter(delimiter)
    header = flag("header", header)
    if progress is not None:
        progress = flag("progress", progress)
    files = find_files(paths)
    text_only = {format_of(path) for path in files} == {"text"}
    builder = TripleBuilder(str(user), str(item), str(value), text_ids=text_only)
    n_bytes = sum(path.stat().st_size for path in files)
    with progress_bar(progress, "Reading", max(n_bytes // _MEGABYTE, 1)) as advance:
        for path in files:
            builder.start_file()
            layout = detect_layout(path, delimiter, header)
            with file_errors(path):
                chosen = choose_columns(layout.names, user, item, value)
                for batch, bytes_read in _batches(path, layout, chosen):
                    values = None if value is None else batch.column(2)
                    builder.add(batch.column(0), batch.column(1), values)
                    advance(bytes_read / _MEGABYTE, path.name)
    with file_errors(files[0] if len(files) == 1 else f"{files[0]}, …, {files[-1]}"):
        return builder.finish()


def read_pairs(
    path: Path, first: Column, second: Column, *, delimiter: str | None = None, header: bool = True
) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield two columns of a file batch by batch, in the order of its rows."""
    layout = detect_layout(path, delimiter, header)
    with file_errors(path):
        chosen = choose_columns(layout.names, first, second, None)
        for batch, _ in _batches(path, layout, chosen):
            yield batch.column(0).to_pylist(), batch.column(1).to_pylist()


def find_files(paths: Paths) -> list[Path]:
    """Return the files of paths and globs, in order."""
    if isinstance(paths, str | Path):
        paths = [paths]
    try:
        given: list[Any] = list(paths)
    except TypeError:
        given = [paths]
    files = [file for path in given for file in _matching_files(path)]
    if not files:
        raise InputError("There are no files. Pass at least one path.")
    return files


def _matching_files(pattern: Any) -> list[Path]:
    """Return the file of a path, or those of a glob sorted by name."""
    if not isinstance(pattern, str | Path):
        raise InputError(f"path must be a path or a list of paths, got {type(pattern).__name__}.")
    path = Path(pattern)
    with file_errors(path):  # a name may be too long, or its folder inaccessible
        if path.is_file():
            return [path]
        if path.is_dir():
            raise InputError('this is a folder. Pass its files, for example "folder/*.parquet".')
        matches = sorted(Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207
        files = [match for match in matches if match.is_file()]
        if not files:
            raise InputError("this is not a file." if matches else "there is no such file.")
        return files


def _batches(path: Path, layout: Layout, chosen: Sequence[str | None]) -> Iterator[tuple[Any, int]]:
    """Yield batches of the chosen columns, with the bytes of the file that each covers."""
    readers = {"text": _read_text, "parquet": _read_parquet, "arrow": _read_arrow}
    names = [name for name in chosen if name is not None]
    return readers[format_of(path)](path, layout, names)


def _read_text(path: Path, layout: Layout, names: list[str]) -> Iterator[tuple[Any, int]]:
    # Ids are read as text, or "007" would become 7; the third column holds the values.
    types = dict(zip(names, (pa.string(), pa.string(), pa.float64()), strict=False))
    with open_text(path) as file:
        reader = csv.open_csv(
            file,
            read_options=csv.ReadOptions(
                block_size=_BLOCK_BYTES, column_names=None if layout.header else layout.names
            ),
            # Without newlines_in_values a block could end within a quoted id.
            parse_options=csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=names,
                null_values=["", "NA", "NaN", "nan", "null", "NULL", "None"],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        # The position in a compressed file is unknown; approximate it by the size of the batches.
        bytes_left = path.stat().st_size
        for batch in reader:
            bytes_read = min(batch.nbytes, bytes_left)
            bytes_left -= bytes_read
            yield batch, bytes_read


def _read_parquet(path: Path, layout: Layout, names: list[str]) -> Iterator[tuple[Any, int]]:
    with parquet.ParquetFile(path) as file:
        bytes_per_row = path.stat().st_size / max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=names):
            yield batch.select(names), int(bytes_per_row * batch.num_rows)


def _read_arrow(path: Path, layout: Layout, names: list[str]) -> Iterator[tuple[Any, int]]:
    with pa.memory_map(str(path)) as source:
        file = open_arrow(source)
        n_batches = getattr(file, "num_record_batches", None)
        batches = file if n_batches is None else map(file.get_batch, range(n_batches))
        for batch in batches:
            chosen = batch.select(names)
            # Arrow does not check what it maps: a damaged file could crash the process.
            chosen.validate(full=True)
            yield chosen, path.stat().st_size // (n_batches or 1)
