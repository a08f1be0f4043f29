"""Calibration of recommended lists."""

import numpy as np
import pytest
from scipy import sparse

from hcpf import Interactions
from hcpf.evaluate import ListCalibration, list_calibration, split
from hcpf.model.tables import Recommendations


class _Oracle:
    """Recommends by the true probabilities that a pair is a training entry."""

    def __init__(self, odds: np.ndarray, train: Interactions) -> None:
        self.probability = odds / (1.0 + odds)
        self.train = train

    def recommend(self, users, n: int = 10, *, by: str = "consensus") -> Recommendations:
        scores = self.probability.copy()
        scores[self.train.matrix.toarray() > 0] = -1.0
        best = np.argsort(-scores[users], axis=1)[:, :n]
        rows, rank = np.repeat(users, n), np.tile(np.arange(1, n + 1), len(users))
        p, one = self.probability[rows, best.ravel()], np.ones(len(rows))
        return Recommendations(
            user=rows, item=best.ravel(), rank=rank, probability=p, value=one, expected_value=p
        )


def test_true_probabilities_are_calibrated() -> None:
    rng = np.random.default_rng(0)
    truth = 0.9 * rng.beta(0.3, 1.0, (400, 150))
    matrix = sparse.csr_array((rng.random(truth.shape) < truth).astype(np.float32))
    data = Interactions.from_matrix(matrix)
    parts = split(data, random_state=0)
    n_held = len(parts.test) + len(parts.validation)
    missing = 1.0 - (parts.held_out.nnz - n_held) / parts.n_missing
    odds = truth / (1.0 - truth) * (parts.train.n_observed / data.n_observed) / missing
    table = list_calibration(_Oracle(odds, parts.train), parts, 10, bins=5)
    assert table.count.sum() > 3500
    assert abs(table.ratio.value - 1.0) < 3.0 * table.ratio.error
    assert table.ratio.error < 0.03
    assert np.all(np.abs(table.found - table.expected) < 4.0 * table.error)
    assert np.all(np.diff(table.predicted) > 0)
    # Without the correction for the entries that went to training, the shares would be far off.
    assert abs(np.sum(table.predicted * table.count) / np.sum(table.found * table.count) - 1) > 0.3


def test_bins_that_are_off() -> None:
    table = ListCalibration(
        np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.3, 0.1]),
        np.array([0.01, 0.01, 0.01]), np.array([1000, 1000, 100]),
    )  # fmt: skip
    assert table.n_off() == 1
    assert table.n_off(min_count=50) == 2
    assert table.ratio.value == pytest.approx((100 + 300 + 10) / (100 + 200 + 30))
