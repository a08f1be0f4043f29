"""Writing tables as spreadsheets that people open and mail."""

from pathlib import Path
from typing import Any

from hcpf.errors import InputError

_MAX_ROWS = 1_048_576  # of a sheet, the header included
_MAX_WIDTH = 40  # characters of a column


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
        self._book = xlsxwriter.Workbook(str(path), {"constant_memory": True})
        self._sheet = self._book.add_worksheet("Table")
        self._sheet.freeze_panes(1, 0)
        self._n_rows = 1
        for position, name in enumerate(schema.names):
            self._sheet.set_column(position, position, min(max(len(name) + 2, 12), _MAX_WIDTH))
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
        for number, row in enumerate(zip(*columns, strict=True), self._n_rows):
            for position, cell in enumerate(row):
                if isinstance(cell, str):
                    sheet.write_string(number, position, cell)
                elif cell is not None:
                    sheet.write_number(number, position, cell)
        self._n_rows += table.num_rows

    def close(self) -> None:
        """Complete the file."""
        self._book.close()
