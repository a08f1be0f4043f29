"""Queries of SQLite and DuckDB databases, which are opened for reading only."""

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hcpf.data.files.base import Columns, TableFile, batch_of_cells, columns_of_rows
from hcpf.data.read_options import ReadOptions
from hcpf.errors import InputError, MissingDependencyError

_BATCH_ROWS = 1 << 16
_SQLITE = b"SQLite format 3\0"
_DUCKDB = b"DUCK"  # from the ninth byte on


class DatabaseTable(TableFile):
    """The rows of a query, or of the only table."""

    has_text_ids = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        super().__init__(path)
        with path.open("rb") as file:
            head = file.read(16)
        self._is_sqlite = head == _SQLITE
        if not self._is_sqlite and head[8:12] != _DUCKDB:
            raise InputError("this is neither an SQLite nor a DuckDB database.")
        with self._connect() as database:
            self._sql = options.sql or self._whole_table(database)
            cursor = database.execute(self._sql)
            if cursor.description is None:
                raise InputError(f"sql={self._sql!r} returns no rows. Pass a SELECT query.")
            names = [column[0] for column in cursor.description]
            self.columns, _ = columns_of_rows(names, cursor.fetchmany(1000))

    def batches(self, columns: Columns) -> Iterator[tuple[Any, int]]:
        """Yield record batches of the columns; the bytes that they cover are unknown."""
        positions = [self.names.index(name) for name in columns.names]
        with self._connect() as database:
            cursor = database.execute(self._sql)
            while rows := cursor.fetchmany(_BATCH_ROWS):
                cells = list(zip(*rows, strict=True))
                yield batch_of_cells(columns, [cells[position] for position in positions]), 0

    @contextmanager
    def _connect(self) -> Generator[Any]:
        """Open the database; raise its errors as ValueErrors, which name the file."""
        if self._is_sqlite:
            address = f"file:{quote(str(self.path.absolute()))}?mode=ro"
            connect, error_type = lambda: sqlite3.connect(address, uri=True), sqlite3.Error
        else:
            duckdb = _import_duckdb()
            connect = lambda: duckdb.connect(str(self.path), read_only=True)  # noqa: E731
            error_type = duckdb.Error
        try:
            with closing(connect()) as database:
                yield database
        except error_type as error:
            raise ValueError(f"{error}") from None

    def _whole_table(self, database: Any) -> str:
        query = (
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE "
            "'sqlite_%'"
            if self._is_sqlite
            else "SELECT table_name FROM information_schema.tables"
        )
        names = [name for (name,) in database.execute(query).fetchall()]
        if len(names) != 1:
            known = ", ".join(names) or "none"
            raise InputError(
                f"the database has {len(names)} tables: {known}. Pass the rows to read as "
                "sql='SELECT user, item, value FROM ...'."
            )
        table = names[0].replace('"', '""')
        self.remarks.append(f"{self.path.name}: read the table {names[0]!r}.")
        return f'SELECT * FROM "{table}"'


def _import_duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise MissingDependencyError.of_extra("This database requires duckdb", "duckdb") from None
    return duckdb
