"""The sections of the report: facts in, HTML out."""

import math
from typing import Any

import numpy as np

from hcpf._types import FloatArray
from hcpf.estimator import HCPF
from hcpf.report import charts
from hcpf.report.components import Components
from hcpf.report.degrees import Degrees
from hcpf.report.evaluation import Contender, Evaluation, K, NotEvaluated
from hcpf.report.habits import sentence
from hcpf.report.markup import Markup, element, fill, joined, table
from hcpf.report.responses import ResponseFit
from hcpf.report.wording import counted, listed, percent, short

_CARDS, _TOP = 24, 8  # components shown, and items of each
_CLOSEST = 8  # pairs of them


def headline(model: HCPF, evaluation: Evaluation | NotEvaluated) -> Markup:
    """The few numbers to remember, and what they mean."""
    data = model.interactions_
    cards = [
        (f"{data.n_users:,}", "users"),
        (f"{data.n_items:,}", "items"),
        (f"{data.n_observed:,}", f"observed pairs, {percent(data.density)} of all"),
    ]
    points = [_about_values(model)]
    if isinstance(evaluation, Evaluation):
        more, said = _promises(evaluation)
        cards += more
        points += said
    shown = [
        element("div", element("b", number), element("span", label), class_="card")
        for number, label in cards
    ]
    return fill(
        "headline.html",
        cards=joined(shown),
        points=joined(element("li", point) for point in points),
    )


def _about_values(model: HCPF) -> str:
    values = model.interactions_.values
    if model.train_on == "binary":
        return "The model is of which pairs are observed; their values are left aside."
    low, middle, high = (float(x) for x in np.quantile(values, [0.05, 0.5, 0.95]))
    return (
        f"A typical (median) value is {short(middle)}; nine in ten lie between {short(low)} and "
        f"{short(high)}."
    )


def _promises(evaluation: Evaluation) -> tuple[list[tuple[str, str]], list[str]]:
    """Cards and sentences about held-out pairs."""
    ours, other = evaluation.model, evaluation.contenders[1]
    cards: list[tuple[str, str]] = []
    points: list[str] = []
    if (area := ours.scores.auc) is not None and math.isfinite(area.value):
        theirs = other.scores.auc
        cards.append((percent(area.value), "of comparisons right: observed before missing"))
        points.append(
            "Shown one pair that was observed and one that was not, neither seen before, the "
            f"model rates the right one higher {percent(area.value)} of the time"
            + (f"; {other.name.lower()} alone does {percent(theirs.value)}." if theirs else ".")
        )
    if ours.ranking is not None:
        hits, rate = K * ours.ranking.precision.value, ours.ranking.hit_rate.value
        cards.append((percent(rate), f"of users find a held-out item among {K} recommended"))
        points.append(
            f"Of the first {K} items recommended to a user, {short(hits)} are on average among "
            f"those held out, and {percent(rate)} of users find at least "
            "one there" + _against(other)
        )
    inside = ours.calibration.coverage[0.9].value
    cards.append((percent(inside), "of held-out values inside their 90% intervals"))
    points.append(f"Intervals that should hold 90% of values hold {percent(inside)}.")
    return cards, points


def _against(other: Contender) -> str:
    if other.ranking is None:
        return "."
    hits, rate = K * other.ranking.precision.value, other.ranking.hit_rate.value
    return f"; {other.name.lower()} alone: {short(hits)} and {percent(rate)}."


def response(model: HCPF, fit: ResponseFit) -> Markup:
    """Whether the element fits."""
    if not fit.varies:
        return fill("no_response.html")
    where = "pairs that were held out" if fit.held_out else "pairs that it was fitted to"
    kind = model.element_
    parts = "a draw" if kind.once else "the sum of one or more parts, each"
    return fill(
        "response.html",
        made=f"{parts} from a distribution",
        element=repr(kind),
        varying=sentence(model),
        name=kind.name.replace("_", " "),
        support=kind.support.description,
        mean=short(float(np.asarray(kind.mean))),
        sd=short(float(np.sqrt(np.asarray(kind.variance)))),
        n=counted(len(fit.observed), "value"),
        where=where,
        points=joined(element("li", point) for point in _compared(fit)),
        charts=joined(charts.response_charts(fit)),
    )


def _compared(fit: ResponseFit) -> list[str]:
    """The middle and the tail in words."""
    found = [np.quantile(values, [0.5, 0.99]) for values in (fit.observed, fit.drawn)]
    (middle, high), (expected, expected_high) = [(short(a), short(b)) for a, b in found]
    return [
        f"Half of the values lie below {middle} in the data, and below {expected} in the model.",
        f"One in a hundred exceeds {high} in the data, and {expected_high} in the model.",
    ]


def convergence(model: HCPF) -> Markup:
    """Whether the fit has converged."""
    if not model.history_:
        return fill("no_convergence.html")
    seconds = short(model.history_[-1].seconds)
    if model.interrupted_:
        ended = "It was interrupted: fitting on may improve it."
    elif model.n_iter_ >= model.max_iter:
        ended = "It ended at the most passes allowed (max_iter): more of them may improve it."
    else:
        ended = "It ended by itself, when a pass changed hardly anything any more."
    several = len(model.posteriors_)
    if several > 1:
        ended += f" These are the numbers of the first of {several} fits."
    return fill(
        "convergence.html",
        passes=counted(model.n_iter_, "pass", "passes"),
        seconds=seconds,
        ended=ended,
        charts=joined(charts.convergence_charts(model)),
    )


def activity(users: Degrees, items: Degrees) -> Markup:
    """How activity and popularity spread, in the data and in the model."""
    points = [
        _top_tenth(users.observed, users.drawn, "busiest tenth of users"),
        _top_tenth(items.observed, items.drawn, "most popular tenth of items"),
    ]
    drawn = [
        charts.degree_chart(users, "users", "items"),
        charts.degree_chart(items, "items", "users"),
    ]
    return fill(
        "activity.html",
        points=joined(element("li", point) for point in points),
        charts=joined(drawn),
    )


def _top_tenth(observed: FloatArray, drawn: FloatArray, who: str) -> str:
    def share(counts: FloatArray) -> float:
        top = np.sort(counts)[::-1][: max(1, round(0.1 * len(counts)))]
        return float(top.sum() / max(counts.sum(), 1.0))

    none = percent(float(np.mean(observed == 0))), percent(float(np.mean(drawn == 0)))
    return (
        f"The {who} have {percent(share(observed))} of all pairs in the data, and "
        f"{percent(share(drawn))} in the model. Without any: {none[0]} in the data, {none[1]} in "
        "the model."
    )


def factors(model: HCPF, found: Components, labels: list[str]) -> Markup:
    """What the components stand for."""
    shown = min(len(found), _CARDS)
    averaged = len(model.posteriors_) > 1
    notes: list[str] = []
    if averaged:
        notes.append(
            f"Predictions average {len(model.posteriors_)} fits, whose factors differ; these are "
            "the factors of the first."
        )
    if shown < len(found):
        notes.append(f"The {shown} largest of {len(found)} factors are shown.")
    return fill(
        "factors.html",
        count=counted(len(found), "factor"),
        largest=listed([percent(share) for share in found.share[:3]]),
        notes=" ".join(notes),
        cards=joined(_factor(found, j, labels) for j in range(shown)),
        overlap=charts.overlap_chart(found),
        closest=_closest(found),
    )


def _closest(found: Components) -> Markup:
    """The pairs of components that share most."""
    size = min(len(found), _CARDS)
    first, second = np.triu_indices(size, 1)
    if not len(first):
        return Markup()
    value = found.overlap[first, second]
    order = np.argsort(-value, kind="stable")[:_CLOSEST]
    pairs = [(f"{first[j] + 1} and {second[j] + 1}", percent(float(value[j]))) for j in order]
    return table("Factors that overlap most", ["Factors that overlap most", "Overlap"], pairs)


def _factor(found: Components, j: int, labels: list[str]) -> Markup:
    lists = [
        _ranked(found, j, found.typical(j, _TOP), labels, "typical"),
        _ranked(found, j, found.largest(j, _TOP), labels, "largest"),
    ]
    bar = element("i", style=f"width:{100 * found.share[j] / found.share[0]:.1f}%")
    return element(
        "article",
        element("h3", f"Factor {j + 1}"),
        element("p", f"explains {percent(float(found.share[j]))} of all expected pairs"),
        element("div", bar, class_="meter", aria_hidden="true"),
        *lists,
        class_="factor",
    )


def _ranked(found: Components, j: int, items: Any, labels: list[str], css: str) -> Markup:
    entries: list[Markup] = []
    for i in items:
        share, lift = percent(float(found.item_share[j, i])), short(float(found.lift[j, i]))
        tip = f"{share} of this factor; {lift} times its share of everything"
        amount = element("span", f"×{lift}" if css == "typical" else share, class_="amount")
        entries.append(element("li", element("span", labels[i]), amount, data_tip=tip))
    return element("ol", *entries, class_=css)
