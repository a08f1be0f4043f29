"""How well a model predicts: its scores beside those of simpler models."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hcpf.evaluate import Score
from hcpf.report import charts
from hcpf.report.evaluation import Contender, Evaluation, K, NotEvaluated
from hcpf.report.markup import Markup, element, fill, joined, markup, table
from hcpf.report.wording import counted, percent, scored


@dataclass(frozen=True)
class Column:
    """One score in the table of models."""

    name: str
    about: str
    higher: bool
    of: Callable[[Contender], Score | None]


COLUMNS = (
    Column(
        "Log likelihood",
        "how probable the model finds the held-out part of the matrix, per thousand entries, "
        "missing ones included; each unit more makes that part e ≈ 2.7 times as probable",
        True,
        lambda c: c.scores.log_likelihood,
    ),
    Column(
        "Value likelihood",
        "the same for the values alone, per observed entry",
        True,
        lambda c: c.scores.conditional_nonmissing,
    ),
    Column(
        "AUC",
        "how often an observed pair gets a higher probability than a missing one; 0.5 is chance",
        True,
        lambda c: c.scores.auc,
    ),
    Column(
        f"NDCG@{K}",
        f"how well the first {K} recommendations hold a user's held-out items, early ones "
        "counting more; 1 is perfect",
        True,
        lambda c: c.ranking.ndcg if c.ranking else None,
    ),
    Column(
        f"Hit rate@{K}",
        f"the share of users with at least one held-out item among the first {K}",
        True,
        lambda c: c.ranking.hit_rate if c.ranking else None,
    ),
    Column(
        "Mean error",
        "how far the expected value is from the observed one, on average",
        False,
        lambda c: c.scores.mae,
    ),
)


def prediction(evaluation: Evaluation | NotEvaluated) -> Markup:
    """How well it predicts, beside simpler models."""
    if isinstance(evaluation, NotEvaluated):
        return fill("no_prediction.html", reason=evaluation.reason)
    parts = evaluation.split
    shown = [c for c in COLUMNS if any(c.of(x) is not None for x in evaluation.contenders)]
    drawn = [
        charts.calibration_chart(evaluation),
        charts.coverage_chart(evaluation),
        charts.pit_chart(evaluation),
    ]
    return fill(
        "prediction.html",
        how=_how(evaluation),
        n_test=counted(len(parts.test), "observed pair"),
        n_missing=counted(len(parts.test.missing_users), "missing one"),
        table=_score_table(evaluation, shown),
        meanings=joined(
            joined([element("dt", column.name), element("dd", column.about)]) for column in shown
        ),
        baselines=joined(
            joined([element("dt", c.name), element("dd", c.about)])
            for c in evaluation.contenders[1:]
        ),
        charts=joined(chart for chart in drawn if chart is not None),
        error=_calibration_error(evaluation.model),
    )


def _how(evaluation: Evaluation) -> str:
    if not evaluation.refitted:
        return "This model was trained without the held-out pairs of the split that was given."
    return (
        "A model cannot be judged by the data that it has seen. So a second model with the same "
        "settings was fitted to 80% of the observed pairs, and is scored here on the other 20%; "
        "the rest of this report is about the model that was fitted to everything."
    )


def _calibration_error(contender: Contender) -> str:
    error = contender.calibration.expected_error
    if error is None:
        return ""
    return f"On average the probability is off by {percent(error)[:-1]} percentage points."


def _score_table(evaluation: Evaluation, columns: list[Column]) -> Markup:
    rows: list[list[Any]] = []
    for contender in evaluation.contenders:
        cells: list[Any] = [contender.name]
        for column in columns:
            score: Score | None = column.of(contender)
            others = [column.of(c) for c in evaluation.contenders]
            cells.append((_key(score), _marked(score, others, column)))
        rows.append(cells)
    header = ["Model", *(column.name for column in columns)]
    return table("Scores on held-out pairs", header, rows, css="scores", sortable=True)


def _key(score: Score | None) -> str:
    return "" if score is None or not math.isfinite(score.value) else repr(score.value)


def _marked(score: Score | None, others: list[Score | None], column: Column) -> Markup:
    """A score, in bold if none is better."""
    text = scored(score)
    values = [s.value for s in others if s is not None and math.isfinite(s.value)]
    best = (max if column.higher else min)(values, default=math.nan)
    return element("b", text) if score is not None and score.value == best else markup(text)
