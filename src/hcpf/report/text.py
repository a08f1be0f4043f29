"""Numbers, ids and lists of words as text."""

import math
from collections.abc import Sequence
from typing import Any
from unicodedata import bidirectional

from hcpf.data.canonical import plain
from hcpf.evaluate.scoring import Score
from hcpf.model.tables import NOT_APPLICABLE

_MAX_LABEL = 120  # characters of an id or a name


def short(value: float) -> str:
    """Return a number with three digits or all of its integer digits, without exponents if legible.

    Examples
    --------
    >>> [short(x) for x in (1234567.0, 27.5519, 23.999, 0.01234, 3.0, 1.2e-7)]
    ['1,234,567', '27.6', '24.0', '0.0123', '3', '1.2e-07']
    """
    if not math.isfinite(value):
        return NOT_APPLICABLE if math.isnan(value) else ("∞" if value > 0 else "−∞")
    size = abs(value)
    if size >= 1e10 or 0 < size < 1e-4:
        text = f"{value:.3g}"
    elif size >= 100 or value == round(value):
        text = f"{value:,.0f}"
    else:
        decimals = 2 - math.floor(math.log10(size))
        text = f"{value:,.{max(decimals, 1)}f}"
    return f"−{text[1:]}" if value < 0 else text


def percent(share: float) -> str:
    """Return a share in percent, with enough digits to distinguish small ones.

    Examples
    --------
    >>> [percent(x) for x in (0.5, 0.0123, 0.000123, 0.99999, 1.0)]
    ['50.0%', '1.2%', '0.012%', '>99.9%', '100%']
    """
    if not math.isfinite(share):
        return NOT_APPLICABLE
    value = 100.0 * share
    if 99.95 <= value < 100:
        return ">99.9%"
    if value in (0.0, 100.0) or abs(value) >= 99.95:
        return f"{value:.0f}%"
    if abs(value) >= 9.95:
        return f"{value:.1f}%"
    return f"{value:#.2g}%" if abs(value) >= 1e-3 else f"{value:.1e}%"


def tick(value: float) -> str:
    """Return the label of a tick, which is a round number.

    Examples
    --------
    >>> tick(0.25), tick(1500.0)
    ('0.25', '1,500')
    """
    return _without_zeros(short(value))


def tick_percent(share: float) -> str:
    """Return the label of a tick at a round share.

    Examples
    --------
    >>> tick_percent(0.2), tick_percent(0.001)
    ('20%', '0.1%')
    """
    return _without_zeros(percent(share)[:-1]) + "%"


def _without_zeros(text: str) -> str:
    """Return a number without zeros at the end of its decimals."""
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def score_texts(scores: Sequence[Score | None], decimals: int | None = None) -> list[str]:
    """Return scores with their standard errors, all with the same decimals.

    By default there are so many decimals that the largest standard error has two digits.

    Examples
    --------
    >>> score_texts([Score(-3.6878, 0.0088), Score(-4.368, 0.014), None])
    ['−3.688 ± 0.009', '−4.368 ± 0.014', '–']
    """
    errors = [s.error for s in scores if s is not None and 0 < s.error < math.inf]
    if decimals is None:
        decimals = max(0, 1 - math.floor(math.log10(max(errors)))) if errors else 3
    return [_score_text(score, decimals) for score in scores]


def _score_text(score: Score | None, decimals: int) -> str:
    if score is None or not math.isfinite(score.value):
        return NOT_APPLICABLE
    error = f" ± {score.error:,.{decimals}f}" if score.error > 0 else ""
    return f"{score.value:,.{decimals}f}".replace("-", "−") + error


def listed(words: Sequence[str]) -> str:
    """Return words as in a sentence: a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def id_text(value: Any) -> str:
    """Return an id as text that a page can show."""
    return label(str(plain(value)))


def label(text: str) -> str:
    """Return an id or a name so that it fits into a line and does not turn its neighbors around.

    Long ones are cut. Text with letters that run from right to left is isolated: the numbers that
    follow it stay where they are.

    Examples
    --------
    >>> label("x" * 200)[-3:], len(label("x" * 200)), label("tea")
    ('xx…', 120, 'tea')
    """
    if len(text) > _MAX_LABEL:
        text = f"{text[: _MAX_LABEL - 1]}…"
    if any(bidirectional(letter) in ("R", "AL", "RLE", "RLO", "RLI") for letter in text):
        return f"\u2068{text}\u2069"
    return text
