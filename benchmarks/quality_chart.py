"""The chart of time_to_quality.py: scores against seconds, in the report's two color themes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt

from hcpf.report.drawing import DARK, LIGHT

# Color, line and width of each program.
STYLES: dict[str, tuple[str, str, float]] = {
    "hcpf, one fit": ("model", "-", 2.2),
    "hcpf, quick": ("model", ":", 1.6),
    "hcpf, four fits": ("model", "--", 2.2),
    "implicit ALS": ("first", "-", 1.4),
    "hpfrec": ("second", "-", 1.4),
    "poismf, cg": ("third", "-", 1.4),
    "poismf, tncg": ("third", "--", 1.4),
    "scikit-learn NMF": ("observed", ":", 1.4),
}

LOWEST = 1.6  # times the best likelihood: lower ones are not drawn


def draw(results: Sequence[Mapping[str, Any]], scores: Mapping[str, str], path: Path) -> None:
    """Draw a grid of one row per score and one column per data set."""
    names = list(dict.fromkeys(result["set"] for result in results))
    settings = {"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9}
    for key in ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor"):
        settings[key] = LIGHT["muted"]
    settings |= {"axes.titlecolor": LIGHT["ink"], "svg.hashsalt": "hcpf"}
    with mpl.rc_context(settings):
        size = 3.1 * len(names), 2.3 * len(scores)
        figure, panels = plt.subplots(
            len(scores), len(names), figsize=size, squeeze=False, sharex="col"
        )
        for row, (key, label) in zip(panels, scores.items(), strict=True):
            for axes, name in zip(row, names, strict=True):
                draw_panel(axes, [r for r in results if r["set"] == name], key)
            row[0].set_ylabel(label)
        for axes, name in zip(panels[0], names, strict=True):
            axes.set_title(name, fontweight="bold", fontsize=10)
        for axes in panels[-1]:
            axes.set_xlabel("seconds from the call")
        keys = [handles(axes) for axes in panels.flat]
        legend = {name: line for key in keys for name, line in key.items()}
        legend = {name: legend[name] for name in STYLES if name in legend}
        figure.legend(legend.values(), legend, loc="upper center", ncols=4, frameon=False)
        figure.tight_layout(rect=(0, 0, 1, 0.92))
        figure.patch.set_facecolor(LIGHT["paper"])
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
    path.write_text(with_dark_colors(path.read_text()))


def handles(axes: Any) -> dict[str, Any]:
    """The lines of a panel by the names of their programs."""
    lines, names = axes.get_legend_handles_labels()
    return dict(zip(names, lines, strict=True))


def draw_panel(axes: Any, results: Sequence[Mapping[str, Any]], key: str) -> None:
    for result in results:
        points = [p for p in result["points"] if p[key] is not None]
        color, line, width = STYLES[result["program"]]
        axes.plot(
            [p["seconds"] for p in points], [p[key] for p in points], line, color=LIGHT[color],
            linewidth=width, marker="o", markersize=1.5 * width, label=result["program"],
        )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.xaxis.set_minor_formatter(lambda x, _: "")
    best = max((p[key] for r in results for p in r["points"] if p[key] is not None), default=0)
    if best < 0:  # likelihoods far below the best would flatten the rest
        axes.set_ylim(max(axes.get_ylim()[0], LOWEST * best), best * 0.97)
    axes.set_facecolor(LIGHT["paper"])
    axes.grid(color=LIGHT["grid"], linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def with_dark_colors(svg: str) -> str:
    """Give the chart the dark palette where the reader's system asks for it."""
    rules = "".join(
        f'[style*="{use}: {full(light)}"]{{{use}:{DARK[role]}!important}}'
        for role, light in LIGHT.items()
        for use in ("fill", "stroke")
        if role
        in ("ink", "muted", "paper", "grid", "model", "first", "second", "third", "observed")
    )
    style = f"<style>@media (prefers-color-scheme:dark){{{rules}}}</style>"
    return svg.replace("<defs>", f"{style}<defs>", 1)


def full(color: str) -> str:
    """A color with six digits, as Matplotlib writes it."""
    return color if len(color) == 7 else "#" + "".join(2 * digit for digit in color[1:])
