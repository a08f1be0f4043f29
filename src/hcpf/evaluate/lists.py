"""Calibration of recommended lists: probabilities compared with what held-out pairs show."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcpf._checks import whole
from hcpf._types import FloatArray
from hcpf.data.ids import IdIndex
from hcpf.data.sampling import locate
from hcpf.evaluate.scoring import Ranker, Score
from hcpf.evaluate.splits import Split


@dataclass(frozen=True, eq=False)
class ListCalibration:
    """Recommended pairs in bins of their predicted probability, lowest first.

    Attributes
    ----------
    predicted : ndarray
        Mean probability that the model gives.
    expected : ndarray
        Share of the pairs that should be test entries if the probabilities are right.
    found : ndarray
        Share of the pairs that are test entries.
    error : ndarray
        Standard error of ``found`` if the probabilities are right.
    count : ndarray
        Number of pairs.
    """

    predicted: FloatArray
    expected: FloatArray
    found: FloatArray
    error: FloatArray
    count: NDArray[np.int64]

    @property
    def ratio(self) -> Score:
        """Found over expected, over all pairs; 1 if the probabilities are right on average."""
        expected = float(self.expected @ self.count)
        error = float(np.sqrt(np.square(self.error * self.count).sum()))
        return Score(float(self.found @ self.count) / expected, error / expected)

    def n_off(self, share: float = 0.1, errors: float = 3.0, min_count: int = 200) -> int:
        """Return how many bins are off by more than a share and by more than some errors."""
        gap = np.abs(self.found - self.expected)
        is_off = (gap > share * self.expected) & (gap > errors * self.error)
        return int(np.sum(is_off & (self.count >= min_count)))


def list_calibration(
    model: Ranker, data: Split, n: int = 10, *, bins: int = 8, by: str = "consensus"
) -> ListCalibration:
    """Compare the probabilities of recommended items with the share found among test pairs.

    The model was trained on a part of the entries, so that its odds count those alone: a pair is
    observed in training with odds o, hence a test entry with odds o n_test / n_train, times the
    share of the missing pairs that training used. Validation pairs take no part. Neither do users
    and items without training entries: they are known only because of a held-out entry.

    More test pairs than expected may be found, because training has seen the other pairs of a list
    as missing.

    Parameters
    ----------
    model
        A model fitted to ``data.train`` with ``exclude=data.held_out``.
    data
        The split.
    n
        Length of the lists.
    bins
        Number of bins, with equally many pairs each.
    by
        What the lists are ranked by; see ``recommend``.
    """
    train, n_items = data.train.matrix, data.train.n_items
    active = np.flatnonzero(np.diff(train.indptr) > 0)
    table = model.recommend(data.train.users[active], whole("n", n), by=by)
    u = IdIndex("users", data.train.users).positions(table.user)
    i = IdIndex("items", data.train.items).positions(table.item)
    known = np.bincount(train.indices, minlength=n_items) > 0
    is_validation = locate(data.validation_matrix, u, i) >= 0
    kept = known[i] & ~is_validation
    key, test = u[kept] * n_items + i[kept], data.test.users * n_items + data.test.items
    found = np.isin(key, test).astype(np.float64)
    probability = np.asarray(table.probability)[kept]
    odds = probability / np.maximum(1.0 - probability, 1e-300) * _odds_ratio(data)
    expected = odds / (1.0 + odds)
    order = np.argsort(probability, kind="stable")
    parts = [part for part in np.array_split(order, whole("bins", bins)) if len(part)]
    variance = expected * (1.0 - expected)
    return ListCalibration(
        predicted=np.array([probability[part].mean() for part in parts]),
        expected=np.array([expected[part].mean() for part in parts]),
        found=np.array([found[part].mean() for part in parts]),
        error=np.array([np.sqrt(variance[part].sum()) / len(part) for part in parts]),
        count=np.array([len(part) for part in parts]),
    )


def _odds_ratio(data: Split) -> float:
    """Return the odds of a test entry per odds of a training entry, among unseen pairs."""
    n_held = len(data.test) + len(data.validation)
    missing_used = 1.0 - (data.held_out.nnz - n_held) / max(data.n_missing, 1)
    return len(data.test) / data.train.n_observed * missing_used
