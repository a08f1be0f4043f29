"""The charts of a fitted model, drawn alike in the report and by ``hcpf.plots``."""

from collections.abc import Mapping, Sequence

import numpy as np

from hcpf._types import FloatArray
from hcpf.core.axis import Axis as ModelAxis
from hcpf.core.posterior import Check
from hcpf.data.words import Words
from hcpf.evaluate import Calibration, ComponentPath, Consensus
from hcpf.evaluate.predictive_checks import ActivityCheck, ValueCheck
from hcpf.model.components import Components
from hcpf.model.fitted import FittedModel
from hcpf.report.drawing import Axis, Chart, Charts
from hcpf.report.lists import BarList, HeatMap
from hcpf.report.text import percent, tick

WORDS = Words()
_STYLES = ("model", "first", "second", "third")  # of a model and its baselines
_IDEAL = "exactly right"
_SHOWN = 24  # components
_NAMED = 2  # items that stand for a component


def calibration(found: Mapping[str, Calibration]) -> Charts:
    """Draw the calibration of probabilities (if any model has them), intervals and values."""
    drawn = [_probabilities(found), _coverage(found), _pit(next(iter(found.values())))]
    return Charts(chart for chart in drawn if chart is not None)


def _probabilities(found: Mapping[str, Calibration]) -> Chart | None:
    """Draw observed shares against predicted probabilities; None if no model predicts any."""
    curves = [(name, c.reliability) for name, c in found.items() if c.reliability is not None]
    if not curves:
        return None
    every = [values[values > 0] for _, c in curves for values in (c.predicted, c.observed)]
    axis = Axis.over("predicted probability", *every, log=True, write=percent)
    chart = Chart(
        "Are the probabilities right?",
        "On the dashed line, pairs are observed as often as predicted; below it, less often.",
        axis,
        Axis("share observed", axis.low, axis.high, True, percent),
    )
    chart.guide(_IDEAL, [axis.low, axis.high], [axis.low, axis.high])
    # From back to front, so that the first model is not hidden by the others.
    for (name, curve), css in reversed(list(zip(curves, _STYLES, strict=False))):
        seen = curve.observed > 0
        x, y, error = curve.predicted[seen], curve.observed[seen], 2.0 * curve.error[seen]
        if css == "model":
            chart.errors(x, np.maximum(y - error, axis.low), y + error, css)
        chart.line(name, x, y, css, dots=True)
    return chart


def _coverage(found: Mapping[str, Calibration]) -> Chart:
    """Draw the share of values inside intervals against the level of the intervals."""
    inside = {name: {k: s.value for k, s in c.coverage.items()} for name, c in found.items()}
    low = min(0.4, *(share for shares in inside.values() for share in shares.values()))
    chart = Chart(
        "Do the intervals contain enough values?",
        "On the dashed line, intervals contain as many values as they should; below it, too few.",
        Axis("level of the interval", 0.45, 1.0, write=percent),
        Axis("values inside", max(low - 0.05, 0.0), 1.02, write=percent),
    )
    chart.guide(_IDEAL, [0.45, 1.0], [0.45, 1.0])
    for (name, shares), css in reversed(list(zip(inside.items(), _STYLES, strict=False))):
        chart.line(name, list(shares), list(shares.values()), css, dots=True)
    return chart


def _pit(found: Calibration) -> Chart:
    """Draw where values fall within their predictive distributions."""
    bins = len(found.pit_histogram)
    shares = found.pit_histogram / bins
    chart = Chart(
        "Where do values fall in their predictions?",
        "Bars of equal height are right; high bars at both ends mean too narrow predictions.",
        Axis("position in the prediction: 0% lowest, 100% highest", 0.0, 1.0, write=percent),
        Axis.over("share of values", shares, [1.6 / bins], zero=True, write=percent),
    )
    chart.bars("held-out values", np.linspace(0.0, 1.0, bins + 1), shares, "model")
    chart.guide(_IDEAL, [0.0, 1.0], [1.0 / bins] * 2)
    return chart


def values(check: ValueCheck, words: Words = WORDS) -> Charts:
    """Draw histogram, quantiles and tail of the values."""
    return Charts([_histogram(check, words), _quantiles(check), _tail(check, words)])


def _histogram(check: ValueCheck, words: Words) -> Chart:
    shares, edges, log = check.histogram, check.histogram.at, check.log_scale
    chart = Chart(
        "How often does each value occur?",
        "Bars are the data, the line is the model; they agree where the model fits.",
        Axis(words.value_axis, float(edges[0]), float(edges[-1]), log and edges[0] > 0),
        Axis.over("share of values", shares.observed, shares.high, zero=True, write=percent),
    )
    chart.bars("observed", edges, shares.observed, "observed")
    chart.band("90% of replicates", check.bin_centers, shares.low, shares.high, "model")
    chart.line("model", check.bin_centers, shares.mean, "model")
    return chart


def _quantiles(check: ValueCheck) -> Chart:
    observed, drawn = check.quantiles, check.model_quantiles
    axis = Axis.over("quantile of the model", drawn, observed, log=check.log_scale)
    chart = Chart(
        "Are small and large values right?",
        "Above the dashed line, values in the data are larger than in the model.",
        axis,
        Axis("quantile of the data", axis.low, axis.high, axis.log),
    )
    chart.guide(_IDEAL, [axis.low, axis.high], [axis.low, axis.high])
    chart.dots("quantile", drawn, observed, "model")
    return chart


def _tail(check: ValueCheck, words: Words) -> Chart:
    tail, floor = check.tail, 0.5 / check.n_values
    chart = Chart(
        "How rare are the largest values?",
        "Points are the data; they should stay in the shaded range of the model.",
        Axis.over(words.value_axis, tail.at, log=check.log_scale),
        Axis("share of values above", floor, 1.0, True, percent),
    )
    banded, lined, dotted = tail.high > floor, tail.mean > floor, tail.observed > 0
    low = np.maximum(tail.low[banded], floor)
    chart.band("90% of replicates", tail.at[banded], low, tail.high[banded], "model")
    chart.line("model", tail.at[lined], tail.mean[lined], "model")
    chart.dots("observed", tail.at[dotted], tail.observed[dotted], "observed", 2.4)
    return chart


def convergence(model: FittedModel) -> Charts:
    """Draw the ELBO at every check, and how much it still changed per pass."""
    history, tol = model.history, float(model.settings.get("tol", 0.0))
    passes = [float(check.iteration) for check in history]
    x = Axis.over("passes over the data", [0.0, *passes], zero=True)
    elbo = [check.elbo for check in history]
    first = Chart(
        "ELBO per pass",
        "The line should rise and then level off.",
        x,
        Axis.over("ELBO", elbo),
    )
    first.line("ELBO", passes, elbo, "model", dots=True)
    at, change = relative_changes(history)
    if not len(at):
        return Charts([first])
    shown = change[change > 0]
    second = Chart(
        "Change of the ELBO per pass",
        "Training stops when the line falls below the tolerance.",
        x,
        Axis.over("relative change per pass", shown, [tol or 1e-4], log=True),
    )
    if tol > 0:
        second.guide(f"tolerance {tick(tol)}", [0.0, passes[-1]], [tol] * 2)
    second.line("change per pass", at[change > 0], shown, "model", dots=True)
    return Charts([first, second])


def relative_changes(history: Sequence[Check]) -> tuple[FloatArray, FloatArray]:
    """Return passes, and the relative change of the ELBO per pass up to them."""
    passes = np.array([check.iteration for check in history], dtype=np.float64)
    elbo = np.array([check.elbo for check in history])
    change = np.abs(np.diff(elbo)) / np.maximum(np.abs(elbo[1:]), 1e-300)
    return passes[1:], change / np.maximum(np.diff(passes), 1.0)


def activity(check: ActivityCheck, axis: ModelAxis, words: Words = WORDS) -> Chart:
    """Draw the share of users (or items) with at least a number of entries."""
    rows, others = (words.users, words.items)[:: 1 if axis is ModelAxis.USERS else -1]
    at, observed, drawn = check.share_with_at_least()
    floor = 0.5 / len(check.observed)
    chart = Chart(
        f"How many {others} do {rows} have?",
        f"The share of {rows} with at least so many {others}; points are the data.",
        Axis(f"number of {others}, at least", 0.9, float(at[-1]) * 1.15, True),
        Axis(f"share of {rows}", floor, 1.1, True, percent),
    )
    chart.line("model", at[drawn > 0], drawn[drawn > 0], "model")
    chart.dots("observed", at[observed > 0], observed[observed > 0], "observed", 2.4)
    return chart


def component_shares(found: Components, labels: Sequence[str]) -> BarList:
    """Draw what share of the expected pairs each component explains."""
    size = min(len(found), _SHOWN)
    names = [
        f"{found.number[j]}: {', '.join(labels[int(i)] for i in found.distinctive(j, _NAMED))}"
        for j in range(size)
    ]
    return BarList(
        "What does each component explain?",
        "The longer a bar, the more of the expected pairs are of that component.",
        names,
        found.share[:size].tolist(),
    )


def overlap(found: Components) -> HeatMap:
    """Draw how much components share their items."""
    size = min(len(found), _SHOWN)
    return HeatMap(
        "How much do components overlap?",
        "The stronger its color, the more of their content two components share.",
        [str(number) for number in found.number[:size]],
        found.overlap[:size, :size],
    )


def component_path(path: ComponentPath) -> Chart:
    """Draw the held-out log-likelihood against the number of components."""
    sizes = [float(c.n_components) for c in path.candidates]
    value = np.array([c.log_likelihood.value for c in path.candidates])
    error = np.nan_to_num(np.array([c.log_likelihood.error for c in path.candidates]))
    chart = Chart(
        "How many components?",
        "Higher is better; upright lines are one standard error.",
        Axis.over("number of components", sizes, log=True, ticks_at=tuple(sizes)),
        Axis.over("held-out log-likelihood", value - error, value + error),
    )
    best = f"best by one standard error: {path.best}"
    chart.guide(best, [path.best, path.best], [chart.y.low, chart.y.high])
    chart.errors(sizes, value - error, value + error, "model")
    chart.line("log-likelihood", sizes, value, "model", dots=True)
    return chart


def consensus(found: Consensus) -> Charts:
    """Draw the stability and the held-out log-likelihood against the number of components."""
    sizes = [float(c.n_components) for c in found.candidates]
    across = Axis.over("number of components", sizes, ticks_at=tuple(sizes))
    lines = {
        "matched cosine": [c.stability.cosine for c in found.candidates],
        "silhouette": [c.stability.silhouette for c in found.candidates],
    }
    stability = Chart(
        "How stable are the components?",
        "Higher is better; at 1 all fits find the same components.",
        across,
        Axis.over("stability", [0.0, 1.0], *lines.values()),  # a silhouette may be negative
    )
    for (name, values), style in zip(lines.items(), ("model", "observed"), strict=True):
        stability.line(name, sizes, values, style, dots=True)
    return Charts([stability, component_path(found)])
