"""Sums of values by user and by item, as they are and weighed by a half-step, against scipy."""

import numpy as np
import pytest
from hcpf.core.state import initial_state, side_prior
from scipy import sparse

from hcpf.core.half_step import half_step
from hcpf.core.layout import Values, make_problem
from hcpf.elements import Gamma, InverseGaussian, Normal
from core.worlds import PRIORS


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
    by_item = rng.random(23)
    np.testing.assert_allclose(values.by_user(), matrix.sum(axis=1)[rows])
    np.testing.assert_allclose(values.by_item(), matrix.sum(axis=0))
    np.testing.assert_allclose(values.by_user(by_item), (matrix @ by_item)[rows])


@pytest.mark.parametrize(
    ("dtype", "size"),
    [(np.float32, 1.0), (np.float64, 1.0), (np.float64, 1e-60), (np.float64, 1e60)],
)
@pytest.mark.parametrize("kind", [Gamma, InverseGaussian])
@pytest.mark.parametrize("slow", [False, True])
def test_half_steps_weigh_the_values(matrix, rng, dtype, size, kind, slow):
    matrix = (size * matrix).astype(dtype)
    order, element = rng.permutation(57), kind.estimate(matrix.data).varying("both")
    problem = make_problem(matrix, element, order=order)
    state = initial_state(problem, PRIORS, 5, rng)
    by_user, by_item = rng.random(57), rng.random(23)
    state.users.weight[:], state.items.weight[:] = by_user, by_item
    if slow:
        state.users.g[::3] = 0.0  # no dot product with these: their rows are summed one by one
    for mine, others, side, users, expected in (
        (state.users, state.items, problem.users, True, (matrix @ by_item)[order]),
        (state.items, state.users, problem.items, False, matrix[order].T @ by_user),
    ):
        sums = np.ones(5)
        half_step(mine, others, side, problem, side_prior(PRIORS, 5, users), sums)
        found = problem.values.unit * mine.value_sum
        np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype is np.float64 else 1e-12)


def test_values_are_kept_only_where_theta_weighs_them(matrix):
    for element, kept in (
        (Gamma(2.0, 0.3, per="both"), matrix.nnz),
        (Gamma(2.0, 0.3, per="user"), 0),
        (Normal(1.0, 0.3, per="both"), 0),
    ):
        problem = make_problem(matrix, element)
        assert [len(side.entries.value) for side in (problem.users, problem.items)] == [kept] * 2
