"""Layouts of published files: delimited and wide tables, JSON lines, blocks of lines."""

import csv as text_csv
import io
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, csv

from hcpf.data.columns import TripleBuilder
from hcpf.errors import InputError

Stream = io.BufferedReader
"""Decompressed content of one file."""
Row = tuple[str, str, float]

_BLOCK_BYTES = 1 << 24  # read at once; a row of a wide table must fit in
_BATCH_ROWS = 1 << 17  # added at once
_CURRENCY = r"[$£€\s]"
_THOUSANDS = ",([0-9]{3})"  # not a decimal comma, as in 12,50
_FOODS_FIELDS = {b"product/productId": "item", b"review/userId": "user", b"review/score": "value"}
_NETFLIX_FILM = re.compile(rb"^(\d+):[ \t\r]*$", re.MULTILINE)

pc: Any = compute  # its functions are made at run time, unseen by type checkers


class Layout(ABC):
    """How the users, items and values of a file are stored."""

    def matches(self, line: str) -> bool:
        """Return whether a file that begins with this line may have this layout."""
        return True

    @abstractmethod
    def add(self, builder: TripleBuilder, stream: Stream) -> None:
        """Add the entries of a file; raise an InputError if it has another layout."""


@dataclass(frozen=True)
class TableLayout(Layout):
    """Delimited text, with columns by name, or f0, f1, ... without a header.

    Rows without an id, without a value, or with a value of 0 or less are dropped.
    """

    first_line: str
    """A regular expression for the beginning of the first line."""
    user: str
    item: str
    value: tuple[str, ...] = ()
    """The columns whose sum is the value; without any, every row counts 1."""
    header: bool = True
    delimiter: str = ","
    encoding: str = "utf8"
    quoted: bool = True
    escape: str | bool = False
    multiline: bool = False
    """Whether quoted text may contain line ends."""
    money: bool = False
    """Whether values may be written like $1,234.50."""
    keep: tuple[str, str] | None = None
    """A column and a regular expression that it matches in the rows to keep."""

    def matches(self, line: str) -> bool:
        return re.match(self.first_line, line) is not None

    def add(self, builder: TripleBuilder, stream: Stream) -> None:
        columns = (self.user, self.item, *self.value, *(self.keep or ())[:1])
        types: dict[str, Any] = dict.fromkeys(columns, pa.string())
        if not self.money:
            types |= dict.fromkeys(self.value, pa.float64())
        reader = csv.open_csv(
            stream,
            read_options=csv.ReadOptions(
                block_size=_BLOCK_BYTES,
                encoding=self.encoding,
                autogenerate_column_names=not self.header,
            ),
            parse_options=csv.ParseOptions(
                delimiter=self.delimiter,
                quote_char='"' if self.quoted else False,
                escape_char=self.escape,
                newlines_in_values=self.multiline,
            ),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
        for batch in reader:
            users, items, values = batch.column(self.user), batch.column(self.item), None
            keep = pc.and_(users.is_valid(), items.is_valid())
            if self.keep is not None:
                column, pattern = self.keep
                keep = pc.and_(keep, pc.match_substring_regex(batch.column(column), pattern))
            if self.value:
                values = self._total(batch)
                keep = pc.and_(keep, pc.greater(values, 0.0))
            keep = pc.fill_null(keep, False)
            kept = users.filter(keep)
            builder.add(kept, items.filter(keep), None if values is None else values.filter(keep))
            builder.n_dropped += batch.num_rows - len(kept)

    def _total(self, batch: Any) -> Any:
        columns = [batch.column(name) for name in self.value]
        if self.money:
            plain = [pc.replace_substring_regex(column, _CURRENCY, "") for column in columns]
            plain = [pc.replace_substring_regex(column, _THOUSANDS, r"\1") for column in plain]
            columns = [column.cast(pa.float64()) for column in plain]
        total = columns[0]
        for column in columns[1:]:
            total = pc.add(total, column)
        return total


@dataclass(frozen=True)
class WideLayout(Layout):
    """A table with a row per user and a column per item; zeros are missing."""

    delimiter: str
    leading: tuple[str, ...]
    """The columns before the values; the first one has the ids of the rows."""

    def add(self, builder: TripleBuilder, stream: Stream) -> None:
        names = self._names(stream.readline().decode("utf-8-sig").rstrip("\r\n"))
        leading, others = names[: len(self.leading)], names[len(self.leading) :]
        types = dict.fromkeys(others, pa.float64()) | dict.fromkeys(leading, pa.string())
        reader = csv.open_csv(
            stream,
            read_options=csv.ReadOptions(block_size=_BLOCK_BYTES, column_names=names),
            parse_options=csv.ParseOptions(delimiter=self.delimiter),
            convert_options=csv.ConvertOptions(
                column_types=types, include_columns=[names[0], *others]
            ),
        )
        items = pa.array(others)
        for batch in reader:
            dense = np.empty((len(others), batch.num_rows))
            for position, column in enumerate(batch.columns[1:]):
                dense[position] = column.to_numpy(zero_copy_only=False)
            if np.isnan(dense).any():
                raise InputError("a field is empty or not a number")
            column, row = np.nonzero(dense)
            builder.add(batch.column(0).take(row), items.take(column), pa.array(dense[column, row]))

    def _names(self, header: str) -> list[str]:
        names = next(text_csv.reader([header], delimiter=self.delimiter), [])
        leading = names[: len(self.leading)]
        if [name.lower() for name in leading] != [name.lower() for name in self.leading]:
            raise InputError(f"its first columns are {', '.join(leading)!r}")
        if len(names) == len(leading):
            raise InputError("it has no columns of values")
        if len(set(names)) < len(names):
            raise InputError("two of its columns have the same name")
        return names


@dataclass(frozen=True)
class JsonLines(Layout):
    """A JSON object per line."""

    rows_of: Callable[[dict[str, Any]], Iterable[Row]]
    """Returns the rows of an object."""

    def add(self, builder: TripleBuilder, stream: Stream) -> None:
        _add_rows(builder, self._rows(stream))

    def _rows(self, lines: Iterable[bytes]) -> Iterator[Row]:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError as error:
                raise InputError(f"line {number} is not JSON ({error})") from None
            if not isinstance(record, dict):
                raise InputError(f"line {number} is not a JSON object")
            try:
                yield from self.rows_of(record)
            except (KeyError, TypeError, ValueError) as error:
                raise _wrong_line(number, error) from None


class FoodsLayout(Layout):
    """A block of lines per review, which begins with the product (Amazon fine foods)."""

    def matches(self, line: str) -> bool:
        return line.startswith("product/productId:")

    def add(self, builder: TripleBuilder, stream: Stream) -> None:
        _add_rows(builder, self._rows(stream))

    def _rows(self, lines: Iterable[bytes]) -> Iterator[Row]:
        block: dict[str, str] = {}
        for number, line in enumerate(lines, 1):
            name, colon, content = line.partition(b":")
            role = _FOODS_FIELDS.get(name) if colon else None
            if role is None:
                continue
            if role in block or (role != "item" and "item" not in block):
                raise InputError(f"line {number}: {name.decode()} is out of order")
            block[role] = content.decode("latin-1").strip()
            if len(block) == len(_FOODS_FIELDS):
                try:
                    yield block["user"], block["item"], float(block["value"])
                except ValueError as error:
                    raise _wrong_line(number, error) from None
                block = {}
        if block:
            absent = [role for role in ("user", "item", "value") if role not in block]
            raise InputError(f"the last block has no {' and no '.join(absent)}")


class NetflixLayout(Layout):
    """A line per film, its number and a colon, followed by lines of user,rating,date."""

    def add(self, builder: TripleBuilder, stream: Stream) -> None:
        film, rest = None, b""
        while chunk := stream.read(_BLOCK_BYTES):
            lines, newline, rest = (rest + chunk).rpartition(b"\n")
            film = self._add_lines(builder, lines + newline, film)
        self._add_lines(builder, rest, film)

    def _add_lines(self, builder: TripleBuilder, lines: bytes, film: int | None) -> int | None:
        """Add lines that begin with ratings of ``film``; return the film of the last ones."""
        before, *after = _NETFLIX_FILM.split(lines)
        films = [film, *(int(number) for number in after[::2])]
        blocks = [block.strip() for block in (before, *after[1::2])]
        if films[0] is None and blocks[0]:
            start = blocks[0][:40].decode("latin-1").splitlines()[0]
            raise InputError(f"{start!r} comes before the first film")
        counts = [block.count(b"\n") + 1 if block else 0 for block in blocks]
        if sum(counts) == 0:
            return films[-1]
        table = csv.read_csv(
            pa.BufferReader(b"\n".join(block for block in blocks if block)),
            read_options=csv.ReadOptions(column_names=["user", "rating", "date"]),
            parse_options=csv.ParseOptions(ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                column_types={"user": pa.int64(), "rating": pa.float64()},
                include_columns=["user", "rating"],
            ),
        )
        film_of_row = np.repeat(np.array([number or 0 for number in films], np.int64), counts)
        users, stars = (table[name].combine_chunks() for name in ("user", "rating"))
        builder.add(users, pa.array(film_of_row), stars)
        return films[-1]


def _add_rows(builder: TripleBuilder, rows: Iterator[Row]) -> None:
    while batch := list(islice(rows, _BATCH_ROWS)):
        users, items, values = zip(*batch, strict=True)
        builder.add(pa.array(users, pa.string()), pa.array(items, pa.string()), pa.array(values))


def _wrong_line(number: int, error: Exception) -> InputError:
    what = f"has no {error}" if isinstance(error, KeyError) else f"is not as expected ({error})"
    return InputError(f"line {number} {what}")
