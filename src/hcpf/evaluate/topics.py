"""Topics: perplexity of thinned counts, and coherence of the items of components."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._checks import generator, number
from hcpf._types import FloatArray
from hcpf.data.canonical import plain
from hcpf.data.interactions import Interactions
from hcpf.data.sampling import row_of_entries
from hcpf.errors import InputError
from hcpf.evaluate.scoring import explains_missing
from hcpf.evaluate.splits import RandomState
from hcpf.model.alignment import as_interactions, has_names, over_both
from hcpf.model.factors import RELEVANCE_WEIGHT
from hcpf.model.fitted import FittedModel
from hcpf.model.predict import distribution
from hcpf.model.resolve import fitted_model
from hcpf.model.tables import Table

_BLOCK = 1 << 20  # pairs whose expected values are computed at once


def thin(
    data: Any, share: float = 0.1, *, random_state: RandomState = None
) -> tuple[Interactions, Interactions]:
    """Split counts in two by drawing each unit at random: the rest, and what is held out.

    Every unit (a word of a document, a molecule of a cell) is held out with the same probability,
    so a count y becomes Binomial(y, share) held-out units and y minus these. Both parts of Poisson
    counts are independent given the rates.

    Parameters
    ----------
    data : Interactions, AnnData or matrix
        Counts: integers of 0 or more.
    share : float, default 0.1
        The share of units to hold out.
    random_state : int, Generator or None
        Seed of the draws.

    Returns
    -------
    tuple of Interactions
        The rest, to fit a model to; and the held-out counts, for ``perplexity``.

    Examples
    --------
    >>> rest, held_out = thin([[0, 9], [4, 0]], 0.5, random_state=0)
    >>> rest.matrix.toarray() + held_out.matrix.toarray()
    array([[0., 9.],
           [4., 0.]])
    """
    source = as_interactions(data)
    chance = number("share", share, 1e-12, 1.0 - 1e-12, "above 0 and below 1")
    counts = np.rint(source.values).astype(np.int64)
    if np.any(counts != source.values) or np.any(counts < 0):
        raise InputError("thin requires counts: integers of 0 or more. Other values have no units.")
    held = generator(random_state).binomial(counts, chance)
    return _with_counts(source, counts - held), _with_counts(source, held)


def perplexity(model: Any, held_out: Any) -> float:
    r"""Return the perplexity of held-out counts of the model's users.

    .. math:: \exp\Bigl(-\frac{\sum_{ui} h_{ui} \log p_{ui}}{\sum_{ui} h_{ui}}\Bigr),
       \qquad p_{ui} = \frac{E[y_{ui}]}{\sum_j E[y_{uj}]}

    for held-out counts h: the inverse of the geometric mean of the probabilities that the next unit
    (a word of the document) is of its item. Lower is better, and the number of items is what a
    model that has learned nothing gets.

    Parameters
    ----------
    model : HCPF, FittedModel or path
        A model fitted to the rest of the counts, see ``thin``. New users are folded in first.
    held_out : Interactions, AnnData or matrix
        The held-out counts; their users and items are matched by id, in a matrix by position.
    """
    fitted = fitted_model(model)
    if not explains_missing(fitted):
        raise InputError(
            "perplexity: this model was trained on observed pairs only and does not predict which "
            "items a user has. Fit with train_on='full'."
        )
    data = as_interactions(held_out)
    for index, ids, axis in (
        (fitted.user_index, data.users, 1), (fitted.item_index, data.items, 0)
    ):  # fmt: skip
        if has_names(held_out):  # a matrix is matched by position
            index.positions(ids[np.asarray(data.matrix.sum(axis=axis)).ravel() > 0])
    counts = over_both("held_out", held_out, fitted.user_index, fitted.item_index)
    total = float(counts.data.sum())
    if counts.nnz == 0 or not total > 0 or counts.data.min() < 0:
        raise InputError("perplexity requires held-out counts: numbers of 0 or more, not all 0.")
    users = row_of_entries(counts)
    log_shares = _log_expected(fitted, users, counts.indices) - _log_totals(fitted)[users]
    return float(np.exp(-float(counts.data @ log_shares) / total))


class Coherence(Table):
    """Coherence of components.

    Attributes
    ----------
    component : ndarray of int
        The column of the component among the factors of the model, counted from 0.
    npmi : ndarray of float
        Mean normalized pointwise mutual information of its items, between -1 and 1.
    """

    component: NDArray[np.int64]
    npmi: FloatArray

    @property
    def mean(self) -> float:
        """The mean over all components."""
        return float(self.npmi.mean())


def coherence(
    model: Any,
    data: Any,
    n: int = 10,
    *,
    kind: str = "relevance",
    weight: float = RELEVANCE_WEIGHT,
    fit: int = 0,
) -> Coherence:
    r"""Return how often the top items of each component occur together (NPMI).

    .. math:: \frac{\log \frac{P(i, j)}{P(i) P(j)}}{-\log P(i, j)}

    is 1 for items that occur only together, 0 for independent ones and -1 for items that never
    occur together. P are shares of the users of ``data``. The mean is over all pairs of the ``n``
    top items.

    Parameters
    ----------
    model : HCPF, FittedModel or path
        A fitted model.
    data : Interactions, AnnData or matrix
        Whose items occur together: the training data, or a reference corpus with the same items.
    n : int, default 10
        The number of items per component, at least 2.
    kind, weight, fit
        How items are ranked, and of which fit: as in ``FittedModel.top_items``.
    """
    fitted, source = fitted_model(model), as_interactions(data)
    tops = fitted.top_items(n, kind=kind, weight=weight, fit=fit)
    if n < 2:
        raise InputError(f"coherence requires at least 2 items per component; got n={n!r}.")
    known = source.items if has_names(data) else fitted.items  # a matrix has the fitted items
    if len(known) != source.n_items:
        raise InputError(
            f"data has {source.n_items} columns, but {len(known)} items are fitted. Pass "
            "Interactions, whose ids are matched."
        )
    columns = Interactions(source.matrix, source.users, known)
    chosen, where = np.unique(tops.item, return_inverse=True)
    together = _shares_together(columns, chosen)
    numbers = np.unique(tops.component)
    values = [_mean_npmi(together, where[tops.component == k]) for k in numbers]
    return Coherence(component=numbers, npmi=np.array(values))


def _with_counts(source: Interactions, counts: NDArray[np.int64]) -> Interactions:
    """Return the same users and items with other counts, zeros missing."""
    parts = counts.astype(source.values.dtype), source.matrix.indices, source.matrix.indptr
    matrix = sparse.csr_array(parts, shape=source.shape).copy()
    matrix.eliminate_zeros()
    return Interactions(matrix, source.users, source.items)


def _has_one_mean_per_user(model: FittedModel) -> bool:
    """Return whether expected values are proportional to rates, for each user."""
    return not model.value_model.hurdle and model.value_model.vary_by in (None, "user")


def _log_expected(model: FittedModel, users: NDArray[np.int64], items: NDArray[Any]) -> FloatArray:
    """Return the logarithms of expected values, up to a constant per user."""
    at = items.astype(np.int64)
    if _has_one_mean_per_user(model):
        return np.log(model.combined.rates(users, at))
    return np.log(distribution(model, users, at).mean)


def _log_totals(model: FittedModel) -> FloatArray:
    """Return the logarithm of the sum over all items of what ``_log_expected`` takes it of."""
    n_users, n_items = len(model.users), len(model.items)
    if _has_one_mean_per_user(model):
        fits = model.posteriors
        sums = [fit.users.exposed_mean_ @ fit.items.mean_sums for fit in fits]
        return np.log(np.sum(sums, axis=0, dtype=np.float64) / len(fits))
    totals, size = np.empty(n_users), max(1, _BLOCK // n_items)
    for first in range(0, n_users, size):
        rows = np.arange(first, min(first + size, n_users))
        pairs = np.repeat(rows, n_items), np.tile(np.arange(n_items), len(rows))
        totals[rows] = distribution(model, *pairs).mean.reshape(len(rows), n_items).sum(axis=1)
    return np.log(totals)


def _shares_together(data: Interactions, items: NDArray[Any]) -> FloatArray:
    """Return the share of users who have both of two items; who have one, on the diagonal."""
    from hcpf.data.ids import IdIndex

    positions = IdIndex("items", data.items).known(items)
    if np.all(positions < 0):
        raise InputError(
            f"None of the {len(items):,} items with the highest scores, such as "
            f"{plain(items[0])!r}, is in the data. Items there are like {plain(data.items[0])!r}."
        )
    present = sparse.csc_array(data.matrix[:, np.maximum(positions, 0)] > 0).astype(np.float64)
    found = np.asarray((present.T @ present).todense()) / data.n_users
    found[positions < 0], found[:, positions < 0] = 0.0, 0.0
    return found


def _mean_npmi(together: FloatArray, items: NDArray[np.intp]) -> float:
    """Return the mean over all pairs of some items."""
    first, second = np.triu_indices(len(items), 1)
    a, b = items[first], items[second]
    both, alone = together[a, b], np.diag(together)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.log(both / (alone[a] * alone[b])) / -np.log(both)
    value[both == 0.0] = -1.0
    value[both == 1.0] = 1.0  # everybody has both
    return float(value.mean())
