"""Scores of held-out pairs: log-likelihoods as in the paper, AUC, and errors of the value."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from hcpf._types import FloatArray
from hcpf.data.held_out import HeldOutPairs
from hcpf.evaluate.protocols import Model, explains_missing
from hcpf.evaluate.score import Score, ScoreTable, mean_score
from hcpf.evaluate.splits import Split

_BLOCK = 1 << 18  # pairs whose distributions are held at once
_MIN_MASS = 1e-300


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
        Log probability of each missing pair; None for a model of observed entries only.
    missing_weight : float
        Number of missing pairs that each of them stands for.
    """

    rate: FloatArray
    log_density: FloatArray
    conditional: FloatArray
    residual: FloatArray
    missing: FloatArray | None
    missing_weight: float

    @property
    def per_entry(self) -> float:
        """Log-likelihood in nats per observed pair, each with its share of the missing pairs."""
        if self.missing is None:
            return float(self.conditional.mean())
        total = float(self.log_density.sum()) + self.missing_weight * float(self.missing.sum())
        return total / len(self.log_density)

    def log_likelihood(self) -> Score | None:
        """Return the log-likelihood per 1,000 pairs, both kinds in their true proportion."""
        return None if self.missing is None else self._weighted(self.log_density, self.missing)

    def gain_over(self, other: "PairScores") -> Score:
        """Return the log-likelihood per 1,000 pairs above another model's, paired by pair.

        Between models of observed entries only, the gain is that of a value, per observed pair.
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
        The chance that an observed pair has a higher probability than a missing one.
    rmse, mae : Score
        Errors of the expected value, given that the pair is observed.

    ``log_likelihood``, ``missing`` and ``auc`` do not apply (None) to a model of observed entries
    only. Scores can also be read by name, ``found["auc"]``, as in a dict.
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
        \mathcal L = \frac{c N_M}{|M|} \mathcal L_M + \mathcal L_{NM},

    M and NM being the held-out missing and observed pairs, c the share held out, and
    :math:`N_M` the number of missing pairs in the whole matrix.

    Parameters
    ----------
    model
        A fitted HCPF, a baseline, or anything else with ``rate`` and ``predict_distribution``.
    data
        What it was fitted to and the pairs held out from it.
    on
        Other pairs than the test pairs, such as ``data.validation``.

    Examples
    --------
    >>> from hcpf import simulate
    >>> from hcpf.evaluate import Popularity, split
    >>> data = simulate(200, 100, density=0.1, random_state=0).interactions
    >>> parts = split(data, random_state=0)
    >>> found = scores(Popularity().fit(parts.train, exclude=parts.exclude), parts)
    >>> print(f"{found.auc.value:.2f}")
    0.82
    """
    return Scores.of(pair_scores(model, data, on))


def pair_scores(
    model: Model, data: Split, on: HeldOutPairs | None = None, *, as_mass: bool = False
) -> PairScores:
    """Score single held-out pairs.

    A density at an integer is not a probability: with ``as_mass`` a continuous element counts by
    its mass between y - 1/2 and y + 1/2, which can be compared with discrete elements.
    """
    pairs = data.test if on is None else on
    users, items = data.train.users, data.train.items
    rate, log_density, conditional, residual = np.empty((4, len(pairs)))
    for block in blocks(len(pairs)):
        ids = users[pairs.users[block]], items[pairs.items[block]]
        predicted = model.predict_distribution(*ids)
        observed = predicted.observed
        values = observed.element.seen(pairs.values[block])
        if as_mass and not observed.element.support.discrete:
            mass = observed.cdf(values + 0.5) - observed.cdf(values - 0.5)
            conditional[block] = np.log(np.maximum(mass, _MIN_MASS))
        else:
            conditional[block] = observed.log_density(values)
        with np.errstate(divide="ignore"):  # -inf for a pair that is said to be impossible
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
    p, n = len(positive), len(negative)
    if p == 0 or n == 0:
        return Score(float("nan"), float("nan"))
    together = stats.rankdata(np.concatenate([positive, negative]))
    above = (together[:p] - stats.rankdata(positive)) / n
    below = 1.0 - (together[p:] - stats.rankdata(negative)) / p
    return Score(
        float(np.mean(above)), float(np.hypot(mean_score(above).error, mean_score(below).error))
    )


def blocks(size: int) -> Iterator[slice]:
    """Yield slices of ``size`` pairs, small enough to hold their distributions."""
    return (slice(first, first + _BLOCK) for first in range(0, size, _BLOCK))


def _finite(log_density: FloatArray) -> FloatArray:
    """Bound log densities from below, so that two impossible pairs can be subtracted."""
    return np.maximum(log_density, np.log(_MIN_MASS))
