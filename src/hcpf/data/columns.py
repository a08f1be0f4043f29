"""From columns of ids and responses, batch by batch, to positions and values."""

import uuid
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pyarrow
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from hcpf.data.canonical import (
    CsrArray,
    Duplicates,
    IdArray,
    from_triples,
    plain,
    to_canonical,
)
from hcpf.data.detect import is_text
from hcpf.data.ids import narrowest_type, sort_ids, whole_numbers_if_exact
from hcpf.errors import InputError

ArrowArray = Any
"""A ``pyarrow.Array``, which has no type hints."""
pc: Any = pyarrow.compute

_MOST_IDS = np.iinfo(np.int32).max
_INTEGER_TEXT = "whole numbers"


@dataclass
class IdColumn:
    """Turns ids into codes as they come, one batch at a time.

    Each batch is reduced to its distinct ids by Arrow; only those meet the table of all ids.
    """

    name: str
    as_numbers: bool = False
    """Whether text that is nothing but whole numbers becomes whole numbers, as in a CSV file."""
    _codes: list[NDArray[np.int32]] = field(default_factory=list)
    _known: dict[Any, int] = field(default_factory=dict)
    _kind: str = ""
    _rows: int = 0

    def start_file(self) -> None:
        """Count the rows that messages name from 1 again."""
        self._rows = 0

    def add(self, column: ArrowArray) -> None:
        """Take in the next ids."""
        if not len(column):  # it may have no type either
            return
        if pa.types.is_dictionary(column.type):  # which can hide a null among its categories
            column = column.cast(column.type.value_type)
        if column.null_count:
            row = self._rows + int(pc.index(column.is_null(), True).as_py()) + 1
            raise InputError(
                f"Column {self.name!r} has no id in row {row} (the first is 1). Drop or fill such "
                "rows first."
            )
        plain_column, kind = _readable(column, self.name)
        if self._kind not in ("", kind):
            raise InputError(f"Column {self.name!r} holds {self._kind} and then {kind}.")
        self._kind = kind
        encoded = pc.dictionary_encode(plain_column)
        known = self._known
        try:
            ids = encoded.dictionary.to_pylist()
        except UnicodeDecodeError:  # Arrow takes it on trust that text is UTF-8
            raise InputError(f"Column {self.name!r} holds text that is not UTF-8.") from None
        code = np.fromiter((known.setdefault(i, len(known)) for i in ids), np.int32, len(ids))
        if len(known) >= _MOST_IDS:
            raise InputError(f"Column {self.name!r} has more than {_MOST_IDS} distinct ids.")
        self._codes.append(code[encoded.indices.to_numpy()])
        self._rows += len(column)

    def finish(self) -> tuple[IdArray, NDArray[np.int32]]:
        """The sorted ids, and the position of every row's among them."""
        values = list(self._known)
        self._known.clear()
        codes = np.concatenate(self._codes) if self._codes else np.zeros(0, np.int32)
        self._codes.clear()
        return sort_ids(self._as_array(values), codes)

    def _as_array(self, values: list[Any]) -> IdArray:
        if self._kind == _INTEGER_TEXT:
            dtype = narrowest_type(values)
            if dtype is None:
                raise InputError(
                    f"Column {self.name!r}: the ids {min(values)} and {max(values)} do not fit in "
                    "one 64-bit type. Turn such ids into strings."
                )
            return np.array(values, dtype=dtype)
        if self._kind == "UUIDs":
            values = [uuid.UUID(bytes=value) for value in values]
        elif self.as_numbers:
            return whole_numbers_if_exact(values)
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array


def _readable(column: ArrowArray, name: str) -> tuple[ArrowArray, str]:
    """Cast the many ways Arrow stores ids to one for each kind."""
    kind = column.type
    if isinstance(kind, pa.UuidType):
        return column.storage, "UUIDs"
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16:
        return column, "UUIDs"
    if is_text(kind):
        return column.cast(pa.large_string()), "strings"
    if pa.types.is_integer(kind):
        return column.cast(pa.uint64() if pa.types.is_uint64(kind) else pa.int64()), _INTEGER_TEXT
    raise InputError(
        f"Column {name!r} holds {kind}, but ids must be strings, whole numbers or UUIDs."
        + (" Cast it to text or to integers first." if pa.types.is_floating(kind) else "")
    )


@dataclass
class ResponseColumn:
    """Gathers responses, which must all be there."""

    name: str | None
    _parts: list[NDArray[np.float64]] = field(default_factory=list)
    _rows: int = 0

    def start_file(self) -> None:
        """Count the rows that messages name from 1 again."""
        self._rows = 0

    def add(self, column: ArrowArray, rows: int) -> None:
        """Take in the next responses; without a column, every row counts 1."""
        if column is None:
            self._parts.append(np.ones(rows))
            return
        if not rows:
            return
        if column.null_count:
            row = self._rows + int(pc.index(column.is_null(), True).as_py()) + 1
            raise InputError(
                f"Column {self.name!r} has no value in row {row} (the first is 1). Missing pairs "
                "have no row at all: drop it."
            )
        kind = column.type
        if not (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_decimal(kind)
        ):
            raise InputError(f"Column {self.name!r} holds {kind}, but responses must be numbers.")
        if pa.types.is_boolean(kind):
            column = column.cast(pa.int8())
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        finite = np.isfinite(values)
        if not finite.all():
            place = int(np.argmin(finite))
            raise InputError(
                f"Column {self.name!r} has the value {plain(values[place])} in row "
                f"{self._rows + place + 1} (the first is 1); responses must be finite. Drop such "
                "rows."
            )
        self._parts.append(values)
        self._rows += rows

    def finish(self) -> NDArray[np.float64]:
        """All responses."""
        values = np.concatenate(self._parts) if self._parts else np.zeros(0)
        self._parts.clear()
        return values


@dataclass(frozen=True, eq=False)
class Triples:
    """What a reader hands on."""

    rows: NDArray[np.int32]
    columns: NDArray[np.int32]
    values: NDArray[np.float64]
    users: IdArray
    items: IdArray

    @classmethod
    def gather(cls, users: IdColumn, items: IdColumn, values: ResponseColumn) -> Self:
        """Put together three columns that have been read."""
        user_ids, rows = users.finish()
        item_ids, columns = items.finish()
        if len(rows) == 0:
            raise InputError("There are no rows: at least one observed pair is needed.")
        return cls(rows, columns, values.finish(), user_ids, item_ids)

    def to_matrix(self, duplicates: Duplicates) -> CsrArray:
        """The canonical matrix of the triples."""
        shape = len(self.users), len(self.items)
        matrix = from_triples(self.values, self.rows, self.columns, shape)
        return to_canonical(matrix, duplicates, self.users, self.items)
