"""Reading data frames of any kind, and arrays of ids."""

import uuid
from collections.abc import Iterable
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from hcpf.data.columns import ArrowArray, IdColumn, ResponseColumn
from hcpf.data.triples import Triples
from hcpf.errors import InputError

Column = str | int
"""A column by name or, counted from 0, by place."""


def triples_from_frame(frame: Any, user: Column, item: Column, response: Column | None) -> Triples:
    """Read three columns of a pandas, polars, Arrow or other data frame."""
    try:
        native = nw.from_native(frame)
    except TypeError:
        raise InputError(
            f"A data frame (pandas, polars, Arrow, ...) is needed, got {type(frame).__name__}. "
            "For a matrix use from_matrix, for arrays of ids from_arrays."
        ) from None
    names = list(native.collect_schema().names())
    wanted = choose_columns(names, user, item, response)
    table = native.select([name for name in wanted if name is not None])
    eager = table.collect() if isinstance(table, nw.LazyFrame) else table
    users, items = IdColumn(wanted[0]), IdColumn(wanted[1])
    values = ResponseColumn(wanted[2])
    for column, sink in ((users, wanted[0]), (items, wanted[1])):
        for chunk in _arrow_chunks(eager[sink], sink):
            column.add(chunk)
    if wanted[2] is None:
        values.add(None, len(eager))
    else:
        for chunk in _arrow_chunks(eager[wanted[2]], wanted[2]):
            values.add(chunk, len(chunk))
    return Triples.gather(users, items, values)


def triples_from_arrays(users: Any, items: Any, values: Any | None) -> Triples:
    """Read parallel arrays of user ids, item ids and responses."""
    ids = [_arrow(name, column) for name, column in (("users", users), ("items", items))]
    lengths = {"users": len(ids[0]), "items": len(ids[1])}
    responses = None
    if values is not None:
        responses = _arrow("values", values)
        lengths["values"] = len(responses)
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{count} {name}" for name, count in lengths.items())
        raise InputError(f"users, items and values must have the same length; got {found}.")
    columns, response = [IdColumn("users"), IdColumn("items")], ResponseColumn("values")
    for column, part in zip(columns, ids, strict=True):
        column.add(part)
    response.add(responses, len(ids[0]))
    return Triples.gather(columns[0], columns[1], response)


def choose_columns(
    names: list[str], user: Column, item: Column, response: Column | None
) -> tuple[str, str, str | None]:
    """The names of the columns asked for, or an InputError that lists those there are."""
    found: list[str | None] = []
    for role, column in (("user", user), ("item", item), ("response", response)):
        if column is None:
            found.append(None)
        elif isinstance(column, int):
            if not 0 <= column < len(names):
                raise InputError(f"{role}={column}: there are {len(names)} columns, from 0.")
            found.append(names[column])
        elif names.count(column) != 1:
            problem = "is there more than once" if column in names else "is not there"
            raise InputError(f"{role}={column!r}: that column {problem}. Columns: {names}.")
        else:
            found.append(column)
    given = [name for name in found if name is not None]
    if len(set(given)) < len(given):
        raise InputError(f"user, item and response must be different columns; got {given}.")
    return found[0], found[1], found[2]  # pyright: ignore[reportReturnType]


def _arrow_chunks(series: Any, name: str) -> Iterable[ArrowArray]:
    """A narwhals series as Arrow arrays."""
    try:
        column: Any = series.to_arrow()
    except (pa.ArrowException, TypeError):
        return [_objects(name, series.to_list())]
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _arrow(name: str, values: Any) -> ArrowArray:
    """Any sequence as one Arrow array."""
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    if isinstance(values, pa.Array):
        return values
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InputError(f"{name} must have one dimension, but its shape is {values.shape}.")
        if values.dtype.kind in "UT":
            values = values.astype(object)
        if values.dtype.kind != "O":
            try:
                return pa.array(values)
            except pa.ArrowException as error:
                raise InputError(f"{name}: {error}.") from None
    try:
        return _objects(name, list(values))
    except TypeError:
        raise InputError(f"{name} must be a sequence, got {type(values).__name__}.") from None


def _objects(name: str, values: list[Any]) -> ArrowArray:
    """Python objects as an Arrow array; UUIDs become theirs."""
    if values and all(isinstance(value, uuid.UUID) for value in values):
        return pa.array([value.bytes for value in values], pa.binary(16))
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise InputError(
            f"Column {name!r} cannot be read: {error}. Ids must be strings, whole numbers or "
            "UUIDs, all of one kind, and responses numbers."
        ) from None
