"""The table that all results come in: columns by name, named rows, files and data frames."""

import os
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import floor, isfinite, log10
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import walk_tb
from typing import Any, Self
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from hcpf._progress import progress_bar
from hcpf._types import FloatArray
from hcpf.data.canonical import IdArray
from hcpf.data.ids import IdIndex, as_ids
from hcpf.errors import InputError, MissingDependencyError
from hcpf.io import as_path, atomic_path, os_errors

FILE_ENDINGS = (".parquet", ".csv", ".tsv", ".xlsx")
_MAX_SHOWN_ROWS = 20
NOT_APPLICABLE = "–"


class Table:
    """Columns of equal length, which are attributes; iterating gives named rows.

    Examples
    --------
    >>> scores = Table(model=["hcpf", "popularity"], auc=[0.91234, 0.8], auc_error=[0.012, 0.01])
    >>> scores
         model            auc
          hcpf  0.912 ± 0.012
    popularity  0.800 ± 0.010
    >>> [(row.model, row.auc) for row in scores]
    [('hcpf', 0.91234), ('popularity', 0.8)]
    """

    def __init__(self, **columns: Any) -> None:
        arrays = {name: np.asarray(column) for name, column in columns.items()}
        shapes = {array.shape for array in arrays.values()}
        if len(shapes) != 1 or len(shapes.pop()) != 1:
            raise InputError("The columns of a table must be 1-D and equally long.")
        self._columns = arrays

    @classmethod
    def from_records(cls, records: Sequence[Mapping[str, Any]]) -> Self:
        """Make a table of rows given as mappings of the same keys; None means not applicable."""
        names = records[0] if records else ()
        return cls(**{name: _as_column([row[name] for row in records]) for name in names})

    @classmethod
    def concatenate(cls, parts: Iterable[Self]) -> Self:
        """Make one table of the rows of several, at least one."""
        columns = [part.columns() for part in parts]
        return cls(**{name: np.concatenate([c[name] for c in columns]) for name in columns[0]})

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_columns"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no column {name!r}.") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._columns]

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __iter__(self) -> Iterator[Any]:
        """Yield one named tuple per row."""
        row = namedtuple("Row", self._columns)  # pyright: ignore[reportUntypedNamedTuple]
        columns = (column.tolist() for column in self._columns.values())
        return map(row._make, zip(*columns, strict=True))

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns by name."""
        return dict(self._columns)

    def select(self, rows: Any) -> Self:
        """Return some of the rows, chosen as NumPy does."""
        return type(self)(**{name: column[rows] for name, column in self._columns.items()})

    def rounded(self, digits: int = 4) -> Self:
        """Return the table with floats rounded to some significant digits, for people to read.

        >>> Table(value=[1234.567, 0.0123456, float("nan")]).rounded().value.tolist()
        [1235.0, 0.01235, nan]
        """
        columns = self._columns.items()
        return type(self)(**{name: _round_column(column, digits) for name, column in columns})

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table``; UUIDs become text, numbers that do not apply null."""
        import pyarrow as pa

        return pa.table({name: _to_arrow(column) for name, column in self._columns.items()})

    def to_pandas(self) -> Any:
        """Return a pandas data frame."""
        return self.to_frame("pandas")

    def to_polars(self) -> Any:
        """Return a polars data frame."""
        return self.to_frame("polars")

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame of pandas, polars or pyarrow."""
        table = self.to_arrow()
        try:
            if backend == "pandas":
                return table.to_pandas()
            if backend == "polars":
                import polars

                return polars.from_arrow(table)
        except ImportError as error:
            raise MissingDependencyError(
                f"{backend} is not installed ({error}). Install it with: pip install {backend}."
            ) from None
        if backend == "pyarrow":
            return table
        raise InputError(f"backend must be 'pandas', 'polars' or 'pyarrow', got {backend!r}.")

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a .parquet, .csv, .tsv or .xlsx file, which appears when it is complete."""
        write_tables(path, [self], overwrite=overwrite)

    def __repr__(self) -> str:
        shown = self.select(slice(_MAX_SHOWN_ROWS))._columns
        names = [name for name in shown if name.removesuffix("_error") not in shown.keys() - {name}]
        lines = [names, *zip(*(_cells(name, shown) for name in names), strict=True)]
        widths = [max(len(line[j]) for line in lines) for j in range(len(names))]
        text = ["  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) for line in lines]
        more = len(self) - _MAX_SHOWN_ROWS
        return "\n".join(text + [f"... {more:,} more rows"] * (more > 0))


def write_tables(
    path: str | Path,
    parts: Iterable[Table],
    *,
    overwrite: bool = False,
    total: int = 0,
    progress: bool | None = False,
) -> int:
    """Write tables of the same columns one after the other, and return the number of rows.

    Parameters
    ----------
    path : path
        The extension (.parquet, .csv, .tsv or .xlsx) gives the format. The file appears when
        complete.
    parts : iterable of Table
        At least one, possibly without rows.
    overwrite : bool, default False
        Whether a file of that name may be replaced.
    total : int
        The number of rows expected, for the progress bar.
    progress : bool or None, default False
        Whether to show a progress bar; None shows it in a terminal.
    """
    target = as_path("path", path)
    if target.suffix.lower() not in FILE_ENDINGS:
        raise InputError(f"{target}: unknown format. End its name in {', '.join(FILE_ENDINGS)}.")
    if os.path.lexists(target) and not overwrite:
        raise InputError(f"{target} exists already. Pass overwrite=True to replace it.")
    rows, writer = 0, None
    with os_errors(InputError, f"{target} cannot be written"), atomic_path(target) as partial:
        try:
            with progress_bar(progress, "Writing", total) as advance:
                for part in parts:
                    table = part.to_arrow()
                    writer = writer or _open_writer(partial, target.suffix.lower(), table.schema)
                    writer.write_table(table)
                    rows += len(part)
                    advance(len(part), f"{rows:,} rows")
            if writer is None:
                raise InputError(f"There is nothing to write to {target}.")
        finally:
            if writer is not None:
                writer.close()
    return rows


def rows_of(name: str, column: IdArray, wanted: Any) -> NDArray[np.intp]:
    """Return the rows whose column ``name`` has the id ``wanted``; an InputError if none has."""
    identity = as_ids(name, wanted)
    if identity.ndim:
        raise InputError(f"of takes one {name}, not a list of them.")
    rows = np.flatnonzero(column == identity)
    if not len(rows):
        IdIndex(name, column).positions(identity)  # raises: the id or its kind is unknown
    return rows


def format_with_error(value: float, error: float) -> str:
    """Return the value and its standard error in text, as in 0.33 ± 0.02.

    The error has two significant digits, and the value as many decimals as the error.
    """
    if not np.isfinite(value) or not error > 0:
        return _cell(float(value))
    decimals = max(0, 1 - int(np.floor(np.log10(error))))
    return f"{value:,.{decimals}f} ± {error:,.{decimals}f}"


def _open_writer(path: Path, ending: str, schema: Any) -> Any:
    from pyarrow import csv, parquet

    if ending == ".parquet":
        return parquet.ParquetWriter(path, schema)
    if ending == ".xlsx":
        return SpreadsheetWriter(path, schema)
    delimiter = "\t" if ending == ".tsv" else ","
    options = csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
    return csv.CSVWriter(str(path), schema, write_options=options)


def _round_column(column: NDArray[Any], digits: int) -> NDArray[Any]:
    if column.dtype.kind != "f":
        return column
    return np.array([float(f"{value:.{digits}g}") for value in column.tolist()])


def _as_column(values: list[Any]) -> NDArray[Any]:
    """Return one array; numbers of which some do not apply become floats with NaN."""
    if all(value is None or isinstance(value, int | float | np.number) for value in values):
        optional = any(value is None for value in values)
        return np.array(values, dtype=np.float64 if optional else None)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _to_arrow(column: NDArray[Any]) -> Any:
    import pyarrow as pa

    if column.dtype.kind not in "OU":
        return pa.array(column, from_pandas=True)  # NaN becomes null
    return pa.array([None if value is None else str(value) for value in column], pa.string())


def _cells(name: str, columns: dict[str, NDArray[Any]]) -> list[str]:
    values = columns[name].tolist()
    errors = columns.get(f"{name}_error")
    if errors is None:
        decimals = _shared_decimals(values)
        return [_cell(value, decimals) for value in values]
    return [format_with_error(*pair) for pair in zip(values, errors.tolist(), strict=True)]


def _shared_decimals(values: list[Any]) -> int | None:
    """Return the decimals that give numbers of similar size four significant digits at most."""
    sizes = [abs(v) for v in values if isinstance(v, float) and isfinite(v) and v]
    if not sizes or max(sizes) > 1e3 * min(sizes) or max(sizes) < 1e-3:
        return None
    return max(0, 3 - floor(log10(max(sizes))))


def _cell(value: Any, decimals: int | None = None) -> str:
    if value is None or value != value:  # NaN
        return NOT_APPLICABLE
    if not isinstance(value, float):
        return str(value)
    return f"{float(f'{value:.4g}'):,{'.10g' if decimals is None else f'.{decimals}f'}}"


class Recommendations(Table):
    """Items for users, best first.

    Attributes
    ----------
    user, item : ndarray
        Ids.
    rank : ndarray of int
        1, 2, ... within each user.
    probability, value, expected_value : ndarray of float
        The probability that the pair is observed, its expected value if it is, and the product of
        the two.
    low, high : ndarray of float
        Bounds of a 90% interval of the value if the pair is observed. These and the following
        columns exist with ``details=True`` only.
    reason, reason_share : ndarray
        The user's own item that contributes most to the rate, and its share of the rate.
    user_entries, item_entries : ndarray of int
        Numbers of entries of the user and of the item in the training data; absent where they are
        not known.
    """

    user: IdArray
    item: IdArray
    rank: NDArray[np.int64]
    probability: FloatArray
    value: FloatArray
    expected_value: FloatArray

    def of(self, user: Any) -> Self:
        """Return the rows of one user; a user without any is an InputError."""
        return self.select(rows_of("user", self.user, user))


class Neighbors(Table):
    """The rows most similar to each of some rows, best first.

    Attributes
    ----------
    of, id : ndarray
        The id asked for, and the one similar to it.
    similarity : ndarray of float
        Cosine of the two profiles of rates, between 0 and 1.
    """

    of: IdArray
    id: IdArray
    similarity: FloatArray


class Explanation(Table):
    """The origin of the rate of one pair; the contributions add up to it.

    Attributes
    ----------
    source : ndarray
        The user's own items by contribution, and "(prior)" last.
    rate : ndarray of float
        The contribution of each to the rate.
    share : ndarray of float
        The same as a share of the rate.
    """

    source: IdArray
    rate: FloatArray
    share: FloatArray


# -- spreadsheets ----------------------------------------------------------------------------------

_MAX_ROWS = 1_048_576  # rows of a sheet, header included
_MAX_WIDTH = 40  # characters of a column
_MAX_EXACT = 10**15  # spreadsheets keep 15 digits of a number


class SpreadsheetWriter:
    """Writes Arrow tables to an .xlsx file, row by row, under a bold header that stays visible.

    Parameters
    ----------
    path : Path
        The file to write, of any name.
    schema : pyarrow.Schema
        The columns. Text stays text: ids such as 007 and =1+1 are not changed.
    """

    def __init__(self, path: Path, schema: Any) -> None:
        import xlsxwriter

        # With constant memory rows go to disk as they come; a sheet of text would not fit in.
        self._folder = TemporaryDirectory(prefix="hcpf-")
        options = {"constant_memory": True, "tmpdir": self._folder.name}
        self._book = xlsxwriter.Workbook(str(path), options)
        self._sheet = self._book.add_worksheet("Table")
        self._sheet.freeze_panes(1, 0)
        self._n_rows = 1
        self._integer = self._book.add_format({"num_format": "0"})
        bold = self._book.add_format({"bold": True})
        for position, name in enumerate(schema.names):
            self._sheet.write_string(0, position, name, bold)

    def write_table(self, table: Any) -> None:
        """Append the rows of a table of the same columns."""
        if self._n_rows + table.num_rows > _MAX_ROWS:
            raise InputError(
                f"A sheet holds {_MAX_ROWS - 1:,} rows, and this table has more. Write a .parquet "
                "or .csv file."
            )
        sheet, columns = self._sheet, [column.to_pylist() for column in table.columns]
        if self._n_rows == 1:
            self._set_widths(table.column_names, columns)
        for number, row in enumerate(zip(*columns, strict=True), self._n_rows):
            for position, cell in enumerate(row):
                if isinstance(cell, str):
                    sheet.write_string(number, position, cell)
                elif isinstance(cell, int):
                    self._write_integer(number, position, cell)
                elif cell is not None:
                    sheet.write_number(number, position, cell)
        self._n_rows += table.num_rows

    def _set_widths(self, names: list[str], columns: list[list[Any]]) -> None:
        for position, (name, cells) in enumerate(zip(names, columns, strict=True)):
            shown = (len(str(cell)) for cell in cells if isinstance(cell, str | int))
            width = 2 + max(len(name), 10, max(shown, default=0))
            self._sheet.set_column(position, position, min(width, _MAX_WIDTH))

    def _write_integer(self, row: int, column: int, number: int) -> None:
        """Write all digits of an id, of which a spreadsheet would show 9.78306E+12."""
        if abs(number) < _MAX_EXACT:
            self._sheet.write_number(row, column, number, self._integer)
        else:
            self._sheet.write_string(row, column, str(number))

    def close(self) -> None:
        """Complete the file; where that fails, an OSError tells why."""
        from xlsxwriter.exceptions import FileCreateError

        try:
            self._book.close()
        except FileCreateError as error:
            reason: OSError = error.args[0]
            # The writer leaves its archive open, which would print a traceback when collected.
            for frame, _ in walk_tb(reason.__traceback__):
                for left in frame.f_locals.values():
                    if isinstance(left, ZipFile):
                        with suppress(OSError):
                            left.close()
            raise reason from None
        finally:
            rows: Any = self._sheet.row_data_fh
            with suppress(OSError):  # a full disk does not take the rest of the rows either
                rows.close()
            self._folder.cleanup()
