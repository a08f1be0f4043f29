"""Profiles of users for a report: their entries, and what to recommend to them and why."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf.core.axis import Axis
from hcpf.model.entry_counts import count_entries, entries_of_row
from hcpf.model.fitted import FittedModel
from hcpf.model.predict import listed
from hcpf.model.resolve import training_data

_ACTIVE, _RANDOM = 250, 250  # users of a sample
_ENTRIES, _RECOMMENDATIONS, _REASONS = 8, 6, 3  # of a profile
_EXAMPLE_QUANTILES = (0.98, 0.75, 0.5, 0.2)  # of the number of items
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Recommendation:
    """A recommended item, by position."""

    item: int
    probability: float
    value: float
    low: float
    high: float
    entries: int
    """Entries of the item, which its values rest on."""
    reasons: list[tuple[int, float]]
    """The user's own items that contribute most, with their shares of the rate."""


@dataclass(frozen=True)
class Profile:
    """One user."""

    row: int
    n_items: int
    total: float
    entries: list[tuple[int, float]]
    """The items of the largest values, with these values."""
    recommendations: list[Recommendation]


def example_users(model: FittedModel, users: Any = None) -> Rows:
    """Return positions of the users asked for, or of a few from active to occasional ones."""
    if users is not None:
        return np.array(list(dict.fromkeys(listed(model.user_index, users).tolist())))
    count = np.diff(training_data(model).matrix.indptr)
    active = np.flatnonzero(count)
    order = active[np.argsort(count[active], kind="stable")]
    ranks = [round(q * (len(order) - 1)) for q in _EXAMPLE_QUANTILES]
    return order[list(dict.fromkeys(ranks))].astype(np.int64)


def sample_users(model: FittedModel, include: Rows, rng: np.random.Generator) -> Rows:
    """Return positions of given users, the most active ones and a random sample."""
    count = np.diff(training_data(model).matrix.indptr)
    active = np.argsort(-count, kind="stable")[:_ACTIVE]
    drawn = rng.permutation(len(count))[:_RANDOM]
    chosen = np.unique(np.concatenate([include, active, drawn]))
    return chosen[np.argsort(-count[chosen], kind="stable")].astype(np.int64)


def user_profiles(model: FittedModel, rows: Rows, *, all_reasons: bool = False) -> list[Profile]:
    """Return profiles of users, with the main reason of each recommendation or with several."""
    # Without a model of missing pairs there is no probability to rank by.
    by = "value" if model.value_model.train_on == "observed" else "consensus"
    best = model.recommend(model.users[rows], _RECOMMENDATIONS, by=by, details=True)
    owner = model.user_index.positions(best.user)
    popularity = count_entries(training_data(model).matrix, Axis.ITEMS)
    by_user: dict[int, list[Recommendation]] = {}
    for row, item, one in zip(owner, model.item_index.positions(best.item), best, strict=True):
        reasons = _reasons(model, one.user, one.item) if all_reasons else []
        if not all_reasons and one.reason is not None:
            reasons = [(int(model.item_index.positions([one.reason])[0]), one.reason_share)]
        found = Recommendation(
            int(item), one.probability, one.value, one.low, one.high, int(popularity[item]), reasons
        )
        by_user.setdefault(int(row), []).append(found)
    return [_profile(model, int(row), by_user.get(int(row), [])) for row in rows]


def _reasons(model: FittedModel, user: Any, item: Any) -> list[tuple[int, float]]:
    found = model.explain(user, item)
    sources = found.source[:-1][:_REASONS]  # the last one is the prior
    if not len(sources):
        return []
    shares = zip(model.item_index.positions(sources), found.share, strict=False)
    return [(int(position), float(share)) for position, share in shares if share > 0]


def _profile(model: FittedModel, row: int, recommendations: list[Recommendation]) -> Profile:
    items, values = entries_of_row(training_data(model).matrix, Axis.USERS, row)
    values = values.astype(np.float64)
    largest = np.argsort(-values, kind="stable")[:_ENTRIES]
    entries = [(int(items[j]), float(values[j])) for j in largest]
    return Profile(row, len(values), float(values.sum()), entries, recommendations)
