"""The facts of each section of the report; the templates have the words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hcpf._types import FloatArray
from hcpf.core.axis import Axis
from hcpf.data.sampling import sample_values
from hcpf.data.words import Words
from hcpf.elements import Presence
from hcpf.evaluate import Evaluation, ModelScores, Score
from hcpf.evaluate.predictive_checks import ActivityCheck, ValueCheck
from hcpf.model.components import Components
from hcpf.model.fitted import FittedModel
from hcpf.model.inspect import reason_to_stop
from hcpf.model.resolve import training_data
from hcpf.model.typical_values import TypicalValues, pooled_axes, typical_values
from hcpf.report import charts
from hcpf.report.text import id_text, score_texts

_COMPONENTS, _ITEMS = 24, 8  # components shown, and items of each
_CLOSEST = 8  # pairs of components in the table of overlaps
_SAME = 0.995  # overlap above which a component repeats another one

Facts = dict[str, Any]


def headline(model: FittedModel, evaluation: Evaluation | None) -> Facts:
    """Return the size of the data, and how the values spread."""
    data = training_data(model)
    values, quantiles = sample_values(data.matrix), None
    if not isinstance(model.element, Presence):
        quantiles = np.quantile(values, [0.05, 0.5, 0.95]).tolist()
    one_value = float(values[0]) if np.ptp(values) == 0 else None
    return {
        "data": data, "quantiles": quantiles, "one_value": one_value, "evaluation": evaluation
    }  # fmt: skip


@dataclass(frozen=True)
class Column:
    """One score in the table of models."""

    key: str
    """Name of the score in ``ModelScores``."""
    name: str
    about: str
    decimals: int | None = None
    """By default those of two digits of the standard error."""
    higher_is_better: bool = True


def _columns(n: int) -> list[Column]:
    return [
        Column(
            "log_likelihood",
            "Log-likelihood",
            "how probable the model finds the held-out pairs, observed and missing, in nats per "
            "1,000 pairs; one more makes them e ≈ 2.7 times as probable",
        ),
        Column(
            "conditional_nonmissing",
            "Log-likelihood of a value",
            "the same for the values alone, per observed pair",
        ),
        Column(
            "auc",
            "AUC",
            "how often an observed pair has a higher probability than a missing one; 0.5 is chance",
            decimals=3,
        ),
        Column(
            "ndcg",
            f"NDCG@{n}",
            f"how many of a user's held-out items are among the first {n} recommendations, early "
            "ones counting more; 1 is perfect",
            decimals=3,
        ),
        Column(
            "hit_rate",
            f"Hit rate@{n}",
            f"the share of users with at least one held-out item among the first {n}",
            decimals=3,
        ),
        Column(
            "mae",
            "Mean error of the value",
            "how far the value if observed is from the observed one, on average",
            higher_is_better=False,
        ),
    ]


def prediction(evaluation: Evaluation, settings: str) -> Facts:
    """Return the scores of the model and its baselines, and charts of its calibration.

    ``settings`` describes the model of the report, which may not be the one evaluated.
    """
    models = evaluation.models
    n = evaluation.model.ranking.n if evaluation.model.ranking else 0
    columns = [
        column for column in _columns(n) if any(row.score(column.key) for row in evaluation.models)
    ]
    cells = [_cells([row.score(column.key) for row in models], column) for column in columns]
    calibrations = {row.name: row.calibration for row in models if row.calibration}
    return {
        "evaluation": evaluation,
        "other_settings": settings if settings != evaluation.settings else None,
        "columns": columns,
        "rows": list(zip(models, zip(*cells, strict=True), strict=True)),
        "charts": charts.calibration(calibrations) if calibrations else (),
        "verdict": _verdict(evaluation.model, evaluation.baselines),
    }


def _cells(scores: Sequence[Score | None], column: Column) -> list[Facts]:
    """Return the cells of a column, the best ones marked."""
    known = [s.value for s in scores if s is not None and math.isfinite(s.value)]
    best = (max if column.higher_is_better else min)(known, default=math.nan)
    texts = score_texts(scores, column.decimals)
    return [
        {
            "text": text,
            "key": score.value if score is not None and math.isfinite(score.value) else None,
            "is_best": score is not None and score.value == best,
        }
        for score, text in zip(scores, texts, strict=True)
    ]


def _verdict(model: ModelScores, baselines: Sequence[ModelScores]) -> Facts | None:
    """Return the most likely baseline and the gain over it; None where no two can be compared."""
    key = "log_likelihood" if model.score("log_likelihood") else "conditional_nonmissing"
    own, others = model.score(key), [(row.name, row.score(key)) for row in baselines]
    known = [(score.value, name) for name, score in others if score is not None]
    if own is None or not known or not math.isfinite(own.value):
        return None
    value, name = max(known)
    unit = "1,000 pairs" if key == "log_likelihood" else "observed pair"
    return {"name": name, "gain": own.value - value, "unit": unit}


def values(model: FittedModel, check: ValueCheck | None) -> Facts:
    """Return the element, and values of the data compared with values drawn from the model."""
    return {
        "model": model,
        "check": check,
        "axes": [axis.word for axis in pooled_axes(model)],
        "mean": float(np.asarray(model.element.mean)),
        "sd": float(np.sqrt(np.asarray(model.element.variance))),
        "charts": charts.values(check, model.words) if check else (),
    }


def typical(model: FittedModel, labels: list[str], seed: int) -> Facts | None:
    """Return typical values of users and items; None where all pairs share one mean."""
    axes = pooled_axes(model)
    rng = np.random.default_rng(seed)
    tables = [_typical_table(model, typical_values(model, axis), labels, rng) for axis in axes]
    return {"axes": [axis.word for axis in axes], "tables": tables} if axes else None


def _typical_table(
    model: FittedModel, found: TypicalValues, labels: list[str], rng: np.random.Generator
) -> Facts:
    rows = found.sample_rows(rng)
    names = labels if found.axis is Axis.ITEMS else [id_text(user) for user in model.users]
    bounds = zip(*(bound.tolist() for bound in found.intervals(rows, rng)), strict=True)
    return {
        "word": found.axis.word,
        "n_rows": len(found.value),
        "levels": found.levels.tolist(),
        "new": found.new.tolist(),
        "rows": [
            {
                "name": names[row],
                "value": float(found.value[row]),
                "low": low,
                "high": high,
                "entries": int(found.entries[row]),
                "average": float(found.average[row]),
            }
            for row, (low, high) in zip(rows, bounds, strict=True)
        ],
    }


def convergence(model: FittedModel) -> Facts:
    """Return how long training took, and why it stopped."""
    return {
        "model": model,
        "reason": reason_to_stop(model),
        "max_iter": model.settings.get("max_iter"),
        "charts": charts.convergence(model) if model.history else (),
    }


def activity(checks: dict[Axis, ActivityCheck], words: Words) -> Facts:
    """Return how activity and popularity spread, in the data and in the model."""
    return {
        "rows": [
            {
                "axis": axis,
                "observed": _top_tenth(check.observed),
                "drawn": _top_tenth(check.drawn),
                "without": float(np.mean(check.observed == 0)),
                "drawn_without": float(np.mean(check.drawn == 0)),
            }
            for axis, check in checks.items()
        ],
        "charts": [charts.activity(check, axis, words) for axis, check in checks.items()],
    }


def _top_tenth(counts: FloatArray) -> float:
    """Return the share of all entries that the top tenth of rows has."""
    top = np.sort(counts)[::-1][: max(1, round(0.1 * len(counts)))]
    return float(top.sum() / max(counts.sum(), 1.0))


def components(model: FittedModel, found: Components, labels: list[str]) -> Facts:
    """Return the items of each component, and which components overlap."""
    repeated = _repeated(found)
    distinct = [j for j in range(len(found)) if j not in repeated][:_COMPONENTS]
    shown = min(len(found), _COMPONENTS)
    first, second = np.triu_indices(shown, 1)
    overlap = found.overlap[first, second]
    closest = np.argsort(-overlap, kind="stable")[:_CLOSEST]
    return {
        "n_fits": len(model.posteriors),
        "n_components": len(found),
        "largest": found.share[:3].tolist(),
        "n_repeated": len(repeated),
        "cards": [_component(found, j, labels) for j in distinct],
        "overlap": charts.overlap(found),
        "closest": [
            (found.number[first[j]], found.number[second[j]], float(overlap[j])) for j in closest
        ],
    }


def _repeated(found: Components) -> set[int]:
    """Return the components with the same items as a larger one: the data do not need them."""
    repeated: set[int] = set()
    for j in range(1, len(found)):
        larger = [k for k in range(j) if k not in repeated]
        if np.any(found.overlap[larger, j] > _SAME):
            repeated.add(j)
    return repeated


def _component(found: Components, j: int, labels: list[str]) -> Facts:
    def items(positions: Any) -> list[Facts]:
        return [
            {
                "name": labels[i],
                "share": float(found.item_share[j, i]),
                "lift": float(found.lift[j, i]),
            }
            for i in positions
        ]

    return {
        "number": int(found.number[j]),
        "share": float(found.share[j]),
        "value_share": None if found.value_share is None else float(found.value_share[j]),
        "width": float(found.share[j] / found.share[0]),
        "distinctive": items(found.distinctive(j, _ITEMS)),
        "largest": items(found.largest(j, _ITEMS)),
    }
