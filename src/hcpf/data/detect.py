"""Detection of a file's layout: format, compression, delimiter, header and columns."""

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyarrow import csv, ipc, parquet

from hcpf.errors import InputError

FileFormat = Literal["text", "parquet", "arrow"]
ColumnKind = Literal["text", "integer", "real", "time", "other"]

TEXT_TYPES: tuple[Any, ...] = (pa.string(), pa.large_string(), pa.string_view())

_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}
_TAB_SUFFIXES = (".tsv", ".tab")
_FORMATS: dict[str, FileFormat] = {
    **dict.fromkeys((".csv", *_TAB_SUFFIXES, ".txt", ".dat"), "text"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc", ".arrows"), "arrow"),
}
_DELIMITERS = ",\t;|"
_BUFFER_BYTES = 1 << 20
_FIRST_LINE_BYTES = 1 << 16
_MAX_KIND_ROWS = 1000
_DECIMAL = re.compile(r"[-+]?\W?\d[\d,]*\.\d+\W?")
"""A number with decimals and perhaps a currency sign; integers may be ids."""


@dataclass(frozen=True)
class FileColumn:
    """The name of a column and the kind of its values."""

    name: str
    kind: ColumnKind


@dataclass(frozen=True)
class Layout:
    """The columns of a file; the delimiter and the header of a text file."""

    columns: Sequence[FileColumn]
    header: bool = True
    delimiter: str | None = None

    @property
    def names(self) -> list[str]:
        """The names of the columns; f0, f1, ... in a text file without a header."""
        return [column.name for column in self.columns]


def detect_layout(path: Path, delimiter: str | None = None, header: bool | None = None) -> Layout:
    """Return the layout of a file, detected from its extension and its first rows.

    Parameters
    ----------
    path : Path
        A text, Parquet or Arrow file.
    delimiter : str, optional
        Delimiter of a text file; by default the most frequent candidate in its first line.
    header : bool, optional
        Whether the first line of a text file names the columns; by default it does unless it
        contains a number.
    """
    check_delimiter(delimiter)
    file_format = format_of(path)
    with file_errors(path):
        if not path.stat().st_size:
            raise InputError("the file is empty.")
        if file_format == "parquet":
            return Layout(_typed_columns(parquet.read_schema(path)))
        if file_format == "arrow":
            with pa.memory_map(str(path)) as source:
                return Layout(_typed_columns(open_arrow(source).schema))
        if delimiter is None:
            delimiter = _delimiter_of(path)
        if header is None:
            names = _first_rows(path, delimiter, True).schema.names
            header = not any(_is_number(name) for name in names)
        rows = _first_rows(path, delimiter, header)
        # By position: two columns may have the same name.
        columns = zip(_typed_columns(rows.schema), rows.columns, strict=True)
        return Layout([_real_if_mostly(*column) for column in columns], header, delimiter)


def format_of(path: Path) -> FileFormat:
    """Return the format of a file by its extension, or raise an InputError."""
    suffix, compression = _suffixes(path)
    if suffix not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise InputError(
            f"{path}: unknown file extension {suffix!r}. Known extensions: {known}; text files may "
            "be compressed, for example .csv.gz."
        )
    if compression is not None and _FORMATS[suffix] != "text":
        raise InputError(f"{path}: only text files may be compressed. Decompress it first.")
    return _FORMATS[suffix]


def check_delimiter(delimiter: Any) -> None:
    """Raise an InputError unless ``delimiter`` is None or one usable character."""
    if delimiter is None:
        return
    single = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()
    if not single or delimiter in '\0\r\n"':
        raise InputError(f"delimiter must be one ASCII character, got {delimiter!r}.")


def open_text(path: Path) -> Any:
    """Open a text file as a stream of uncompressed bytes."""
    return pa.input_stream(str(path), compression=_suffixes(path)[1], buffer_size=_BUFFER_BYTES)


def open_arrow(source: Any) -> Any:
    """Open an Arrow file (Feather) or stream, whichever it is."""
    try:
        return ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return ipc.open_stream(source)


@contextmanager
def file_errors(path: Path | str) -> Generator[None]:
    """Name the file in every error of the block, those of Arrow and of the system included."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    line = lines[0] if lines else type(error).__name__
    no_number = re.search(r"conversion error to double: invalid value '(.*)'", line)
    if no_number is None:
        return line
    return f"the value {no_number[1]!r} is not a number. Drop or correct such rows."


def _suffixes(path: Path) -> tuple[str, str | None]:
    """Return the suffix of the format, and the compression."""
    compression = _COMPRESSIONS.get(path.suffix.lower())
    if compression is not None:
        path = path.with_suffix("")
    return path.suffix.lower(), compression


def guess_delimiter(text: str) -> str:
    """Return the most frequent candidate in the first line, outside quotes."""
    unquoted = re.sub('"[^"]*"', "", text)
    line = next((line for line in unquoted.splitlines() if line), "")
    return max(_DELIMITERS, key=line.count)


def _delimiter_of(path: Path) -> str:
    if _suffixes(path)[0] in _TAB_SUFFIXES:
        return "\t"
    with open_text(path) as file:
        return guess_delimiter(file.read(_FIRST_LINE_BYTES).decode("utf-8", "replace"))


def _first_rows(path: Path, delimiter: str, header: bool) -> Any:
    with open_text(path) as file:
        reader = csv.open_csv(
            file,
            read_options=csv.ReadOptions(autogenerate_column_names=not header),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        )
        return next(iter(reader), pa.RecordBatch.from_pylist([], reader.schema))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.lower() not in ("nan", "inf", "infinity")  # words that float() accepts


def _real_if_mostly(column: FileColumn, values: Any) -> FileColumn:
    """Return a text column as real if most values are; reading then rejects the others."""
    if column.kind != "text":
        return column
    filled = [value for value in values[:_MAX_KIND_ROWS].to_pylist() if value]
    n_decimals = sum(bool(_DECIMAL.fullmatch(value.strip())) for value in filled)
    return FileColumn(column.name, "real") if 2 * n_decimals > len(filled) else column


def _typed_columns(schema: Any) -> list[FileColumn]:
    return [FileColumn(field.name, _kind(field.type)) for field in schema]


def _kind(arrow_type: Any) -> ColumnKind:
    types = pa.types
    if types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    if arrow_type in TEXT_TYPES:
        return "text"
    if types.is_integer(arrow_type):
        return "integer"
    if types.is_floating(arrow_type) or types.is_decimal(arrow_type):
        return "real"
    return "time" if types.is_temporal(arrow_type) else "other"
