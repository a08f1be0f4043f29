"""Parquet and Arrow files, whose columns have types."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc, parquet

from hcpf.data.files.base import BATCH_ROWS, Columns, TableFile, typed_columns


class ParquetTable(TableFile):
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.columns = typed_columns(parquet.read_schema(path))

    def batches(self, columns: Columns) -> Iterator[tuple[Any, int]]:
        """Yield record batches of the columns, with the bytes of the file that each covers."""
        names = columns.names
        with parquet.ParquetFile(self.path) as file:
            bytes_per_row = self.path.stat().st_size / max(file.metadata.num_rows, 1)
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=names):
                yield batch.select(names), int(bytes_per_row * batch.num_rows)


class ArrowTable(TableFile):
    """An Arrow file (Feather) or stream."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with pa.memory_map(str(path)) as source:
            self.columns = typed_columns(_open(source).schema)

    def batches(self, columns: Columns) -> Iterator[tuple[Any, int]]:
        """Yield record batches of the columns, with the bytes of the file that each covers."""
        with pa.memory_map(str(self.path)) as source:
            file = _open(source)
            n_batches = getattr(file, "num_record_batches", None)
            batches = file if n_batches is None else map(file.get_batch, range(n_batches))
            for batch in batches:
                chosen = batch.select(columns.names)
                # Arrow does not check what it maps: a damaged file could crash the process.
                chosen.validate(full=True)
                yield chosen, self.path.stat().st_size // (n_batches or 1)


def _open(source: Any) -> Any:
    try:
        return ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return ipc.open_stream(source)
