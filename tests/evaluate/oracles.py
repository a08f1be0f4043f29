"""Models whose every answer is known, for tests of evaluation, and plain twins of the measures."""

from dataclasses import dataclass
from math import log2
from types import SimpleNamespace
from typing import Any

import numpy as np

from hcpf import CompoundPoisson, Interactions
from hcpf.elements import Element
from hcpf.evaluate import HeldOutPairs, Split


@dataclass
class Oracle:
    """Given rates of all pairs (ids are positions), and one element."""

    rates: Any
    element_: Element
    seen: Any = None
    train_on: str = "full"

    def rate(self, users, items):
        return np.asarray(self.rates)[users, items]

    def predict_distribution(self, users, items):
        return CompoundPoisson(self.rate(users, items), self.element_)

    def recommend(self, users, n=10, *, by="probability"):
        """Plain sorting; ties go to the first item."""
        rows = []
        for user in np.atleast_1d(users):
            free = [i for i in range(np.shape(self.rates)[1]) if not self.seen[user, i]]
            best = sorted(free, key=lambda i, u=user: (-self.rates[u][i], i))[:n]
            rows += [(user, item, rank) for rank, item in enumerate(best, 1)]
        user, item, rank = np.array(rows).T
        return SimpleNamespace(user=user, item=item, rank=rank)


def world(train, test, missing=(), share=0.2, n_missing=0):
    """A split given outright: dense training values, test triples and missing pairs."""
    test, missing = np.array(test, float).reshape(-1, 3), np.array(missing, int).reshape(-1, 2)
    data = Interactions.from_matrix(np.asarray(train, float))

    def pairs(observed, absent, n_missing):
        return HeldOutPairs(
            users=observed[:, 0].astype(np.int64),
            items=observed[:, 1].astype(np.int64),
            values=observed[:, 2],
            missing_users=absent[:, 0],
            missing_items=absent[:, 1],
            missing_weight=n_missing / max(len(absent), 1),
        )

    nothing = pairs(test[:0], missing[:0], 0)
    marks = Interactions.from_matrix(np.zeros(data.shape)).matrix
    return Split(data, pairs(test, missing, share * n_missing), nothing, marks, n_missing)


def plain_ranking(lists, relevant, k):
    """Mean measures over users, in plain Python: the twin of ``ranking``."""
    rows = []
    for user, wanted in relevant.items():
        hits = [item in wanted for item in lists[user][:k]]
        gain = sum(1 / log2(j + 2) for j, hit in enumerate(hits) if hit)
        ideal = sum(1 / log2(j + 2) for j in range(min(k, len(wanted))))
        precisions = [sum(hits[: j + 1]) / (j + 1) for j, hit in enumerate(hits) if hit]
        rows.append(
            {
                "ndcg": gain / ideal,
                "recall": sum(hits) / len(wanted),
                "precision": sum(hits) / k,
                "map": sum(precisions) / min(k, len(wanted)),
                "mrr": 1 / (hits.index(True) + 1) if any(hits) else 0.0,
                "hit_rate": float(any(hits)),
            }
        )
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}
