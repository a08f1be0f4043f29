"""A look at the start of a file: its columns, their kinds, and whether it has a header."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hcpf.cli.columns import Column, Kind
from hcpf.errors import InputError

_LOOKED_AT = 1000  # rows
_DECIMAL = re.compile(r"[-+]?\W?\d[\d,]*\.\d+\W?")
"""A number with decimals, and perhaps the sign of a currency; whole numbers may be ids."""


@dataclass(frozen=True)
class Layout:
    """The columns of a file, and whether its first line names them."""

    columns: Sequence[Column]
    header: bool


def peek(path: Path, delimiter: str | None, header: bool | None) -> Layout:
    """Look at the columns of a file; the rules are those of reading it."""
    import pyarrow as pa
    from pyarrow import ipc, parquet

    from hcpf.data import readers

    if delimiter is not None and not (len(delimiter) == 1 and delimiter.isascii()):
        raise InputError(f"--delimiter must be one ASCII character, got {delimiter!r}.")
    ending = path.with_suffix("").suffix.lower() + path.suffix.lower()
    readers.reader_of(path)  # refuses endings that cannot be read
    try:
        if ending.endswith((".parquet", ".pq")):
            return Layout(_columns(parquet.read_schema(path)), True)
        if ending.endswith((".arrow", ".feather", ".ipc", ".arrows")):
            with pa.memory_map(str(path)) as source:
                try:
                    schema = ipc.open_file(source).schema
                except pa.ArrowInvalid:
                    source.seek(0)
                    schema = ipc.open_stream(source).schema
            return Layout(_columns(schema), True)
        if header is None:
            header = not _is_data(_text_start(path, delimiter, True).schema.names)
        start = _text_start(path, delimiter, header)
        # By place: two columns may have the same name, which reading refuses in better words.
        columns = zip(_columns(start.schema), start.columns, strict=True)
        return Layout([_numbers_if_mostly(*column) for column in columns], header)
    except (pa.ArrowException, OSError, ValueError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise InputError(f"{path} cannot be read: {lines[0]}") from None


def _text_start(path: Path, delimiter: str | None, header: bool) -> Any:
    """The first rows of a text file."""
    import pyarrow as pa
    from pyarrow import csv

    from hcpf.data import readers

    if delimiter is None:
        delimiter = readers._guess_delimiter(path)  # pyright: ignore[reportPrivateUsage]
    with readers._opened(path) as file:  # pyright: ignore[reportPrivateUsage]
        reader = csv.open_csv(
            file,
            read_options=csv.ReadOptions(autogenerate_column_names=not header),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        )
        empty = pa.RecordBatch.from_pylist([], reader.schema)
        return next(iter(reader), empty)


def _numbers_if_mostly(column: Column, values: Any) -> Column:
    """A column of numbers among which a few are none: to be refused when read, not overlooked."""
    if column.kind != "text":
        return column
    some = [value for value in values[:_LOOKED_AT].to_pylist() if value]
    numbers = sum(bool(_DECIMAL.fullmatch(value.strip())) for value in some)
    return Column(column.name, "real") if 2 * numbers > len(some) else column


def _is_data(names: Sequence[str]) -> bool:
    """Whether a first line holds numbers, which no column is called by."""
    return any(_is_number(name) for name in names)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.lower() not in ("nan", "inf", "infinity")  # float() knows these words


def _columns(schema: Any) -> list[Column]:
    return [Column(field.name, _kind(field.type)) for field in schema]


def _kind(kind: Any) -> Kind:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_integer(kind):
        return "whole"
    if types.is_floating(kind) or types.is_decimal(kind):
        return "real"
    return "time" if types.is_temporal(kind) else "other"
