"""A histogram in a terminal, of blocks an eighth of a character wide."""

import shutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hcpf._types import FloatArray

_BLOCKS = " ▏▎▍▌▋▊▉█"
_MOST = 12  # bars
_WIDEST = 50  # characters
_WIDE = 50.0  # the ratio of the greatest value to the median from which bins grow by a factor


def histogram(values: "FloatArray") -> list[dict[str, float]]:
    """Counts by value if there are few values; else in equal bins, or in growing ones."""
    import numpy as np

    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= _MOST:
        return [
            {"from": float(value), "to": float(value), "count": int(count)}
            for value, count in zip(distinct, counts, strict=True)
        ]
    least, greatest = float(distinct[0]), float(distinct[-1])
    if least > 0 and greatest > _WIDE * float(np.median(values)):
        edges = np.geomspace(least, greatest, _MOST + 1)
        edges = np.unique(_rounded(edges))
    else:
        edges = np.linspace(least, greatest, _MOST + 1)
    edges[0], edges[-1] = least, greatest  # rounding must not lose any
    counts, _ = np.histogram(values, edges)
    return [
        {"from": float(edges[j]), "to": float(edges[j + 1]), "count": int(counts[j])}
        for j in range(len(counts))
    ]


def _rounded(edges: "FloatArray") -> "FloatArray":
    """Two digits are enough for a picture."""
    import numpy as np

    scale = 10.0 ** (np.floor(np.log10(edges)) - 1)
    return np.round(edges / scale) * scale


def bars(bins: list[dict[str, Any]]) -> list[str]:
    """One line for each bin: its bounds, a bar, and its share."""
    total = sum(one["count"] for one in bins)
    most = max(one["count"] for one in bins)
    labels = [_label(one) for one in bins]
    margin = max(map(len, labels))
    width = max(10, min(_WIDEST, shutil.get_terminal_size().columns - margin - 14))
    lines: list[str] = []
    for label, one in zip(labels, bins, strict=True):
        eighths = round(8 * width * one["count"] / most)
        if one["count"] and not eighths:
            eighths = 1  # what is there is seen
        bar = "█" * (eighths // 8) + _BLOCKS[eighths % 8].strip()
        lines.append(f"{label:>{margin}}  {bar:<{width}}  {100 * one['count'] / total:5.1f}%")
    return lines


def _label(one: dict[str, Any]) -> str:
    if one["from"] == one["to"]:
        return f"{one['from']:g}"
    return f"{_short(one['from'])} – {_short(one['to'])}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
