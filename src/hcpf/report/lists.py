"""Charts without two axes: a heat map, bars and differences, one below the other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from hcpf._types import FloatArray
from hcpf.report.drawing import (
    BOX,
    CHARACTER,
    CIRCLE,
    LINE,
    LINE_CHARACTERS,
    NOTHING,
    PATH,
    TEXT,
    TIP,
    WIDTH,
    Drawing,
    Point,
)
from hcpf.report.text import percent, tick

_MIN_LABEL_WIDTH = 18.0  # of a heat map's labels, two digits and a gap
_TICK_WIDTH = 38.0  # room for the label of a tick
_COLORS = ("model", "first", "second", "third")


@dataclass
class HeatMap(Drawing):
    """The lower triangle of a symmetric matrix of shares; the larger, the stronger its color."""

    title: str
    how: str
    names: Sequence[str]
    shares: FloatArray
    labels: tuple[str, str] = ("pair", "share")

    def points(self) -> list[Point]:
        """Return the shares of all pairs."""
        return [
            Point(name, float(k), f"{name} and {self.names[k]}", share, percent(share))
            for j, name in enumerate(self.names)
            for k in range(j)
            for share in [float(self.shares[j, k])]
        ]

    def _body(self) -> tuple[Markup, float]:
        size, points = len(self.names), self.points()
        left, side = 26.0, (WIDTH - 30) / max(size, 4)
        strongest = max([0.3, *(point.y for point in points)])
        every = math.ceil(_MIN_LABEL_WIDTH / side)  # labels closer than that run together
        parts = [
            text
            for j, name in enumerate(self.names)
            if j % every == 0
            for text in (
                TEXT.format("end", left - 5, (j + 0.5) * side + 4, name),
                TEXT.format("middle", left + (j + 0.5) * side, size * side + 16, name),
            )
        ]
        rows = [j for j in range(size) for _ in range(j)]
        for j, point in zip(rows, points, strict=True):
            shade = Markup(' fill-opacity="{:.2f}"').format(max(point.y / strongest, 0.04))
            tip = TIP.format(f"{point.x_text}: {point.y_text}")
            corner = left + point.x * side, j * side
            parts.append(BOX.format("cell", *corner, side - 1, side - 1, shade, tip))
        return NOTHING.join(parts), size * side + 24


@dataclass
class BarList(Drawing):
    """Shares as bars, one below the other, each under its name."""

    title: str
    how: str
    names: Sequence[str]
    shares: Sequence[float]
    labels: tuple[str, str] = ("name", "share")

    def points(self) -> list[Point]:
        """Return the shares."""
        pairs = zip(self.names, map(float, self.shares), strict=True)
        return [Point(name, float(j), name, y, percent(y)) for j, (name, y) in enumerate(pairs)]

    def _body(self) -> tuple[Markup, float]:
        points = self.points()
        largest = max([point.y for point in points], default=0.0) or 1.0
        parts: list[Markup] = []
        for point in points:
            top, text = 2 * LINE * point.x, point.series
            shown = text if len(text) <= LINE_CHARACTERS else f"{text[: LINE_CHARACTERS - 1]}…"
            parts.append(TEXT.format("", 0.0, top + 12, shown))
            length = max((WIDTH - 60) * point.y / largest, 0.5)
            tip = TIP.format(f"{text}: {point.y_text}")
            parts.append(BOX.format("bar model", 0.0, top + 18, length, 10.0, "", tip))
            parts.append(TEXT.format("", length + 6, top + 27, point.y_text))
        return NOTHING.join(parts), 2.0 * LINE * max(len(points), 1)


@dataclass
class DifferenceList(Drawing):
    """Differences with their errors, a row per name and a color per series.

    The scale is linear below ``unit`` and logarithmic above, so that small and large differences
    of either sign can be read.
    """

    title: str
    how: str
    names: Sequence[str]
    series: dict[str, dict[str, tuple[float, float]]]
    """By series and name: a difference, and the half width of its bar."""
    unit: float
    labels: tuple[str, str] = ("name", "difference")

    def points(self) -> list[Point]:
        """Return the differences."""
        return [
            Point(series, float(j), name, found[name][0], f"{found[name][0]:+.3g}")
            for series, found in self.series.items()
            for j, name in enumerate(self.names)
            if name in found
        ]

    def _scaled(self, values: FloatArray) -> FloatArray:
        return np.sign(values) * np.log1p(np.abs(values) / self.unit)

    def _ticks(self, low: float, high: float, room: float) -> list[float]:
        """Return zero and round values of either sign, none closer than their labels are wide."""
        chosen = [0.0]
        for factor in (1.0, 5.0, 2.0):
            for power in range(-1, 8):
                for sign in (1.0, -1.0):
                    x = sign * factor * self.unit * 10.0**power
                    at = float(self._scaled(np.array(x)))
                    others = self._scaled(np.array(chosen))
                    if low <= at <= high and np.abs(others - at).min() >= room:
                        chosen.append(x)
        return sorted(chosen)

    def _body(self) -> tuple[Markup, float]:
        pairs = [pair for found in self.series.values() for pair in found.values()]
        centers = np.array([pair[0] for pair in pairs])
        halves = np.array([pair[1] for pair in pairs])
        ends = self._scaled(np.concatenate([centers - halves, centers + halves, [0.0]]))
        room = 0.05 * (ends.max() - ends.min()) + 0.05
        low, high = float(ends.min()) - room, float(ends.max()) + room
        left = 12.0 + CHARACTER * max(len(name) for name in self.names)
        height = 0.7 * LINE * len(self.series) + 10.0
        legend, top = self._legend()
        bottom = top + height * len(self.names)

        def at(value: float) -> float:
            share = (float(self._scaled(np.array(value))) - low) / (high - low)
            return left + share * (WIDTH - left - 10.0)

        label = _TICK_WIDTH * (high - low) / (WIDTH - left - 10.0)
        parts = legend
        for x in self._ticks(low, high, label):
            css = "guide" if x == 0.0 else "grid"
            parts.append(PATH.format(css, f"M{at(x):.1f} {top:.1f}V{bottom:.1f}"))
            parts.append(TEXT.format("middle", at(x), bottom + 16.0, tick(x)))
        parts.append(TEXT.format("middle name", (left + WIDTH) / 2, bottom + 34.0, self.labels[1]))
        for j, name in enumerate(self.names):
            middle = top + height * (j + 0.5)
            parts.append(TEXT.format("end", left - 8.0, middle + 4.0, name))
            for k, (series, found) in enumerate(self.series.items()):
                if name not in found:
                    continue
                value, half = found[name]
                y = middle + LINE * (k - (len(self.series) - 1) / 2) * 0.7
                css = _COLORS[k % len(_COLORS)]
                d = f"M{at(value - half):.1f} {y:.1f}H{at(value + half):.1f}"
                parts.append(PATH.format(f"error {css}", d))
                tip = TIP.format(f"{series}, {name}: {value:+.3g} ± {half:.2g}")
                parts.append(CIRCLE.format(f"dot {css}", at(value), y, 3.6, tip))
        return NOTHING.join(parts), bottom + 40.0

    def _legend(self) -> tuple[list[Markup], float]:
        """Return the legend and its height; a single series needs none."""
        if len(self.series) < 2:
            return [], 0.0
        parts: list[Markup] = []
        x, y = 0.0, 12.0
        for k, series in enumerate(self.series):
            width = 30.0 + CHARACTER * len(series)
            if x > 0 and x + width > WIDTH:
                x, y = 0.0, y + LINE
            parts.append(CIRCLE.format(f"dot {_COLORS[k % len(_COLORS)]}", x + 6, y - 4, 4, ""))
            parts.append(TEXT.format("", x + 15, y, series))
            x += width
        return parts, y + 12.0
