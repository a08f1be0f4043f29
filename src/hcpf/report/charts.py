"""The charts of the report."""

import numpy as np

from hcpf._types import FloatArray
from hcpf.estimator import HCPF
from hcpf.model.history import Check
from hcpf.report.components import Components
from hcpf.report.degrees import Degrees
from hcpf.report.evaluation import Evaluation
from hcpf.report.markup import Markup
from hcpf.report.responses import ResponseFit
from hcpf.report.svg import Axis, Chart, heat_map
from hcpf.report.wording import percent, short

STYLES = ("model", "first", "second", "third")  # of the model and its baselines
_PIT_BINS = 20
_SHOWN = 24  # components in the heat map


def calibration_chart(evaluation: Evaluation) -> Markup | None:
    """Observed shares against predicted probabilities."""
    curves = [(c.name, c.calibration.reliability) for c in evaluation.contenders]
    known = [(name, curve) for name, curve in curves if curve is not None]
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
    """The share of responses inside intervals, against the level promised."""
    levels = list(evaluation.model.calibration.coverage)
    found = [[s.value for s in c.calibration.coverage.values()] for c in evaluation.contenders]
    low = min(0.4, min(min(f) for f in found))
    chart = Chart(
        "Do intervals hold what they promise?",
        Axis("interval promised", 0.45, 1.0, write=percent),
        Axis("values inside", max(low - 0.05, 0.0), 1.02, write=percent),
        "Points above the dashed line: intervals are wider than they need be.",
    )
    chart.guide("exactly right", [0.45, 1.0], [0.45, 1.0])
    pairs = list(zip(evaluation.contenders, found, STYLES, strict=False))
    for contender, inside, css in reversed(pairs):
        chart.line(contender.name, levels, inside, css, dots=True)
    return chart.render()


def pit_chart(evaluation: Evaluation) -> Markup:
    """Where responses fall within their predictive distributions."""
    heights = evaluation.model.calibration.pit_histogram(_PIT_BINS) / _PIT_BINS
    edges = np.linspace(0.0, 1.0, _PIT_BINS + 1)
    chart = Chart(
        "Where do the values fall within what was predicted?",
        Axis("place within the prediction: 0% lowest, 100% highest", 0.0, 1.0, write=percent),
        Axis.over("share of values", heights, [1.6 / _PIT_BINS], zero=True, write=percent),
        "Bars of equal height mean that the predicted distribution is right.",
    )
    chart.bars("held-out values", edges, heights, "model")
    chart.guide("exactly right", [0.0, 1.0], [1.0 / _PIT_BINS] * 2)
    return chart.render()


def _band(drawn: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The mean of replicates, and where 90% of them lie."""
    low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
    return drawn.mean(axis=0), low, high


def response_charts(fit: ResponseFit) -> list[Markup]:
    """Histogram, Q-Q and tail of the responses."""
    return [_histogram(fit), _quantiles(fit), _tail(fit)]


def _histogram(fit: ResponseFit) -> Markup:
    edges = fit.edges()
    observed, drawn = fit.histogram(edges)
    mean, low, high = _band(drawn)
    middle = np.sqrt(edges[1:] * edges[:-1]) if fit.log else 0.5 * (edges[1:] + edges[:-1])
    chart = Chart(
        "Observed values, and what the model would give",
        Axis("value", float(edges[0]), float(edges[-1]), fit.log and edges[0] > 0),
        Axis.over("share of values", observed, high, zero=True, write=percent),
        "Bars are the data; the line is the model. They agree where the model fits.",
    )
    chart.bars("observed", edges, observed, "observed")
    chart.band("90% of replicates", middle, low, high, "model")
    chart.line("model", middle, mean, "model")
    return chart.render()


def _quantiles(fit: ResponseFit) -> Markup:
    levels, observed, drawn = fit.quantiles()
    axis = Axis.over("quantile of the model", drawn, observed, log=fit.log)
    chart = Chart(
        "Quantile against quantile",
        axis,
        Axis("quantile of the data", axis.low, axis.high, axis.log),
        f"{len(levels)} quantiles; above the diagonal the data are larger than the model says.",
    )
    chart.guide("exactly right", [axis.low, axis.high], [axis.low, axis.high])
    chart.points("quantile", drawn, observed, "model")
    return chart.render()


def _tail(fit: ResponseFit) -> Markup:
    at, observed, drawn = fit.tail()
    mean, low, high = _band(drawn)
    floor = 0.5 / len(fit.observed)
    chart = Chart(
        "The largest values",
        Axis.over("value", at, log=fit.log),
        Axis("share of values above", floor, 1.0, True, percent),
        "How fast large values become rare, in the data and in the model.",
    )
    seen, some = high > floor, mean > floor
    chart.band("90% of replicates", at[seen], np.maximum(low[seen], floor), high[seen], "model")
    chart.line("model", at[some], mean[some], "model")
    chart.points("observed", at[observed > 0], observed[observed > 0], "observed", 2.4)
    return chart.render()


def convergence_charts(model: HCPF) -> list[Markup]:
    """The bound at every check, and how much it still changed per pass."""
    history = model.history_
    passes = [float(check.iteration) for check in history]
    bound = [check.elbo for check in history]
    charts: list[Markup] = []
    if len(history) >= 1:
        chart = Chart(
            "The bound, pass by pass",
            Axis.over("passes over the data", [0.0, *passes], zero=True),
            Axis.over("bound", bound),
            "Higher is better; it levels off when the fit has converged.",
        )
        chart.line("bound", passes, bound, "model", dots=True)
        charts.append(chart.render())
    at, change = relative_changes(history)
    if len(at) >= 1:
        shown = change[change > 0]
        chart = Chart(
            "How much each pass still changed it",
            Axis.over("passes over the data", [0.0, *passes], zero=True),
            Axis.over("relative change per pass", shown, [model.tol or 1e-4], log=True),
            "The fit stops once this falls below the tolerance.",
        )
        if model.tol > 0:
            chart.guide(f"tolerance {short(model.tol)}", [0.0, passes[-1]], [model.tol] * 2)
        chart.line("change per pass", at[change > 0], shown, "model", dots=True)
        charts.append(chart.render())
    return charts


def relative_changes(history: list[Check]) -> tuple[FloatArray, FloatArray]:
    """Passes, and by what share the bound changed per pass up to them."""
    passes = np.array([check.iteration for check in history], dtype=np.float64)
    bound = np.array([check.elbo for check in history])
    change = np.abs(np.diff(bound)) / np.maximum(np.abs(bound[1:]), 1e-300)
    return passes[1:], change / np.maximum(np.diff(passes), 1.0)


def degree_chart(degrees: Degrees, rows: str, columns: str) -> Markup:
    """The share of rows with at least so many entries."""
    at, observed, drawn = degrees.at_least()
    floor = 0.5 / len(degrees.observed)
    chart = Chart(
        f"How many {columns} do {rows} have?",
        Axis(f"number of {columns}, at least", 0.9, float(at[-1]) * 1.15, True),
        Axis(f"share of {rows}", floor, 1.1, True, percent),
        f"The share of {rows} that have at least so many {columns}, in the data and in the model.",
    )
    chart.line("model", at[drawn > 0], drawn[drawn > 0], "model")
    chart.points("observed", at[observed > 0], observed[observed > 0], "observed", 2.4)
    return chart.render()


def overlap_chart(found: Components) -> Markup:
    """How much components share their items."""
    size = min(len(found), _SHOWN)
    names = [str(j + 1) for j in range(size)]
    return heat_map(
        "How much do two factors share their items?",
        names,
        found.overlap[:size, :size],
        "Dark cells away from the diagonal are factors with much the same items.",
    )
