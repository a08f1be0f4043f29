"""The options of reading a table: one declaration for Python and the command line."""

import codecs
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from hcpf._checks import flag
from hcpf.data.canonical import Duplicates
from hcpf.errors import InputError

DuplicatesChoice = Literal["auto"] | Duplicates
Returns = Literal["auto", "net", "drop", "keep", "error"]
ExcludeItems = str | Path | int | Sequence[str | Path | int]


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How a table becomes entries; `Interactions.read` describes each option."""

    duplicates: DuplicatesChoice = "auto"
    returns: Returns = "auto"
    drop_blank_ids: bool = False
    drop_blank_values: bool = False
    exclude_items: ExcludeItems = ()
    decimal: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    sheet: str | None = None
    sql: str | None = None
    layer: str | None = None
    use_raw: bool = False

    def __post_init__(self) -> None:
        _check_choice("duplicates", self.duplicates, (*get_args(Duplicates), "auto"))
        _check_choice("returns", self.returns, get_args(Returns))
        flag("drop_blank_ids", self.drop_blank_ids)
        flag("drop_blank_values", self.drop_blank_values)
        flag("use_raw", self.use_raw)
        if self.header is not None:
            flag("header", self.header)
        if self.decimal not in (None, ".", ","):
            raise InputError(f"decimal must be '.' or ',', got {self.decimal!r}.")
        check_delimiter(self.delimiter)
        _check_encoding(self.encoding)
        for name in ("sheet", "sql", "layer"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InputError(f"{name} must be text, got {type(value).__name__}.")
        if self.returns == "net" and self.duplicates not in ("auto", "sum"):
            raise InputError(
                f"returns='net' adds up the rows of a pair, which duplicates={self.duplicates!r} "
                "contradicts. Remove one of them."
            )


def check_delimiter(delimiter: Any) -> None:
    """Raise an InputError unless ``delimiter`` is None or one usable character."""
    if delimiter is None:
        return
    single = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()
    if not single or delimiter in '\0\r\n"':
        raise InputError(f"delimiter must be one ASCII character, got {delimiter!r}.")


def _check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in choices:
        known = ", ".join(map(repr, choices))
        raise InputError(f"{name} must be one of {known}, got {value!r}.")


def _check_encoding(encoding: Any) -> None:
    if encoding is None:
        return
    try:
        "".encode(encoding)  # codecs.lookup would accept base64, which is not text
        codecs.lookup(encoding)
    except (LookupError, TypeError, ValueError):
        raise InputError(
            f"encoding={encoding!r} is unknown. Pass for example encoding='cp1252' (Windows), "
            "'latin-1', 'utf-8' or 'utf-16'."
        ) from None


# -- columns by name or by position ----------------------------------------------------------------

Column = str | int
"""A column by name or by position, counted from 0."""


def choose_columns(
    names: list[str], user: Column, item: Column, value: Column | None
) -> tuple[str, str, str | None]:
    """Return the names of the given columns, or raise an InputError that lists all columns."""
    roles = {"user": user, "item": item} | ({} if value is None else {"value": value})
    given = [names[_position(names, role, column)] for role, column in roles.items()]
    if len(set(given)) < len(given):
        raise InputError(f"user, item and value must be different columns; got {given}.")
    return given[0], given[1], None if value is None else given[2]


def split_product(names: list[str], value: Column | None) -> tuple[Column | None, str | None]:
    """Return the two columns of a value such as "Quantity*UnitPrice"; None for the second if one.

    >>> split_product(["Quantity", "UnitPrice"], "Quantity * UnitPrice")
    ('Quantity', 'UnitPrice')
    >>> split_product(["Quantity", "UnitPrice"], "UnitPrice")
    ('UnitPrice', None)
    """
    if not isinstance(value, str) or value in names or value.count("*") != 1:
        return value, None
    first, second = (name.strip() for name in value.split("*"))
    return first, second


def _position(names: list[str], role: str, column: Any) -> int:
    """Return the position of a column whose name is unique."""
    if isinstance(column, str):
        if column not in names:
            raise InputError(f"{role}={column!r}: there is no such column. Columns: {names}.")
        position = names.index(column)
    else:
        position = _integer(role, column)
        if not 0 <= position < len(names):
            raise InputError(
                f"{role}={position}: positions are 0 to {len(names) - 1}. Columns: {names}."
            )
    if names.count(names[position]) > 1:  # readers ask for columns by name
        raise InputError(
            f"{role}={column!r}: the column {names[position]!r} occurs more than once. "
            f"Columns: {names}."
        )
    return position


def _integer(role: str, column: Any) -> int:
    if not isinstance(column, bool):
        try:
            return operator.index(column)
        except TypeError:
            pass
    raise InputError(f"{role} must be the name or the position of a column, got {column!r}.")
