"""The contract of a table in a file: its columns, its batches, and how its rows are numbered."""

import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal

import pyarrow as pa

from hcpf.data.choose import choose_columns
from hcpf.data.rows import BadRowsError
from hcpf.errors import InputError

ColumnKind = Literal["text", "integer", "real", "time", "other"]
TEXT_TYPES: tuple[Any, ...] = (pa.string(), pa.large_string(), pa.string_view())
BATCH_ROWS = 1 << 19
"""Rows of a typed file that are read at once."""


@dataclass(frozen=True)
class FileColumn:
    """The name of a column and the kind of its values."""

    name: str
    kind: ColumnKind


@dataclass(frozen=True)
class Columns:
    """The names of the columns to read; without a value every row counts 1.

    ``times`` is a column that the value is multiplied by, such as the price of one piece.
    """

    user: str
    item: str
    value: str | None = None
    times: str | None = None

    @property
    def names(self) -> list[str]:
        """The names in the order of the columns of a batch."""
        names = (self.user, self.item, self.value, self.times)
        return [name for name in names if name is not None]


class Restart(Exception):  # noqa: N818  # not an error: a request of a file
    """A file has changed how it will be read, and everything must be read again."""


class TableFile(ABC):
    """A table that is read batch by batch, only the columns asked for."""

    has_text_ids: ClassVar[bool] = False
    """Whether integers cannot be told from text, so that ids become integers if they can."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns: Sequence[FileColumn] = ()
        self.first_row = 1
        """The number of the first row of data, as a spreadsheet would show it."""
        self.remarks: list[str] = []
        """What was decided about the file and is not plain to see, a sentence each."""

    @property
    def label(self) -> str:
        """What messages call the file."""
        return str(self.path)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    @property
    def counting(self) -> str:
        """How rows are numbered, for messages."""
        return "row 1 is the header" if self.first_row > 1 else "the first row is 1"

    def row_numbers(self, rows: Sequence[int]) -> list[int]:
        """Return the numbers that a spreadsheet shows for rows of data, counted from 0."""
        return [row + self.first_row for row in rows]

    @abstractmethod
    def batches(self, columns: Columns) -> Iterator[tuple[Any, int]]:
        """Yield record batches of the columns, with the bytes of the file that each covers."""

    def pairs(
        self, first: str, second: str, max_batches: int | None = None
    ) -> list[tuple[Any, Any]]:
        """Return two columns as Arrow arrays, a pair of arrays per batch."""
        with file_errors(self.path):
            columns = Columns(*choose_columns(self.names, first, second, None))
            while True:
                try:
                    batches = islice(self.batches(columns), max_batches)
                    return [(batch.column(0), batch.column(1)) for batch, _ in batches]
                except Restart:
                    continue


@contextmanager
def file_errors(path: Path | str) -> Generator[None]:
    """Name the file in every error of the block, those of Arrow and of the system included."""
    try:
        yield
    except BadRowsError:  # which names its file, one of several perhaps
        raise
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from None


def reason(error: Exception) -> str:
    """Return the first line of an error's text, without the parts that name code."""
    lines = str(error).strip().splitlines()
    return re.sub(r"^CSV parse error: ", "", lines[0]) if lines else type(error).__name__


def typed_columns(schema: Any) -> list[FileColumn]:
    """Return the columns of an Arrow schema."""
    return [FileColumn(field.name, kind_of(field.type)) for field in schema]


def kind_of(arrow_type: Any) -> ColumnKind:
    """Return the kind of the values of an Arrow type."""
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
