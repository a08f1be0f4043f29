r"""The origin of a rate: the user's own entries, one by one.

At the optimum :math:`a_{uk} = \eta + \sum_j \mathrm E[n_{uj}]\,\varphi_{ujk}`, so
:math:`\sum_k \mathrm E[v_{ik}]\,a_{uk}/b_{uk}` is a sum over the entries j and the prior.
"""

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcpf._types import Csr, FloatArray
from hcpf.core.posterior import Posterior
from hcpf.core.theta import pair_means, pair_shift
from hcpf.model.combine import Positions
from hcpf.model.tables import Explanation

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel

_BLOCK = 1 << 16  # entries whose contributions are computed at once


def explain(model: "FittedModel", u: int, i: int, seen: Csr) -> Explanation:
    """Return the contributions of a user's entries in ``seen`` to the rate of a pair."""
    own = _own_entries(model, np.array([u]), seen)
    weights = [_entry_weights(model, fit, own) for fit in model.posteriors]
    by_entry = _contributions(model, weights, np.array([u]), np.array([i]))[:, 0]
    rate = float(model.combined.rates(np.array([u]), np.array([i]))[0])
    order = np.argsort(-by_entry, kind="stable")
    source = np.empty(len(order) + 1, dtype=object)
    source[:-1], source[-1] = model.items[own.items[order]], "(prior)"
    parts = np.append(by_entry[order], rate - by_entry.sum())
    return Explanation(source=source, rate=parts, share=parts / max(float(parts.sum()), 1e-300))


def main_sources(
    model: "FittedModel", users: Positions, items: Positions, seen: Csr
) -> tuple[Positions, FloatArray]:
    """Return, per pair, the user's own item that contributes most to its rate, and its share.

    The pairs of a user stand together. Where no own item contributes, the position is -1.
    """
    sources, shares = np.full(len(users), -1, np.int64), np.zeros(len(users))
    starts = np.flatnonzero(np.diff(users, prepend=-1))
    pairs_of = np.split(np.arange(len(users)), starts[1:])
    rows, rates = users[starts], model.combined.rates(users, items)
    for block in _blocks(np.diff(seen.indptr)[rows]):
        own = _own_entries(model, rows[block], seen)
        weights = [_entry_weights(model, fit, own) for fit in model.posteriors]
        bounds = np.searchsorted(own.user_index, np.arange(len(block) + 1))
        for position, (first, last) in zip(block, pairwise(bounds), strict=True):
            if first == last:
                continue
            pairs = pairs_of[position]
            own_weights = [part[first:last] for part in weights]
            parts = _contributions(model, own_weights, users[pairs], items[pairs])
            best, highest = parts.argmax(axis=0), parts.max(axis=0)
            sources[pairs] = np.where(highest > 0, own.items[first + best], -1)
            shares[pairs] = highest / np.maximum(rates[pairs], 1e-300)
    return sources, shares


class UserEntries(NamedTuple):
    """Entries of some users, user by user."""

    user_index: Positions
    """Index of the entry's user among those asked for."""
    users: Positions
    items: Positions
    values: FloatArray


def _own_entries(model: "FittedModel", rows: Positions, seen: Csr) -> UserEntries:
    """Return the entries of users in ``seen`` that took part in training."""
    entries = seen[rows].tocoo()
    own = UserEntries(
        entries.row.astype(np.int64),
        rows[entries.row].astype(np.int64),
        entries.col.astype(np.int64),
        model.element.seen(entries.data.astype(np.float64)),
    )
    if model.excluded is None:
        return own
    n_items = len(model.items)
    marked = model.excluded[rows].tocoo()
    excluded = rows[marked.row].astype(np.int64) * n_items + marked.col
    kept = np.isin(own.users * n_items + own.items, excluded, invert=True)
    return UserEntries(own.user_index[kept], own.users[kept], own.items[kept], own.values[kept])


def _blocks(sizes: NDArray[np.integer]) -> list[Positions]:
    """Return consecutive positions in blocks of about as many entries."""
    ends = np.cumsum(sizes, dtype=np.int64)
    cuts = np.flatnonzero(np.diff(ends // _BLOCK)) + 1
    return [block for block in np.split(np.arange(len(sizes)), cuts) if len(block)]


def _entry_weights(model: "FittedModel", fit: Posterior, own: UserEntries) -> FloatArray:
    r"""Return :math:`c\,\mathrm E[n_{uj}]\,\varphi_{ujk} / b_{uk}` per entry j and component k.

    It is what the entry adds to the factors of its user. The product with the item's factors is the
    entry's part of the rate at exposure 1; c is the tempering.
    """
    users, items = fit.users, fit.items
    share = users.at(own.users).log_mean + items.at(own.items).log_mean
    if not len(share):
        return share
    peak = share.max(axis=1, keepdims=True)
    share = np.exp(share - peak)
    total = share.sum(axis=1, keepdims=True)
    log_rate = np.log(total[:, 0]) + peak[:, 0]
    log_rate += np.log(model.combined.exposure(own.users, own.items))
    value_model, element = model.value_model, model.element
    pairs = users.theta, items.theta, own.users, own.items
    if value_model.vary_by is not None:  # relative to the shared mean, rates could overflow
        element = element.with_mean(pair_means(element, *pairs))
    log_rate = log_rate + pair_shift(value_model, element, *pairs)
    count = value_model.mean_count(element, own.values, log_rate)
    share *= (model.tempering * count)[:, None] / total
    return share / users.at(own.users).b


def _contributions(
    model: "FittedModel", weights: list[FloatArray], users: Positions, items: Positions
) -> FloatArray:
    """Return the part of the rate of each pair that each entry accounts for, averaged over fits."""
    parts = [
        weight @ fit.items.mean_[items].astype(np.float64).T
        for weight, fit in zip(weights, model.posteriors, strict=True)
    ]
    return np.sum(parts, axis=0) / len(parts) * model.combined.exposure(users, items)
