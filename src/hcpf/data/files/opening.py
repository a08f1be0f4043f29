"""Finding files and opening them by their extension; Parquet and Arrow files."""

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc, parquet

from hcpf.data.files.base import BATCH_ROWS, Columns, TableFile, file_errors, typed_columns
from hcpf.data.files.encodings import COMPRESSIONS
from hcpf.data.files.text import TAB_SUFFIXES, TextTable
from hcpf.data.read_options import ReadOptions
from hcpf.errors import InputError


class ParquetTable(TableFile):
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.columns = typed_columns(parquet.read_schema(path))

    def batches(self, columns: Columns) -> Iterator[tuple[Any, int]]:
        """Yield record batches of the columns, with the bytes of the file that each covers."""
        names = columns.names
        with parquet.ParquetFile(self.path) as file:
            bytes_per_row = self.path.stat().st_size / max(file.metadata.num_rows, 1)
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=names):
                yield batch.select(names), int(bytes_per_row * batch.num_rows)


class ArrowTable(TableFile):
    """An Arrow file (Feather) or stream."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with pa.memory_map(str(path)) as source:
            self.columns = typed_columns(_open_arrow(source).schema)

    def batches(self, columns: Columns) -> Iterator[tuple[Any, int]]:
        """Yield record batches of the columns, with the bytes of the file that each covers."""
        with pa.memory_map(str(self.path)) as source:
            file = _open_arrow(source)
            n_batches = getattr(file, "num_record_batches", None)
            batches = file if n_batches is None else map(file.get_batch, range(n_batches))
            for batch in batches:
                chosen = batch.select(columns.names)
                # Arrow does not check what it maps: a damaged file could crash the process.
                chosen.validate(full=True)
                yield chosen, self.path.stat().st_size // (n_batches or 1)


def _open_arrow(source: Any) -> Any:
    try:
        return ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return ipc.open_stream(source)


Paths = str | Path | Sequence[str | Path]

_TEXT = (".csv", *TAB_SUFFIXES, ".txt", ".dat")
_JSON_LINES = (".jsonl", ".ndjson")
_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".feather", ".ipc", ".arrows")
_SHEETS = (".xlsx", ".ods", ".xls", ".xlsm", ".xlsb")
_DATABASES = (".sqlite", ".sqlite3", ".db", ".duckdb", ".ddb")
_KNOWN = (*_TEXT, *_JSON_LINES, *_PARQUET, *_ARROW, *_SHEETS, *_DATABASES)


def open_file(path: Path, options: ReadOptions | None = None) -> TableFile:
    """Return the table in a file, detected from its extension and its first rows."""
    options = options or ReadOptions()
    suffix = _suffix(path)
    if options.sql is not None and suffix not in _DATABASES:
        known = ", ".join(_DATABASES)
        raise InputError(f"{path}: a query requires a database ({known}). Remove sql=...")
    if options.sheet is not None and suffix not in _SHEETS:
        raise InputError(f"{path}: this file has no sheets. Remove sheet=...")
    if options.layer is not None or options.use_raw:
        raise InputError(f"{path}: only .h5ad files have layers. Remove layer=... and use_raw=...")
    with file_errors(path):
        if not path.stat().st_size:
            raise InputError("the file is empty.")
        return _open(path, suffix, options)


def _open(path: Path, suffix: str, options: ReadOptions) -> TableFile:
    if suffix in _TEXT:
        return TextTable(path, options)
    if suffix in _JSON_LINES:
        from hcpf.data.files.json_lines import JsonLinesTable

        return JsonLinesTable(path, options)
    if suffix in _SHEETS:
        from hcpf.data.files.spreadsheet import SpreadsheetTable

        return SpreadsheetTable(path, options)
    if suffix in _DATABASES:
        from hcpf.data.files.database import DatabaseTable

        return DatabaseTable(path, options)
    return ParquetTable(path) if suffix in _PARQUET else ArrowTable(path)


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


def _suffix(path: Path) -> str:
    """Return the suffix of the format, or raise an InputError."""
    is_compressed = path.suffix.lower() in COMPRESSIONS
    suffix = (path.with_suffix("") if is_compressed else path).suffix.lower()
    if suffix not in _KNOWN:
        raise InputError(
            f"{path}: unknown file extension {suffix!r}. Known extensions: "
            f"{', '.join((*_KNOWN, '.h5ad'))}; "
            "text files may be compressed, for example .csv.gz."
        )
    if is_compressed and suffix not in (*_TEXT, *_JSON_LINES):
        raise InputError(f"{path}: only text files may be compressed. Decompress it first.")
    return suffix


def _files_in(folder: Path) -> list[Path]:
    """Return the tables in a folder and those below it, sorted, such as Spark writes them.

    Names that begin with _ or . mark what is not data.
    """
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.suffix.lower() in (*_KNOWN, *COMPRESSIONS)
        and not any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)
    ]
    if not files:
        raise InputError("this is a folder without tables. Pass files, or a folder of them.")
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
            return _files_in(path)
        matches = sorted(Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207
        files = [match for match in matches if match.is_file()]
        if not files:
            raise InputError("this is not a file." if matches else "there is no such file.")
        return files
