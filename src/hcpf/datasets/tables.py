"""Reading delimited text, in any of several layouts that the first line tells apart."""

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import pyarrow as pa
from pyarrow import compute, csv

from hcpf._checks import one_of
from hcpf.data.canonical import Duplicates
from hcpf.data.columns import IdColumn, ResponseColumn, Triples
from hcpf.data.interactions import Interactions
from hcpf.datasets.sources import PathLike, Stream, Wanted, first_line, open_files, reading
from hcpf.errors import InputError

_BLOCK = 1 << 24  # bytes read at once
_CURRENCY = r"[$£€\s]"
_THOUSANDS = ",([0-9]{3})"  # a decimal comma, as in 12,50, must not be taken for one

logger = logging.getLogger("hcpf")
pc: Any = compute  # its functions are made at run time, unseen by type checkers
Arrow = Any
"""An array or a batch of pyarrow."""


@dataclass(frozen=True)
class Layout:
    """Where the columns of a published file are.

    Columns are named as in the header; where there is none, f0, f1, ... by their place.
    """

    first_line: str
    """A regular expression for the beginning of the file's first line."""
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
    """Whether quoted text may hold line ends."""
    money: bool = False
    """Whether values may be written like $1,234.50."""
    keep: tuple[str, str] | None = None
    """A column and a regular expression for what it holds in the rows to take."""

    @property
    def columns(self) -> list[str]:
        """The columns to read, each once."""
        extra = [self.keep[0]] if self.keep else []
        return list(dict.fromkeys([self.user, self.item, *self.value, *extra]))


class Gathering:
    """Collects users, items and values, batch by batch."""

    def __init__(self) -> None:
        self._users = IdColumn("user", as_numbers=True)
        self._items = IdColumn("item", as_numbers=True)
        self._values = ResponseColumn("value")
        self._dropped = 0

    def add(self, users: Arrow, items: Arrow, values: Arrow | None) -> None:
        """Take in the next rows."""
        self._users.add(users)
        self._items.add(items)
        self._values.add(values, len(users))

    def drop(self, rows: int) -> None:
        """Count rows that were left out."""
        self._dropped += rows

    def finish(self, path: PathLike) -> Triples:
        """All rows, which must be at least one."""
        if self._dropped:
            logger.info("%s: %d rows left out.", path, self._dropped)
        return Triples.gather(self._users, self._items, self._values)


def read_table(
    path: PathLike, wanted: Wanted, layouts: Sequence[Layout], duplicates: Duplicates
) -> Interactions:
    """Read the wanted files, each in the layout that its first line shows."""

    def add(gathering: Gathering, stream: Stream) -> None:
        add_table(gathering, stream, choose_layout(first_line(stream), layouts))

    return gather(path, wanted, duplicates, add)


def gather(
    path: PathLike,
    wanted: Wanted,
    duplicates: Duplicates,
    add: Callable[[Gathering, Stream], None],
) -> Interactions:
    """Read the wanted files with ``add``, and merge duplicated pairs as asked."""
    check_duplicates(duplicates)
    with reading(path, wanted):
        gathering = Gathering()
        for stream in open_files(path, wanted):
            add(gathering, stream)
        triples = gathering.finish(path)
    try:
        return Interactions(triples.to_matrix(duplicates), triples.users, triples.items)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def check_duplicates(duplicates: Duplicates) -> None:
    """Refuse an unknown way before a long file is read rather than after."""
    one_of("duplicates", duplicates, get_args(Duplicates))


def choose_layout(line: str, layouts: Sequence[Layout]) -> Layout:
    """The layout whose first line looks like this one."""
    for layout in layouts:
        if re.match(layout.first_line, line):
            return layout
    shown = line if len(line) <= 60 else line[:60] + "…"
    raise InputError(f"its first line is {shown!r}")


def add_table(gathering: Gathering, stream: Stream, layout: Layout) -> None:
    """Read one file, leaving out rows that have no id, no value, or a value of 0 or less."""
    kinds: dict[str, Any] = dict.fromkeys(layout.columns, pa.string())
    if not layout.money:
        kinds |= dict.fromkeys(layout.value, pa.float64())
    reader = csv.open_csv(
        stream,
        read_options=csv.ReadOptions(
            block_size=_BLOCK,
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
            column_types=kinds,
            include_columns=layout.columns,
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    for batch in reader:
        _add_batch(gathering, batch, layout)


def _add_batch(gathering: Gathering, batch: Arrow, layout: Layout) -> None:
    users, items = batch.column(layout.user), batch.column(layout.item)
    values = _values(batch, layout)
    keep = pc.and_(users.is_valid(), items.is_valid())
    if layout.keep is not None:
        column, pattern = layout.keep
        keep = pc.and_(keep, pc.match_substring_regex(batch.column(column), pattern))
    if values is not None:
        keep = pc.and_(keep, pc.greater(values, 0.0))
    keep = pc.fill_null(keep, False)
    taken = None if values is None else values.filter(keep)
    kept = users.filter(keep)
    gathering.add(kept, items.filter(keep), taken)
    gathering.drop(batch.num_rows - len(kept))


def _values(batch: Arrow, layout: Layout) -> Arrow | None:
    total: Any = None
    for name in layout.value:
        column = batch.column(name)
        if layout.money:
            column = pc.replace_substring_regex(column, _CURRENCY, "")
            column = pc.replace_substring_regex(column, _THOUSANDS, r"\1").cast(pa.float64())
        total = column if total is None else pc.add(total, column)
    return total
