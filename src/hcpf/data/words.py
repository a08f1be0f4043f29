"""The reader's own words: what a file calls its users, items and values."""

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from hcpf.data.english import in_english

_AND = " and "  # between the sources and periods of joined data
_MAX_LENGTH = 24  # characters of a noun
_KEYS = frozenset({"id", "ids", "no", "nr", "num", "number", "nummer"})
_CAPITALS = "A-ZÀ-ÖØ-Þ"
_SMALL = rf"[^\W\d_{_CAPITALS}]"
_PLURALS = frozenset({"stars", "hours", "minutes", "plays", "visits", "clicks", "views", "units"})
"""Columns of values whose singular is a number of them."""


@dataclass(frozen=True)
class Words:
    """What a reader calls users, items and values, each in the singular.

    Attributes
    ----------
    user, item, value : str
        Nouns in lower case, such as customer, stock code and amount.
    currency : str
        Such as £; empty if values are not money.
    source : str
        Name of the file; empty if the data did not come from one.
    period : str
        First and last day of the data, if the file has dates.
    """

    user: str = "user"
    item: str = "item"
    value: str = "value"
    currency: str = ""
    source: str = ""
    period: str = ""

    @classmethod
    def of_columns(cls, user: str, item: str, value: str | None, **more: str) -> Self:
        """Return the words for columns with these names.

        >>> words = Words.of_columns("CustomerID", "StockCode", "Amount", currency="£")
        >>> words.users, words.items, words.value_heading
        ('customers', 'stock codes', 'Amount (£)')
        >>> Words.of_columns("member", "film", "stars").values
        'numbers of stars'
        """
        names = {"user": user, "item": item, "value": value or "value"}
        return cls(**{role: _word(name, role) for role, name in names.items()}, **more)

    def column(self, role: str, names: Iterable[str]) -> str | None:
        """Return the column that these words are from; None unless exactly one can be it.

        >>> words = Words.of_columns("CustomerID", "StockCode", "Amount")
        >>> words.column("value", ["customer", "Quantity", "amount"])
        'amount'
        """
        own = getattr(self, role)
        same = [name for name in names if own != role and _word(name, role) == own]
        return same[0] if len(same) == 1 else None

    @classmethod
    def from_json(cls, stored: Any) -> Self:
        """Return words that ``as_dict`` gave; those of a model without words are the default."""
        names = cls.__dataclass_fields__
        if not isinstance(stored, dict):
            return cls()
        return cls(**{k: v for k, v in stored.items() if k in names and isinstance(v, str)})

    def joined(self, more: Self) -> Self:
        """Return these words with the sources and the periods of both."""
        both: dict[str, str] = {}
        for name in ("source", "period"):
            parts = [part for words in (self, more) for part in getattr(words, name).split(_AND)]
            both[name] = _AND.join(filter(None, dict.fromkeys(parts)))
        return replace(self, **both)

    def as_dict(self) -> dict[str, str]:
        """Return the words by role."""
        return asdict(self)

    @property
    def users(self) -> str:
        """The plural of ``user``."""
        return plural(self.user)

    @property
    def items(self) -> str:
        """The plural of ``item``."""
        return plural(self.item)

    @property
    def values(self) -> str:
        """The plural of ``value``."""
        return plural(self.value)

    @property
    def value_axis(self) -> str:
        """The value as the label of an axis, with the currency."""
        return f"{self.value} ({self.currency})" if self.currency else self.value

    @property
    def value_heading(self) -> str:
        """The value as the heading of a column, with the currency."""
        return capitalized(self.value_axis)


def _word(name: str, role: str) -> str:
    """Return what a reader calls the rows or values of a column."""
    word = noun("amount" if role == "value" and "*" in name else name, role)
    return f"number of {word}" if role == "value" and word in _PLURALS else word


def noun(name: str, role: str) -> str:
    """Return the name of a column as a noun, or the role where the name is not one.

    >>> noun("CustomerID", "user"), noun("stock_code", "item"), noun("f0", "user")
    ('customer', 'stock code', 'user')
    >>> noun("Kunden-Nr", "user"), noun("Member number", "user"), noun("Händler", "user")
    ('customer', 'member', 'händler')
    """
    words = re.findall(rf"[{_CAPITALS}]+(?!{_SMALL})|[{_CAPITALS}]?{_SMALL}+", name)
    while words and words[-1].lower() in _KEYS:
        words.pop()
    words = [in_english(word) for word in words]
    text = " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in words)
    if name.isupper() and len(words) > 1:
        text = text.lower()
    return text if len(text) > 1 and len(text) <= _MAX_LENGTH else role


def plural(word: str) -> str:
    """Return the plural of an English noun, as far as its ending gives it.

    >>> plural("customer"), plural("category"), plural("box"), plural("hours"), plural("SKU")
    ('customers', 'categories', 'boxes', 'hours', 'SKUs')
    """
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    if re.search(r"(x|ch|sh|ss)$", word):
        return f"{word}es"
    if word.startswith("number of "):
        return word.replace("number", "numbers", 1)
    return word if word.endswith("s") or not word.isascii() else f"{word}s"


def count(number: int, word: str) -> str:
    """Return a number of things in words.

    >>> count(1, "row"), count(1200, "entry")
    ('1 row', '1,200 entries')
    """
    return f"{number:,} {word if number == 1 else plural(word)}"


def capitalized(text: str) -> str:
    """Return text with a capital letter at its start, and the rest as it is."""
    return text[:1].upper() + text[1:]


def with_article(word: str) -> str:
    """Return a noun with its indefinite article, by its first letter.

    >>> with_article("item"), with_article("user")
    ('an item', 'a user')
    """
    return f"{'an' if word[:1].lower() in 'aeio' else 'a'} {word}"
