"""How well a model predicts pairs that were held out, beside simpler models."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from hcpf.data.interactions import Interactions
from hcpf.elements import Degenerate, Element
from hcpf.errors import HcpfError
from hcpf.estimator import HCPF
from hcpf.evaluate import (
    HPF,
    BinaryHPF,
    Calibration,
    GlobalElement,
    PerItemElement,
    Popularity,
    RankingScores,
    Scores,
    Split,
    calibration,
    ranking,
    scores,
    split,
)
from hcpf.model.growing import as_interactions

K = 20  # length of the lists that are scored
TEST = 0.2
_OWN = ("element", "train_on", "n_components")  # settings that the baselines have otherwise


@dataclass(frozen=True, eq=False)
class Contender:
    """One model with its scores."""

    name: str
    about: str
    model: Any
    scores: Scores
    ranking: RankingScores | None
    calibration: Calibration


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The model (first) and its baselines on the same held-out pairs."""

    split: Split
    contenders: list[Contender]
    refitted: bool
    """Whether the model scored was fitted anew, on the training part of the split."""

    @property
    def model(self) -> Contender:
        """The model that the report is about."""
        return self.contenders[0]


@dataclass(frozen=True)
class NotEvaluated:
    """Why there are no scores."""

    reason: str


def evaluate_model(model: HCPF, data: Any, seed: int) -> Evaluation | NotEvaluated:
    """Score a model on held-out pairs.

    Parameters
    ----------
    model
        A fitted model.
    data
        A Split, to whose training part the model was fitted; or the observed entries, of which a
        fifth is held out and to the rest of which the model is fitted anew; None takes the
        entries that it was fitted to.
    seed
        Of the split and of the new fit.
    """
    if isinstance(data, Split):
        return Evaluation(data, _contenders(model, model, data, seed), refitted=False)
    entries = model.interactions_ if data is None else as_interactions(data)
    try:
        parts = split(_as_seen(model, entries), test=TEST, validation=0.0, random_state=seed)
        again = HCPF(**_settings(model, seed)).fit(parts.train, exclude=parts.exclude)
        return Evaluation(parts, _contenders(model, again, parts, seed), refitted=True)
    except HcpfError as error:
        if data is not None:
            raise
        return NotEvaluated(str(error))


def _as_seen(model: HCPF, data: Interactions) -> Interactions:
    """The entries as the model sees them: all 1 for one of which pairs are observed."""
    if model.train_on != "binary":
        return data
    matrix = data.matrix
    ones = sparse.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), matrix.shape)
    return Interactions(ones, data.users, data.items)


def _settings(model: HCPF, seed: int) -> dict[str, Any]:
    """The model's settings for a second fit, which must not touch what belongs to the first."""
    once = {"checkpoint": None, "warm_start": False, "progress": False, "random_state": seed}
    settings = {**model.get_params(deep=False), **once}
    if settings["element"] == "auto" and model.train_on != "binary":
        # What was chosen then is what the report is about: nothing is chosen again.
        chosen = model.element_
        settings["element"] = type(chosen)(per=chosen.per, once=chosen.once)
    return settings


def _contenders(asked: HCPF, fitted: HCPF, data: Split, seed: int) -> list[Contender]:
    found = [_scored("This model", "the model of this report", fitted, data)]
    for name, about, baseline in _baselines(asked, data, seed):
        baseline.fit(data.train, exclude=data.exclude)
        found.append(_scored(name, about, baseline, data))
    return found


def _scored(name: str, about: str, model: Any, data: Split) -> Contender:
    full = getattr(model, "train_on", "full") != "observed"
    return Contender(
        name,
        about,
        model,
        scores(model, data),
        ranking(model, data, K) if full else None,
        # The model has learnt from data sparser by what was held out; weighted to these, the
        # curve tells how far the model of all the data can be taken at its word.
        calibration(model, data, population="training"),
    )


def _baselines(model: HCPF, data: Split, seed: int) -> list[tuple[str, str, Any]]:
    """Simpler models: what is gained over them is what the factors are worth."""
    element = "auto" if model.train_on == "binary" else model.element
    if isinstance(element, Element):
        element = element.varying(None)
    if model.train_on == "observed":
        return [
            ("One distribution", "the same values for every pair", GlobalElement(element)),
            ("Item averages", "a distribution for each item", PerItemElement(element)),
        ]
    popular = "active users take popular items; values alike for all pairs"
    found: list[tuple[str, str, Any]] = [("Popularity", popular, Popularity(element))]
    if model.train_on == "binary":
        return found
    settings = {k: v for k, v in _settings(model, seed).items() if k not in _OWN}
    k = model.n_components
    separate = "Poisson factorization of which pairs are observed; values alike for all pairs"
    found.append(("Factors, values apart", separate, BinaryHPF(k, element=element, **settings)))
    counts = np.concatenate([data.train.values, data.test.values], dtype=np.float64)
    if np.all(Degenerate.support.contains(counts)) and not isinstance(model.element_, Degenerate):
        plain = "Poisson factorization of the counts themselves"
        found.append(("Plain Poisson (HPF)", plain, HPF(k, **settings)))
    return found
