"""Sums of values by user and by item, against scipy; the same bits for any number of threads."""

import numpy as np
import pytest
from scipy import sparse

from hcpf.inference import threads
from hcpf.inference.problem import Values


@pytest.fixture
def matrix(rng):
    drawn = (rng.random((57, 23)) < 0.2) * rng.gamma(2.0, 3.0, (57, 23))
    drawn[[0, 13]], drawn[:, 5] = 0.0, 0.0
    return sparse.csr_array(drawn)


@pytest.mark.parametrize("shuffled", [False, True])
def test_sums_of_values(matrix, rng, shuffled):
    order = rng.permutation(57) if shuffled else None
    values = Values(matrix, order)
    rows = np.arange(57) if order is None else order
    by_user, by_item = rng.random(57), rng.random(23)
    np.testing.assert_allclose(values.by_user(), matrix.sum(axis=1)[rows])
    np.testing.assert_allclose(values.by_item(), matrix.sum(axis=0))
    np.testing.assert_allclose(values.by_user(by_item), (matrix @ by_item)[rows])
    np.testing.assert_allclose(values.by_user(by_item, slice(3, 9)), (matrix @ by_item)[rows][3:9])
    np.testing.assert_allclose(values.by_item(by_user), matrix[rows].T @ by_user)


def test_threads_do_not_matter(matrix, rng, monkeypatch):
    values, weight = Values(matrix, None), rng.random(57)
    monkeypatch.setattr(threads, "_WORTH_WAKING", 0.0)
    found = []
    for count in (1, 2):
        with threads.kernel_threads(count):
            found.append(values.by_item(weight))
    np.testing.assert_array_equal(*found)
