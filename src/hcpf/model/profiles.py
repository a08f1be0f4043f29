"""Profiles of single users: their entries, their recommendations, and the reasons for these."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf.model.fitted import FittedModel
from hcpf.model.predict import listed
from hcpf.model.resolve import training_data

LEVEL = 0.9
"""Probability of the intervals of recommended values."""

_ACTIVE, _RANDOM = 120, 120  # users of a sample
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


def user_profiles(
    model: FittedModel, rows: Rows, n_explained: int = _RECOMMENDATIONS
) -> list[Profile]:
    """Return profiles of users; ``n_explained`` recommendations of each come with reasons."""
    # Without a model of missing pairs there is no probability to rank by.
    by = "value" if model.value_model.train_on == "observed" else "consensus"
    best = model.recommend(model.users[rows], _RECOMMENDATIONS, by=by)
    low, high = model.predict_distribution(best.user, best.item).observed.interval(LEVEL)
    owner = model.user_index.positions(best.user)
    position = model.item_index.positions(best.item)
    by_user: dict[int, list[Recommendation]] = {}
    for j, row in enumerate(owner):
        reasons: list[tuple[int, float]] = []
        if best.rank[j] <= n_explained:
            reasons = _reasons(model, best.user[j], best.item[j])
        numbers = (best.probability[j], best.value[j], low[j], high[j])
        by_user.setdefault(int(row), []).append(
            Recommendation(int(position[j]), *(float(x) for x in numbers), reasons=reasons)
        )
    return [_profile(model, int(row), by_user.get(int(row), [])) for row in rows]


def _reasons(model: FittedModel, user: Any, item: Any) -> list[tuple[int, float]]:
    found = model.explain(user, item)
    sources = found.source[:-1][:_REASONS]  # the last one is the prior
    if not len(sources):
        return []
    shares = zip(model.item_index.positions(sources), found.share, strict=False)
    return [(int(position), float(share)) for position, share in shares if share > 0]


def _profile(model: FittedModel, row: int, recommendations: list[Recommendation]) -> Profile:
    matrix = training_data(model).matrix
    own = slice(matrix.indptr[row], matrix.indptr[row + 1])
    items, values = matrix.indices[own], matrix.data[own].astype(np.float64)
    largest = np.argsort(-values, kind="stable")[:_ENTRIES]
    entries = [(int(items[j]), float(values[j])) for j in largest]
    return Profile(row, len(values), float(values.sum()), entries, recommendations)
