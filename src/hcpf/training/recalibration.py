"""Learn a recalibration of probabilities from hidden entries, at the end of training.

Of a sample of users a fifth of the entries is hidden and their factors are updated without them,
the items held fixed. Of the ten best unseen items of each user, the hidden ones are then counted.
Item factors still contain the hidden entries: the part that an entry contributed to its item is
subtracted before that pair is ranked and predicted. No second fit is needed.

Items are ranked by the mean rate here, although ``recommend`` ranks by consensus: fits agree about
what their factors remember of hidden entries, so lists by consensus would hold too many of them.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse, special

from hcpf._types import Csr, FloatArray
from hcpf.core.axis import Axis
from hcpf.core.collective import LOCAL
from hcpf.core.half_step import update_axis
from hcpf.core.posterior import FactorPosterior, Posterior, axis_prior, posterior_of
from hcpf.core.shard import ShardData, ShardSource
from hcpf.core.threads import kernel_threads
from hcpf.data.sampling import pair_keys, sample_rows, select, union
from hcpf.model.explain import entries_of, entry_weights
from hcpf.model.probability import Recalibration
from hcpf.training.held_out import TrainingSplit
from hcpf.training.start import start_from_posterior

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel

_SEED = 0
_MIN_ENTRIES = 10_000
"""Entries of the data below which nothing is learned: what factors contain of hidden entries would
exceed the errors of the model."""
_MAX_ENTRIES, _MAX_USERS, _MAX_PAIRS = 20_000, 4_000, 1 << 23
"""Entries and users of the sample, and its users x items."""
_BLOCK = 1 << 20  # pairs ranked at once
_HIDDEN = 0.2
_LIST, _SPARE = 10, 5  # items of a list, and how many more are ranked before the subtraction
_HALF_STEPS = 3  # half-steps from the fitted users; more change little
_MIN_FOUND, _FOUND_PER_BIN, _MAX_BINS = 30, 50, 8
_MIN_PROBABILITY = 1e-12  # probabilities are kept this far from 0 and 1
_MAX_RATIO_ERROR = 0.1
"""Where found / expected is as near to 1 as this, probabilities stay the model's own: on data drawn
from the model, item factors that remember hidden entries give ratios of 1.04 to 1.10."""
_RIDGE = 1.0
"""Found pairs that the prior of a shift of 0 counts for in each bin."""


class _Lists(NamedTuple):
    """The best unseen items of the sampled users."""

    log_odds: FloatArray
    """Of the predicted probability."""
    found: NDArray[np.bool_]


def learn_recalibration(
    model: "FittedModel", split: TrainingSplit, n_threads: int | None
) -> Recalibration | None:
    """Return the recalibration of a model; None where there is too little to learn it from."""
    matrix, n_items = split.training, len(model.items)
    if matrix.nnz < _MIN_ENTRIES or model.value_model.train_on != "full" or split.is_dense:
        return None
    rng = np.random.default_rng(_SEED)
    rows = sample_rows(matrix, _MAX_ENTRIES, rng)
    n_users = max(1, min(_MAX_USERS, _MAX_PAIRS // n_items))
    rows = np.sort(rng.permutation(rows)[:n_users])
    entries: Csr = sparse.csr_array(matrix[rows])
    is_hidden = rng.random(entries.nnz) < _HIDDEN
    has_kept = np.diff(select(entries, ~is_hidden).indptr) > 0
    # Users without other entries are in the data only because of the hidden one.
    is_hidden, entries = is_hidden[np.repeat(has_kept, np.diff(entries.indptr))], entries[has_kept]
    rows, kept, hidden = rows[has_kept], select(entries, ~is_hidden), select(entries, is_hidden)
    if hidden.nnz < _MIN_FOUND:
        return None
    excluded = None if split.excluded is None else sparse.csr_array(split.excluded[rows])
    with kernel_threads(n_threads):
        users = _without_hidden(model, split, rows, kept, union(hidden, excluded))
        lists = _best_lists(model, rows, users, hidden, union(kept, excluded))
    return fit_recalibration(*lists, _HIDDEN / (1.0 - _HIDDEN))


def _without_hidden(
    model: "FittedModel", split: TrainingSplit, rows: NDArray[np.int64], kept: Csr, excluded: Csr
) -> list[FactorPosterior]:
    """Return the users of each fit, updated without their hidden entries."""
    data = ShardData.whole(kept, excluded, split.exposure.of_users(rows))
    shard = ShardSource.alone(data, model.max_count, model.tempering).lay_out(model.value_model)
    prior = axis_prior(model.priors, Axis.USERS, model.n_components, scale=model.tempering)
    found: list[FactorPosterior] = []
    for fit in model.posteriors:
        start, rng = Posterior(fit.users.at(rows), fit.items), np.random.default_rng(_SEED)
        state = start_from_posterior(shard, start, model.priors, model.n_components, rng, LOCAL)
        for _ in range(_HALF_STEPS):
            update_axis(state.users, state.items, shard.users, shard.tables.arrays, prior, LOCAL)
        found.append(posterior_of(state.users, prior))
    return found


def _best_lists(
    model: "FittedModel", rows: NDArray[np.int64], users: list[FactorPosterior], hidden: Csr,
    seen: Csr,
) -> _Lists:  # fmt: skip
    """Rank the unseen items of each user and predict the best of them."""
    user, item = _candidates(model, users, seen)
    keys = pair_keys(hidden)
    wanted = user * len(model.items) + item
    entry = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found = keys[entry] == wanted
    own = entries_of(model, rows[user[found]], item[found], hidden.data[entry[found]])
    rate = np.zeros(len(user))
    for mine, fit in zip(users, model.posteriors, strict=True):
        items = fit.items.mean_[item]
        # What an entry contributed to its item is not known when it is hidden.
        items[found] -= entry_weights(model, fit, own, Axis.ITEMS).astype(np.float32)
        np.maximum(items, 0.0, out=items)
        rate += np.einsum("jk,jk->j", mine.mean_[user], items, dtype=np.float64)
    rate *= model.combined.exposure(rows[user], item) / len(users)
    listed = _first_of_each(user, rate, _LIST)
    share = np.clip(-np.expm1(-rate[listed]), _MIN_PROBABILITY, 1.0 - _MIN_PROBABILITY)
    return _Lists(special.logit(share), found[listed])


def _candidates(
    model: "FittedModel", users: list[FactorPosterior], seen: Csr
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return users and items of the pairs with the highest rates that are not seen, by user."""
    n_items, found = len(model.items), list[tuple[NDArray[np.int64], ...]]()
    n, step = min(_LIST + _SPARE, n_items), max(1, _BLOCK // n_items)
    for first in range(0, seen.shape[0], step):
        block = slice(first, min(first + step, seen.shape[0]))
        # Negative rates: argpartition puts the smallest first. Seen items get a positive number.
        rates = np.zeros((block.stop - first, n_items), np.float32)
        for mine, fit in zip(users, model.posteriors, strict=True):
            rates -= mine.mean_[block] @ fit.items.exposed_mean_.T
        degrees = np.diff(seen.indptr[first : block.stop + 1])
        columns = seen.indices[seen.indptr[first] : seen.indptr[block.stop]]
        rates[np.repeat(np.arange(len(degrees)), degrees), columns] = 1.0
        best = np.argpartition(rates, n - 1, axis=1)[:, :n]
        is_unseen = np.take_along_axis(rates, best, axis=1) <= 0.0
        user = np.broadcast_to(np.arange(first, block.stop)[:, None], best.shape)
        found.append((user[is_unseen], best[is_unseen]))
    return np.concatenate([user for user, _ in found]), np.concatenate([i for _, i in found])


def _first_of_each(user: NDArray[np.int64], score: FloatArray, n: int) -> NDArray[np.int64]:
    """Return the positions of the ``n`` highest scores of each user."""
    order = np.lexsort((-score, user))
    starts = np.flatnonzero(np.diff(user[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return order[rank < n]


def fit_recalibration(
    log_odds: FloatArray, found: NDArray[np.bool_], odds_ratio: float
) -> Recalibration | None:
    """Fit the shift of the log odds in bins with equally many found pairs.

    Parameters
    ----------
    log_odds
        Of the predicted probabilities.
    found
        Which of the pairs were hidden entries.
    odds_ratio
        Hidden entries per entry that the prediction knew.

    Returns
    -------
    Recalibration or None
        None where too few pairs were found, or about as many as expected.
    """
    n_found = int(found.sum())
    n_expected = float(special.expit(log_odds + np.log(odds_ratio)).sum())
    if n_found < _MIN_FOUND or abs(n_found / n_expected - 1.0) <= _MAX_RATIO_ERROR:
        return None
    order = np.argsort(log_odds, kind="stable")
    x, hit = log_odds[order], found[order].astype(np.float64)
    n_bins = int(np.clip(n_found // _FOUND_PER_BIN, 1, _MAX_BINS))
    bin_of = np.minimum((np.cumsum(hit) - hit) * n_bins // n_found, n_bins - 1).astype(np.int64)
    knots, shifts, weights = np.zeros(n_bins), np.zeros(n_bins), np.zeros(n_bins)
    for b in range(n_bins):
        mine, offset = bin_of == b, np.log(odds_ratio)
        expected = special.expit(x[mine] + offset)
        knots[b] = np.average(x[mine], weights=expected)
        shifts[b] = _fit_shift(x[mine] + offset, float(hit[mine].sum()))
        weights[b] = hit[mine].sum()
    monotone = optimize.isotonic_regression(knots + shifts, weights=weights).x
    shifts = monotone - knots
    # Below the lists nothing was learned: the shift fades to 0, slowly enough to stay monotone.
    # The slope of x + shift(x) there is 1 + shifts[0] / fade, at least a half.
    fade = max(1.0, 2.0 * abs(float(shifts[0])))
    return Recalibration(np.append(knots[0] - fade, knots), np.append(0.0, shifts))


def _fit_shift(log_odds: FloatArray, n_found: float) -> float:
    """Return the shift at which as many pairs are expected as were found, drawn toward 0."""

    # The slope of the log likelihood of Bernoulli pairs plus the log of a normal prior of the shift
    # with precision _RIDGE.
    def excess(shift: float) -> float:
        return n_found - float(special.expit(log_odds + shift).sum()) - _RIDGE * shift

    # It falls by _RIDGE per unit at least, so the search ends. Probabilities near 0 or 1 take far
    # shifts: their log odds go to those of ``_MIN_PROBABILITY``.
    reach = 20.0
    while not excess(-reach) > 0.0 > excess(reach):
        reach *= 2.0
    return optimize.root_scalar(excess, bracket=(-reach, reach), xtol=1e-6).root
