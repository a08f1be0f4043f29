"""Ranking of all items: how many held-out items are among the first recommendations."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._checks import whole
from hcpf._types import BoolArray, FloatArray
from hcpf.data.held_out import HeldOutPairs
from hcpf.data.ids import IdIndex
from hcpf.data.sampling import locate
from hcpf.errors import InputError
from hcpf.evaluate.scoring import Ranker, Score, ScoreTable, mean_score
from hcpf.evaluate.splits import Split

_BLOCK = 1 << 21  # recommended items held at once


@dataclass(frozen=True, eq=False, repr=False)
class RankingScores(ScoreTable):
    """Means over users with held-out items, with their standard errors; see ``ranking``."""

    ndcg: Score
    recall: Score
    precision: Score
    map: Score
    mrr: Score
    hit_rate: Score
    n: int
    n_users: int

    def __repr__(self) -> str:
        return f"{super().__repr__()}\n  at {self.n}, over {self.n_users} users"


def ranking(
    model: Ranker,
    data: Split,
    n: int = 20,
    *,
    by: str | None = None,
    on: HeldOutPairs | None = None,
) -> RankingScores:
    r"""Score how many of a user's held-out items are among the first ``n`` recommendations.

    All items are ranked except those of the user's training entries. With :math:`h_j = 1` if the
    item of rank j is held out, and m the number of the user's held-out items,

    .. math::
        \mathrm{NDCG} = \frac{\sum_{j \le n} h_j / \log_2(j + 1)}
                             {\sum_{j \le \min(m, n)} 1 / \log_2(j + 1)}, \quad
        \mathrm{recall} = \frac1m \sum_{j \le n} h_j, \quad
        \mathrm{precision} = \frac1n \sum_{j \le n} h_j, \quad
        \mathrm{AP} = \frac{1}{\min(m, n)} \sum_{j \le n} h_j\, \mathrm{precision}_j;

    ``mrr`` is the mean of 1 / the first rank with :math:`h_j = 1`, 0 if there is none, and
    ``hit_rate`` the share of users who have one.

    Parameters
    ----------
    model
        A fitted HCPF or anything else with its ``recommend``, trained on ``data.train``.
    data
        The split.
    n
        Length of the lists.
    by
        What to rank by, as in ``HCPF.recommend``; None for the model's default.
    on
        Other pairs than the test pairs, such as ``data.validation``.
    """
    pairs = data.test if on is None else on
    n = whole("n", n)
    relevant = sparse.csr_array(
        (np.ones(len(pairs), np.bool_), (pairs.users, pairs.items)), shape=data.train.shape
    )
    relevant.sum_duplicates()  # sorts the columns, which locate needs
    wanted = np.diff(relevant.indptr)
    rows = np.flatnonzero(wanted)
    if not len(rows):
        raise InputError("ranking: the split holds out no observed pairs. Split with test=0.2.")
    users, items = IdIndex("users", data.train.users), IdIndex("items", data.train.items)
    criterion = {} if by is None else {"by": by}

    def hits(part: NDArray[np.int64]) -> BoolArray:
        """Return which ranks (columns) of some users are held-out items."""
        best = model.recommend(users.ids[part], n=n, **criterion)
        user, item = users.positions(best.user), items.positions(best.item)
        is_hit = np.zeros((len(part), n), np.bool_)
        is_hit[np.searchsorted(part, user), best.rank - 1] = locate(relevant, user, item) >= 0
        return is_hit

    step = max(1, _BLOCK // n)
    parts = [rows[first : first + step] for first in range(0, len(rows), step)]
    found = [rank_metrics(hits(part), wanted[part]) for part in parts]
    means = {name: mean_score(np.concatenate([part[name] for part in found])) for name in found[0]}
    return RankingScores(**means, n=n, n_users=len(rows))


def rank_metrics(hits: BoolArray, wanted: NDArray[np.integer]) -> dict[str, FloatArray]:
    """Return the measures of each list, given which ranks are hits and how many there are to find.

    Examples
    --------
    >>> found = rank_metrics(np.array([[False, True, False, True]]), np.array([3]))
    >>> {name: round(float(value[0]), 3) for name, value in found.items()}
    {'ndcg': 0.498, 'recall': 0.667, 'precision': 0.5, 'map': 0.333, 'mrr': 0.5, 'hit_rate': 1.0}
    """
    n = hits.shape[1]
    rank = np.arange(1, n + 1)
    gain = 1.0 / np.log2(rank + 1.0)
    most = np.minimum(wanted, n)
    so_far = np.cumsum(hits, axis=1)
    total = so_far[:, -1]
    first = np.argmax(hits, axis=1) + 1.0
    return {
        "ndcg": hits @ gain / np.cumsum(gain)[most - 1],
        "recall": total / wanted,
        "precision": total / n,
        "map": np.sum(hits * so_far / rank, axis=1) / most,
        "mrr": np.where(total > 0, 1.0 / first, 0.0),
        "hit_rate": (total > 0).astype(np.float64),
    }
