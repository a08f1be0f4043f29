"""Reading delimited text in any of several declared layouts, told apart by the first line."""

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import compute, csv

from hcpf.data.canonical import Duplicates
from hcpf.data.columns import TripleBuilder
from hcpf.data.interactions import Interactions
from hcpf.datasets.sources import PathLike, Source, Stream, first_line, read_source
from hcpf.errors import InputError

_BLOCK_BYTES = 1 << 24  # read at once
_CURRENCY = r"[$£€\s]"
_THOUSANDS = ",([0-9]{3})"  # not a decimal comma, as in 12,50

logger = logging.getLogger("hcpf")
pc: Any = compute  # its functions are made at run time, unseen by type checkers


@dataclass(frozen=True)
class TableLayout:
    """The columns of a published file, by their names, or f0, f1, ... without a header."""

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


def read_table(
    path: PathLike, source: Source, layouts: Sequence[TableLayout], duplicates: Duplicates
) -> Interactions:
    """Read the files of ``source``, each in the layout that its first line shows."""

    def add(builder: TripleBuilder, stream: Stream) -> None:
        add_table(builder, stream, choose_layout(first_line(stream), layouts))

    return read_triples(path, source, duplicates, add)


def read_triples(
    path: PathLike,
    source: Source,
    duplicates: Duplicates,
    add: Callable[[TripleBuilder, Stream], None],
) -> Interactions:
    """Read the files of ``source`` with ``add``."""
    builder = TripleBuilder("user", "item", "value", text_ids=True)

    def finish() -> Callable[[Duplicates], Interactions]:
        if builder.n_dropped:
            logger.info("%s: %d rows left out.", path, builder.n_dropped)
        triples = builder.finish()
        return lambda how: Interactions(triples.to_matrix(how), triples.users, triples.items)

    return read_source(path, source, duplicates, lambda stream: add(builder, stream), finish)


def choose_layout(line: str, layouts: Sequence[TableLayout]) -> TableLayout:
    """Return the layout whose first line matches, or raise an InputError."""
    for layout in layouts:
        if re.match(layout.first_line, line):
            return layout
    shown = line if len(line) <= 60 else line[:60] + "…"
    raise InputError(f"its first line is {shown!r}")


def add_table(builder: TripleBuilder, stream: Stream, layout: TableLayout) -> None:
    """Add one file without the rows that have no id, no value, or a value of 0 or less."""
    columns = (layout.user, layout.item, *layout.value, *(layout.keep or ())[:1])
    types: dict[str, Any] = dict.fromkeys(columns, pa.string())
    if not layout.money:
        types |= dict.fromkeys(layout.value, pa.float64())
    reader = csv.open_csv(
        stream,
        read_options=csv.ReadOptions(
            block_size=_BLOCK_BYTES,
            encoding=layout.encoding,
            autogenerate_column_names=not layout.header,
        ),
        parse_options=csv.ParseOptions(
            delimiter=layout.delimiter,
            quote_char='"' if layout.quoted else False,
            escape_char=layout.escape,
            newlines_in_values=layout.multiline,
        ),
        convert_options=csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    for batch in reader:
        users, items, values = batch.column(layout.user), batch.column(layout.item), None
        keep = pc.and_(users.is_valid(), items.is_valid())
        if layout.keep is not None:
            column, pattern = layout.keep
            keep = pc.and_(keep, pc.match_substring_regex(batch.column(column), pattern))
        if layout.value:
            values = _total(batch, layout)
            keep = pc.and_(keep, pc.greater(values, 0.0))
        keep = pc.fill_null(keep, False)
        kept = users.filter(keep)
        builder.add(kept, items.filter(keep), None if values is None else values.filter(keep))
        builder.n_dropped += batch.num_rows - len(kept)


def _total(batch: Any, layout: TableLayout) -> Any:
    columns = [batch.column(name) for name in layout.value]
    if layout.money:
        plain = [pc.replace_substring_regex(column, _CURRENCY, "") for column in columns]
        plain = [pc.replace_substring_regex(column, _THOUSANDS, r"\1") for column in plain]
        columns = [column.cast(pa.float64()) for column in plain]
    total = columns[0]
    for column in columns[1:]:
        total = pc.add(total, column)
    return total
