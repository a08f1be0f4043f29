"""The paper's scores of held-out pairs, and the errors of the expected response."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from hcpf._types import FloatArray
from hcpf.evaluate.protocols import Model, explains_missing, values_for
from hcpf.evaluate.score import Score, ScoreTable, mean_score
from hcpf.evaluate.splits import HeldOutPairs, Split

_BLOCK = 1 << 18  # pairs whose distributions are held at once


@dataclass(frozen=True, eq=False, repr=False)
class Scores(ScoreTable):
    r"""Scores of held-out pairs, each with its standard error over pairs.

    Attributes
    ----------
    log_likelihood : Score or None
        :math:`1000\,\mathcal L` for each entry of the held-out share of the matrix.
    missing, nonmissing, conditional_nonmissing : Score
        :math:`\mathcal L_M`, :math:`\mathcal L_{NM}` and :math:`\mathcal L_{CNM}` for each pair.
    auc : Score or None
        The chance that an observed pair has a higher probability than a missing one.
    rmse, mae : Score
        Errors of the expected response, given that the pair is observed.

    ``log_likelihood``, ``missing`` and ``auc`` do not apply (None) to a model of observed entries
    only. Scores are also found by name, ``found["auc"]``, as in a dict.
    """

    log_likelihood: Score | None
    missing: Score | None
    nonmissing: Score
    conditional_nonmissing: Score
    auc: Score | None
    rmse: Score
    mae: Score


def scores(model: Model, data: Split, on: HeldOutPairs | None = None) -> Scores:
    r"""The paper's scores of held-out pairs (the test pairs unless ``on`` is given).

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
        A fitted HCPF, a baseline, or anything else with ``rate`` and ``predictive``.
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
    pairs = data.test if on is None else on
    seen = _observed_pairs(model, data, pairs)
    nonmissing = mean_score(seen.log_density)
    likelihood = missing = area = None
    if explains_missing(model):
        rate = model.rate(
            data.train.users[pairs.missing_users], data.train.items[pairs.missing_items]
        )
        missing, area = mean_score(-rate), auc(seen.rate, rate)
        likelihood = _weighted(missing, nonmissing, pairs.share * data.n_missing, len(pairs))
    squared = mean_score(np.square(seen.residual))
    rmse = float(np.sqrt(squared.value))
    return Scores(
        log_likelihood=likelihood,
        missing=missing,
        nonmissing=nonmissing,
        conditional_nonmissing=mean_score(seen.log_density_observed),
        auc=area,
        # The delta method: d sqrt(x) = dx / (2 sqrt(x)).
        rmse=Score(rmse, squared.error / (2.0 * rmse) if rmse > 0 else 0.0),
        mae=mean_score(np.abs(seen.residual)),
    )


def auc(positive: FloatArray, negative: FloatArray) -> Score:
    r"""Area under the ROC curve with DeLong's standard error; ties count one half.

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
    """Parts of so many pairs, few enough to hold their distributions."""
    return (slice(first, first + _BLOCK) for first in range(0, size, _BLOCK))


@dataclass(frozen=True, eq=False)
class _Observed:
    """What a model says of held-out observed pairs."""

    rate: FloatArray
    log_density: FloatArray
    log_density_observed: FloatArray
    residual: FloatArray


def _observed_pairs(model: Model, data: Split, pairs: HeldOutPairs) -> _Observed:
    out = np.empty((4, len(pairs)))
    values = values_for(model, pairs.values)
    for part in blocks(len(pairs)):
        ids = data.train.users[pairs.users[part]], data.train.items[pairs.items[part]]
        predicted = model.predictive(*ids)
        response = predicted.observed
        conditional = response.log_density(values[part])
        with np.errstate(divide="ignore"):  # a pair said to be impossible costs everything
            log_probability = np.log(predicted.prob_observed)
        out[0, part] = model.rate(*ids)
        out[1, part] = conditional + log_probability
        out[2, part] = conditional
        out[3, part] = response.mean - values[part]
    return _Observed(*out)


def _weighted(missing: Score, nonmissing: Score, n_missing: float, n_observed: int) -> Score:
    """Log likelihood per thousand entries, both kinds in their true proportion."""
    cells = n_missing + n_observed
    if n_missing == 0:
        return Score(1000.0 * nonmissing.value, 1000.0 * nonmissing.error)
    weights = 1000.0 * n_missing / cells, 1000.0 * n_observed / cells
    return Score(
        weights[0] * missing.value + weights[1] * nonmissing.value,
        float(np.hypot(weights[0] * missing.error, weights[1] * nonmissing.error)),
    )
