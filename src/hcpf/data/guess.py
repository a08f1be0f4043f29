"""Guess which columns contain users, items and values: by name, else by position and type."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hcpf.data.english import in_english, without_accents
from hcpf.data.files.base import ColumnKind, FileColumn
from hcpf.data.read_options import split_product
from hcpf.errors import InputError

# Most specific first: of two columns that match, the one whose word comes first is taken.
_USERS = (
    "user", "customer", "cust", "client", "donor", "cell", "player", "reader", "listener",
    "member", "visitor", "shopper", "buyer", "household", "account", "reviewer", "subscriber",
    "person", "uid", "barcode", "sample",
)  # fmt: skip
_ITEMS = (
    "item", "product", "prod", "movie", "film", "sku", "song", "track", "gene", "cause", "book",
    "isbn", "artist", "game", "stock", "asin", "article", "goods", "project", "business", "page",
    "iid", "category", "recipient", "title",
)  # fmt: skip
_VALUES = (
    "response", "rating", "stars", "spend", "spent", "amount", "amt", "revenue", "sales", "hours",
    "minutes", "plays", "playcount", "count", "counts", "quantity", "qty", "value", "score",
    "total", "units", "clicks", "likes", "views", "purchases", "donation", "paid", "price",
    "expression", "weight",
)  # fmt: skip
_RATINGS = ("rating", "stars", "score", "grade", "mark", "review")
_AMOUNTS = (
    "spend", "spent", "amount", "amt", "revenue", "sales", "hours", "minutes", "plays", "playcount",
    "count", "counts", "quantity", "qty", "total", "units", "clicks", "likes", "views", "purchases",
    "donation", "paid", "price", "cost", "payment",
)  # fmt: skip
_TOTALS = ("amount", "amt", "revenue", "sales", "spend", "spent", "total", "paid", "payment")
_QUANTITIES, _PRICES = ("quantity", "qty", "units", "pieces"), ("price", "cost")
_ANY = frozenset(
    {"id", "ids", "no", "nr", "num", "nummer", "number", "code", "key", "total", "of", "the"}
)
_ROW_NUMBERS = frozenset({"unnamed", "index", "row", "rows", "rowid", "rownum"})
_EVENTS = frozenset({"invoice", "order", "receipt", "transaction", "basket", "session"})
_TIMES = frozenset({"time", "timestamp", "date", "datetime", "year", "month", "day", "ts"})


@dataclass(frozen=True)
class ColumnRoles:
    """The columns of users, items and values; without values every row counts as 1."""

    user: str
    item: str
    value: str | None

    def __str__(self) -> str:
        value = "none, every row counts as 1" if self.value is None else self.value
        return f"user = {self.user}, item = {self.item}, value = {value}"


def guess_columns(
    columns: Sequence[FileColumn],
    user: str | None = None,
    item: str | None = None,
    value: str | None = None,
) -> ColumnRoles:
    """Return the columns of users, items and values, guessing those that are not given.

    Parameters
    ----------
    columns : sequence of FileColumn
        The columns of a file.
    user, item, value : str, optional
        Columns that are known, by name or by position from 0 ("0", "1", ...). The value "none"
        counts every row as 1.

    Examples
    --------
    >>> table = [FileColumn("CustomerID", "integer"), FileColumn("sku", "text")]
    >>> print(guess_columns([*table, FileColumn("spend", "real")]))
    user = CustomerID, item = sku, value = spend
    >>> print(guess_columns(table, item="CustomerID"))
    user = sku, item = CustomerID, value = none, every row counts as 1
    """
    names = {"user": user, "item": item, "value": value}
    if value is not None and _is_none(columns, value):
        del names["value"]
    roles = {role: _given(columns, role, name) for role, name in names.items() if name is not None}
    left = [column for column in columns if column not in roles.values()]
    _guess_ids(columns, roles, left)
    if value is None:
        column = (
            _by_name(left, _VALUES, ("integer", "real"))
            # Text in a column of values is an error that reading reports; it is not to be ignored.
            or _by_name(left, _VALUES, ("text",))
            or _after_ids(columns, roles, left)
        )
        if column is not None:
            roles["value"] = column
    column = roles.get("value")
    return ColumnRoles(
        roles["user"].name, roles["item"].name, None if column is None else column.name
    )


def has_amounts(name: str) -> bool:
    """Return whether a column has amounts or counts by its name, which are never negative.

    >>> has_amounts("Amount (GBP)"), has_amounts("rating"), has_amounts("value")
    (True, False, False)
    """
    column = FileColumn(name, "real")
    return _rank(column, _AMOUNTS) is not None and _rank(column, _RATINGS) is None


def event_column(columns: Sequence[FileColumn], value: str | None) -> str | None:
    """Return a column that makes every row an event, such as an order: a date or an invoice.

    The rows of a pair then add up. They do not if the values are ratings, which gives None.

    >>> table = [FileColumn("customer", "text"), FileColumn("InvoiceDate", "text")]
    >>> event_column(table, "spend"), event_column(table, "rating")
    ('InvoiceDate', None)
    """
    if value is not None and _rank(FileColumn(value, "real"), _RATINGS) is not None:
        return None
    for column in columns:
        if column.name != value and (_is_time(column) or _is_event(column)):
            return column.name
    return None


def time_column(columns: Sequence[FileColumn]) -> str:
    """Return the column of dates or times, by type or by name.

    >>> time_column([FileColumn("customer", "text"), FileColumn("InvoiceDate", "text")])
    'InvoiceDate'
    """
    if not (names := time_columns(columns)):
        raise InputError(
            f"Cannot tell which column has the dates: pass time=COLUMN. {_list(columns)}"
        )
    return names[0]


def time_columns(columns: Sequence[FileColumn]) -> list[str]:
    """Return the columns of dates or times, those with such a type first."""
    times = sorted(filter(_is_time, columns), key=lambda column: column.kind != "time")
    return [column.name for column in times]


def _is_event(column: FileColumn) -> bool:
    return any(_EVENTS.intersection(_forms(word)) for word in _words(column.name))


def _guess_ids(
    columns: Sequence[FileColumn], roles: dict[str, FileColumn], left: list[FileColumn]
) -> None:
    """Add the columns of users and items to ``roles``, and take them from those ``left``."""
    for role, words in (("user", _USERS), ("item", _ITEMS)):
        if role not in roles and (column := _by_name(left, words, ("text", "integer", "other"))):
            roles[role] = column
            left.remove(column)
    ids = [column for column in left if column.kind in ("text", "integer") and not _is_time(column)]
    # Row numbers, events and columns named like values are ids only if nothing else is left.
    ids.sort(key=lambda column: (_stands_for_rows(column), _rank(column, _VALUES) is not None))
    for role in ("user", "item"):
        if role not in roles:
            if not ids:
                raise InputError(
                    f"Cannot tell which column contains the {role}s: pass {role}=COLUMN. "
                    f"{_list(columns)}"
                )
            roles[role] = ids.pop(0)
            left.remove(roles[role])


def _is_none(columns: Sequence[FileColumn], name: str) -> bool:
    return name.lower() == "none" and all(column.name != name for column in columns)


def amount_column(columns: Sequence[FileColumn], value: str | None) -> str | None:
    """Return the amounts of rows whose values are quantities: a column, or quantity times price.

    >>> table = [FileColumn("Quantity", "integer"), FileColumn("UnitPrice", "real")]
    >>> amount_column(table, "Quantity"), amount_column(table, "UnitPrice")
    ('Quantity*UnitPrice', None)
    >>> amount_column([*table, FileColumn("Line total", "real")], "Quantity")
    'Line total'
    """
    if value is None or _rank(FileColumn(value, "real"), _QUANTITIES) is None:
        return None
    others = [column for column in columns if _rank(column, _QUANTITIES) is None]
    if total := _by_name(others, _TOTALS, ("real",)):
        return total.name
    price = _by_name(others, _PRICES, ("integer", "real", "text"))
    return None if price is None else f"{value}*{price.name}"


def same_items(columns: Sequence[FileColumn]) -> list[tuple[str, str]]:
    """Return pairs of columns that are called after the same items, such as codes and names.

    >>> table = [FileColumn(name, "text") for name in ("Customer", "Product code", "Product")]
    >>> same_items(table)
    [('Product code', 'Product')]
    """
    by_words: dict[frozenset[str], list[str]] = {}
    for column in columns:
        if _rank(column, _ITEMS) is not None:
            by_words.setdefault(frozenset(_words(column.name)) - _ANY, []).append(column.name)
    return [(names[0], names[1]) for names in by_words.values() if len(names) == 2]


def _given(columns: Sequence[FileColumn], role: str, name: str) -> FileColumn:
    for column in columns:
        if column.name == name:
            return column
    parts = split_product([column.name for column in columns], name)
    if role == "value" and parts[1] is not None:
        for part in parts:
            _given(columns, role, str(part))
        return FileColumn(name, "real")
    if name.isdecimal() and int(name) < len(columns):
        return columns[int(name)]
    raise InputError(f"{role}={name!r}: there is no such column. {_list(columns)}")


def _list(columns: Sequence[FileColumn]) -> str:
    return f"Columns: {', '.join(column.name for column in columns)}."


def _words(name: str) -> Iterator[str]:
    """Yield the words of a name: the same for "CustomerID", "customer_id" and "Kunden-ID"."""
    for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", without_accents(name)):
        yield in_english(word.lower())


def _rank(column: FileColumn, words: tuple[str, ...]) -> tuple[int, int] | None:
    """Return how well a name fits, lowest first: its other words, and the rank of its word."""
    mine = list(_words(column.name))
    ranks = [words.index(form) for word in mine for form in _forms(word) if form in words]
    if not ranks:
        return None
    others = sum(not any(f in words for f in _forms(word)) and word not in _ANY for word in mine)
    return others, min(ranks)


def _forms(word: str) -> tuple[str, ...]:
    """Return the word, its singular, and the word without a final "id", as in userid."""
    return word, word.removesuffix("s"), word.removesuffix("id")


def _by_name(
    columns: Sequence[FileColumn], words: tuple[str, ...], kinds: tuple[ColumnKind, ...]
) -> FileColumn | None:
    ranked = [
        (rank, position, column)
        for position, column in enumerate(columns)
        if column.kind in kinds and (rank := _rank(column, words)) is not None
    ]
    return min(ranked, key=lambda entry: entry[:2])[2] if ranked else None


def _after_ids(
    columns: Sequence[FileColumn], roles: dict[str, FileColumn], left: Sequence[FileColumn]
) -> FileColumn | None:
    """Return the first column of numbers after the ids, else one of decimals; never a time."""
    order = list(columns)
    last = max(order.index(roles["user"]), order.index(roles["item"]))
    numbers = [c for c in order if c in left and c.kind in ("integer", "real") and not _is_time(c)]
    after = [column for column in numbers if order.index(column) > last]
    after += [column for column in numbers if column.kind == "real"]
    return after[0] if after else None


def _stands_for_rows(column: FileColumn) -> bool:
    """Return whether the name is that of row numbers, or of events that join several rows."""
    known = _ROW_NUMBERS | _EVENTS | _ANY
    words = list(_words(column.name))
    named = not words or any(word not in _ANY for word in words)
    return named and all(known.intersection(_forms(word)) for word in words)


def _is_time(column: FileColumn) -> bool:
    return column.kind == "time" or any(word in _TIMES for word in _words(column.name))
