"""Columns by name or by position."""

import operator
from typing import Any

from hcpf.errors import InputError

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
