"""Delimited text files of any encoding, delimiter and way to write numbers."""

import csv as text_csv
import io
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
from pyarrow import csv

from hcpf.data.amounts import is_plain, mostly_amounts
from hcpf.data.files.base import Columns, DecodedTable, FileColumn, Restart, typed_columns
from hcpf.data.files.encodings import (
    COMPRESSIONS,
    FALLBACK,
    UTF8,
    DecodedFile,
    detect_encoding,
    example_word,
)
from hcpf.data.read_options import ReadOptions
from hcpf.data.times import are_dates
from hcpf.errors import InputError

TAB_SUFFIXES = (".tsv", ".tab")

_MEGABYTE = 1 << 20
_BLOCK_BYTES = 16 * _MEGABYTE  # read at once
_MAX_LINE_BYTES = 64 * _MEGABYTE
_MAX_COLUMNS = 10_000
_MAX_KIND_ROWS = 1000
_MAX_SHOWN = 3
_DELIMITERS = ",\t;|"
_NULLS = ["", "NA", "NaN", "nan", "null", "NULL", "None"]


class TextTable(DecodedTable):
    """A delimited text file."""

    has_text_ids = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        super().__init__(path)
        self._may_change_encoding = options.encoding is None
        self.encoding = detect_encoding(path) if options.encoding is None else options.encoding
        if self._may_change_encoding and self.encoding != UTF8:
            self._remark_encoding()
        self._decoded = DecodedFile(path, self.encoding)
        self._reads_amounts = options.decimal == ","
        first = self._first_record()
        self._block_bytes = max(_MEGABYTE, 2 * len(first))
        self.delimiter = options.delimiter or self._guess_delimiter(first)
        _check_width(first, self.delimiter)
        self.has_header = (
            not any(map(_is_number, self._first_rows(header=True).schema.names))
            if options.header is None
            else options.header
        )
        self.first_row = 2 if self.has_header else 1
        rows = self._first_rows(header=self.has_header)
        # By position: two columns may have the same name.
        columns = zip(typed_columns(rows.schema), rows.columns, strict=True)
        self.columns = [_kind_by_texts(*column) for column in columns]

    def batches(self, columns: Columns) -> Iterator[tuple[Any, int]]:
        """Yield record batches of the columns, with the bytes of the file that each covers.

        Numbers are read by Arrow as long as all are written plainly; otherwise the file asks to be
        read again and gives the texts.
        """
        if columns.value is not None and not self._reads_amounts:
            sample = self._first_rows(header=self.has_header, as_text=columns.value)
            self._reads_amounts = not is_plain(sample.column(columns.value))
        # Ids are read as text, or "007" would become 7.
        types = dict.fromkeys(columns.names, pa.string())
        if columns.value is not None and not self._reads_amounts:
            types[columns.value] = pa.float64()
        with self._reading_differently(), self._decoded.open() as file:
            yield from self._checked(self._open(file, types), columns)

    def row_numbers(self, rows: Sequence[int]) -> list[int]:
        """Return the numbers that a spreadsheet shows; blank lines count although Arrow skips them.

        The file is read again as far as the last of the rows.
        """
        wanted, last, numbers = set(rows), max(rows, default=0), dict[int, int]()
        row = -1 if self.has_header else 0
        try:
            for number, record in self._records():
                if record:
                    if row in wanted:
                        numbers[row] = number
                    if row >= last:
                        break
                    row += 1
        except (text_csv.Error, OSError, ValueError):
            pass  # what Arrow reads, another parser may refuse: count without blank lines
        return [numbers.get(row, row + self.first_row) for row in rows]

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of every record with its fields, blank ones included."""
        with self._decoded.open() as file:
            text = io.TextIOWrapper(file, "utf-8-sig", "replace", newline="")
            yield from enumerate(text_csv.reader(text, delimiter=self.delimiter), 1)

    def _open(self, file: Any, types: dict[Any, Any] | None, *, header: bool | None = None) -> Any:
        header = self.has_header if header is None else header
        is_whole = types is not None
        return csv.open_csv(
            file,
            read_options=csv.ReadOptions(
                block_size=max(_BLOCK_BYTES, self._block_bytes) if is_whole else self._block_bytes,
                autogenerate_column_names=not header,
            ),
            parse_options=csv.ParseOptions(
                delimiter=self.delimiter,
                # Without it a block could end within a quoted id.
                newlines_in_values=True,
            ),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=list(types or ()),
                null_values=_NULLS,
                strings_can_be_null=is_whole,
                quoted_strings_can_be_null=False,
            ),
        )

    def _first_rows(self, *, header: bool, as_text: str | None = None) -> Any:
        """Return the rows of the first block, of one column as text if asked for."""
        types = None if as_text is None else {as_text: pa.string()}
        with self._reading_differently(), self._decoded.open() as file:
            reader = self._open(file, types, header=header)
            return next(iter(reader), pa.RecordBatch.from_pylist([], reader.schema))

    def _check_lengths(self, expected: int) -> None:
        """Raise an InputError for the rows that have too few or too many fields, if any."""
        n_rows, shown = 0, list[str]()
        for number, record in self._records():
            if record and len(record) != expected:
                n_rows += 1
                if len(shown) < _MAX_SHOWN:
                    text = self.delimiter.join(record)[:40]
                    shown.append(f"{text!r} in row {number} has {len(record)}")
        if n_rows:
            more = f" ({n_rows:,} rows in total)" if n_rows > len(shown) else ""
            raise InputError(
                f"rows must have {expected} columns, as the first one, but {', '.join(shown)}"
                f"{more}. Put quotes around texts that contain {self.delimiter!r}, or pass another "
                "delimiter=..."
            )

    def _read_exactly(self) -> NoReturn:
        self._reads_amounts = True
        raise Restart

    @contextmanager
    def _reading_differently(self) -> Generator[None]:
        """Ask for a restart where Arrow fails on numbers or on text in another encoding."""
        try:
            yield
        except pa.ArrowInvalid as error:
            text = str(error)
            lengths = re.search(r"Expected (\d+) columns, got", text)
            if lengths:
                self._check_lengths(int(lengths[1]))
            if "conversion error to double" in text and not self._reads_amounts:
                self._read_exactly()
            if "invalid UTF8" in text and self._may_change_encoding and self.encoding == UTF8:
                self.encoding, self._decoded = FALLBACK, DecodedFile(self.path, FALLBACK)
                self._remark_encoding()
                raise Restart from None
            raise

    def _remark_encoding(self) -> None:
        names = {FALLBACK: "Windows-1252, because it is not UTF-8"}
        word = example_word(self.path, self.encoding)
        example = f", e.g. {word!r}" if word else ""
        self.remarks.append(
            f"{self.path.name}: read as {names.get(self.encoding, self.encoding.upper())}{example} "
            "(otherwise pass encoding=...)."
        )

    def _first_record(self) -> str:
        """Return the text up to the first line end outside quotes, blank lines skipped."""
        text = ""
        with self._decoded.open() as file:
            while chunk := file.read(_MEGABYTE):
                # A character may be divided; only delimiters and quotes matter here.
                text += bytes(chunk).decode("utf-8", "replace")
                lines = re.sub('"[^"]*"', lambda m: re.sub(r"[\r\n]", " ", m[0]), text.lstrip())
                end = re.search(r"[\r\n]", lines)
                if end:
                    return lines[: end.start()]
                if len(text) > _MAX_LINE_BYTES:
                    raise InputError(
                        f"the first line is longer than {_MAX_LINE_BYTES >> 20} MB: this is not a "
                        "table of text with one row per line."
                    )
        return text.strip()

    def _guess_delimiter(self, line: str) -> str:
        suffixes = [suffix.lower() for suffix in self.path.suffixes]
        if suffixes and suffixes[-1] in COMPRESSIONS:
            suffixes.pop()
        return "\t" if suffixes and suffixes[-1] in TAB_SUFFIXES else guess_delimiter(line)


def guess_delimiter(text: str) -> str:
    """Return the most frequent candidate in the first line, outside quotes."""
    unquoted = re.sub('"[^"]*"', "", text)
    line = next((line for line in unquoted.splitlines() if line), "")
    return max(_DELIMITERS, key=line.count)


def _check_width(first: str, delimiter: str) -> None:
    n_columns = re.sub('"[^"]*"', "", first).count(delimiter) + 1
    if n_columns > _MAX_COLUMNS:
        raise InputError(
            f"the first line has {n_columns:,} columns, but a table has one row per pair: a column "
            "of users, one of items and one of values. For a table with a column per item, pass "
            "its numbers to Interactions.from_matrix()."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.lower() not in ("nan", "inf", "infinity")  # words that float() accepts


def _kind_by_texts(column: FileColumn, values: Any) -> FileColumn:
    """Return a text column as one of times or real numbers if its first texts say so."""
    if column.kind != "text":
        return column
    texts = values[:_MAX_KIND_ROWS]
    if are_dates(texts):
        return FileColumn(column.name, "time")
    return FileColumn(column.name, "real") if mostly_amounts(texts) else column
