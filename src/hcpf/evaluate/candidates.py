"""The candidate models of ``hcpf compare``, and the verdict on them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hcpf._types import FloatArray
from hcpf.core.value_model import ValueModel, ways_to_vary
from hcpf.elements import ALL, Degenerate, Element, get
from hcpf.errors import InputError
from hcpf.estimator import HCPF
from hcpf.evaluate.baselines import HPF, BinaryHPF, Popularity
from hcpf.evaluate.comparison import ModelScores, log_likelihood_gain, select_model
from hcpf.evaluate.scoring import Score
from hcpf.training.resolve import candidate_elements
from hcpf.training.selection import Candidate, worth_pooling

_HURDLE_ELEMENTS = 2  # elements that are tried as a hurdle, too
_CLEAR_ERRORS = 2.0  # standard errors that a clear lead exceeds
_POOLED_ELEMENTS = 2  # elements that a quick comparison tries with partial pooling


@dataclass(frozen=True, eq=False)
class CandidateModel:
    """A model that is not fitted yet."""

    name: str
    """For example "gamma hurdle per user and item"."""
    shared_name: str
    """Name of the same model with a shared mean, for example "gamma hurdle"."""
    element: str | None
    """Name of the element; None for a baseline."""
    vary_by: str | None
    hurdle: bool
    about: str
    model: Any


def candidate_models(
    values: FloatArray,
    *,
    only: Sequence[str] = (),
    vary_by: Sequence[str | None] = (None, "user", "item", "both"),
    n_components: int = 50,
    **settings: Any,
) -> list[CandidateModel]:
    """Return the models that can describe given values, elements before baselines.

    Parameters
    ----------
    values
        Observed values.
    only
        Names of elements; empty for all whose support holds the values.
    vary_by
        Kinds of partial pooling to try, None for a shared mean.
    n_components, **settings
        Parameters of ``HCPF``.
    """
    models = [
        _hcpf(form.replace(vary_by=way), n_components, settings)
        for form in _value_models(values, only)
        for way in (None, *ways_to_vary(type(form.element)))
        if way in vary_by
    ]
    if np.all(Degenerate.support.contains(values)):
        models.append(_baseline("HPF", "Poisson factorization", HPF(n_components, **settings)))
    if np.ptp(values) > 0:
        binary = BinaryHPF(n_components, **settings)
        models.append(_baseline("binary HPF", "observed pairs, and a shared element", binary))
    about = "popular items, and a shared element"
    return [*models, _baseline("popularity", about, Popularity())]


def most_promising(
    candidates: Sequence[CandidateModel], shared: Sequence[ModelScores]
) -> list[CandidateModel]:
    """Return the partially pooled candidates of the two best elements with a shared mean."""
    scored = [Candidate(row.name, row.pairs.likelihoods) for row in shared if row.pairs is not None]
    element_of = {one.name: one.element for one in candidates if one.element}
    close = [element_of[name] for name in worth_pooling(scored) if name in element_of]
    elements = list(dict.fromkeys(close))[:_POOLED_ELEMENTS]
    return [one for one in candidates if one.vary_by is not None and one.element in elements]


@dataclass(frozen=True, eq=False)
class Verdict:
    """The model to use among candidates, and how it compares with the others."""

    winner: ModelScores
    """By the rule of ``hcpf.training.selection``, which ``element="auto"`` follows, too."""
    runner_up: ModelScores | None
    """The most likely of the others."""
    lead: Score | None
    """Log-likelihood gain over the runner-up; negative where the winner is simpler."""
    best_ranker: ModelScores
    """The model with the highest NDCG."""
    pooling_gain: Score | None
    """Gain over the same model with a shared mean, if the winner is partially pooled."""

    @property
    def is_clear(self) -> bool:
        """Whether the lead exceeds two standard errors."""
        return self.lead is not None and self.lead.value > _CLEAR_ERRORS * self.lead.error


def decide(scored: Sequence[ModelScores], candidates: Sequence[CandidateModel]) -> Verdict:
    """Return the verdict on candidates that were scored on the same pairs."""
    winner = select_model(scored)
    others = [row for row in most_likely_first(scored) if row is not winner]
    shared_name = next(one.shared_name for one in candidates if one.name == winner.name)
    shared = next((row for row in others if row.name == shared_name), None)
    runner_up = others[0] if others else None
    return Verdict(
        winner=winner,
        runner_up=runner_up,
        lead=runner_up and log_likelihood_gain(winner, runner_up),
        best_ranker=max(scored, key=lambda row: row.ranking.ndcg.value if row.ranking else 0.0),
        pooling_gain=shared and log_likelihood_gain(winner, shared),
    )


def most_likely_first(models: Sequence[ModelScores]) -> list[ModelScores]:
    """Return models by falling log-likelihood, failed ones last."""
    return sorted(models, key=lambda row: -row.pairs.per_entry if row.pairs else math.inf)


def _hcpf(form: ValueModel, n_components: int, settings: dict[str, Any]) -> CandidateModel:
    value_model: dict[str, Any] = {
        "element": form.element, "vary_by": form.vary_by, "hurdle": form.hurdle,
    }  # fmt: skip
    model = HCPF(n_components, **value_model, **settings)
    return CandidateModel(
        name=form.description,
        shared_name=form.name,
        element=form.element.name,
        vary_by=form.vary_by,
        hurdle=form.hurdle,
        about="HCPF",
        model=model,
    )


def _baseline(name: str, about: str, model: Any) -> CandidateModel:
    return CandidateModel(name, name, None, None, False, about, model)


def _value_models(values: FloatArray, only: Sequence[str]) -> list[ValueModel]:
    """Return shared-mean models to try: compound and, of some elements, hurdle models."""
    hurdle = kinds = _kinds(values, only)
    if not only and (kinds or values[0] == 1.0):
        hurdle = [type(element) for element in candidate_elements(values)[:_HURDLE_ELEMENTS]]
    models = [ValueModel(kind()) for kind in kinds]
    return models + [ValueModel(kind(), hurdle=True) for kind in hurdle]


def _kinds(values: FloatArray, only: Sequence[str]) -> list[type[Element]]:
    wanted = {get(name) for name in only}
    if np.ptp(values) == 0:
        return []
    kinds: list[type[Element]] = []
    for kind in ALL:
        if kind is Degenerate or (wanted and kind not in wanted):
            continue
        if np.all(kind.support.contains(values)):
            kinds.append(kind)
        elif wanted:
            raise InputError(
                f"{kind.name} requires {kind.support.description}, and some values are not."
            )
    return kinds
