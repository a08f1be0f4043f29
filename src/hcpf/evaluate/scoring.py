"""Scores of held-out pairs: log-likelihoods as in the paper, AUC, and errors of the value."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from scipy import stats

from hcpf._types import FloatArray
from hcpf.core.value_model import ValueModel
from hcpf.data.held_out import HeldOutPairs
from hcpf.evaluate.masses import MIN_MASS, ValueGrid
from hcpf.evaluate.splits import Split
from hcpf.model.tables import Recommendations, format_with_error
from hcpf.training.selection import PairLikelihoods

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_BLOCK = 1 << 18  # pairs whose distributions are held at once
_THREE_DECIMALS = ("auc", "ndcg", "recall", "precision", "map", "mrr", "hit_rate")


class Model(Protocol):
    """What ``scores`` and ``calibration`` require; users and items are given by id.

    A model trained on observed pairs only has a value model with ``train_on="observed"``, or that
    attribute itself.
    """

    def rate(self, users: Any, items: Any) -> FloatArray:
        r"""Return Poisson rates: a pair is missing with probability :math:`e^{-\Lambda}`."""
        ...

    def predict_distribution(self, users: Any, items: Any) -> Any:
        """Return the predictive distributions of the pairs, such as a ``CompoundPoisson``."""
        ...


class Ranker(Protocol):
    """What ``ranking`` requires: the best items for users, without those trained on."""

    def recommend(self, users: Any, n: int = 10, *, by: str = ...) -> Recommendations:
        """Return the best ``n`` items for each user, best first."""
        ...


def explains_missing(model: Any) -> bool:
    """Return whether the model predicts which pairs are observed."""
    value_model = value_model_of(model)
    train_on = getattr(model, "train_on", "full") if value_model is None else value_model.train_on
    return train_on != "observed"


def value_model_of(model: Any) -> ValueModel | None:
    """Return the value model of a fitted HCPF or FittedModel; None for other models."""
    return getattr(model, "value_model_", None) or getattr(model, "value_model", None)


@dataclass(frozen=True)
class Score:
    """A number with its standard error.

    Examples
    --------
    >>> print(Score(0.81234, 0.0021))
    0.8123 ± 0.0021
    """

    value: float
    error: float

    def __float__(self) -> float:
        return self.value

    def __neg__(self) -> "Score":
        return Score(-self.value, self.error)

    def __str__(self) -> str:
        return format_with_error(self.value, self.error)


class ScoreTable(Mapping[str, Score | None]):
    """Base of dataclasses of scores: a mapping by name, None where a score does not apply."""

    def _scores(self) -> dict[str, Score | None]:
        names = [field.name for field in fields(cast("DataclassInstance", self))]
        values = {name: getattr(self, name) for name in names}
        return {k: v for k, v in values.items() if v is None or isinstance(v, Score)}

    def __getitem__(self, name: str) -> Score | None:
        return self._scores()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scores())

    def __len__(self) -> int:
        return len(self._scores())

    def as_dict(self) -> dict[str, float | None]:
        """Return plain numbers: each score, and its standard error as ``NAME_error``."""
        out: dict[str, float | None] = {}
        for name, score in self._scores().items():
            out[name] = None if score is None else score.value
            out[f"{name}_error"] = None if score is None else score.error
        return out

    def __repr__(self) -> str:
        width = max(map(len, self))
        lines = [f"{name:<{width}}  {score_text(name, score)}" for name, score in self.items()]
        return "\n".join([type(self).__name__, *(f"  {line}" for line in lines)])


def score_text(name: str, score: Score | None) -> str:
    """Return a score with its standard error in text; AUC and ranking scores have 3 decimals.

    Examples
    --------
    >>> score_text("auc", Score(0.90889, 0.00088)), score_text("mae", Score(19.642, 0.561))
    ('0.909 ± 0.001', '19.64 ± 0.56')
    """
    if score is None:
        return "does not apply"
    if name not in _THREE_DECIMALS or not score.error > 0:
        return str(score)
    return f"{score.value:.3f} ± {score.error:.3f}"


def mean_score(x: Any) -> Score:
    """Return the mean of numbers, with its standard error."""
    values: FloatArray = np.asarray(x, dtype=np.float64)
    if values.size == 0:
        return Score(float("nan"), float("nan"))
    value = float(values.mean())
    if values.size == 1 or not np.isfinite(value):
        return Score(value, float("nan"))
    return Score(value, float(values.std(ddof=1) / np.sqrt(values.size)))


@dataclass(frozen=True, eq=False)
class PairScores:
    """Scores of single held-out pairs, from which summaries and paired comparisons are computed.

    Attributes
    ----------
    rate : ndarray
        Poisson rate of each observed pair.
    log_density, conditional : ndarray
        Log density of observing the pair with its value, and of the value given that the pair is
        observed.
    residual : ndarray
        Expected minus true value.
    missing : ndarray or None
        Log probability of each missing pair; None for a model trained on observed pairs only.
    missing_weight : float
        Number of missing pairs that each of them represents.
    """

    rate: FloatArray
    log_density: FloatArray
    conditional: FloatArray
    residual: FloatArray
    missing: FloatArray | None
    missing_weight: float

    @property
    def likelihoods(self) -> PairLikelihoods:
        """What models are chosen by: all pairs, or the values where missing pairs are not data."""
        if self.missing is None:
            return PairLikelihoods(self.conditional, np.zeros(0), 0.0)
        per_entry = self.missing_weight * len(self.missing) / len(self.log_density)
        return PairLikelihoods(self.log_density, self.missing, per_entry)

    @property
    def per_entry(self) -> float:
        """Log-likelihood in nats per observed pair, each with its share of the missing pairs."""
        return self.likelihoods.per_entry

    def log_likelihood(self) -> Score | None:
        """Return the log-likelihood per 1,000 pairs, both kinds in their true proportion."""
        return None if self.missing is None else self._weighted(self.log_density, self.missing)

    def gain_over(self, other: "PairScores") -> Score:
        """Return the log-likelihood per 1,000 pairs above another model's, paired by pair.

        Between models trained on observed pairs only, the gain is of a value, per observed pair.
        """
        if self.missing is None or other.missing is None:
            return mean_score(_finite(self.conditional) - _finite(other.conditional))
        observed = _finite(self.log_density) - _finite(other.log_density)
        return self._weighted(observed, self.missing - other.missing)

    def _weighted(self, observed: FloatArray, missing: FloatArray) -> Score:
        n_missing, per_observed = self.missing_weight * len(missing), mean_score(observed)
        if n_missing == 0:
            return Score(1000.0 * per_observed.value, 1000.0 * per_observed.error)
        per_missing, n_pairs = mean_score(missing), n_missing + len(observed)
        weights = 1000.0 * n_missing / n_pairs, 1000.0 * len(observed) / n_pairs
        return Score(
            weights[0] * per_missing.value + weights[1] * per_observed.value,
            float(np.hypot(weights[0] * per_missing.error, weights[1] * per_observed.error)),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Scores(ScoreTable):
    r"""Scores of held-out pairs, each with its standard error over pairs.

    Attributes
    ----------
    log_likelihood : Score or None
        :math:`1000\,\mathcal L` per pair of the held-out share of the matrix.
    missing, nonmissing, conditional_nonmissing : Score
        :math:`\mathcal L_M`, :math:`\mathcal L_{NM}` and :math:`\mathcal L_{CNM}` per pair.
    auc : Score or None
        Probability that an observed pair has a higher predicted probability than a missing one.
    rmse, mae : Score
        Errors of the expected value, given that the pair is observed.

    ``log_likelihood``, ``missing`` and ``auc`` are None for a model trained on observed pairs only.
    Scores can also be read by name, ``found["auc"]``, as in a dict.
    """

    log_likelihood: Score | None
    missing: Score | None
    nonmissing: Score
    conditional_nonmissing: Score
    auc: Score | None
    rmse: Score
    mae: Score

    @classmethod
    def of(cls, pairs: PairScores) -> "Scores":
        """Summarize the scores of single pairs."""
        squared = mean_score(np.square(pairs.residual))
        rmse = float(np.sqrt(squared.value))
        missing = pairs.missing
        return cls(
            log_likelihood=pairs.log_likelihood(),
            missing=None if missing is None else mean_score(missing),
            nonmissing=mean_score(pairs.log_density),
            conditional_nonmissing=mean_score(pairs.conditional),
            auc=None if missing is None else auc(pairs.rate, -missing),
            # The delta method: d sqrt(x) = dx / (2 sqrt(x)).
            rmse=Score(rmse, squared.error / (2.0 * rmse) if rmse > 0 else 0.0),
            mae=mean_score(np.abs(pairs.residual)),
        )


def scores(model: Model, data: Split, on: HeldOutPairs | None = None) -> Scores:
    r"""Return the paper's scores of held-out pairs (the test pairs unless ``on`` is given).

    .. math::
        \mathcal L_M = \sum_{M} \log \mathrm{Po}(0 \mid \Lambda_{ui}), \quad
        \mathcal L_{NM} = \sum_{NM} \log \sum_{n \ge 1} p(y_{ui} \mid n)\,
        \mathrm{Po}(n \mid \Lambda_{ui}), \quad
        \mathcal L_{CNM} = \mathcal L_{NM} - \sum_{NM} \log(1 - e^{-\Lambda_{ui}}), \quad
        \mathcal L = \frac{h N_M}{|M|} \mathcal L_M + \mathcal L_{NM},

    M and NM being the held-out missing and observed pairs, h the share held out, and
    :math:`N_M` the number of missing pairs in the whole matrix.

    Parameters
    ----------
    model
        A fitted HCPF, a baseline, or anything else with ``rate`` and ``predict_distribution``.
    data
        The data that it was fitted to and the held-out pairs.
    on
        Other pairs than the test pairs, such as ``data.validation``.

    Examples
    --------
    >>> from hcpf import simulate
    >>> from hcpf.evaluate import Popularity, split
    >>> data = simulate(200, 100, density=0.1, random_state=0).interactions
    >>> parts = split(data, random_state=0)
    >>> found = scores(Popularity().fit(parts.train, exclude=parts.held_out), parts)
    >>> print(f"{found.auc.value:.2f}")
    0.82
    """
    return Scores.of(pair_scores(model, data, on))


def pair_scores(
    model: Model, data: Split, on: HeldOutPairs | None = None, *, as_mass: bool = False
) -> PairScores:
    """Score single held-out pairs.

    A density cannot be compared with a probability. With ``as_mass``, a continuous element is
    scored by the probability that its value is rounded to y, as a discrete element is: between
    y - 1/2 and y + 1/2 for integers, the first of which takes all below it, and in cents for money.
    """
    grid = ValueGrid.of(data) if as_mass else None
    pairs = data.test if on is None else on
    users, items = data.train.users, data.train.items
    rate, log_density, conditional, residual = np.empty((4, len(pairs)))
    for block in blocks(len(pairs)):
        ids = users[pairs.users[block]], items[pairs.items[block]]
        predicted = model.predict_distribution(*ids)
        observed = predicted.observed
        values = observed.element.seen(pairs.values[block])
        if grid is not None and not observed.element.support.discrete:

            def part(mask: FloatArray, ids: tuple[Any, Any] = ids) -> Any:
                return model.predict_distribution(ids[0][mask], ids[1][mask]).observed

            conditional[block] = grid.log_masses(observed, values, part)
        else:
            conditional[block] = observed.log_density(values)
        with np.errstate(divide="ignore"):  # -inf for an impossible pair
            log_density[block] = conditional[block] + np.log(predicted.prob_observed)
        rate[block] = model.rate(*ids)
        residual[block] = observed.mean - values
    missing = None
    if explains_missing(model):
        missing = -model.rate(users[pairs.missing_users], items[pairs.missing_items])
    return PairScores(rate, log_density, conditional, residual, missing, pairs.missing_weight)


def auc(positive: FloatArray, negative: FloatArray) -> Score:
    r"""Return the area under the ROC curve with DeLong's standard error; ties count one half.

    .. math:: \frac{1}{|P||N|} \sum_{p \in P} \sum_{n \in N} [p > n] + \tfrac12 [p = n]

    Examples
    --------
    >>> auc([3.0, 1.0], [0.0, 2.0]).value
    0.75
    """
    if len(positive) == 0 or len(negative) == 0:
        return Score(float("nan"), float("nan"))
    above, below = auc_parts(positive, negative)
    return Score(
        float(np.mean(above)), float(np.hypot(mean_score(above).error, mean_score(below).error))
    )


def auc_parts(positive: FloatArray, negative: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the share of the other kind that each pair is ranked right against (DeLong).

    The mean of either is the AUC, and their variances give its standard error.
    """
    p, n = len(positive), len(negative)
    together = stats.rankdata(np.concatenate([positive, negative]))
    above = (together[:p] - stats.rankdata(positive)) / n
    below = 1.0 - (together[p:] - stats.rankdata(negative)) / p
    return above, below


def blocks(size: int) -> Iterator[slice]:
    """Yield slices of ``size`` pairs, small enough to hold their distributions."""
    return (slice(first, first + _BLOCK) for first in range(0, size, _BLOCK))


def _finite(log_density: FloatArray) -> FloatArray:
    """Bound log densities from below, so that two impossible pairs can be subtracted."""
    return np.maximum(log_density, np.log(MIN_MASS))
