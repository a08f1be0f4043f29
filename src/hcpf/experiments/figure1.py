r"""The paper's Figure 1: what an observed value looks like as the matrix gets sparser.

Each column of a panel is the distribution of X++, the compound Poisson variable given that it is
observed, at one sparsity :math:`\Pr(N = 0) = e^{-\Lambda}`. With the degenerate element, which is
hierarchical Poisson factorization, that distribution collapses to 1 as :math:`\Lambda \to 0`; with
any other element it converges to the element itself, and so keeps its shape.
"""

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import isotonic_regression

from hcpf._types import ArrayLike, FloatArray
from hcpf.data.paper import PAPER_DATASETS
from hcpf.distributions.compound import CompoundPoisson
from hcpf.elements import Degenerate, Element, Gamma, ZeroTruncatedPoisson
from hcpf.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "The sparser the matrix, the less a plain Poisson can say about its values"
MESSAGE = (
    "With a degenerate element the value collapses to 1 as the matrix gets sparser; "
    "other elements keep their shape.\n"
    "Red lines: how sparse the paper's data sets are. Numbers: mean ± standard deviation."
)
FORMATS = ("png", "pdf", "svg")
SIZE_INCHES = (13.0, 6.4)
DPI = 150

_DENSEST, _SPARSEST = 0.98, 5e-7  # shares of observed entries at the two ends of the axis
_COLUMNS = 400
_TAIL = 1e-9  # mass above the largest value of a grid
_STEP = 0.5  # between the values of a continuous panel
_TICKS = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
_RED, _INK, _GREY = "#d1242f", "#1f2328", "#59636e"
_COLORS = ("#ffffff", "#d3e5f5", "#6ba8d9", "#1f5fa8", "#061f47")
_LABEL_GAP = 0.042  # of a panel's width, between the middles of two upright labels
_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": "#8c959f",
    "xtick.color": "#8c959f",
    "ytick.color": "#8c959f",
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "svg.fonttype": "none",
}


@dataclass(frozen=True)
class Panel:
    """One panel: an element, the values shown, and the data sets that mark the axis."""

    letter: str
    title: str
    element: Element
    shown: tuple[float, float]
    marks: dict[str, float]
    """The share of observed entries, by the name of the data set."""


@dataclass(frozen=True)
class Grid:
    """The density of X++ over values (rows) and sparsities (columns)."""

    observed_share: FloatArray
    """The share of entries that are observed, :math:`1 - e^{-\\Lambda}`, one per column."""
    values: FloatArray
    """Evenly spaced values, one per row."""
    density: FloatArray
    """Mass (discrete elements) or density (continuous ones), shape (values, columns)."""
    step: float
    """Distance between neighboring values, 1 for a discrete element."""

    @property
    def sparsity(self) -> FloatArray:
        """The share of missing entries, one per column."""
        return 1.0 - self.observed_share


def panels() -> tuple[Panel, Panel, Panel]:
    """Return the paper's three panels, marked with its nine discrete and three continuous sets."""
    discrete = {k: data.density for k, data in PAPER_DATASETS.items() if not data.continuous}
    continuous = {k: data.density for k, data in PAPER_DATASETS.items() if data.continuous}
    poisson, gamma = ZeroTruncatedPoisson(rate=7), Gamma(shape=5, rate=0.5)
    return (
        Panel("a", "Degenerate (HPF)", Degenerate(), (0.5, 25.5), discrete),
        Panel("b", "Zero-truncated Poisson, λ = 7", poisson, (0.5, 25.5), discrete),
        Panel("c", "Gamma, a = 5, b = 0.5", gamma, (0.0, 40.0), continuous),
    )


def sparsity_axis(columns: int = _COLUMNS) -> FloatArray:
    """Shares of observed entries from dense to extremely sparse, evenly spaced on a log scale."""
    if columns < 2:
        raise InputError(f"sparsity_axis needs 2 or more columns, got {columns}.")
    return np.geomspace(_DENSEST, _SPARSEST, columns)


def density_grid(element: Element, observed_share: ArrayLike) -> Grid:
    r"""Density of X++ at each share of observed entries, over all values that matter.

    The rate that leaves a share d of the entries observed is :math:`\Lambda = -\log(1 - d)`. The
    share is the argument, not the sparsity 1 - d, because that loses its digits near 1.

    Parameters
    ----------
    element
        The element distribution, on positive values.
    observed_share
        Shares strictly between 0 and 1, one per column.

    Examples
    --------
    >>> grid = density_grid(Degenerate(), [0.5, 0.01])
    >>> grid.density[0].round(3)    # the probability of a 1
    array([0.693, 0.995])
    """
    share = np.atleast_1d(np.asarray(observed_share, dtype=np.float64))
    if share.ndim != 1 or not np.all((share > 0) & (share < 1)):
        raise InputError("observed_share must be numbers strictly between 0 and 1, in one row.")
    if element.support.lowest < 0:
        raise InputError(f"density_grid shows positive values; {element!r} has negative ones.")
    rate = -np.log1p(-share)
    largest = float(CompoundPoisson(rate.max(), element).observed.quantile(1.0 - _TAIL))
    if element.support.discrete:
        step, values = 1.0, np.arange(element.support.lowest, largest + 1.0, dtype=np.float64)
    else:
        # The middles of cells that start at 0, where the density itself may not exist.
        step, n_rows = _STEP, int(largest / _STEP) + 1
        values = (np.arange(n_rows, dtype=np.float64) + 0.5) * step
    log_density = CompoundPoisson(rate, element).log_density_observed(values[:, None])
    return Grid(share, values, np.exp(log_density), step)


def finding(element: Element, observed_share: float = 0.01) -> str:
    """Say in one line what X++ is at this share of observed entries.

    >>> finding(Degenerate())
    '99% missing: the value is 1 with probability 0.995'
    >>> finding(ZeroTruncatedPoisson(rate=7))
    '99% missing: mean 7.04 ± 2.69 (element 7.01 ± 2.64)'
    """
    observed = CompoundPoisson(-np.log1p(-observed_share), element).observed
    where = f"{100 * (1 - observed_share):.6g}% missing"
    if element.variance == 0:
        chance = float(np.exp(observed.log_density(element.mean)))
        return f"{where}: the value is {element.mean:g} with probability {chance:.3f}"
    spread_out, alone = float(observed.variance) ** 0.5, float(element.variance) ** 0.5
    return (
        f"{where}: mean {float(observed.mean):.2f} ± {spread_out:.2f} "
        f"(element {element.mean:.2f} ± {alone:.2f})"
    )


def spread(positions: ArrayLike, gap: float) -> FloatArray:
    """Move labels as little as possible (least squares) so that all are ``gap`` apart.

    >>> spread([0.0, 1.0, 1.2], gap=1.0)
    array([-0.26666667, 0.73333333, 1.73333333])
    """
    wanted = np.asarray(positions, dtype=np.float64)
    if wanted.size == 0:
        return wanted
    order = np.argsort(wanted, kind="stable")
    offsets = gap * np.arange(wanted.size)
    placed = np.empty_like(wanted)
    placed[order] = isotonic_regression(wanted[order] - offsets).x + offsets
    return placed


def draw(*, columns: int = _COLUMNS) -> "Figure":
    """Draw the three panels and return the matplotlib figure; nothing is shown or saved.

    Parameters
    ----------
    columns
        Number of sparsities per panel: fewer is faster and coarser.
    """
    try:
        import matplotlib.style
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError.of_extra("Figure 1 requires matplotlib", "paper") from error
    # The reader's own matplotlib settings must not change the figure.
    with matplotlib.style.context(["default", _STYLE]):
        figure = Figure(figsize=SIZE_INCHES, dpi=DPI)
        boxes = figure.subplots(1, 3, gridspec_kw={"wspace": 0.265})
        figure.subplots_adjust(left=0.045, right=0.952, top=0.625, bottom=0.195)
        share = sparsity_axis(columns)
        for panel, axes in zip(panels(), boxes, strict=True):
            _draw_density(axes, panel, density_grid(panel.element, share))
            _draw_marks(axes, panel)
            _draw_axis(axes, panel)
            _draw_element(axes, panel)
        boxes[0].set_ylabel("value, given that the entry is observed")
        figure.text(0.045, 0.95, TITLE, fontsize=15, fontweight="bold", va="center")
        figure.text(0.045, 0.92, MESSAGE, fontsize=10, color=_GREY, va="top", linespacing=1.4)
    return figure


def render(figure: "Figure", image_format: str = "png") -> bytes:
    """Return the figure as the bytes of an image file in one of ``FORMATS``."""
    if image_format not in FORMATS:
        raise InputError(f"No image format {image_format!r}: choose one of {', '.join(FORMATS)}.")
    out = io.BytesIO()
    figure.savefig(out, format=image_format, dpi=DPI)
    return out.getvalue()


def _draw_density(axes: "Axes", panel: Panel, grid: Grid) -> None:
    """Color the panel, darker where denser, with its scale below."""
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm

    low, high = panel.shown
    inside = (grid.values > low) & (grid.values < high + grid.step)
    density = grid.density[inside]
    discrete = panel.element.support.discrete
    image = axes.pcolormesh(
        grid.observed_share,
        grid.values[inside],
        density,
        cmap=LinearSegmentedColormap.from_list("ink", _COLORS),
        # A square-root scale: a linear one would hide all but the peak.
        norm=PowerNorm(0.5, vmin=0.0, vmax=float(density.max())),
        shading="nearest" if discrete else "gouraud",
        rasterized=True,
    )
    scale = axes.inset_axes((0.0, -0.27, 0.42, 0.028))
    bar = axes.figure.colorbar(image, cax=scale, orientation="horizontal")
    bar.outline.set_visible(False)
    ticks = _scale_ticks(float(density.max()))
    bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    bar.ax.tick_params(labelsize=8, length=2, pad=2)
    label = "probability" if discrete else "density"
    scale.text(1.05, 0.5, label, transform=scale.transAxes, va="center", fontsize=9)


def _scale_ticks(largest: float) -> list[float]:
    """Round numbers up to ``largest`` that stay apart on the square-root scale."""
    ticks = [0.0]
    for tick in (0.01, 0.05, 0.1, 0.25, 0.5, 1.0):
        if tick <= largest * 1.001 and (tick**0.5 - ticks[-1] ** 0.5) > 0.2 * largest**0.5:
            ticks.append(tick)
    return ticks


def _draw_marks(axes: "Axes", panel: Panel) -> None:
    """Draw a red line at each data set's sparsity, led to a label that touches no other."""
    names = list(panel.marks)
    log_range = np.log10([_DENSEST, _SPARSEST])
    where = (np.log10([panel.marks[name] for name in names]) - log_range[0]) / np.diff(log_range)
    labels = spread(where, gap=_LABEL_GAP)
    for name, line, label in zip(names, where, labels, strict=True):
        axes.axvline(panel.marks[name], color=_RED, linewidth=0.9, alpha=0.85)
        axes.plot(
            [line, label],
            [1.0, 1.045],
            transform=axes.transAxes,
            color=_RED,
            linewidth=0.9,
            alpha=0.85,
            clip_on=False,
        )
        axes.text(
            label,
            1.06,
            name,
            transform=axes.transAxes,
            rotation=90,
            ha="center",
            va="bottom",
            fontsize=8.5,
            color=_RED,
        )


def _draw_element(axes: "Axes", panel: Panel) -> None:
    """Show at the sparse end the element's own density, which the columns converge to."""
    strip = axes.inset_axes((1.015, 0.0, 0.1, 1.0), sharey=axes)
    low, high = panel.shown
    if panel.element.support.discrete:
        values = np.arange(np.ceil(low), high)
        strip.barh(values, np.exp(panel.element.log_density(values)), height=0.8, color=_COLORS[-2])
    else:
        values = np.linspace(low, high, 401)[1:]
        density = np.exp(panel.element.log_density(values))
        strip.fill_betweenx(values, density, color=_COLORS[-2], linewidth=0)
    strip.set_xlim(left=0.0)
    strip.axis("off")
    strip.text(
        0.0, 1.0, "element\nitself", transform=strip.transAxes, va="top", fontsize=8, color=_GREY
    )


def _draw_axis(axes: "Axes", panel: Panel) -> None:
    """Title, limits and the sparsity scale, written as the share of entries that are missing."""
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log")
    axes.set_xlim(_DENSEST, _SPARSEST)
    axes.set_xticks([1.0 - tick for tick in _TICKS], [f"{100 * tick:.6g}" for tick in _TICKS])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("sparsity: % of entries that are missing  →")
    axes.set_ylim(*panel.shown)
    if panel.element.support.discrete:
        axes.set_yticks([1, 5, 10, 15, 20, 25])
    axes.tick_params(length=3, labelsize=8.5)
    axes.spines[["top", "right"]].set_visible(False)
    heading: dict[str, Any] = {"transform": axes.transAxes, "va": "bottom"}
    axes.text(0, 1.41, f"{panel.letter}   {panel.title}", fontsize=11, fontweight="bold", **heading)
    axes.text(0, 1.335, finding(panel.element), fontsize=9.5, color=_GREY, **heading)
