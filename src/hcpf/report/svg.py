"""Charts as SVG, small enough to stand in a page; colours come from the page's style sheet."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from hcpf._types import FloatArray
from hcpf.report.markup import Markup, element, joined, table
from hcpf.report.wording import percent, short

WIDTH, HEIGHT = 380, 290
_RIGHT, _TOP, _BOTTOM = 16, 28, 44
_CHARACTER = 6.6  # about the width of a digit
_ROWS = 60  # of the table behind a chart

Numbers = FloatArray | Sequence[float]


@dataclass(frozen=True)
class Axis:
    """One axis of a chart."""

    label: str
    low: float
    high: float
    log: bool = False
    write: Callable[[float], str] = short

    @classmethod
    def over(
        cls,
        label: str,
        *values: Numbers,
        log: bool = False,
        zero: bool = False,
        write: Callable[[float], str] = short,
    ) -> "Axis":
        """An axis that holds all values, with some room around them."""
        every = np.concatenate([np.asarray(v, dtype=np.float64).ravel() for v in values])
        every = every[np.isfinite(every) & ((every > 0) | (not log))]
        low, high = (float(every.min()), float(every.max())) if len(every) else (0.1, 1.0)
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if log:
            room = (high / low) ** 0.03
            return cls(label, low / max(room, 1.05), high * max(room, 1.05), True, write)
        room = 0.04 * (high - low) or 0.05 * abs(high) or 1.0
        return cls(label, low if zero and low == 0 else low - room, high + room, False, write)

    def place(self, values: Numbers) -> FloatArray:
        """Where values lie, 0 at the low end and 1 at the high one."""
        x = np.asarray(values, dtype=np.float64)
        if self.log:
            x = np.log(np.maximum(x, 1e-300))
            return (x - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (x - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Round values, few enough to be labelled."""
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
class Chart:
    """A chart being drawn: axes first, then what is in it, from back to front."""

    title: str
    x: Axis
    y: Axis
    summary: str
    """What the chart shows, for those who cannot see it."""
    _marks: list[Markup] = field(default_factory=list[Markup])
    _legend: list[Markup] = field(default_factory=list[Markup])
    _numbers: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    @property
    def _left(self) -> float:
        """Room for the labels of the upright axis."""
        return 12.0 + _CHARACTER * max(len(self.y.write(tick)) for tick in self.y.ticks())

    def _at(self, xs: Numbers, ys: Numbers) -> tuple[FloatArray, FloatArray]:
        x = self._left + np.clip(self.x.place(xs), -0.02, 1.02) * (WIDTH - self._left - _RIGHT)
        y = HEIGHT - _BOTTOM - np.clip(self.y.place(ys), -0.02, 1.02) * (HEIGHT - _TOP - _BOTTOM)
        return x, y

    def _path(self, xs: Numbers, ys: Numbers) -> str:
        x, y = self._at(xs, ys)
        return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))

    def legend(self, name: str, css: str, shape: str = "line") -> None:
        """Add an entry to the legend."""
        swatch = element("i", class_=f"swatch {shape} {css}", aria_hidden="true")
        self._legend.append(element("span", swatch, name))

    def guide(self, name: str, xs: Numbers, ys: Numbers) -> None:
        """A dashed line to compare with."""
        self._marks.append(element("path", d=self._path(xs, ys), class_="guide"))
        self.legend(name, "guide")

    def band(self, name: str, xs: Numbers, low: Numbers, high: Numbers, css: str) -> None:
        """A shaded range."""
        both = np.concatenate([xs, np.asarray(xs)[::-1]]), np.concatenate([low, high[::-1]])
        self._marks.append(element("path", d=self._path(*both) + "Z", class_=f"band {css}"))
        self.legend(name, css, "area")

    def line(self, name: str, xs: Numbers, ys: Numbers, css: str, dots: bool = False) -> None:
        """A line, with a tooltip at each of its points."""
        self._marks.append(element("path", d=self._path(xs, ys), class_=f"line {css}"))
        self.legend(name, css)
        self._dots(name, xs, ys, f"dot {css}" if dots else "ghost", 3.0)

    def points(self, name: str, xs: Numbers, ys: Numbers, css: str, radius: float = 3.2) -> None:
        """Points, with a tooltip at each."""
        self.legend(name, css, "point")
        self._dots(name, xs, ys, f"dot {css}", radius)

    def errors(self, xs: Numbers, low: Numbers, high: Numbers, css: str) -> None:
        """Upright bars of uncertainty."""
        x, bottom = self._at(xs, low)
        _, top = self._at(xs, high)
        d = "".join(f"M{a:.1f} {b:.1f}V{c:.1f}" for a, b, c in zip(x, bottom, top, strict=True))
        self._marks.append(element("path", d=d, class_=f"error {css}"))

    def bars(self, name: str, edges: Numbers, heights: Numbers, css: str) -> None:
        """Bars between edges, from the bottom of the chart."""
        self.legend(name, css, "area")
        edges = np.asarray(edges, dtype=np.float64)
        left, top = self._at(edges[:-1], heights)
        right, base = self._at(edges[1:], np.full(len(edges) - 1, self.y.low))
        for j, height in enumerate(heights):
            span = f"{self.x.write(edges[j])} to {self.x.write(edges[j + 1])}"
            self._marks.append(
                element(
                    "rect",
                    x=f"{left[j] + 0.5:.1f}",
                    y=f"{top[j]:.1f}",
                    width=f"{max(right[j] - left[j] - 1, 0.5):.1f}",
                    height=f"{max(base[j] - top[j], 0):.1f}",
                    class_=f"bar {css}",
                    data_tip=f"{name}: {span}: {self.y.write(float(height))}",
                )
            )
            self._numbers.append((name, span, self.y.write(float(height))))

    def _dots(self, name: str, xs: Numbers, ys: Numbers, css: str, radius: float) -> None:
        x, y = self._at(xs, ys)
        for a, b, value, height in zip(x, y, xs, ys, strict=True):
            shown = self.x.write(float(value)), self.y.write(float(height))
            tip = f"{name}: {shown[1]} at {shown[0]}"
            self._marks.append(
                element("circle", cx=f"{a:.1f}", cy=f"{b:.1f}", r=radius, class_=css, data_tip=tip)
            )
            self._numbers.append((name, *shown))

    def render(self) -> Markup:
        """The figure: title, legend, drawing, and the numbers behind it."""
        drawing = element(
            "svg",
            self._frame(),
            *self._marks,
            viewBox=f"0 0 {WIDTH} {HEIGHT}",
            role="img",
            aria_label=f"{self.title}. {self.summary}",
        )
        step = max(1, math.ceil(len(self._numbers) / _ROWS))
        behind = table(
            f"Numbers behind: {self.title}",
            ["Series", self.x.label, self.y.label],
            self._numbers[::step],
        )
        return element(
            "figure",
            element("figcaption", self.title),
            element("div", *reversed(self._legend), class_="legend"),
            drawing,
            element("details", element("summary", "Numbers"), behind),
            class_="chart",
        )

    def _frame(self) -> Markup:
        """Grid lines, tick labels and names of the axes."""
        bottom, left, right = HEIGHT - _BOTTOM, self._left, WIDTH - _RIGHT
        parts: list[Markup] = []
        for tick in self.y.ticks():
            y = float(self._at([self.x.low], [tick])[1][0])
            parts.append(element("path", d=f"M{left:.1f} {y:.1f}H{right}", class_="grid"))
            label = self.y.write(tick)
            parts.append(
                element("text", label, x=f"{left - 6:.1f}", y=f"{y + 4:.1f}", class_="end")
            )
        for tick in self.x.ticks():
            x = float(self._at([tick], [self.y.low])[0][0])
            parts.append(element("path", d=f"M{x:.1f} {bottom}v4", class_="axis"))
            label = self.x.write(tick)
            parts.append(element("text", label, x=f"{x:.1f}", y=bottom + 17, class_="middle"))
        parts.append(element("path", d=f"M{left:.1f} {bottom}H{right}", class_="axis"))
        middle = f"{(left + right) / 2:.1f}"
        parts.append(element("text", self.x.label, x=middle, y=HEIGHT - 6, class_="middle name"))
        # Level text at the top of the axis is easier to read than text on its side.
        parts.append(element("text", f"↑ {self.y.label}", x=0, y=12, class_="name"))
        return joined(parts)


def heat_map(
    title: str, names: Sequence[str], values: FloatArray, summary: str, top: float = 1.0
) -> Markup:
    """A square table of shares, coloured; each cell has a tooltip."""
    size = len(names)
    room, side = 26, (WIDTH - 30) / max(size, 4)
    cells: list[Markup] = []
    for j, name in enumerate(names):
        middle = room + (j + 0.5) * side
        cells.append(element("text", name, x=room - 5, y=f"{middle + 4:.1f}", class_="end"))
        cells.append(element("text", name, x=f"{middle:.1f}", y=room - 8, class_="middle"))
        for k in range(size):
            value = float(values[j, k])
            cells.append(
                element(
                    "rect",
                    x=f"{room + k * side:.1f}",
                    y=f"{room + j * side:.1f}",
                    width=f"{side - 1:.1f}",
                    height=f"{side - 1:.1f}",
                    class_="cell",
                    fill_opacity=f"{min(max(value / top, 0.03), 1.0):.2f}",
                    data_tip=f"{name} and {names[k]}: {percent(value)}",
                )
            )
    whole = room + size * side + 2
    drawing = element(
        "svg",
        *cells,
        viewBox=f"0 0 {WIDTH} {whole:.0f}",
        role="img",
        aria_label=f"{title}. {summary}",
    )
    return element("figure", element("figcaption", title), drawing, class_="chart")
