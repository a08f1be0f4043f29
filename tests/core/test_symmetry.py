"""Names and numbers of users, items and components do not matter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import dense
from core.dense_theta import Thetas
from core.worlds import HURDLES, SIZE, as_production, draw_model
from hcpf.core.collective import LOCAL
from hcpf.training.solvers.cavi import cavi_pass
from model.small import SHAPE, TRAINING, VARYING

EVERY = TRAINING + VARYING + HURDLES


def reordered(model, users, items, components):
    def side(old, rows):
        return dense.replace(
            old,
            a=old.a[rows][:, components],
            b=old.b[rows][:, components],
            activity_b=old.activity_b[rows],
        )

    def theta(old, rows):
        return old and dense.replace(old, chi=old.chi[rows], nu=old.nu[rows])

    grid, thetas = np.ix_(users, items), model.thetas
    return dense.replace(
        model,
        users=side(model.users, users),
        items=side(model.items, items),
        values=model.values[grid],
        observed=model.observed[grid],
        included=model.included[grid],
        thetas=thetas and Thetas(theta(thetas.users, users), theta(thetas.items, items)),
    )


def after_three_passes(model, permutation=None):
    shard, state = as_production(model, permutation)
    for _ in range(3):
        cavi_pass(state, shard)
    return state, state.elbo(shard, LOCAL), shard.order


def assert_same_rows(new, old, rows, components=slice(None)):
    for name in ("a", "mean"):
        expected = getattr(old.factors, name)[rows][:, components]
        np.testing.assert_allclose(getattr(new.factors, name), expected, rtol=1e-5)
    np.testing.assert_allclose(new.factors.activity_b, old.factors.activity_b[rows], rtol=1e-5)
    assert (new.theta is None) == (old.theta is None)
    if old.theta is not None:
        scale = np.abs(old.theta.chi).max()
        np.testing.assert_allclose(new.theta.chi, old.theta.chi[rows], rtol=1e-5, atol=1e-5 * scale)
        np.testing.assert_allclose(new.theta.nu, old.theta.nu[rows], rtol=1e-5)


@given(
    value_model=st.sampled_from(EVERY),
    excluded=st.sampled_from([0.0, 0.3]),
    users=st.permutations(range(SHAPE[0])),
    items=st.permutations(range(SHAPE[1])),
    components=st.permutations(range(SIZE)),
)
def test_a_permuted_start_gives_the_permuted_result(
    value_model, excluded, users, items, components
):
    model = draw_model(value_model, excluded=excluded)
    state, elbo, _ = after_three_passes(model)
    moved, moved_elbo, _ = after_three_passes(reordered(model, users, items, components))
    assert moved_elbo == pytest.approx(elbo, rel=1e-6)
    assert_same_rows(moved.users, state.users, users, components)
    assert_same_rows(moved.items, state.items, items, components)


@given(
    value_model=st.sampled_from(EVERY),
    seed=st.integers(0, 10**6),
    permutation=st.permutations(range(SHAPE[0])),
)
def test_users_in_another_order_inside_come_back_in_place(value_model, seed, permutation):
    model = draw_model(value_model, excluded=0.2, seed=seed)
    plain, elbo, _ = after_three_passes(model)
    permutation = np.array(permutation)
    state, moved_elbo, order = after_three_passes(model, permutation)
    assert moved_elbo == pytest.approx(elbo, rel=1e-6)
    assert_same_rows(state.users, plain.users, permutation)
    assert_same_rows(state.items, plain.items, slice(None))
    found = state.to_posterior(order).users.mean
    np.testing.assert_allclose(found, plain.users.factors.mean, rtol=1e-5)
