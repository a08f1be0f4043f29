"""Reading data frames of any kind, and arrays of ids."""

import uuid
from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from hcpf.data.canonical import Duplicates
from hcpf.data.columns import TripleBuilder
from hcpf.data.files.base import Columns, FileColumn
from hcpf.data.interactions import Interactions
from hcpf.data.read_options import Column, ReadOptions, choose_columns
from hcpf.data.readers import ReadEntries, merge_triples
from hcpf.data.values import ArrowArray
from hcpf.errors import InputError


def read_frame(
    frame: Any, user: Column, item: Column, value: Column | None, options: ReadOptions
) -> ReadEntries:
    """Read three columns of a pandas, polars, Arrow or other data frame."""
    native = _as_frame(frame)
    schema = _guarded(native.collect_schema)
    names = list(schema.names())
    wanted = choose_columns(names, user, item, value)
    eager = native
    if isinstance(native, nw.LazyFrame):
        needed = [name for name in wanted if name is not None]
        eager = _guarded(lambda: native.select(needed).collect())
    users, items, values = (
        None if name is None else _series(name, eager.get_column(name)) for name in wanted
    )
    builder = TripleBuilder(Columns(*wanted), options=options)
    builder.add(users, items, values)
    times = [schema[name].is_temporal() for name in names]
    columns = [
        FileColumn(str(name), "time" if is_time else "other")
        for name, is_time in zip(names, times, strict=True)
    ]
    name = None if value is None else str(wanted[2])
    return merge_triples(builder.finish(), name, columns, options, builder.remarks)


def matrix_from_frame(frame: Any) -> tuple[Any, Any, Any]:
    """Read a data frame with one row per user and one column per item.

    Returns the values, the ids of the rows (pandas only, else None) and the names of the columns.
    """
    native = _as_frame(frame)
    if isinstance(native, nw.LazyFrame):
        native = _guarded(native.collect)
    values = _guarded(native.to_numpy)
    others = [name for name, kind in native.schema.items() if not kind.is_numeric()]
    if others and values.dtype == object:
        raise InputError(
            f"The column {others[0]!r} of X does not hold real numbers, so it is not an item. "
            "Remove it, or make it the index if it has the users."
        )
    names = getattr(frame, "columns", None) if hasattr(frame, "index") else native.columns
    return values, getattr(frame, "index", None), names


def _as_frame(frame: Any) -> Any:
    """Return the frame as narwhals wraps it."""
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    try:
        return nw.from_native(frame)
    except TypeError:
        raise InputError(
            f"frame must be a data frame (pandas, polars, Arrow, ...), got {type(frame).__name__}. "
            "For a matrix use from_matrix(), for arrays of ids from_arrays()."
        ) from None
    except nw.exceptions.NarwhalsError as error:  # two columns have the same name
        raise InputError(f"The data frame cannot be read: {_one_line(error)}.") from None


def _guarded(step: Callable[[], Any]) -> Any:
    """Run a step whose exceptions depend on the library, such as the query of a lazy frame."""
    try:
        return step()
    except Exception as error:
        raise InputError(f"The data frame cannot be read: {_one_line(error)}.") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def read_arrays(users: Any, items: Any, values: Any | None, duplicates: Duplicates) -> Interactions:
    """Read parallel arrays of user ids, item ids and values."""
    given = {"users": users, "items": items} | ({} if values is None else {"values": values})
    columns = {name: _array(name, column) for name, column in given.items()}
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{len(column)} {name}" for name, column in columns.items())
        raise InputError(f"users, items and values must have the same length; got {lengths}.")
    builder = TripleBuilder(Columns("users", "items", "values"))
    builder.add(columns["users"], columns["items"], columns.get("values"))
    return builder.finish().to_interactions(duplicates)


def _series(name: str, series: Any) -> ArrowArray:
    """Return a narwhals series as an Arrow array, which may be in chunks."""
    # polars would export a column of Python objects as their addresses.
    if series.dtype != nw.Object:
        try:
            return series.to_arrow()
        except (pa.ArrowException, TypeError, ValueError):
            pass  # try the Python objects, which may work or give a better message
    return _objects(name, series.to_list())


def _array(name: str, values: Any) -> ArrowArray:
    """Return any sequence as an Arrow array, which may be in chunks."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    # list() would accept these, but they have no order or contain no ids.
    if isinstance(values, str | bytes | set | frozenset | dict):
        raise InputError(f"{name} must be a sequence, got {type(values).__name__}.")
    series: Any = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _series(name, series)
    if hasattr(values, "to_numpy"):
        values = np.asarray(values)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InputError(f"{name} must have one dimension, but its shape is {values.shape}.")
        if values.dtype.kind in "UT":
            values = values.astype(object)
        if values.dtype.kind != "O":
            try:  # Arrow supports the byte order of the machine only
                return pa.array(values.astype(values.dtype.newbyteorder("="), copy=False))
            except pa.ArrowException as error:
                raise InputError(f"{name}: {error}.") from None
    try:
        return _objects(name, list(values))
    except TypeError:
        raise InputError(f"{name} must be a sequence, got {type(values).__name__}.") from None


def _objects(name: str, values: list[Any]) -> ArrowArray:
    """Return Python objects as an Arrow array; UUIDs as 16 bytes each."""
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, uuid.UUID) for value in present):
        return pa.array([value and value.bytes for value in values], pa.binary(16))
    try:
        try:
            return pa.array(values, from_pandas=True)  # NaN among strings means missing
        except OverflowError:  # Arrow infers int64 only
            return pa.array(values, pa.uint64())
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"Column {name!r} cannot be read: {_one_line(error)}. Ids must be strings, "
            "integers or UUIDs, all of one kind, and values numbers."
        ) from None
