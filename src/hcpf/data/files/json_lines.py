"""JSON lines: an object per line."""

import io
import json as text_json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
from pyarrow import json

from hcpf.data.files.base import (
    Columns,
    DecodedTable,
    Restart,
    batch_of_cells,
    cells_to_ids,
    typed_columns,
)
from hcpf.data.files.encodings import DecodedFile, detect_encoding
from hcpf.data.read_options import ReadOptions
from hcpf.errors import InputError

_BLOCK_BYTES = 1 << 24
_BATCH_LINES = 1 << 16


class JsonLinesTable(DecodedTable):
    """A file with a JSON object per line; keys that are missing are empty."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        super().__init__(path)
        self._decoded = DecodedFile(path, options.encoding or detect_encoding(path))
        self._line_by_line = False
        try:
            with self._decoded.open() as file:
                schema = json.open_json(file).schema
        except pa.ArrowInvalid:
            self._line_by_line = True
            schema = self._schema_of_objects()
        self._types = {field.name: field.type for field in schema}
        self.columns = typed_columns(schema)

    def batches(self, columns: Columns) -> Iterator[tuple[Any, int]]:
        """Yield record batches of the columns, with the bytes of the file that each covers.

        Arrow reads the file unless it fails or would round a number; then Python does.
        """
        if self._line_by_line:
            yield from self._slow_batches(columns)
            return
        types = [(name, self._typed(name)) for name in columns.names]
        options = json.ParseOptions(
            explicit_schema=pa.schema(types), unexpected_field_behavior="ignore"
        )
        blocks = json.ReadOptions(block_size=_BLOCK_BYTES)
        try:
            with self._decoded.open() as file:
                batches = json.open_json(file, read_options=blocks, parse_options=options)
                yield from self._checked(batches, columns)
        except pa.ArrowInvalid:
            self._read_exactly()

    def _typed(self, name: str) -> Any:
        arrow_type = self._types[name]
        return pa.string() if pa.types.is_null(arrow_type) else arrow_type

    def _read_exactly(self) -> NoReturn:
        self._line_by_line = True
        raise Restart

    def _objects(self) -> Iterator[dict[str, Any]]:
        with self._decoded.open() as file:
            for number, line in enumerate(io.TextIOWrapper(file, "utf-8-sig"), 1):
                if not line.strip():
                    continue
                try:
                    # Numbers with decimals stay text, which Arrow parses exactly.
                    record = text_json.loads(line, parse_float=str)
                except ValueError as error:
                    raise InputError(f"line {number} is not JSON ({error}).") from None
                if not isinstance(record, dict):
                    raise InputError(f"line {number} is not a JSON object, such as {{...}}.")
                yield record

    def _schema_of_objects(self) -> Any:
        first = list(islice(self._objects(), 1000))
        names = dict.fromkeys(name for record in first for name in record)
        columns = {name: [record.get(name) for record in first] for name in names}
        return pa.schema([(name, _array(cells).type) for name, cells in columns.items()])

    def _slow_batches(self, columns: Columns) -> Iterator[tuple[Any, int]]:
        objects = self._objects()
        while batch := list(islice(objects, _BATCH_LINES)):
            cells = [[record.get(name) for record in batch] for name in columns.names]
            yield batch_of_cells(columns, cells, _array), 0


def _array(cells: Sequence[Any]) -> Any:
    """Return integers as such, and other ids as text."""
    try:
        return pa.array(cells, pa.int64())
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return cells_to_ids(cells)
