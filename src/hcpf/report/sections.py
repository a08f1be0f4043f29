"""The sections of the report: facts in, HTML out."""

import math
from typing import Any

import numpy as np

from hcpf._types import FloatArray
from hcpf.elements import Presence
from hcpf.evaluate import Evaluation, ModelScores
from hcpf.evaluate.predictive_checks import ActivityCheck, ValueCheck
from hcpf.model.components import Components
from hcpf.model.fitted import FittedModel
from hcpf.model.resolve import training_data
from hcpf.report import charts, typical
from hcpf.report.markup import Markup, element, fill, joined, table
from hcpf.report.wording import counted, listed, percent, short

_CARDS, _TOP = 24, 8  # components shown, and items of each
_CLOSEST = 8  # pairs of them


def headline(model: FittedModel, evaluation: Evaluation | None) -> Markup:
    """Show the few numbers to remember, and what they mean."""
    data = training_data(model)
    cards = [
        (f"{data.n_users:,}", "users"),
        (f"{data.n_items:,}", "items"),
        (f"{data.n_observed:,}", f"observed pairs, {percent(data.density)} of all"),
    ]
    points = [_about_values(model)]
    if evaluation is not None:
        more_cards, more_points = _held_out_results(evaluation)
        cards += more_cards
        points += more_points
    shown = [
        element("div", element("b", number), element("span", label), class_="card")
        for number, label in cards
    ]
    return fill(
        "headline.html",
        cards=joined(shown),
        points=joined(element("li", point) for point in points),
    )


def _about_values(model: FittedModel) -> str:
    observed = training_data(model).values
    if isinstance(model.element, Presence):
        return "The model is of which pairs are observed; their values play no part."
    low, middle, high = (float(x) for x in np.quantile(observed, [0.05, 0.5, 0.95]))
    return (
        f"A typical (median) value is {short(middle)}; nine in ten lie between {short(low)} and "
        f"{short(high)}."
    )


def _held_out_results(evaluation: Evaluation) -> tuple[list[tuple[str, str]], list[str]]:
    """Return cards and sentences about held-out pairs."""
    ours = evaluation.model
    other = evaluation.baselines[0] if evaluation.baselines else None
    cards: list[tuple[str, str]] = []
    points: list[str] = []
    area, theirs = ours.score("auc"), other and other.score("auc")
    if area is not None and math.isfinite(area.value):
        cards.append((percent(area.value), "of comparisons right: observed before missing"))
        points.append(
            "Shown one pair that was observed and one that was not, neither seen before, the "
            f"model rates the right one higher {percent(area.value)} of the time"
            + (
                f"; {other.name.lower()} alone does {percent(theirs.value)}."
                if other and theirs
                else "."
            )
        )
    if (ranked := ours.ranking) is not None:
        rate = percent(ranked.hit_rate.value)
        cards.append((rate, f"of users find a held-out item among {ranked.k} recommended"))
        points.append(
            f"Of the first {ranked.k} items recommended to a user, "
            f"{short(ranked.k * ranked.precision.value)} are on average among those held out, and "
            f"{rate} of users find at least one there{_compared_with(other)}"
        )
    if ours.calibration is not None:
        inside = percent(ours.calibration.coverage[0.9].value)
        cards.append((inside, "of held-out values inside their 90% intervals"))
        points.append(f"Intervals that should hold 90% of values hold {inside}.")
    return cards, points


def _compared_with(other: ModelScores | None) -> str:
    if other is None or (ranked := other.ranking) is None:
        return "."
    hits = short(ranked.k * ranked.precision.value)
    return f"; {other.name.lower()} alone: {hits} and {percent(ranked.hit_rate.value)}."


def values(model: FittedModel, check: ValueCheck | None) -> Markup:
    """Show whether the element fits the values."""
    if check is None:
        return fill("no_values.html")
    where = "pairs that were held out" if check.held_out else "pairs that it was fitted to"
    kind = model.element
    origin = "a draw" if model.value_model.hurdle else "the sum of one or more elements, each"
    return fill(
        "values.html",
        origin=f"{origin} from a distribution",
        element=repr(kind),
        pooling=typical.sentence(model),
        name=kind.name.replace("_", " "),
        support=kind.support.description,
        mean=short(float(np.asarray(kind.mean))),
        sd=short(float(np.sqrt(np.asarray(kind.variance)))),
        n=counted(check.n_values, "value"),
        where=where,
        points=joined(element("li", point) for point in _middle_and_tail(check)),
        charts=joined(charts.value_charts(check)),
    )


def _middle_and_tail(check: ValueCheck) -> list[str]:
    return [
        f"Half of the values lie below {short(check.median)} in the data, and below "
        f"{short(check.model_median)} in the model.",
        f"One in a hundred exceeds {short(check.percentile_99)} in the data, and "
        f"{short(check.model_percentile_99)} in the model.",
    ]


def convergence(model: FittedModel) -> Markup:
    """Show whether the fit has converged."""
    if not model.history:
        return fill("no_convergence.html")
    seconds = short(model.history[-1].seconds)
    if model.interrupted:
        ended = "Training was interrupted; more passes may improve the model."
    elif model.n_iter >= model.settings.get("max_iter", math.inf):
        ended = "Training stopped at max_iter passes; more passes may improve the model."
    else:
        ended = "Training converged."
    n_fits = len(model.posteriors)
    if n_fits > 1:
        ended += f" These are the numbers of the first of {n_fits} fits."
    return fill(
        "convergence.html",
        passes=counted(model.n_iter, "pass", "passes"),
        seconds=seconds,
        ended=ended,
        charts=joined(charts.convergence_charts(model)),
    )


def activity(users: ActivityCheck, items: ActivityCheck) -> Markup:
    """Show how activity and popularity spread, in the data and in the model."""
    points = [
        _top_tenth(users.observed, users.drawn, "most active tenth of users"),
        _top_tenth(items.observed, items.drawn, "most popular tenth of items"),
    ]
    drawn = [
        charts.activity_chart(users, "users", "items"),
        charts.activity_chart(items, "items", "users"),
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


def components(model: FittedModel, found: Components, labels: list[str]) -> Markup:
    """Show what the components stand for."""
    shown = min(len(found), _CARDS)
    averaged = len(model.posteriors) > 1
    notes: list[str] = []
    if averaged:
        notes.append(
            f"Predictions average {len(model.posteriors)} fits, whose components differ; these "
            "are the components of the first."
        )
    if shown < len(found):
        notes.append(f"The {shown} largest of {len(found)} components are shown.")
    return fill(
        "components.html",
        count=counted(len(found), "component"),
        largest=listed([percent(share) for share in found.share[:3]]),
        notes=" ".join(notes),
        cards=joined(_component(found, j, labels) for j in range(shown)),
        overlap=charts.overlap_chart(found),
        closest=_closest(found),
    )


def _closest(found: Components) -> Markup:
    """Show the pairs of components that share most."""
    size = min(len(found), _CARDS)
    first, second = np.triu_indices(size, 1)
    if not len(first):
        return Markup()
    value = found.overlap[first, second]
    order = np.argsort(-value, kind="stable")[:_CLOSEST]
    pairs = [(f"{first[j] + 1} and {second[j] + 1}", percent(float(value[j]))) for j in order]
    return table("Components that overlap most", ["Components that overlap most", "Overlap"], pairs)


def _component(found: Components, j: int, labels: list[str]) -> Markup:
    lists = [
        _ranked(found, j, found.distinctive(j, _TOP), labels, "distinctive"),
        _ranked(found, j, found.largest(j, _TOP), labels, "largest"),
    ]
    bar = element("i", style=f"width:{100 * found.share[j] / found.share[0]:.1f}%")
    return element(
        "article",
        element("h3", f"Component {j + 1}"),
        element("p", f"explains {percent(float(found.share[j]))} of all expected pairs"),
        element("div", bar, class_="meter", aria_hidden="true"),
        *lists,
        class_="component",
    )


def _ranked(found: Components, j: int, items: Any, labels: list[str], css: str) -> Markup:
    entries: list[Markup] = []
    for i in items:
        share, lift = percent(float(found.item_share[j, i])), short(float(found.lift[j, i]))
        tip = f"{share} of this component; {lift} times its share of everything"
        amount = element("span", f"×{lift}" if css == "distinctive" else share, class_="amount")
        entries.append(element("li", element("span", labels[i]), amount, data_tip=tip))
    return element("ol", *entries, class_=css)
