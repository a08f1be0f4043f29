"""The section on predictions: the model's scores compared with those of simpler models."""

import math
from dataclasses import dataclass
from typing import Any

from hcpf.evaluate import Evaluation, ModelScores, Score
from hcpf.report import charts
from hcpf.report.markup import Markup, element, fill, joined, markup, table
from hcpf.report.wording import counted, percent, scored


@dataclass(frozen=True)
class Column:
    """One score in the table of models."""

    name: str
    about: str
    higher: bool
    score: str
    """Name of the score in ``ModelScores``."""


def _columns(evaluation: Evaluation) -> list[Column]:
    """Return the scores that apply to any of the models."""
    k = evaluation.model.ranking.k if evaluation.model.ranking else 0
    columns = (
        Column(
            "Log-likelihood",
            "how probable the model finds the held-out part of the matrix, per 1,000 pairs, "
            "missing ones included; each unit more makes that part e ≈ 2.7 times as probable",
            True,
            "log_likelihood",
        ),
        Column(
            "Value likelihood",
            "the same for the values alone, per observed pair",
            True,
            "conditional_nonmissing",
        ),
        Column(
            "AUC",
            "how often an observed pair gets a higher probability than a missing one; 0.5 is "
            "chance",
            True,
            "auc",
        ),
        Column(
            f"NDCG@{k}",
            f"how well the first {k} recommendations hold a user's held-out items, early ones "
            "counting more; 1 is perfect",
            True,
            "ndcg",
        ),
        Column(
            f"Hit rate@{k}",
            f"the share of users with at least one held-out item among the first {k}",
            True,
            "hit_rate",
        ),
        Column(
            "Mean error",
            "how far the expected value is from the observed one, on average",
            False,
            "mae",
        ),
    )
    return [c for c in columns if any(row.score(c.score) is not None for row in evaluation.models)]


def prediction(evaluation: Evaluation | None, settings: str) -> Markup:
    """Show how well the model predicts, compared with simpler models.

    ``settings`` describes the model of the report, which may not be the one evaluated.
    """
    if evaluation is None:
        return fill("no_prediction.html")
    columns = _columns(evaluation)
    drawn = [
        charts.calibration_chart(evaluation),
        charts.coverage_chart(evaluation),
        charts.pit_chart(evaluation),
    ]
    return fill(
        "prediction.html",
        how=_how(evaluation, settings),
        n_test=counted(evaluation.n_test, "observed pair"),
        n_missing=counted(evaluation.n_missing, "missing one"),
        table=_score_table(evaluation, columns),
        meanings=_definitions([(column.name, column.about) for column in columns]),
        baselines=_definitions([(row.name, row.about) for row in evaluation.baselines]),
        charts=joined(chart for chart in drawn if chart is not None),
        error=_calibration_error(evaluation.model),
    )


def _how(evaluation: Evaluation, settings: str) -> str:
    text = (
        "A model cannot be judged by the data that it was trained on. The model scored here was "
        f"trained on {counted(evaluation.n_train, 'observed pair')} and scored on others."
    )
    if evaluation.settings != settings:
        text += f" It has {evaluation.settings}; the model of this report has {settings}."
    return text


def _definitions(pairs: list[tuple[str, str]]) -> Markup:
    return joined(joined([element("dt", name), element("dd", about)]) for name, about in pairs)


def _calibration_error(model: ModelScores) -> str:
    error = model.calibration.expected_error if model.calibration else None
    if error is None:
        return ""
    return f"On average the probability is off by {percent(error)[:-1]} percentage points."


def _score_table(evaluation: Evaluation, columns: list[Column]) -> Markup:
    rows: list[list[Any]] = []
    for row in evaluation.models:
        cells: list[Any] = [row.name]
        for column in columns:
            score: Score | None = row.score(column.score)
            others = [other.score(column.score) for other in evaluation.models]
            cells.append((_key(score), _marked(score, others, column)))
        rows.append(cells)
    header = ["Model", *(column.name for column in columns)]
    return table("Scores on held-out pairs", header, rows, css="scores", sortable=True)


def _key(score: Score | None) -> str:
    return "" if score is None or not math.isfinite(score.value) else repr(score.value)


def _marked(score: Score | None, others: list[Score | None], column: Column) -> Markup:
    """Return a score, in bold if none is better."""
    text = scored(score)
    values = [s.value for s in others if s is not None and math.isfinite(s.value)]
    best = (max if column.higher else min)(values, default=math.nan)
    return element("b", text) if score is not None and score.value == best else markup(text)
