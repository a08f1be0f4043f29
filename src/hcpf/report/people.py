"""Single users: what they had, what the model expects next, and why."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf.data.ids import IdIndex
from hcpf.estimator import HCPF
from hcpf.model.predict import listed

LEVEL = 0.9
_ACTIVE, _RANDOM = 120, 120  # users that can be looked up
_HISTORY, _ADVICE, _REASONS = 8, 6, 3
_EXAMPLES = (0.98, 0.75, 0.5, 0.2)  # quantiles of the number of items
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Advice:
    """One recommended item, by position."""

    item: int
    probability: float
    response: float
    low: float
    high: float
    reasons: list[tuple[int, float]]
    """The user's own items that count most for it, with their shares of the rate."""


@dataclass(frozen=True)
class Person:
    """One user."""

    row: int
    n_items: int
    total: float
    history: list[tuple[int, float]]
    """The items of the largest values, with these."""
    advice: list[Advice]


def examples(model: HCPF, users: Any) -> Rows:
    """Positions of the example users: those asked for, or a few from busy to occasional."""
    if users is not None:
        return np.array(list(dict.fromkeys(listed(IdIndex("users", model.users_), users).tolist())))
    count = np.diff(model.interactions_.matrix.indptr)
    busy = np.flatnonzero(count)
    order = busy[np.argsort(count[busy], kind="stable")]
    places = [round(q * (len(order) - 1)) for q in _EXAMPLES]
    return order[list(dict.fromkeys(places))].astype(np.int64)


def looked_up(model: HCPF, first: Rows, rng: np.random.Generator) -> Rows:
    """Positions of the users in the table: the examples, the most active and a random sample."""
    count = np.diff(model.interactions_.matrix.indptr)
    active = np.argsort(-count, kind="stable")[:_ACTIVE]
    sample = rng.permutation(len(count))[:_RANDOM]
    chosen = np.unique(np.concatenate([first, active, sample]))
    return chosen[np.argsort(-count[chosen], kind="stable")].astype(np.int64)


def describe(model: HCPF, rows: Rows, explained: int = _ADVICE) -> list[Person]:
    """All that the report says of some users; of so many recommendations also why."""
    # Without a model of missing pairs there is no probability to rank by.
    by = "response" if model.train_on == "observed" else "consensus"
    best = model.recommend(model.users_[rows], _ADVICE, by=by)
    low, high = model.predictive(best.user, best.item).observed.interval(LEVEL)
    users, items = IdIndex("users", model.users_), IdIndex("items", model.items_)
    owner, place = users.positions(best.user), items.positions(best.item)
    advice: dict[int, list[Advice]] = {}
    for j, row in enumerate(owner):
        reasons: list[tuple[int, float]] = []
        if best.rank[j] <= explained:
            reasons = _reasons(model, items, best.user[j], best.item[j])
        numbers = (best.probability[j], best.response[j], low[j], high[j])
        advice.setdefault(int(row), []).append(
            Advice(int(place[j]), *(float(number) for number in numbers), reasons=reasons)
        )
    return [_person(model, int(row), advice.get(int(row), [])) for row in rows]


def _reasons(model: HCPF, items: IdIndex, user: Any, item: Any) -> list[tuple[int, float]]:
    found = model.explain(user, item)
    sources = found.source[:-1][:_REASONS]  # the last one is the prior
    if not len(sources):
        return []
    places = items.positions(sources)
    return [(int(p), float(s)) for p, s in zip(places, found.share, strict=False) if s > 0]


def _person(model: HCPF, row: int, advice: list[Advice]) -> Person:
    matrix = model.interactions_.matrix
    own = slice(matrix.indptr[row], matrix.indptr[row + 1])
    places, values = matrix.indices[own], matrix.data[own].astype(np.float64)
    order = np.argsort(-values, kind="stable")[:_HISTORY]
    history = [(int(places[j]), float(values[j])) for j in order]
    return Person(row, len(values), float(values.sum()), history, advice)
