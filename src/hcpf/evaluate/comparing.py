"""Several models side by side."""

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from hcpf.errors import InputError
from hcpf.evaluate.frames import Table
from hcpf.evaluate.ranks import RankingScores, ranking
from hcpf.evaluate.scoring import Scores, scores
from hcpf.evaluate.splits import HeldOutPairs, Split


@dataclass(frozen=True, eq=False)
class Row:
    """One model: its scores, and how long the fit took if it was made here."""

    model: str
    scores: Scores
    ranking: RankingScores | None
    seconds: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Table):
    """What ``compare`` found, one row for each model."""

    rows: list[Row]

    def records(self) -> list[dict[str, Any]]:
        """The rows as plain dicts, standard errors included."""
        names = next((list(row.ranking.as_dict()) for row in self.rows if row.ranking), [])
        return [
            {
                "model": row.model,
                **row.scores.as_dict(),
                **(row.ranking.as_dict() if row.ranking else dict.fromkeys(names)),
                "seconds": row.seconds,
            }
            for row in self.rows
        ]

    def __getitem__(self, model: str) -> Row:
        return next(row for row in self.rows if row.model == model)


def compare(
    models: Mapping[str, Any], data: Split, k: int = 20, *, on: HeldOutPairs | None = None
) -> Comparison:
    """Score models on the same held-out pairs.

    Parameters
    ----------
    models
        Models by name. Those that are not fitted yet are fitted to ``data.train`` with the
        held-out pairs excluded.
    data
        The split.
    k
        Length of the recommendation lists; models without ``recommend`` have no ranking.
    on
        Other pairs than the test pairs, such as ``data.validation``.

    Examples
    --------
    >>> from hcpf import simulate
    >>> from hcpf.evaluate import GlobalElement, Popularity, split
    >>> parts = split(simulate(200, 100, density=0.1, random_state=0).interactions, random_state=0)
    >>> table = compare({"popular": Popularity(), "one element": GlobalElement()}, parts)
    >>> [row.model for row in table.rows], table["one element"].scores.auc
    (['popular', 'one element'], None)
    """
    if not models:
        raise InputError("compare: give at least one model.")
    return Comparison([_row(name, model, data, k, on) for name, model in models.items()])


def _row(name: str, model: Any, data: Split, k: int, on: HeldOutPairs | None) -> Row:
    seconds = None
    if not hasattr(model, "element_"):
        begin = perf_counter()
        model.fit(data.train, exclude=data.exclude)
        seconds = perf_counter() - begin
    ranked = ranking(model, data, k, on=on) if hasattr(model, "recommend") else None
    return Row(name, scores(model, data, on=on), ranked, seconds)
