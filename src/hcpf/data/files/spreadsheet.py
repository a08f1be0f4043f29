"""Spreadsheets: Excel's and LibreOffice's."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hcpf.data.files.base import Columns, TableFile, batch_of_cells, columns_of_rows
from hcpf.data.read_options import ReadOptions
from hcpf.errors import InputError


class SpreadsheetTable(TableFile):
    """One sheet; lines above the table, such as a title, and blank rows are skipped."""

    has_text_ids = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        super().__init__(path)
        numbered = self._read(options.sheet)
        if not numbered:
            raise InputError("the sheet is empty.")
        self.has_header = _is_header(numbered[0][1]) if options.header is None else options.header
        names = [f"f{position}" for position in range(len(numbered[0][1]))]
        if self.has_header:
            cells = numbered.pop(0)[1]
            names = [str(cell).strip() or name for cell, name in zip(cells, names, strict=True)]
        self._numbers = [number for number, _ in numbered]
        self.columns, cells = columns_of_rows(names, [row for _, row in numbered])
        self._cells = dict(zip(names, cells, strict=True))

    @property
    def counting(self) -> str:
        """How rows are numbered, for messages."""
        return "as the spreadsheet numbers them"

    def row_numbers(self, rows: Sequence[int]) -> list[int]:
        """Return the numbers that the spreadsheet shows for rows of data, counted from 0."""
        return [self._numbers[row] for row in rows]

    def batches(self, columns: Columns) -> Iterator[tuple[Any, int]]:
        """Yield all rows of the columns at once."""
        cells = [self._cells[name] for name in columns.names]
        yield batch_of_cells(columns, cells), self.path.stat().st_size

    def _read(self, sheet: str | None) -> list[tuple[int, list[Any]]]:
        """Return the rows of the table with the numbers that the spreadsheet shows."""
        from python_calamine import CalamineError, CalamineWorkbook

        try:
            with CalamineWorkbook.from_path(self.path) as book:
                names = book.sheet_names
                if sheet is not None and sheet not in names:
                    raise InputError(
                        f"sheet={sheet!r}: there is no such sheet. Sheets: {', '.join(names)}."
                    )
                first: list[tuple[int, list[Any]]] = []
                for name in names if sheet is None else [sheet]:
                    found = book.get_sheet_by_name(name)
                    rows = found.to_python(skip_empty_area=True)
                    table = _table(rows, (found.start or (0, 0))[0] + 1)
                    if table and len(table[0][1]) > 1:  # a column of text may be a cover
                        if len(names) > 1 and sheet is None:
                            self._remark_sheet(name, len(names))
                        return table
                    first = first or table
                return first
        except CalamineError as error:
            raise ValueError(f"{error}. Save it again as .xlsx or .csv.") from None

    def _remark_sheet(self, name: str, n_sheets: int) -> None:
        self.remarks.append(
            f"{self.path.name}: read the sheet {name!r}, one of {n_sheets} (otherwise pass "
            "sheet=...)."
        )


def _table(rows: list[list[Any]], first: int) -> list[tuple[int, list[Any]]]:
    """Return rows with their numbers, without blank rows and lines above the table."""
    numbered = [(number, row) for number, row in enumerate(rows, first) if _n_filled(row)]
    widest = max((_n_filled(row) for _, row in numbered), default=0)
    while widest > 1 and _n_filled(numbered[0][1]) == 1:
        numbered.pop(0)
    return numbered


def _n_filled(row: list[Any]) -> int:
    return sum(cell not in (None, "") for cell in row)


def _is_header(row: list[Any]) -> bool:
    return not any(isinstance(cell, int | float) for cell in row)
