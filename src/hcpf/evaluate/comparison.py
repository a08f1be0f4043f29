"""Comparison of models: fit each to the same data and score it on the same held-out pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from inspect import signature
from time import perf_counter
from typing import Any

from hcpf.data.held_out import HeldOutPairs
from hcpf.errors import HcpfError, InputError
from hcpf.estimator import HCPF
from hcpf.evaluate.masses import ValueGrid
from hcpf.evaluate.ranks import RankingScores, ranking
from hcpf.evaluate.reliability import Calibration, calibration
from hcpf.evaluate.scoring import (
    PairScores,
    Score,
    Scores,
    explains_missing,
    pair_scores,
    score_text,
    value_model_of,
)
from hcpf.evaluate.splits import Split
from hcpf.model.tables import NOT_APPLICABLE, Table
from hcpf.training.selection import Candidate, select

_SHOWN = ("log_likelihood", "conditional_nonmissing", "auc", "ndcg", "hit_rate", "mae")


@dataclass(frozen=True, eq=False)
class ModelScores:
    """One model of a comparison.

    Attributes
    ----------
    name, about : str
        What identifies the model, and what it is in a few words.
    element : str
        The fitted element.
    vary_by, hurdle
        Partial pooling, and whether a value is a single element, as parameters of ``HCPF``.
    scores, ranking, calibration
        Scores of the held-out pairs; None where they do not apply or were not asked for.
    passes, seconds
        Length of the fit; None for a model that was fitted before or does not count passes.
    error : str
        Why the model has no scores; empty if it has.
    pairs : PairScores or None
        Scores of single pairs, for ``log_likelihood_gain``.
    """

    name: str
    about: str = ""
    element: str = ""
    vary_by: str | None = None
    hurdle: bool = False
    scores: Scores | None = None
    ranking: RankingScores | None = None
    calibration: Calibration | None = None
    passes: int | None = None
    seconds: float | None = None
    error: str = ""
    pairs: PairScores | None = field(default=None, repr=False)

    def score(self, name: str) -> Score | None:
        """Return a score or ranking by name, such as "auc"; None where it does not apply."""
        for table in (self.scores, self.ranking):
            if table is not None and name in table:
                return table[name]
        return None


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Models and their scores on the same held-out pairs, one row per model.

    ``to_table()`` has all scores and their standard errors; printing shows the main ones.
    """

    rows: list[ModelScores]

    def to_table(self) -> Table:
        """Return a table of all scores, standard errors included."""
        names: dict[str, None] = {}
        for row in self.rows:
            names |= dict.fromkeys([*(row.scores or ()), *(row.ranking or ())])
        columns = [column for name in names for column in (name, f"{name}_error")]
        records = [
            {
                "model": row.name,
                **dict.fromkeys(columns),
                **(row.scores.as_dict() if row.scores else {}),
                **(row.ranking.as_dict() if row.ranking else {}),
                "seconds": row.seconds,
            }
            for row in self.rows
        ]
        return Table.from_records(records)

    def __repr__(self) -> str:
        names = [n for n in _SHOWN if any(row.score(n) is not None for row in self.rows)]
        records = [
            {
                "model": row.name,
                **{n: score_text(n, s) if (s := row.score(n)) else NOT_APPLICABLE for n in names},
            }
            for row in self.rows
        ]
        return repr(Table.from_records(records))

    @property
    def best(self) -> ModelScores:
        """The model to use: the most likely one, unless a simpler one is nearly as likely.

        ``HCPF(element="auto")`` chooses by the same rule, see ``hcpf.training.selection``.
        """
        return select_model(self.rows)

    def __getitem__(self, model: str) -> ModelScores:
        return next(row for row in self.rows if row.name == model)


def compare(
    models: Mapping[str, Any],
    data: Split,
    n: int = 20,
    *,
    on: HeldOutPairs | None = None,
    fit_options: Mapping[str, Any] | None = None,
) -> Comparison:
    """Score models on the same held-out pairs.

    Integers are scored by their probability under every model, other values by their density: see
    ``scored_by_mass``.

    Parameters
    ----------
    models
        Models by name. Those that are not fitted yet are fitted to ``data.train`` with the
        held-out pairs excluded.
    data
        The split.
    n
        Length of the recommendation lists. Models that do not recommend, or were trained on
        observed pairs only, have no ranking.
    on
        Other pairs than the test pairs, such as ``data.validation``.
    fit_options
        Further arguments of ``fit``, such as ``user_exposure``, for the models that take them.

    Examples
    --------
    >>> from hcpf import simulate
    >>> from hcpf.evaluate import GlobalElement, Popularity, split
    >>> parts = split(simulate(200, 100, density=0.1, random_state=0).interactions, random_state=0)
    >>> table = compare({"popular": Popularity(), "one element": GlobalElement()}, parts)
    >>> [row.name for row in table.rows], table["one element"].scores.auc
    (['popular', 'one element'], None)
    """
    if not models:
        raise InputError("compare requires at least one model.")
    check_fit_options(fit_options, *models.values())
    as_mass = scored_by_mass(data)
    return Comparison([
        fit_and_score(name, model, data, n, on=on, as_mass=as_mass, fit_options=fit_options)
        for name, model in models.items()
    ])  # fmt: skip


def scored_by_mass(data: Split) -> bool:
    """Return whether a comparison scores values by their probability: where all are integers.

    There a discrete element may compete with a continuous one, whose density is no probability; it
    is scored by the probability of rounding to the value.
    """
    grid = ValueGrid.of(data)
    return grid is not None and grid.unit == 1.0


def fit_and_score(
    name: str,
    model: Any,
    data: Split,
    n: int | None = 20,
    *,
    about: str = "",
    on: HeldOutPairs | None = None,
    early_stopping: bool = False,
    as_mass: bool = False,
    calibrate: bool = False,
    keep_errors: bool = False,
    n_threads: int | None = None,
    progress: bool | None = None,
    fit_options: Mapping[str, Any] | None = None,
) -> ModelScores:
    """Fit a model, unless it is fitted already, and score it on held-out pairs.

    Parameters
    ----------
    name, about
        Name and description of the model in the result.
    model
        The model; fitted to ``data.train`` with the held-out pairs excluded.
    data
        The split.
    n
        Length of the recommendation lists; None for no ranking.
    on
        Other pairs than the test pairs, such as ``data.validation``.
    early_stopping
        Whether the validation pairs of the split decide when the fit stops.
    as_mass
        Whether continuous elements are scored by their mass around an integer.
    calibrate
        Whether to measure the calibration as well, for data as sparse as those trained on.
    keep_errors
        Whether an error of hcpf becomes ``ModelScores.error`` instead of being raised.
    n_threads, progress
        As in ``HCPF.fit``; models whose ``fit`` does not take them are fitted without.
    fit_options
        Further arguments of ``fit``, such as ``user_exposure``; a model whose ``fit`` does not take
        them is fitted without.
    """
    try:
        seconds = None
        if not is_fitted(model):
            options = {"n_threads": n_threads, "progress": progress, **(fit_options or {})}
            seconds = fit_to(model, data, early_stopping, options)
        pairs = pair_scores(model, data, on, as_mass=as_mass)
        ranks = hasattr(model, "recommend") and explains_missing(model)
        form = value_model_of(model)
        return ModelScores(
            name=name,
            about=about,
            element=repr(form.element if form else model.element_),
            vary_by=form.vary_by if form else None,
            hurdle=form.hurdle if form else False,
            scores=Scores.of(pairs),
            ranking=ranking(model, data, n, on=on) if ranks and n is not None else None,
            # The split makes the data sparser than those that the final model will be fitted to.
            calibration=calibration(model, data, population="training", on=on)
            if calibrate
            else None,
            passes=getattr(model, "n_iter_", None),
            seconds=seconds,
            pairs=pairs,
        )
    except HcpfError as error:
        if not keep_errors:
            raise
        return ModelScores(name, about, error=" ".join(str(error).split()))


def fit_to(
    model: Any, data: Split, early_stopping: bool = False, options: Mapping[str, Any] | None = None
) -> float:
    """Fit a model to the training part of a split and return the seconds that it took.

    ``options`` are arguments of ``fit``; those that the model's ``fit`` does not take are dropped.

    Ctrl-C ends the comparison, not only the fit: the scores of half a fit would mislead.
    """
    began = perf_counter()
    given = dict(options or {})
    if early_stopping and len(data.validation):
        given["validation"] = data.validation_matrix
    taken = signature(model.fit).parameters
    given = {name: value for name, value in given.items() if name in taken}
    model.fit(data.train, exclude=data.held_out, **given)
    if getattr(model, "interrupted_", False):
        raise KeyboardInterrupt
    return perf_counter() - began


def check_fit_options(options: Mapping[str, Any] | None, *models: Any) -> None:
    """Raise an InputError for a name that neither ``HCPF.fit`` nor ``fit`` of a model takes."""
    fits = [one.fit for one in (HCPF, *models) if hasattr(one, "fit")]
    taken = {name for fit in fits for name in signature(fit).parameters}
    for name in options or ():
        if name not in taken:
            similar = get_close_matches(name, taken, n=1) or ["user_exposure"]
            raise InputError(
                f"fit_options: no fit takes {name!r}. Pass its arguments, such as {similar[0]}."
            )


def log_likelihood_gain(first: ModelScores, second: ModelScores) -> Score:
    """Return by how much the first model's log-likelihood is higher, paired by pair.

    Both were scored on the same pairs, so the standard error is that of the difference, which is
    much smaller than that of either model. In nats per 1,000 pairs; between models trained on
    observed pairs only, per observed pair.
    """
    if first.pairs is None or second.pairs is None:
        raise InputError(
            "log_likelihood_gain requires the scores of single pairs, which a loaded Evaluation "
            "lacks. Pass rows of compare() or of evaluate_model()."
        )
    return first.pairs.gain_over(second.pairs)


def select_model(models: Sequence[ModelScores]) -> ModelScores:
    """Return the model to use, by the rule of ``hcpf.training.selection``.

    Models of values alone compete only with each other: their likelihood leaves missing pairs out.
    """
    scored = [(row, row.pairs) for row in models if row.pairs is not None]
    if not scored:
        raise InputError("None of the models could be fitted.")
    full = [(row, pairs) for row, pairs in scored if pairs.missing is not None]
    candidates = [
        Candidate(row.name, pairs.likelihoods, pooled=row.vary_by is not None, hurdle=row.hurdle)
        for row, pairs in full or scored
    ]
    winner = select(candidates)
    return next(row for row in models if row.name == winner)


def is_fitted(model: Any) -> bool:
    """Return whether a model, a baseline or an estimator can predict."""
    return value_model_of(model) is not None or hasattr(model, "element_")
