"""Amounts as people write them: currency signs, thousands separators, decimal commas.

All work is done by Arrow on distinct texts, never row by row. Whether "1,234" means 1234 or 1.234
is decided by all texts of a column together.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from hcpf._types import BoolArray, FloatArray
from hcpf.data.exact import MAX_EXACT
from hcpf.errors import InputError

Mark = Literal[".", ","]
TextArray = Any
"""A ``pyarrow.Array`` of text."""
pc: Any = compute  # its functions are made at run time, unseen by type checkers

_OTHER_SPACES = r"[\x{a0}\x{2009}\x{202f}]"
"""Those that do not break, and thin ones; ``_clean`` puts ordinary ones in their place."""
_CODES = (
    "AED|ARS|AUD|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR|ISK|JPY|KES|"
    "KRW|MAD|MXN|MYR|NGN|NOK|NZD|PEN|PHP|PKR|PLN|RON|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|VND|ZAR"
)
_THREE_DECIMALS = "BHD|IQD|JOD|KWD|LYD|OMR|TND"
_CURRENCY = (
    rf"[A-Z]{{0,3}}\p{{Sc}}|(?i:{_CODES}|{_THREE_DECIMALS}|euros?)|kr\.?|zł|Kč|Ft|Fr\.?|Rs\.?|lei|"
    r"лв\.?|руб\.?"
)
_SIGN = r"[-+−–]?"
_AMOUNT = (
    rf"^(?P<open>\(?)\s*(?P<sign>{_SIGN})\s*(?P<before>(?:{_CURRENCY})?)\s*(?P<inner>{_SIGN})\s*"
    rf"(?P<body>[\d.,'’ ]*\d[.,]?)(?P<exponent>(?:[eE][-+]?\d+)?)"
    rf"\s*(?P<after>(?:{_CURRENCY}|%)?)\s*(?P<trailing>-?)\s*(?P<close>\)?)$"
)
_PLAIN = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"


def is_plain(texts: TextArray) -> bool:
    """Return whether Arrow can be left to read the numbers of a sample of a column.

    Numbers such as 950 and 1.234, where all decimals are three digits, are not plain: they may
    have thousands separators.
    """
    present = pc.unique(texts.drop_null())
    if len(present) and not pc.all(pc.match_substring_regex(present, _PLAIN)).as_py():
        return False
    unsigned = pc.utf8_ltrim(_clean(present), characters="-+")
    bodies = _Bodies(unsigned, np.zeros(len(present), np.bool_))
    return bodies.is_decisive or not (bodies.unclear.any() and bodies.neutral.any())


def mostly_amounts(texts: TextArray) -> bool:
    """Return whether more than half of the texts are amounts with a mark or a currency.

    Integers are not counted: they may be ids.
    """
    present = texts.drop_null()
    present = present.filter(pc.not_equal(present, ""))
    body = pc.fill_null(pc.struct_field(pc.extract_regex(_clean(present), _AMOUNT), "body"), "")
    bodies = _Bodies(body, np.zeros(len(present), np.bool_))
    amounts = bodies.valid["."] | bodies.valid[","]
    return 2 * int(np.sum(amounts & ~_matches(present, r"^\s*[-+]?\d*\s*$"))) > len(present)


@dataclass(frozen=True)
class ParsedAmounts:
    """Numbers of distinct texts, and which texts are not numbers and why."""

    values: FloatArray
    not_numbers: BoolArray
    inexact: BoolArray
    """Integers that float64 cannot hold."""
    vanished: BoolArray
    """Numbers other than 0 that are 0 in float64."""
    currency: str
    """Such as £; empty if no text has one."""
    remark: str | None
    """How the column was read, with an example, unless its numbers are written plainly."""


def parse_amounts(name: str, texts: TextArray, decimal: str | None = None) -> ParsedAmounts:
    """Return the numbers that the distinct texts of a column stand for.

    Parameters
    ----------
    name : str
        The column, for messages.
    texts : pyarrow array of text
        Without nulls.
    decimal : {".", ","}, optional
        The decimal mark; by default that which all texts agree on.

    Examples
    --------
    >>> parsed = parse_amounts("paid", pa.array(["£1,234.50", "(12.00)", "n/a"]))
    >>> parsed.values, parsed.not_numbers
    (array([1234.5,  -12. ,     nan]), array([False, False,  True]))
    >>> parsed.remark
    "paid: read as money, e.g. '£1,234.50' = 1234.5."
    """
    texts = _clean(texts.cast(pa.string()))
    parts = pc.extract_regex(texts, _AMOUNT)
    field = {key: pc.fill_null(pc.struct_field(parts, key), "") for key in _field_names(parts)}
    signs = [_is_minus(field[key]) for key in ("sign", "inner", "trailing")]
    in_brackets = _equals(field["open"], "(")
    well_formed = (
        _is_valid(parts.is_valid())
        & (in_brackets == _equals(field["close"], ")"))
        & (np.sum([in_brackets, *signs], axis=0) <= 1)
    )
    units = pc.binary_join_element_wise(field["before"], field["after"], "")
    _check_units(name, texts, units, well_formed)
    bodies = _Bodies(field["body"], ~_equals(field["exponent"], ""))
    mark = decimal or _decide(name, texts, bodies, units, well_formed)
    numbers, readable = bodies.numbers(mark)
    readable &= well_formed
    numbers = pc.binary_join_element_wise(numbers, field["exponent"], "")
    numbers = pc.if_else(pa.array(readable), numbers, "nan")
    values = numbers.cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
    values[np.any([in_brackets, *signs], axis=0)] *= -1.0
    nonzero = _is_valid(pc.match_substring_regex(numbers, r"^[0.]*[1-9]"))
    return ParsedAmounts(
        values,
        ~readable,
        _inexact(numbers, values),
        readable & nonzero & (values == 0.0),
        _currency(units, well_formed),
        _remark(name, texts, values, units, readable),
    )


class _Bodies:
    """The digits and marks of numbers, read with either decimal mark."""

    def __init__(self, texts: TextArray, has_exponent: BoolArray) -> None:
        self.texts, self.has_exponent = texts, has_exponent

    @cached_property
    def neutral(self) -> BoolArray:
        """Numbers without a mark, which mean the same either way."""
        return _is_valid(pc.match_substring_regex(self.texts, r"^[\d'’ ]*$"))

    @cached_property
    def valid(self) -> dict[Mark, BoolArray]:
        """Numbers that are well written with a decimal point, and with a decimal comma."""
        return {mark: self._valid(mark) for mark in (".", ",")}

    @property
    def unclear(self) -> BoolArray:
        """Numbers such as 1,234, which mean something else with the other decimal mark."""
        return self.valid["."] & self.valid[","] & ~self.neutral

    def votes(self, mark: Mark) -> BoolArray:
        """Return the numbers that have a meaning with one decimal mark only."""
        other: Mark = "," if mark == "." else "."
        return self.valid[mark] & ~self.valid[other]

    @property
    def is_decisive(self) -> bool:
        """Whether a number shows which decimal mark is used."""
        return bool((self.votes(".") | self.votes(",")).any())

    def numbers(self, mark: str) -> tuple[TextArray, BoolArray]:
        """Return the numbers as programs write them, and which of them are valid."""
        group = "," if mark == "." else "."
        plain = pc.replace_substring_regex(self.texts, rf"['’ {group}]", "")
        decimal: Mark = "." if mark == "." else ","
        return pc.replace_substring(plain, mark, "."), self.valid[decimal]

    def _valid(self, mark: Mark) -> BoolArray:
        group = "," if mark == "." else r"\."
        mark_pattern = r"\." if mark == "." else ","
        first = r"[1-9]\d{0,2}"
        whole = (
            rf"\d+|{first}({group}\d{{3}})+|[1-9]\d?({group}\d\d)*{group}\d{{3}}|"
            rf"{first}( \d{{3}})+|{first}(['’]\d{{3}})+"
        )
        valid = _is_valid(
            pc.match_substring_regex(
                self.texts, rf"^(({whole})({mark_pattern}\d*)?|{mark_pattern}\d+)$"
            )
        )
        # A program wrote a number with an exponent, and it writes no thousands separators.
        has_group = _is_valid(pc.match_substring_regex(self.texts, rf"[{group}]"))
        return valid & ~(self.has_exponent & has_group)


def _decide(
    name: str, texts: TextArray, bodies: _Bodies, units: TextArray, used: BoolArray
) -> Mark:
    """Return the decimal mark that the texts agree on, or raise an InputError."""
    masks = bodies.votes("."), bodies.votes(","), bodies.unclear
    point, comma, unclear = (np.flatnonzero(mask & used) for mask in masks)
    if len(point) and len(comma):
        raise InputError(
            f"Column {name!r} has decimal points, as in {texts[int(point[0])].as_py()!r}, and "
            f"decimal commas, as in {texts[int(comma[0])].as_py()!r}. Pass decimal='.' or ',', and "
            "the others become an error that shows their rows."
        )
    if len(point) or len(comma) or not len(unclear):
        return "," if len(comma) else "."
    example = texts[int(unclear[0])].as_py()
    has_comma = _contains(bodies.texts, ",")[unclear]
    # Money has two decimals or none: three digits after the mark are thousands.
    two_decimals = _is_money(units, used) & ~_matches(units, rf"(?i){_THREE_DECIMALS}")
    if two_decimals.any() and (has_comma.all() or not has_comma.any()):
        return "." if has_comma.all() else ","
    raise InputError(
        f"Column {name!r}: {example!r} may have thousands or decimals, and no other value of the "
        f"column decides it. Pass decimal='.' or ',' for the mark before decimals."
    )


def _check_units(name: str, texts: TextArray, units: TextArray, used: BoolArray) -> None:
    """Raise an InputError if amounts are in several currencies, or only some are percentages."""
    codes = pc.dictionary_encode(units)
    positions = [
        np.flatnonzero((codes.indices.to_numpy() == code) & used)
        for code in range(len(codes.dictionary))
    ]
    present = {
        unit.as_py(): int(rows[0])
        for unit, rows in zip(codes.dictionary, positions, strict=True)
        if len(rows)
    }
    if "%" not in present:
        present.pop("", None)
    if len(present) > 1:
        first, second = (repr(texts[row].as_py()) for row in list(present.values())[:2])
        raise InputError(
            f"Column {name!r} has values in different units, such as {first} and {second}. "
            "Convert them to one unit first."
        )


def _remark(
    name: str, texts: TextArray, values: FloatArray, units: TextArray, readable: BoolArray
) -> str | None:
    special = readable & ~_matches(texts, _PLAIN)
    if not special.any():
        return None
    lengths = pc.utf8_length(texts).to_numpy()
    longest = int(np.argmax(np.where(special, lengths, -1)))
    text, unit = texts[longest].as_py()[:40], units[longest].as_py()
    how = "percentages" if unit == "%" else "money" if unit else "numbers"
    return f"{name}: read as {how}, e.g. {text!r} = {float(values[longest]):.12g}."


def _inexact(numbers: TextArray, values: FloatArray) -> BoolArray:
    """Return the integers that are not what their float is; only long ones are looked at."""
    inexact = np.zeros(len(values), np.bool_)
    integers = _matches(numbers, r"^\d+$")
    for row in np.flatnonzero((np.abs(values) >= MAX_EXACT) & integers & np.isfinite(values)):
        inexact[row] = int(numbers[int(row)].as_py()) != abs(int(values[row]))
    return inexact


def _clean(texts: TextArray) -> TextArray:
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, _OTHER_SPACES, " "))


def _field_names(parts: Any) -> list[str]:
    return [parts.type.field(position).name for position in range(parts.type.num_fields)]


def _currency(units: TextArray, used: BoolArray) -> str:
    money = units.filter(pa.array(_is_money(units, used)))
    return money[0].as_py() if len(money) else ""


def _is_money(units: TextArray, used: BoolArray) -> BoolArray:
    return used & ~_equals(units, "") & ~_equals(units, "%")


def _is_minus(signs: TextArray) -> BoolArray:
    return _matches(signs, "[-−–]")


def _equals(texts: TextArray, text: str) -> BoolArray:
    return _is_valid(pc.equal(texts, text))


def _contains(texts: TextArray, text: str) -> BoolArray:
    return _is_valid(pc.match_substring(texts, text))


def _matches(texts: TextArray, pattern: str) -> BoolArray:
    return _is_valid(pc.match_substring_regex(texts, pattern))


def _is_valid(mask: Any) -> NDArray[np.bool_]:
    """Return an Arrow mask as an array; null is False."""
    return pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
