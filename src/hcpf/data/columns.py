"""Columns of ids and values, read batch by batch into (user, item, value) triples."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from hcpf.data.canonical import (
    CsrArray,
    Duplicates,
    IdArray,
    from_triples,
    plain,
    to_canonical,
)
from hcpf.data.detect import TEXT_TYPES
from hcpf.data.ids import integers_if_exact, narrowest_type, object_array, sort_ids
from hcpf.errors import InputError

ArrowArray = Any
"""A ``pyarrow.Array`` or ``ChunkedArray``, which have no type hints."""
pc: Any = compute  # its functions are made at run time, unseen by type checkers

_MAX_IDS = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class Triples:
    """Entries as positions of users and items, with the sorted ids of both."""

    rows: NDArray[np.int32]
    columns: NDArray[np.int32]
    values: NDArray[np.float64]
    users: IdArray
    items: IdArray

    def to_matrix(self, duplicates: Duplicates) -> CsrArray:
        """Return the canonical matrix, duplicated pairs merged as asked."""
        shape = len(self.users), len(self.items)
        matrix = from_triples(self.values, self.rows, self.columns, shape)
        return to_canonical(matrix, duplicates, self.users, self.items)


class TripleBuilder:
    """Collects users, items and values batch by batch.

    Parameters
    ----------
    user, item, value : str
        Names of the columns, for error messages.
    text_ids : bool
        Whether ids come from text, in which integers cannot be told from strings. They become
        integers if nothing is lost.
    """

    def __init__(self, user: str, item: str, value: str, *, text_ids: bool = False) -> None:
        self._users, self._items = _IdColumn(user, text_ids), _IdColumn(item, text_ids)
        self._values = _ValueColumn(value)
        self.n_dropped = 0
        """Rows that the reader dropped."""

    def start_file(self) -> None:
        """Count the rows that messages name from 1 again."""
        for column in (self._users, self._items, self._values):
            column.n_rows = 0

    def add(self, users: ArrowArray, items: ArrowArray, values: ArrowArray | None) -> None:
        """Add the next rows; without values, every row counts 1."""
        self._users.add(users)
        self._items.add(items)
        self._values.add(pa.repeat(1.0, len(users)) if values is None else values)

    def finish(self) -> Triples:
        """Return all rows; there must be at least one."""
        users, rows = self._users.finish()
        items, columns = self._items.finish()
        if len(rows) == 0:
            raise InputError("There are no rows: at least one observed pair is needed.")
        return Triples(rows, columns, self._values.finish(), users, items)


class _IdColumn:
    """Turns ids into codes, in the order of their appearance.

    Arrow reduces each batch to its distinct ids; only those are looked up among all ids.
    """

    def __init__(self, name: str, from_text: bool) -> None:
        self.name, self.from_text = name, from_text
        self.n_rows = 0
        self._kind = ""
        self._codes: list[NDArray[np.int32]] = []
        self._known: dict[Any, int] = {}

    def add(self, column: ArrowArray) -> None:
        for chunk in _chunks(column):
            if pa.types.is_dictionary(chunk.type):  # a category may be null
                chunk = chunk.cast(chunk.type.value_type)
            if chunk.null_count:
                raise InputError(
                    f"Column {self.name!r} has no id in row {self.n_rows + _first_null(chunk)} "
                    "(the first is 1). Drop or fill such rows first."
                )
            self._add_codes(self._uniform(chunk))
            self.n_rows += len(chunk)

    def finish(self) -> tuple[IdArray, NDArray[np.int32]]:
        """Return the sorted ids, and the position among them of every row's id."""
        ids = list(self._known)
        self._known.clear()
        codes = np.concatenate(self._codes) if self._codes else np.zeros(0, np.int32)
        self._codes.clear()
        return sort_ids(self._as_array(ids), codes)

    def _uniform(self, column: ArrowArray) -> ArrowArray:
        """Cast the ways in which Arrow stores ids to one per kind, the same in all batches."""
        uniform, kind = _uniform_ids(column, self.name)
        if self._kind not in ("", kind):
            raise InputError(f"Column {self.name!r} holds {self._kind} and then {kind}.")
        self._kind = kind
        return uniform

    def _add_codes(self, column: ArrowArray) -> None:
        encoded, known = pc.dictionary_encode(column), self._known
        try:
            ids = encoded.dictionary.to_pylist()
        except UnicodeDecodeError:  # Arrow does not check that text is UTF-8
            raise InputError(f"Column {self.name!r} holds text that is not UTF-8.") from None
        codes = np.fromiter((known.setdefault(i, len(known)) for i in ids), np.int32, len(ids))
        if len(known) >= _MAX_IDS:
            raise InputError(f"Column {self.name!r} has more than {_MAX_IDS} distinct ids.")
        self._codes.append(codes[encoded.indices.to_numpy()])

    def _as_array(self, ids: list[Any]) -> IdArray:
        if self._kind == "UUIDs":
            return object_array([uuid.UUID(bytes=value) for value in ids])
        if self._kind != "integers":
            return integers_if_exact(ids) if self.from_text else object_array(ids)
        dtype = narrowest_type(ids)
        if dtype is None:
            raise InputError(
                f"Column {self.name!r}: the ids {min(ids)} and {max(ids)} do not fit in one 64-bit "
                "type. Convert the ids to strings."
            )
        return np.array(ids, dtype=dtype)


def _uniform_ids(column: ArrowArray, name: str) -> tuple[ArrowArray, str]:
    arrow_type, types = column.type, pa.types
    if isinstance(arrow_type, pa.UuidType):
        return column.storage, "UUIDs"
    if types.is_fixed_size_binary(arrow_type) and arrow_type.byte_width == 16:
        return column, "UUIDs"
    if arrow_type in TEXT_TYPES:
        return column.cast(pa.large_string()), "strings"
    if types.is_integer(arrow_type):
        target = pa.uint64() if types.is_uint64(arrow_type) else pa.int64()
        return column.cast(target), "integers"
    raise InputError(
        f"Column {name!r} holds {arrow_type}, but ids must be strings, integers or UUIDs."
        + (" Cast it to text or to integers first." if types.is_floating(arrow_type) else "")
    )


class _ValueColumn:
    """Collects finite numbers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.n_rows = 0
        self._batches: list[NDArray[np.float64]] = []

    def add(self, column: ArrowArray) -> None:
        for chunk in _chunks(column):
            if chunk.null_count:
                raise InputError(
                    f"Column {self.name!r} has no value in row {self.n_rows + _first_null(chunk)} "
                    "(the first is 1). Drop such rows: missing pairs have no row."
                )
            values = self._numbers(chunk)
            finite = np.isfinite(values)
            if not finite.all():
                first = int(np.argmin(finite))
                raise InputError(
                    f"Column {self.name!r} has the value {plain(values[first])} in row "
                    f"{self.n_rows + first + 1} (the first is 1); values must be finite. Drop "
                    "such rows."
                )
            self._batches.append(values)
            self.n_rows += len(chunk)

    def finish(self) -> NDArray[np.float64]:
        values = np.concatenate(self._batches) if self._batches else np.zeros(0)
        self._batches.clear()
        return values

    def _numbers(self, column: ArrowArray) -> NDArray[np.float64]:
        arrow_type, types = column.type, pa.types
        if types.is_boolean(arrow_type):
            column = column.cast(pa.int8())
        elif not (
            types.is_integer(arrow_type)
            or types.is_floating(arrow_type)
            or types.is_decimal(arrow_type)
        ):
            raise InputError(
                f"Column {self.name!r} holds {arrow_type}, but values must be numbers."
            )
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _chunks(column: ArrowArray) -> Iterator[ArrowArray]:
    """Yield the chunks that are not empty: an empty one may have no type."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return (chunk for chunk in chunks if len(chunk))


def _first_null(column: ArrowArray) -> int:
    """Return the number of the first row without a value, from 1."""
    return int(pc.index(column.is_null(), True).as_py()) + 1
