"""Numbers as a reader wants them."""

import math
from typing import Any

from hcpf.data.canonical import plain
from hcpf.evaluate.score import Score

NOTHING = "–"


def short(value: float) -> str:
    """About three digits, grouped, without exponents where that can be read.

    Examples
    --------
    >>> [short(x) for x in (1234567.0, 27.5519, 0.01234, 3.0, 1.2e-7, 2.5e12)]
    ['1,234,567', '27.6', '0.0123', '3', '1.2e-07', '2.5e+12']
    """
    if not math.isfinite(value):
        return NOTHING if math.isnan(value) else ("∞" if value > 0 else "−∞")
    size = abs(value)
    if size >= 1e10 or 0 < size < 1e-4:
        return f"{value:.3g}".replace("-", "−", 1) if value < 0 else f"{value:.3g}"
    if size >= 100 or value == round(value):
        text = f"{value:,.0f}"
    else:
        digits = 2 - math.floor(math.log10(size)) if size else 0
        text = f"{value:,.{max(digits, 1)}f}".rstrip("0").rstrip(".")
    return text.replace("-", "−", 1)


def percent(share: float) -> str:
    """A share as a percentage, with digits enough to tell small ones apart.

    Examples
    --------
    >>> [percent(x) for x in (0.5, 0.0123, 0.000123, 0.9990, 0.99999)]
    ['50%', '1.2%', '0.012%', '99.9%', '>99.9%']
    """
    if not math.isfinite(share):
        return NOTHING
    value = 100.0 * share
    if 99.95 <= value < 100:
        return ">99.9%"
    if value == 0 or abs(value) >= 9.95:
        return f"{value:.1f}".removesuffix(".0") + "%"
    return f"{value:.2g}%" if abs(value) >= 1e-3 else f"{value:.1e}%"


def scored(score: Score | None) -> str:
    """A score with its standard error, or a dash."""
    if score is None or not math.isfinite(score.value):
        return NOTHING
    return str(score).replace("-", "−")


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun.

    Examples
    --------
    >>> counted(1, "pass", "passes"), counted(1200, "item")
    ('1 pass', '1,200 items')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def listed(words: list[str]) -> str:
    """Words in a sentence: a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def id_text(value: Any) -> str:
    """An id as text."""
    return str(plain(value))
