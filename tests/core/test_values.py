"""Sums of values by user and by item, as they are and weighed by a half-step, against scipy."""

import numpy as np
import pytest
from scipy import sparse

from core.worlds import shard_of
from hcpf.core.axis import Axis
from hcpf.core.collective import LOCAL
from hcpf.core.half_step import half_step
from hcpf.core.posterior import axis_prior
from hcpf.core.shard import ShardData, Values
from hcpf.core.value_model import ValueModel
from hcpf.elements import Gamma, InverseGaussian, Normal
from hcpf.training.start import start_from_noise
from model.small import PRIORS


@pytest.fixture
def matrix(rng):
    drawn = (rng.random((57, 23)) < 0.2) * rng.gamma(2.0, 3.0, (57, 23))
    drawn[[0, 13]], drawn[:, 5] = 0.0, 0.0
    return sparse.csr_array(drawn)


@pytest.mark.parametrize("shuffled", [False, True])
def test_sums_of_values(matrix, rng, shuffled):
    order = rng.permutation(57) if shuffled else None
    values = Values(matrix, order, LOCAL)
    rows = np.arange(57) if order is None else order
    weight = rng.random(23)
    np.testing.assert_allclose(values.sums(Axis.USERS), matrix.sum(axis=1)[rows])
    np.testing.assert_allclose(values.sums(Axis.ITEMS), matrix.sum(axis=0))
    np.testing.assert_allclose(values.weighted_by_item(weight), (matrix @ weight)[rows])
    observed = matrix.toarray() != 0
    np.testing.assert_array_equal(values.degrees(Axis.USERS), observed.sum(axis=1)[rows])
    np.testing.assert_array_equal(values.degrees(Axis.ITEMS), observed.sum(axis=0))
    by_user = rng.random(57)
    expected = by_user @ (observed[rows] @ weight)
    assert values.sum_of_products(by_user, weight) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("dtype", "size"),
    [(np.float32, 1.0), (np.float64, 1.0), (np.float64, 1e-60), (np.float64, 1e60)],
)
@pytest.mark.parametrize("kind", [Gamma, InverseGaussian])
@pytest.mark.parametrize("slow", [False, True])
def test_half_steps_weigh_the_values(matrix, rng, dtype, size, kind, slow):
    matrix = (size * matrix).astype(dtype)
    order = rng.permutation(57)
    value_model = ValueModel(kind.estimate(matrix.data), vary_by="both")
    shard = shard_of(ShardData.whole(matrix), value_model, order)
    state = start_from_noise(shard, PRIORS, 5, rng, LOCAL)
    by_user, by_item = rng.random(57), rng.random(23)
    state.users.factors.weight[:], state.items.factors.weight[:] = by_user, by_item
    if slow:
        # No dot product with these: their rows are summed one by one.
        state.users.factors.g[::3] = 0.0
    expected = {Axis.USERS: (matrix @ by_item)[order], Axis.ITEMS: matrix[order].T @ by_user}
    for axis in Axis:
        mine, other = state.axis(axis), state.axis(axis.other)
        other.mean_sums = np.ones(5)
        prior = axis_prior(PRIORS, axis, 5)
        half_step(mine, other, shard.layout(axis), shard.tables.arrays, prior)
        found = shard.values.unit * mine.factors.value_sum
        rtol = 1e-6 if dtype is np.float64 else 1e-12
        np.testing.assert_allclose(found, expected[axis], rtol=rtol)


@pytest.mark.parametrize(
    ("element", "vary_by", "is_kept"),
    [
        (Gamma(2.0, 0.3), "both", True),
        (Gamma(2.0, 0.3), "user", False),
        (Normal(1.0, 0.3), "both", False),
    ],
)
def test_values_are_kept_only_where_theta_weighs_them(matrix, element, vary_by, is_kept):
    shard = shard_of(ShardData.whole(matrix), ValueModel(element, vary_by=vary_by))
    for axis in Axis:
        assert len(shard.layout(axis).entries.value) == (matrix.nnz if is_kept else 0)
