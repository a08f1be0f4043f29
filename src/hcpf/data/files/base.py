"""The contract of a table in a file: its columns, its batches, and how its rows are numbered."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn

import pyarrow as pa
from pyarrow import compute

from hcpf.data.amounts import mostly_amounts
from hcpf.data.exact import MAX_EXACT, hides_small_numbers
from hcpf.data.files.encodings import DecodedFile
from hcpf.data.read_options import choose_columns
from hcpf.data.rows import BadRowsError
from hcpf.data.times import are_dates
from hcpf.errors import InputError

ColumnKind = Literal["text", "integer", "real", "time", "other"]
TEXT_TYPES: tuple[Any, ...] = (pa.string(), pa.large_string(), pa.string_view())
BATCH_ROWS = 1 << 19
"""Rows of a typed file that are read at once."""
pc: Any = compute  # its functions are made at run time, unseen by type checkers


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


class DecodedTable(TableFile):
    """A text file that Arrow reads, unless numbers would lose digits by that."""

    _decoded: DecodedFile

    @abstractmethod
    def _read_exactly(self) -> NoReturn:
        """Raise `Restart`, to read all digits of the numbers from then on."""
        raise NotImplementedError

    def _checked(self, batches: Iterable[Any], columns: Columns) -> Iterator[tuple[Any, int]]:
        """Yield batches with the bytes that each covers, as long as no number loses digits."""
        # The position in a compressed file is unknown; approximate it by the size of the batches.
        bytes_left, has_zeros = self.path.stat().st_size, False
        for batch in batches:
            for name in columns.names[2:]:
                has_zeros |= self._check_range(batch.column(name))
            bytes_read = min(batch.nbytes, bytes_left)
            bytes_left -= bytes_read
            yield batch.select(columns.names), bytes_read
        if has_zeros:
            with self._decoded.open() as file:
                if hides_small_numbers(file):
                    self._read_exactly()

    def _check_range(self, values: Any) -> bool:
        """Read numbers from 2**53 on exactly; return whether 0 occurs."""
        if not pa.types.is_floating(values.type) or values.null_count == len(values):
            return False
        ends = pc.min_max(values).as_py()
        low, high = ends["min"], ends["max"]
        if max(abs(low), abs(high)) >= MAX_EXACT:
            self._read_exactly()
        return low <= 0.0 <= high and bool(pc.any(pc.equal(values, 0.0)).as_py())


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


# -- cells of spreadsheets and databases -----------------------------------------------------------

_MAX_KIND_ROWS = 1000


def cells_to_ids(cells: Sequence[Any]) -> Any:
    """Return cells as an Arrow array of text; empty ones are null.

    >>> cells_to_ids([17850.0, "A1", None, 7]).to_pylist()
    ['17850', 'A1', None, '7']
    """
    return pa.array([_id_text(cell) for cell in cells], pa.string())


def cells_to_values(cells: Sequence[Any]) -> Any:
    """Return cells as an Arrow array of numbers, or of text if some cells are text.

    >>> cells_to_values([1, None, 2.5]).to_pylist(), cells_to_values([2.5, "£3"]).to_pylist()
    ([1.0, None, 2.5], ['25e-1', '£3'])
    """
    present = [None if _is_empty(cell) else cell for cell in cells]
    kinds = {type(cell) for cell in present if cell is not None}
    try:
        if kinds <= {int, bool}:
            return pa.array([None if cell is None else int(cell) for cell in present], pa.int64())
        if kinds <= {int, float} and not any(_is_long(cell) for cell in present):
            return pa.array(present, pa.float64())
    except OverflowError:  # an integer beyond 64 bits: its text keeps all digits
        pass
    return pa.array([None if cell is None else _value_text(cell) for cell in present], pa.string())


def kind_of_cells(cells: Sequence[Any]) -> ColumnKind:
    """Return the kind of a column by its first cells."""
    present = [cell for cell in cells[:_MAX_KIND_ROWS] if not _is_empty(cell)]
    if not present:
        return "other"
    if all(isinstance(cell, int | float | Decimal) for cell in present):
        return "integer" if all(cell == int(cell) for cell in present if cell == cell) else "real"
    if all(hasattr(cell, "isoformat") for cell in present):
        return "time"
    texts = pa.array([cell for cell in present if isinstance(cell, str)], pa.string())
    if len(texts) == len(present) and are_dates(texts):
        return "time"  # SQLite has no type for dates
    return "real" if len(texts) and mostly_amounts(texts) else "text"


def columns_of_rows(
    names: Sequence[str], rows: Sequence[Sequence[Any]]
) -> tuple[list[FileColumn], list[Sequence[Any]]]:
    """Return the columns of a table that is given row by row, with the cells of each."""
    cells: list[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    columns = zip(names, cells, strict=True)
    return [FileColumn(name, kind_of_cells(own)) for name, own in columns], cells


def batch_of_cells(
    columns: Columns,
    cells: Sequence[Sequence[Any]],
    to_ids: Callable[[Sequence[Any]], Any] = cells_to_ids,
) -> Any:
    """Return a record batch of the cells of each of the columns."""
    arrays = [*map(to_ids, cells[:2]), *map(cells_to_values, cells[2:])]
    return pa.RecordBatch.from_arrays(arrays, columns.names)


def _is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _is_long(cell: Any) -> bool:
    return isinstance(cell, int) and abs(cell) > 2**53


def _id_text(cell: Any) -> str | None:
    if _is_empty(cell) or cell != cell:
        return None
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else str(cell)
    return cell.isoformat() if hasattr(cell, "isoformat") else str(cell)


def _value_text(cell: Any) -> str:
    """Return the text of a cell; a number without a decimal mark, which could be either."""
    if isinstance(cell, bool) or not isinstance(cell, int | float | Decimal):
        return str(cell)
    number = Decimal(repr(cell)) if isinstance(cell, float) else Decimal(cell)
    if not number.is_finite():
        return str(cell)
    sign, digits, exponent = number.as_tuple()
    text = f"{'-' * sign}{''.join(map(str, digits))}"
    return text if exponent == 0 else f"{text}e{exponent}"
