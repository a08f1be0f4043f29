"""Guessing which columns are users, items and values: by common names, else by place and type."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hcpf.errors import InputError

Kind = Literal["text", "whole", "real", "time", "other"]

# Most telling first: of two columns that match, the one whose word comes first is taken.
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
_ANY = frozenset({"id", "ids", "no", "nr", "num", "number", "code", "key", "total", "of", "the"})
_ROW_NUMBERS = frozenset({"unnamed", "index", "row", "rows", "rowid", "rownum"})
_EVENTS = frozenset({"invoice", "order", "receipt", "transaction", "basket", "session"})
_TIMES = frozenset({"time", "timestamp", "date", "datetime", "year", "month", "day", "ts"})


@dataclass(frozen=True)
class Column:
    """A column of a file: its name and what it holds."""

    name: str
    kind: Kind


@dataclass(frozen=True)
class Roles:
    """The columns of users, items and values; without the last every row counts 1."""

    user: str
    item: str
    response: str | None

    def __str__(self) -> str:
        value = "none, every row counts 1" if self.response is None else self.response
        return f"user = {self.user}, item = {self.item}, response = {value}"


def guess(
    columns: Sequence[Column], user: str | None, item: str | None, response: str | None
) -> Roles:
    """Find the columns that were not named, among those that were not either.

    >>> table = [Column("CustomerID", "whole"), Column("sku", "text"), Column("spend", "real")]
    >>> print(guess(table, None, None, None))
    user = CustomerID, item = sku, response = spend
    >>> table = [Column("a", "text"), Column("b", "whole"), Column("c", "real")]
    >>> print(guess(table, None, "a", None))
    user = b, item = a, response = c
    >>> table = [Column("", "whole"), Column("who", "text"), Column("what", "text")]
    >>> print(guess(table, None, None, None))
    user = who, item = what, response = none, every row counts 1
    """
    given = {
        role: _given(columns, role, name)
        for role, name in (("user", user), ("item", item), ("response", response))
        if name is not None and not (role == "response" and _is_none(columns, name))
    }
    left = [column for column in columns if column not in given.values()]
    found = dict(given)
    for role, words in (("user", _USERS), ("item", _ITEMS)):
        if role not in found and (column := _by_name(left, words, ("text", "whole", "other"))):
            found[role] = column
            left.remove(column)
    ids = [column for column in left if column.kind in ("text", "whole") and not _is_time(column)]
    # Row numbers, events, and a column with the name of a value are ids only if there is nothing
    # else.
    ids.sort(key=lambda column: (_stands_for_rows(column), _rank(column, _VALUES) is not None))
    for role in ("user", "item"):
        if role not in found:
            if not ids:
                raise InputError(_ask_for(role, columns))
            found[role] = ids.pop(0)
            left.remove(found[role])
    if response is None:
        value = (
            _by_name(left, _VALUES, ("whole", "real"))
            or _after_ids(columns, found, left)
            # Values that are no numbers are an error, which reading will name; not to be ignored.
            or _by_name(left, _VALUES, ("text",))
        )
        if value is not None:
            found["response"] = value
    value = found.get("response")
    return Roles(found["user"].name, found["item"].name, None if value is None else value.name)


def _is_none(columns: Sequence[Column], name: str) -> bool:
    return name.lower() == "none" and all(column.name != name for column in columns)


def _given(columns: Sequence[Column], role: str, name: str) -> Column:
    for column in columns:
        if column.name == name:
            return column
    if name.isdecimal() and int(name) < len(columns):
        return columns[int(name)]
    raise InputError(f"--{role} {name}: there is no such column. {_list(columns)}")


def _ask_for(role: str, columns: Sequence[Column]) -> str:
    return f"cannot tell which column holds the {role}s: pass --{role} COLUMN. {_list(columns)}"


def _list(columns: Sequence[Column]) -> str:
    return f"Columns: {', '.join(column.name for column in columns)}."


def _words(name: str) -> Iterator[str]:
    """The words of a column's name: of "CustomerID", "customer_id" and "Customer Id" the same."""
    for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name):
        yield word.lower()


def _rank(column: Column, words: tuple[str, ...]) -> tuple[int, int] | None:
    """How well the name fits: other words in it, and the place of its word in the list."""
    mine = list(_words(column.name))
    places = [words.index(form) for word in mine for form in _forms(word) if form in words]
    if not places:
        return None
    others = sum(not any(f in words for f in _forms(word)) and word not in _ANY for word in mine)
    return others, min(places)


def _forms(word: str) -> tuple[str, ...]:
    """The word, its singular, and the word without "id" at its end, as in userid."""
    return word, word.removesuffix("s"), word.removesuffix("id")


def _by_name(
    columns: Sequence[Column], words: tuple[str, ...], kinds: tuple[Kind, ...]
) -> Column | None:
    ranked = [
        (rank, place, column)
        for place, column in enumerate(columns)
        if column.kind in kinds and (rank := _rank(column, words)) is not None
    ]
    return min(ranked, key=lambda one: one[:2])[2] if ranked else None


def _after_ids(
    columns: Sequence[Column], found: dict[str, Column], left: Sequence[Column]
) -> Column | None:
    """The first column of numbers after users and items that is no time; else any with decimals."""
    order = list(columns)
    last = max(order.index(found["user"]), order.index(found["item"]))
    numbers = [c for c in order if c in left and c.kind in ("whole", "real") and not _is_time(c)]
    after = [column for column in numbers if order.index(column) > last]
    after += [column for column in numbers if column.kind == "real"]
    return after[0] if after else None


def _stands_for_rows(column: Column) -> bool:
    """Whether the name is that of a row's number, or of an event that joins several rows."""
    known = _ROW_NUMBERS | _EVENTS | _ANY
    words = list(_words(column.name))
    named = not words or any(word not in _ANY for word in words)
    return named and all(known.intersection(_forms(word)) for word in words)


def _is_time(column: Column) -> bool:
    return column.kind == "time" or any(word in _TIMES for word in _words(column.name))
