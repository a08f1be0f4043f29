"""The charts of the report."""

from collections.abc import Sequence

import numpy as np

from hcpf._types import FloatArray
from hcpf.evaluate import Calibration, Evaluation
from hcpf.evaluate.predictive_checks import ActivityCheck, ValueCheck
from hcpf.model.components import Components
from hcpf.model.fitted import FittedModel
from hcpf.model.history import Check
from hcpf.report.markup import Markup
from hcpf.report.svg import Axis, Chart, heat_map
from hcpf.report.wording import percent, short

STYLES = ("model", "first", "second", "third")  # of the model and its baselines
_SHOWN = 24  # components in the heat map


def calibration_chart(evaluation: Evaluation) -> Markup | None:
    """Draw observed shares against predicted probabilities."""
    known = [(name, c.reliability) for name, c in _calibrations(evaluation) if c.reliability]
    if not known:
        return None
    every = [values[values > 0] for _, c in known for values in (c.predicted, c.observed)]
    axis = Axis.over("predicted probability", *every, log=True, write=percent)
    chart = Chart(
        "Do probabilities mean what they say?",
        axis,
        Axis("share observed", axis.low, axis.high, True, percent),
        "Points on the dashed diagonal are pairs predicted with exactly the right probability.",
    )
    ends = [axis.low, axis.high]
    chart.guide("exactly right", ends, ends)
    # From back to front, so that the model of the report is not hidden by the others.
    for (name, curve), css in reversed(list(zip(known, STYLES, strict=False))):
        some = curve.observed > 0
        x, y, error = curve.predicted[some], curve.observed[some], 2.0 * curve.error[some]
        if css == "model":
            chart.errors(x, np.maximum(y - error, axis.low), y + error, css)
        chart.line(name, x, y, css, dots=True)
    return chart.render()


def coverage_chart(evaluation: Evaluation) -> Markup:
    """Draw the share of values inside intervals against the level of the intervals."""
    known = _calibrations(evaluation)
    levels = list(known[0][1].coverage)
    covered = [[score.value for score in c.coverage.values()] for _, c in known]
    low = min(0.4, min(min(shares) for shares in covered))
    chart = Chart(
        "Do intervals hold what they promise?",
        Axis("interval promised", 0.45, 1.0, write=percent),
        Axis("values inside", max(low - 0.05, 0.0), 1.02, write=percent),
        "Points above the dashed line: intervals are wider than they need be.",
    )
    chart.guide("exactly right", [0.45, 1.0], [0.45, 1.0])
    for (name, _), inside, css in reversed(list(zip(known, covered, STYLES, strict=False))):
        chart.line(name, levels, inside, css, dots=True)
    return chart.render()


def pit_chart(evaluation: Evaluation) -> Markup:
    """Draw where values fall within their predictive distributions."""
    density = _calibrations(evaluation)[0][1].pit_histogram
    bins = len(density)
    heights = density / bins
    chart = Chart(
        "Where do the values fall within what was predicted?",
        Axis("position within the prediction: 0% lowest, 100% highest", 0.0, 1.0, write=percent),
        Axis.over("share of values", heights, [1.6 / bins], zero=True, write=percent),
        "Bars of equal height mean that the predicted distribution is right.",
    )
    chart.bars("held-out values", np.linspace(0.0, 1.0, bins + 1), heights, "model")
    chart.guide("exactly right", [0.0, 1.0], [1.0 / bins] * 2)
    return chart.render()


def _calibrations(evaluation: Evaluation) -> list[tuple[str, Calibration]]:
    return [(row.name, row.calibration) for row in evaluation.models if row.calibration]


def value_charts(check: ValueCheck) -> list[Markup]:
    """Draw histogram, Q-Q plot and tail of the values."""
    return [_histogram(check), _quantiles(check), _tail(check)]


def _histogram(check: ValueCheck) -> Markup:
    shares, edges, log = check.histogram, check.histogram.at, check.log_scale
    chart = Chart(
        "Observed values, and what the model would give",
        Axis("value", float(edges[0]), float(edges[-1]), log and edges[0] > 0),
        Axis.over("share of values", shares.observed, shares.high, zero=True, write=percent),
        "Bars are the data; the line is the model. They agree where the model fits.",
    )
    chart.bars("observed", edges, shares.observed, "observed")
    chart.band("90% of replicates", check.bin_centers, shares.low, shares.high, "model")
    chart.line("model", check.bin_centers, shares.mean, "model")
    return chart.render()


def _quantiles(check: ValueCheck) -> Markup:
    observed, drawn = check.quantiles, check.model_quantiles
    axis = Axis.over("quantile of the model", drawn, observed, log=check.log_scale)
    chart = Chart(
        "Quantile against quantile",
        axis,
        Axis("quantile of the data", axis.low, axis.high, axis.log),
        f"{len(observed)} quantiles; above the diagonal the data are larger than the model says.",
    )
    chart.guide("exactly right", [axis.low, axis.high], [axis.low, axis.high])
    chart.points("quantile", drawn, observed, "model")
    return chart.render()


def _tail(check: ValueCheck) -> Markup:
    tail, floor = check.tail, 0.5 / check.n_values
    chart = Chart(
        "The largest values",
        Axis.over("value", tail.at, log=check.log_scale),
        Axis("share of values above", floor, 1.0, True, percent),
        "How fast large values become rare, in the data and in the model.",
    )
    banded, lined, dotted = tail.high > floor, tail.mean > floor, tail.observed > 0
    low = np.maximum(tail.low[banded], floor)
    chart.band("90% of replicates", tail.at[banded], low, tail.high[banded], "model")
    chart.line("model", tail.at[lined], tail.mean[lined], "model")
    chart.points("observed", tail.at[dotted], tail.observed[dotted], "observed", 2.4)
    return chart.render()


def convergence_charts(model: FittedModel) -> list[Markup]:
    """Draw the ELBO at every check, and how much it still changed per pass."""
    history, tol = model.history, float(model.settings.get("tol", 0.0))
    passes = [float(check.iteration) for check in history]
    elbo = [check.elbo for check in history]
    charts: list[Markup] = []
    if len(history) >= 1:
        chart = Chart(
            "The ELBO, pass by pass",
            Axis.over("passes over the data", [0.0, *passes], zero=True),
            Axis.over("ELBO", elbo),
            "Higher is better; it levels off when the fit has converged.",
        )
        chart.line("ELBO", passes, elbo, "model", dots=True)
        charts.append(chart.render())
    at, change = relative_changes(history)
    if len(at) >= 1:
        shown = change[change > 0]
        chart = Chart(
            "How much each pass still changed it",
            Axis.over("passes over the data", [0.0, *passes], zero=True),
            Axis.over("relative change per pass", shown, [tol or 1e-4], log=True),
            "The fit stops once this falls below the tolerance.",
        )
        if tol > 0:
            chart.guide(f"tolerance {short(tol)}", [0.0, passes[-1]], [tol] * 2)
        chart.line("change per pass", at[change > 0], shown, "model", dots=True)
        charts.append(chart.render())
    return charts


def relative_changes(history: Sequence[Check]) -> tuple[FloatArray, FloatArray]:
    """Return passes, and the relative change of the ELBO per pass up to them."""
    passes = np.array([check.iteration for check in history], dtype=np.float64)
    elbo = np.array([check.elbo for check in history])
    change = np.abs(np.diff(elbo)) / np.maximum(np.abs(elbo[1:]), 1e-300)
    return passes[1:], change / np.maximum(np.diff(passes), 1.0)


def activity_chart(check: ActivityCheck, rows: str, columns: str) -> Markup:
    """Draw the share of rows with at least a number of entries."""
    at, observed, drawn = check.share_with_at_least()
    floor = 0.5 / len(check.observed)
    chart = Chart(
        f"How many {columns} do {rows} have?",
        Axis(f"number of {columns}, at least", 0.9, float(at[-1]) * 1.15, True),
        Axis(f"share of {rows}", floor, 1.1, True, percent),
        f"The share of {rows} that have at least so many {columns}, in the data and in the model.",
    )
    chart.line("model", at[drawn > 0], drawn[drawn > 0], "model")
    chart.points("observed", at[observed > 0], observed[observed > 0], "observed", 2.4)
    return chart.render()


def overlap_chart(summary: Components) -> Markup:
    """Draw how much components share their items."""
    size = min(len(summary), _SHOWN)
    names = [str(j + 1) for j in range(size)]
    return heat_map(
        "How much do two components share their items?",
        names,
        summary.overlap[:size, :size],
        "Dark cells away from the diagonal are components with much the same items.",
    )
