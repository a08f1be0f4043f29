"""Predictions of a fitted model for pairs, which are given by position here."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core.theta import draw_means
from hcpf.data.exposure import pair_exposure
from hcpf.data.ids import IdIndex
from hcpf.distributions.intervals import value_intervals
from hcpf.distributions.pair import PairDistribution
from hcpf.distributions.posterior_predictive import PosteriorPredictive
from hcpf.elements.base import Element
from hcpf.errors import InputError
from hcpf.model.combine import Positions
from hcpf.model.entry_counts import entry_columns
from hcpf.model.tables import Table

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel

_BLOCK = 1 << 20  # pairs described at once


def listed(index: IdIndex, ids: Any) -> Positions:
    """Return the positions of one id, of a list of them, or of "all"."""
    if isinstance(ids, str) and ids == "all":
        return np.arange(len(index))
    positions = np.atleast_1d(index.positions(ids))
    if positions.ndim > 1:
        raise InputError(
            f"{index.name} must be an id or a list of ids, but their shape is {positions.shape}."
        )
    return positions


def pair_positions(model: "FittedModel", users: Any, items: Any) -> tuple[Positions, Positions]:
    """Return the positions of pairs, users and items broadcast."""
    u, i = model.user_index.positions(users), model.item_index.positions(items)
    try:
        u, i = np.broadcast_arrays(u, i)
    except ValueError:
        raise InputError(
            f"users of shape {u.shape} and items of shape {i.shape} do not make pairs: give "
            "as many of each, or one of either."
        ) from None
    return u, i


def one_pair(model: "FittedModel", user: Any, item: Any) -> tuple[int, int]:
    """Return the positions of a single pair."""
    u, i = pair_positions(model, user, item)
    if u.ndim:
        raise InputError("explain takes one user and one item, not lists of them.")
    return int(u), int(i)


def listed_users(model: "FittedModel", users: Any) -> Positions:
    """Return the positions of users: one id, a list, "all", or None for an only user."""
    if users is None and len(model.users) == 1:
        return np.zeros(1, np.int64)
    if users is None:
        raise InputError(
            f'users is required: this model has {len(model.users):,}. Pass ids, or "all" for every '
            "user."
        )
    return listed(model.user_index, users)


def rates(model: "FittedModel", u: Positions, i: Positions, exposure: Any = None) -> FloatArray:
    """Return the rates of pairs of any shape, at the fitted exposures or at those given."""
    given = pair_exposure(exposure, u.shape)
    flat = u.ravel(), i.ravel(), None if given is None else given.ravel()
    return model.combined.rates(*flat).reshape(u.shape)


def distribution(
    model: "FittedModel", u: Positions, i: Positions, exposure: Any = None
) -> PairDistribution:
    """Return the distribution of pairs of any shape at the posterior means of rates and theta."""
    element = model.combined.element_at(model.element, u.ravel(), i.ravel()).reshape(u.shape)
    return model.value_model.distribution(rates(model, u, i, exposure), element)


def sampled_distribution(
    model: "FittedModel", u: Positions, i: Positions, size: int, rng: np.random.Generator,
    exposure: Any = None,
) -> PosteriorPredictive:  # fmt: skip
    """Return the distribution of pairs of any shape, averaged over draws from the posterior."""
    flat, shape = (u.ravel(), i.ravel()), (size, *u.shape)
    given = pair_exposure(exposure, u.shape)
    draws = model.posterior.sample(size, rng)
    rates = draws.rates(*flat, None if given is None else given.ravel()).reshape(shape)
    element = draw_elements(model, *flat, draws.fits, rng).reshape(shape)
    return PosteriorPredictive(model.value_model.distribution(rates, element))


def draw_elements(
    model: "FittedModel", u: Positions, i: Positions, fits: Positions, rng: np.random.Generator
) -> Element:
    """Return the element of each draw and pair; theta is drawn too under partial pooling."""
    element = model.value_model.element
    if model.value_model.vary_by is None:
        return element
    means = np.empty((len(fits), len(u)))
    for draw, number in enumerate(fits):
        fit = model.posteriors[number]
        thetas = fit.users.predictive_theta, fit.items.predictive_theta
        means[draw] = draw_means(element, *thetas, u, i, rng)
    return element.with_mean(means)


def describe(
    model: "FittedModel", u: Positions, i: Positions, level: float | None = None
) -> dict[str, NDArray[Any]]:
    """Return ids, probability, value if observed and expected value of pairs, as columns.

    With a ``level``, also the bounds of an interval of the value if observed.
    """
    predicted = distribution(model, u, i)
    columns = {
        "user": model.users[u],
        "item": model.items[i],
        "probability": predicted.prob_observed,
        "value": predicted.mean_observed,
        "expected_value": predicted.mean,
    }
    if level is not None:
        columns["low"], columns["high"] = value_intervals(predicted, level)
    return columns


def _table(model: "FittedModel", u: Positions, i: Positions, level: float | None) -> Table:
    """Return the predictions of pairs; with a ``level``, also the numbers of entries if known."""
    entries = {} if level is None else entry_columns(model.entry_counts, u, i)
    return Table(**describe(model, u, i, level), **entries)


def describe_all(
    model: "FittedModel", u: Positions, i: Positions, level: float | None = None
) -> Iterator[Table]:
    """Yield the predictions of some users for some items, a few users at a time.

    There is at least one table, which may have no rows.
    """
    step = max(1, _BLOCK // max(len(i), 1))
    for first in range(0, max(len(u), 1), step):
        users = u[first : first + step]
        yield _table(model, np.repeat(users, len(i)), np.tile(i, len(users)), level)


def predict_table(model: "FittedModel", users: Any, items: Any, level: float = 0.9) -> Table:
    """Return the predictions for pairs, given by id, with intervals of their values.

    Parameters
    ----------
    model : FittedModel
    users, items : ids
        Users and items of the pairs, of equal length.
    level : float, default 0.9
        Probability of the interval.

    Returns
    -------
    Table
        Columns: user, item, probability, value (if observed), expected_value (the product of
        the two), low and high (bounds of the value if observed), and, if the model has its
        training data, user_entries and item_entries (how many entries the user and the item have).
    """
    return _table(model, *pair_positions(model, users, items), level)


def predict_all(
    model: "FittedModel", users: Any, items: Any, level: float = 0.9
) -> Iterator[Table]:
    """Return the tables of some users for some items, given by id, a few users at a time."""
    u, i = listed(model.user_index, users), listed(model.item_index, items)
    return describe_all(model, u, i, level)
