"""Charts as SVG: the same drawing in the report, in a notebook and in a file.

A chart in the report has no heading (the page has it as text) and takes its colors from the page's
variables. A chart on its own has the heading, and the colors of the light and the dark theme.
"""

import base64
import math
import os
import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from hcpf._types import FloatArray
from hcpf.errors import InputError
from hcpf.io import as_path, atomic_path, os_errors
from hcpf.model.tables import Table
from hcpf.report.text import percent, short, tick, tick_percent

# Lengths are in units of the drawing, which is WIDTH wide and is scaled to the room it has.
WIDTH = 380
CHARACTER = 6.6  # about the width of a character of the 12-unit font
LINE = 18  # height of a line of text
LINE_CHARACTERS = 58  # that fit into the width

PATH = Markup('<path class="{}" d="{}"/>')
TEXT = Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>')
CIRCLE = Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}">{}</circle>')
BOX = Markup('<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"{}>{}</rect>')
TIP = Markup("<title>{}</title>")  # browsers show it as a tooltip, without any script
NOTHING = Markup("")


LIGHT = {
    "ink": "#1f2328", "muted": "#59636e", "paper": "#fff", "panel": "#f6f8fa", "edge": "#d1d9e0",
    "grid": "#e4e8ec", "model": "#1f5fa8", "first": "#b35900", "second": "#0f766e",
    "third": "#7a3fa0", "observed": "#3d444d", "bar": "#b9c3cd", "focus": "#0969da",
}  # fmt: skip
"""Colors by role."""
DARK = {
    "ink": "#e6edf3", "muted": "#9aa5b1", "paper": "#0d1117", "panel": "#161b22", "edge": "#30363d",
    "grid": "#232a33", "model": "#6cb0f5", "first": "#f0a35e", "second": "#4fc9b8",
    "third": "#c79bf0", "observed": "#d0d7de", "bar": "#4b5663", "focus": "#6cb0f5",
}  # fmt: skip

_HEIGHT, _RIGHT, _TOP, _BOTTOM = 272, 16, 28, 44  # of a chart with two axes

Numbers = FloatArray | Sequence[float]
ToText = Callable[[float], str]


class Point(NamedTuple):
    """A number in a chart: its series, its position as number and as text, and its height."""

    series: str
    x: float
    x_text: str
    y: float
    y_text: str


class Drawing(ABC):
    """A chart; notebooks show it."""

    title: str
    how: str
    """How to read the chart, in one sentence."""
    labels: tuple[str, str]
    """What x and y are."""

    @abstractmethod
    def points(self) -> list[Point]:
        """Return the numbers behind the chart."""

    @abstractmethod
    def _body(self) -> tuple[Markup, float]:
        """Return the drawing and its height."""

    def svg(self) -> Markup:
        """Return the SVG element for a page with the style sheet and the heading."""
        body, height = self._body()
        return self._element(body, height)

    def to_svg(self) -> str:
        """Return an SVG file: the drawing with its heading and colors."""
        body, height = self._body()
        lines = textwrap.wrap(self.how, LINE_CHARACTERS)
        heading = TEXT.format("heading", 0.0, 14.0, self.title) + NOTHING.join(
            TEXT.format("", 0.0, 14.0 + LINE * (j + 1), line) for j, line in enumerate(lines)
        )
        top, margin = LINE * (len(lines) + 1.5), 12.0
        whole = Markup(
            '<style>{}</style><rect class="paper" width="100%" height="100%"/>'
            '<g transform="translate({m} {m})">{}<g transform="translate(0 {})">{}</g></g>'
        ).format(Markup(_themes()), heading, top, body, m=margin)
        svg = self._element(whole, height + top + 2 * margin, WIDTH + 2 * margin)
        return str(svg).replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)

    def _element(self, body: Markup, height: float, width: float = WIDTH) -> Markup:
        return Markup(
            '<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}. {}">{}</svg>'
        ).format(width, height, self.title, self.how, body)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the chart to an SVG file."""
        target = as_path("path", path)
        if target.suffix.lower() != ".svg":
            raise InputError(f"{target}: charts are written as SVG. Use a name that ends in .svg.")
        if os.path.lexists(target) and not overwrite:
            raise InputError(f"{target} exists already: pass overwrite=True to replace it.")
        with os_errors(InputError, f"{target} cannot be written"), atomic_path(target) as partial:
            partial.write_text(self.to_svg(), encoding="utf-8", errors="replace")

    def to_table(self) -> Table:
        """Return the numbers behind the chart: columns series, x and y."""
        found = self.points()
        return Table(
            series=np.array([p.series for p in found], dtype=object),
            x=np.array([p.x for p in found]),
            y=np.array([p.y for p in found]),
        )

    def _repr_svg_(self) -> str:
        return self.to_svg()


class Charts(tuple[Drawing, ...]):
    """Several charts; notebooks show them next to each other."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        # Images keep the style sheets of the charts apart from that of the notebook.
        images = "".join(
            f'<img width="{WIDTH}" alt="" src="data:image/svg+xml;base64,'
            f'{base64.b64encode(chart.to_svg().encode("utf-8", "replace")).decode()}">'
            for chart in self
        )
        layout = "display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start"
        return f'<div style="{layout}">{images}</div>'


@cache
def style_sheet() -> str:
    """Return the style sheet of charts, whose colors are variables."""
    folder = resources.files("hcpf.report").joinpath("templates")
    return folder.joinpath("chart.css").read_text(encoding="utf-8")


@cache
def _themes() -> str:
    """Return the style sheet with colors instead of variables, which few editors of SVG know."""
    light, dark = (
        re.sub(r"var\(--(\w+)\)", lambda match, colors=colors: colors[match[1]], style_sheet())
        for colors in (LIGHT, DARK)
    )
    return f"{light}@media (prefers-color-scheme:dark){{{dark}}}"


@dataclass(frozen=True)
class Axis:
    """One axis of a chart."""

    label: str
    low: float
    high: float
    log: bool = False
    write: ToText = short
    """How a number of this axis is written."""
    ticks_at: tuple[float, ...] = ()
    """Where the ticks are; by default at round numbers."""

    @classmethod
    def over(
        cls,
        label: str,
        *values: Numbers,
        log: bool = False,
        zero: bool = False,
        write: ToText = short,
        ticks_at: tuple[float, ...] = (),
    ) -> "Axis":
        """Return an axis that holds all values (and zero), with some room around them."""
        every = np.concatenate([np.asarray(v, dtype=np.float64).ravel() for v in values])
        every = every[np.isfinite(every) & ((every > 0) | (not log))]
        low, high = (float(every.min()), float(every.max())) if len(every) else (0.1, 1.0)
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if log:
            room = max((high / low) ** 0.03, 1.05)
            return cls(label, low / room, high * room, True, write, ticks_at)
        room = 0.04 * (high - low) or 0.05 * abs(high) or 1.0
        bottom = low if zero and low == 0 else low - room
        return cls(label, bottom, high + room, False, write, ticks_at)

    def place(self, values: Numbers) -> FloatArray:
        """Return where values lie, 0 at the low end and 1 at the high one."""
        x = np.asarray(values, dtype=np.float64)
        if self.log:
            x = np.log(np.maximum(x, 1e-300))
            return (x - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (x - self.low) / (self.high - self.low)

    def label_at(self, at: float) -> str:
        """Return the label of a tick."""
        return tick_percent(at) if self.write is percent else tick(at)

    def ticks(self) -> list[float]:
        """Return round values, few enough to be labeled."""
        if self.ticks_at:
            return list(self.ticks_at)
        if not self.log:
            return _linear_ticks(self.low, self.high)
        first = math.ceil(math.log10(self.low) - 1e-9)
        last = math.floor(math.log10(self.high) + 1e-9)
        if last - first >= 2:
            step = math.ceil((last - first + 1) / 6)
            return [10.0**j for j in range(first, last + 1, step)]
        fine = [m * 10.0**j for j in range(first - 1, last + 1) for m in (1, 2, 5)]
        inside = [x for x in fine if self.low <= x <= self.high]
        return inside if len(inside) > 1 else _linear_ticks(self.low, self.high)


def _linear_ticks(low: float, high: float) -> list[float]:
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    count = math.floor(high / step + 1e-9) - first + 1
    return [round((first + j) * step, 12) for j in range(count)]


@dataclass
class Chart(Drawing):
    """A chart with two axes, to which marks are added from back to front."""

    title: str
    how: str
    x: Axis
    y: Axis
    _marks: list[Markup] = field(default_factory=list[Markup])
    _legend: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    _points: list[Point] = field(default_factory=list[Point])

    @property
    def labels(self) -> tuple[str, str]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What x and y are."""
        return self.x.label, self.y.label

    def points(self) -> list[Point]:
        """Return the numbers behind the chart."""
        return self._points

    def guide(self, name: str, xs: Numbers, ys: Numbers) -> None:
        """Add a dashed line to compare with."""
        self._add("guide", self._path(xs, ys), name, "line")

    def band(self, name: str, xs: Numbers, low: Numbers, high: Numbers, css: str) -> None:
        """Add a shaded range."""
        both = np.concatenate([xs, np.asarray(xs)[::-1]]), np.concatenate([low, high[::-1]])
        self._add(f"band {css}", self._path(*both) + "Z", name, "area")

    def line(self, name: str, xs: Numbers, ys: Numbers, css: str, *, dots: bool = False) -> None:
        """Add a line, with a tooltip at each of its points; points that are not finite are omitted.

        The legend names a line without points, too.
        """
        known = np.isfinite(np.asarray(ys, dtype=np.float64))
        xs, ys = np.asarray(xs)[known], np.asarray(ys)[known]
        self._add(f"line {css}", self._path(xs, ys), name, "line")
        self._add_dots(name, xs, ys, f"dot {css}" if dots else "ghost", 3.0)

    def dots(self, name: str, xs: Numbers, ys: Numbers, css: str, radius: float = 3.2) -> None:
        """Add dots, with a tooltip at each."""
        self._legend.append((name, f"dot {css}", "dot"))
        self._add_dots(name, xs, ys, f"dot {css}", radius)

    def errors(self, xs: Numbers, low: Numbers, high: Numbers, css: str) -> None:
        """Add upright bars of uncertainty."""
        x, bottom = self._at(xs, low)
        _, top = self._at(xs, high)
        d = "".join(f"M{a:.1f} {b:.1f}V{c:.1f}" for a, b, c in zip(x, bottom, top, strict=True))
        self._marks.append(PATH.format(f"error {css}", d))

    def bars(self, name: str, edges: Numbers, heights: Numbers, css: str) -> None:
        """Add bars between edges, from the bottom of the chart."""
        self._legend.append((name, f"bar {css}", "area"))
        edges = np.asarray(edges, dtype=np.float64)
        left, top = self._at(edges[:-1], heights)
        right, base = self._at(edges[1:], np.full(len(edges) - 1, self.y.low))
        for j, height in enumerate(heights):
            span = f"{self.x.write(edges[j])} to {self.x.write(edges[j + 1])}"
            text, center = self.y.write(float(height)), float(edges[j] + edges[j + 1]) / 2
            width, length = max(right[j] - left[j] - 1, 0.5), max(base[j] - top[j], 0.0)
            tip = TIP.format(f"{name}: {text}, {span}")
            self._marks.append(
                BOX.format(f"bar {css}", left[j] + 0.5, top[j], width, length, "", tip)
            )
            self._points.append(Point(name, center, span, float(height), text))

    def _add(self, css: str, d: str, name: str, shape: str) -> None:
        self._marks.append(PATH.format(css, d))
        self._legend.append((name, css, shape))

    def _add_dots(self, name: str, xs: Numbers, ys: Numbers, css: str, radius: float) -> None:
        for a, b, x, y in zip(*self._at(xs, ys), xs, ys, strict=True):
            point = Point(name, float(x), self.x.write(float(x)), float(y), self.y.write(float(y)))
            tip = TIP.format(f"{name}: {point.y_text} at {point.x_text}")
            self._marks.append(CIRCLE.format(css, a, b, radius, tip))
            self._points.append(point)

    @property
    def _left(self) -> float:
        """Width of the labels of the upright axis."""
        return 12.0 + CHARACTER * max(len(self.y.label_at(at)) for at in self.y.ticks())

    def _at(self, xs: Numbers, ys: Numbers) -> tuple[FloatArray, FloatArray]:
        x = self._left + np.clip(self.x.place(xs), -0.02, 1.02) * (WIDTH - self._left - _RIGHT)
        y = _HEIGHT - _BOTTOM - np.clip(self.y.place(ys), -0.02, 1.02) * (_HEIGHT - _TOP - _BOTTOM)
        return x, y

    def _path(self, xs: Numbers, ys: Numbers) -> str:
        x, y = self._at(xs, ys)
        points = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
        return f"M{points}" if points else ""

    def _body(self) -> tuple[Markup, float]:
        legend, top = self._draw_legend()
        return Markup('{}<g transform="translate(0 {})">{}{}</g>').format(
            legend, top, self._frame(), NOTHING.join(self._marks)
        ), top + _HEIGHT

    def _draw_legend(self) -> tuple[Markup, float]:
        """Return the legend, front to back, and its height; it breaks into lines where it must."""
        parts: list[Markup] = []
        x, y = 0.0, 12.0
        for name, css, shape in reversed(self._legend):
            width = 24.0 + CHARACTER * len(name)
            if x > 0 and x + width > WIDTH:
                x, y = 0.0, y + LINE
            if shape == "dot":
                parts.append(CIRCLE.format(css, x + 9, y - 4, 4, ""))
            elif shape == "area":
                parts.append(BOX.format(css, x + 2, y - 9, 14, 10, "", ""))
            else:
                parts.append(PATH.format(css, f"M{x:.1f} {y - 4}h18"))
            parts.append(TEXT.format("", x + 23, y, name))
            x += width + 12.0
        return NOTHING.join(parts), y + 10.0 if parts else 0.0

    def _frame(self) -> Markup:
        """Return grid lines, tick labels and names of the axes."""
        bottom, left, right = _HEIGHT - _BOTTOM, self._left, WIDTH - _RIGHT
        parts: list[Markup] = []
        for at in self.y.ticks():
            y = float(self._at([self.x.low], [at])[1][0])
            parts.append(PATH.format("grid", f"M{left:.1f} {y:.1f}H{right}"))
            parts.append(TEXT.format("end", left - 6, y + 4, self.y.label_at(at)))
        for at in self.x.ticks():
            x = float(self._at([at], [self.y.low])[0][0])
            parts.append(PATH.format("axis", f"M{x:.1f} {bottom}v4"))
            parts.append(TEXT.format("middle", x, bottom + 17.0, self.x.label_at(at)))
        parts.append(PATH.format("axis", f"M{left:.1f} {bottom}H{right}"))
        parts.append(TEXT.format("middle name", (left + right) / 2, _HEIGHT - 6.0, self.x.label))
        # Level text at the top of the axis is easier to read than text on its side.
        parts.append(TEXT.format("name", 0.0, 12.0, f"↑ {self.y.label}"))
        return NOTHING.join(parts)
