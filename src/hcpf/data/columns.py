"""Columns of ids and values, read batch by batch into (user, item, value) triples."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from hcpf._types import BoolArray
from hcpf.data import returns
from hcpf.data.amounts import ParsedAmounts
from hcpf.data.canonical import (
    CsrArray,
    Duplicates,
    IdArray,
    from_triples,
    to_canonical,
)
from hcpf.data.exact import MAX_EXACT
from hcpf.data.exclude import Matcher, item_matcher
from hcpf.data.files.base import TEXT_TYPES, Columns
from hcpf.data.ids import integers_if_exact, narrowest_type, object_array, sort_ids
from hcpf.data.interactions import Interactions
from hcpf.data.read_options import ReadOptions
from hcpf.data.rows import BadRows, FrameRows, RowLocator, RowSource
from hcpf.data.values import ArrowArray, ValueColumn, chunks_of
from hcpf.data.words import count
from hcpf.errors import InputError

pc: Any = compute  # its functions are made at run time, unseen by type checkers

_MAX_IDS = np.iinfo(np.int32).max
_BLANK, _EXCLUDED = -1, -2
"""Codes of ids that have no position."""


@dataclass(frozen=True, eq=False)
class Triples:
    """Entries as positions of users and items, with the sorted ids of both."""

    rows: NDArray[np.int32]
    columns: NDArray[np.int32]
    values: NDArray[np.float64]
    users: IdArray
    items: IdArray
    locator: RowLocator = field(default_factory=RowLocator)
    """Where each triple comes from; lost when triples are selected."""

    def to_matrix(self, duplicates: Duplicates) -> CsrArray:
        """Return the canonical matrix, duplicated pairs merged as asked."""
        shape = len(self.users), len(self.items)
        matrix = from_triples(self.values, self.rows, self.columns, shape)
        return to_canonical(matrix, duplicates, self.users, self.items)

    def to_interactions(self, duplicates: Duplicates) -> Interactions:
        """Return the same with the ids."""
        return Interactions(self.to_matrix(duplicates), self.users, self.items)

    def select(self, kept: BoolArray) -> Self:
        """Return the triples that a mask marks, without ids that have none any more."""
        rows, users = _compact(self.rows[kept], self.users)
        columns, items = _compact(self.columns[kept], self.items)
        return replace(
            self, rows=rows, columns=columns, values=self.values[kept], users=users, items=items,
            locator=RowLocator(),
        )  # fmt: skip


class TripleBuilder:
    """Collects users, items and values batch by batch.

    Parameters
    ----------
    columns : Columns
        Their names, for error messages.
    text_ids : bool
        Whether ids come from text, in which integers cannot be told from strings. They become
        integers if nothing is lost.
    options : ReadOptions, optional
        Which rows to drop, and how amounts are written. Without it an empty text is an id.
    """

    def __init__(
        self,
        columns: Columns,
        *,
        text_ids: bool = False,
        options: ReadOptions | None = None,
    ) -> None:
        self._is_table = options is not None
        self._options = options or ReadOptions()
        is_excluded = item_matcher(self._options.exclude_items)
        self._users = _IdColumn(columns.user, text_ids, blank_text=self._is_table)
        self._items = _IdColumn(columns.item, text_ids, is_excluded, blank_text=self._is_table)
        drop_blank = self._options.drop_blank_values if self._is_table else None
        self._values = ValueColumn(str(columns.value), drop_blank=drop_blank)
        times = columns.times
        self._times = None if times is None else ValueColumn(times, drop_blank=drop_blank)
        self._source: RowSource = FrameRows()
        self._n_rows = 0
        self._locator = RowLocator()
        self._bad_rows = BadRows()
        self._n_blank = self._n_excluded = self._n_blank_values = 0
        self.n_dropped = 0
        """Rows that the reader dropped."""
        self.currency = ""
        """The currency of the values; empty if they have none."""
        self.remarks: list[str] = []
        """What was decided, a sentence each."""
        self.has_returns = False
        """Whether there are returns that no option decides about."""
        self.problems: list[str] = []
        """What is wrong with rows that were dropped instead of raising an error."""

    def start_file(self, source: RowSource) -> None:
        """Count the rows that messages name from the start again."""
        self._source, self._n_rows = source, 0

    def add(
        self, users: ArrowArray, items: ArrowArray, values: ArrowArray | None,
        times: ArrowArray | None = None,
    ) -> None:  # fmt: skip
        """Add the next rows; without values, every row counts 1."""
        n_rows = len(users)
        rows, columns = self._users.encode(users), self._items.encode(items)
        kept = self._usable(rows, columns)
        if kept is not None:
            rows, columns = rows[kept], columns[kept]
        self._users.codes.append(rows)
        self._items.codes.append(columns)
        self._values.add(pa.repeat(1.0, n_rows) if values is None else values, kept)
        if self._times is not None:
            self._times.add(times, kept)
        positions = None if kept is None else np.flatnonzero(kept)
        self._locator.add(self._source, self._n_rows, positions, len(rows))
        self._n_rows += n_rows

    def finish(self, *, drop_bad_rows: bool = False) -> Triples:
        """Return all rows; there must be at least one.

        Bad rows are an error, or dropped and described in ``problems``. Returns are described, too,
        but stay.
        """
        values, read = self._finish_values()
        self.currency = next((amounts.currency for amounts in read if amounts.currency), "")
        bad = self._bad_rows.positions()
        self.has_returns = self._find_returns(values)
        if drop_bad_rows:
            self.problems = self._bad_rows.texts()
        else:
            self._bad_rows.raise_if_any()
        kept = np.ones(len(values), np.bool_)
        kept[bad] = False
        if self._options.drop_blank_values:
            blank = np.isnan(values)
            self._n_blank_values = int(blank.sum())
            kept &= ~blank
        self._remark(read)
        users, rows = self._users.finish()
        items, columns = self._items.finish()
        if not kept.any():
            why = self.problems or self.remarks[-1:]
            raise InputError(
                " ".join(["There are no rows: at least one observed pair is needed.", *why])
            )
        triples = Triples(rows, columns, values, users, items, self._locator)
        if kept.all():
            return triples
        return replace(triples.select(kept), locator=self._locator.select(kept))

    def _finish_values(self) -> tuple[NDArray[np.float64], list[ParsedAmounts]]:
        """Return the values, products if there are two columns, and how texts were read."""
        finished = [
            column.finish(self._options.decimal, self._bad_rows, self._locator)
            for column in (self._values, self._times)
            if column is not None
        ]
        values = finished[0][0] if self._times is None else finished[0][0] * finished[1][0]
        return values, [amounts for _, amounts in finished if amounts is not None]

    def _find_returns(self, values: NDArray[np.float64]) -> bool:
        """Add negative values to the bad rows if they are returns that nobody decided about.

        Returns whether there are any.
        """
        choice, name = self._options.returns, self._values.name
        positions, n_values = np.flatnonzero(values < 0.0), int(np.sum(~np.isnan(values)))
        if not self._is_table or not returns.are_undecided(
            choice, len(positions), n_values, name, self.currency
        ):
            return False
        self._bad_rows.add_kept(
            returns.describe_problem(name), returns.ADVICE, self._locator, positions,
            returns.first_values(values[positions]), returns.REMEDY,
        )  # fmt: skip
        return True

    def _usable(self, rows: NDArray[np.int32], columns: NDArray[np.int32]) -> BoolArray | None:
        """Return which rows have ids of a user and of an item to keep; None for all."""
        if not (self._users.has_gaps or self._items.has_gaps):
            return None
        kept = (rows >= 0) & (columns >= 0)
        if kept.all():
            return None
        excluded = (columns == _EXCLUDED) & (rows >= 0)
        self._n_excluded += int(excluded.sum())
        self._n_blank += int(np.sum((rows == _BLANK) | (columns == _BLANK)))
        if not self._options.drop_blank_ids:
            for codes, column in ((rows, self._users), (columns, self._items)):
                blank = np.flatnonzero(codes == _BLANK)
                self._bad_rows.add(
                    f"Column {column.name!r} has no id",
                    "Pass drop_blank_ids=True to drop rows without an id."
                    if self._is_table
                    else "Drop or fill such rows first.",
                    self._source,
                    self._n_rows + blank,
                    "drop_blank_ids=True" if self._is_table else "",
                )
        return kept

    def _remark(self, read: Sequence[ParsedAmounts]) -> None:
        self.remarks += [amounts.remark for amounts in read if amounts.remark is not None]
        if self._options.drop_blank_ids:
            self.remarks.append(f"Dropped {count(self._n_blank, 'row')} without an id.")
        if self._options.drop_blank_values:
            self.remarks.append(f"Dropped {count(self._n_blank_values, 'row')} without a value.")
        if self._items.excludes:
            names = [str(name) for name in self._items.excluded]
            listed = f": {', '.join(names[:5])}{', …' * (len(names) > 5)}" if names else ""
            self.remarks.append(
                f"Excluded {count(len(names), 'item')} with {count(self._n_excluded, 'row')}"
                f"{listed}."
            )


def _compact(codes: NDArray[np.int32], ids: IdArray) -> tuple[NDArray[np.int32], IdArray]:
    """Return codes of those ids only that occur, and these ids."""
    used = np.zeros(len(ids), np.bool_)
    used[codes] = True
    if used.all():
        return codes, ids
    return (np.cumsum(used, dtype=np.int32) - 1)[codes], ids[used]


class _IdColumn:
    """Turns ids into codes, in the order of their appearance.

    Arrow reduces each batch to its distinct ids; only those are looked up among all ids.
    """

    def __init__(
        self,
        name: str,
        from_text: bool,
        is_excluded: Matcher | None = None,
        *,
        blank_text: bool,
    ) -> None:
        self.name, self.from_text, self.blank_text = name, from_text, blank_text
        self.excludes = is_excluded is not None
        self.excluded: list[Any] = []
        self.has_gaps = False
        """Whether a row without an id, or with an excluded one, has occurred."""
        self.codes: list[NDArray[np.int32]] = []
        self._is_excluded = is_excluded
        self._kind = ""
        self._known: dict[Any, int] = {}
        self._special: dict[int, int] = {}  # codes of ids that are blank or excluded

    def encode(self, column: ArrowArray) -> NDArray[np.int32]:
        """Return the codes of the next ids, negative ones for those to drop."""
        parts = [self._encode(chunk) for chunk in chunks_of(column)]
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)

    def finish(self) -> tuple[IdArray, NDArray[np.int32]]:
        """Return the sorted ids, and the position among them of every row's id."""
        ids = object_array(list(self._known))
        self._known.clear()
        codes = np.concatenate(self.codes) if self.codes else np.zeros(0, np.int32)
        self.codes.clear()
        codes, ids = _compact(codes, ids)
        return sort_ids(self._as_array(ids.tolist()), codes)

    def _encode(self, chunk: ArrowArray) -> NDArray[np.int32]:
        if pa.types.is_dictionary(chunk.type):  # a category may be null
            chunk = chunk.cast(chunk.type.value_type)
        if chunk.null_count == len(chunk):  # of any type, or of none
            self.has_gaps = True
            return np.full(len(chunk), _BLANK, np.int32)
        return self._codes_of(self._uniform(chunk))

    def _uniform(self, column: ArrowArray) -> ArrowArray:
        """Cast the ways in which Arrow stores ids to one per kind, the same in all batches."""
        uniform, kind = _uniform_ids(column, self.name)
        if self._kind not in ("", kind):
            raise InputError(
                f"Column {self.name!r} holds {self._kind} and then {kind}. "
                "Convert all of them to one kind."
            )
        self._kind = kind
        return uniform

    def _codes_of(self, column: ArrowArray) -> NDArray[np.int32]:
        encoded, known = pc.dictionary_encode(column), self._known
        try:
            ids = encoded.dictionary.to_pylist()
        except UnicodeDecodeError:  # Arrow does not check that text is UTF-8
            raise InputError(f"Column {self.name!r} holds text that is not UTF-8.") from None
        n_known = len(known)
        codes = np.fromiter((known.setdefault(i, len(known)) for i in ids), np.int32, len(ids))
        if len(known) >= _MAX_IDS:
            raise InputError(f"Column {self.name!r} has more than {_MAX_IDS} distinct ids.")
        if len(known) > n_known:
            self._look_at_new(ids, codes, n_known)
        for code, special in self._special.items():
            codes[codes == code] = special
        if column.null_count:
            self.has_gaps = True
            # The last code is that of index -1.
            return np.append(codes, np.int32(_BLANK))[pc.fill_null(encoded.indices, -1).to_numpy()]
        return codes[encoded.indices.to_numpy()]

    def _look_at_new(self, ids: list[Any], codes: NDArray[np.int32], n_known: int) -> None:
        """Remember which new ids are blank or excluded."""
        may_be_blank = self.blank_text and self._kind == "strings"
        if not may_be_blank and self._is_excluded is None:
            return
        for position in np.flatnonzero(codes >= n_known).tolist():
            value = ids[position]
            if may_be_blank and not value.strip():
                self._special[int(codes[position])] = _BLANK
            elif self._is_excluded is not None and self._is_excluded(self._as_id(value)):
                self._special[int(codes[position])] = _EXCLUDED
                self.excluded.append(self._as_id(value))
        self.has_gaps |= bool(self._special)

    def _as_id(self, value: Any) -> Any:
        return uuid.UUID(bytes=value) if self._kind == "UUIDs" else value

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
    if types.is_floating(arrow_type):
        integers = _integers_with_gaps(column)
        if integers is not None:
            return integers, "integers"
    raise InputError(
        f"Column {name!r} holds {arrow_type}, but ids must be strings, integers or UUIDs."
        + (" Cast it to text or to integers first." if types.is_floating(arrow_type) else "")
    )


def _integers_with_gaps(column: ArrowArray) -> ArrowArray | None:
    """Return floats as integers if only missing ones kept them from being integers."""
    numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    missing = np.isnan(numbers)
    present = numbers[~missing]
    if not missing.any() or np.any((present != np.floor(present)) | (abs(present) >= MAX_EXACT)):
        return None
    return pa.array(np.where(missing, 0.0, numbers).astype(np.int64), mask=missing)
