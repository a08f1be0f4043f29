"""Momentum of the default solver: the step itself, what it gains, and when it starts again."""

import numpy as np
import pytest
from scipy import sparse

import hcpf
from core.worlds import shard_of
from hcpf import HCPF
from hcpf.core import kernels
from hcpf.core.axis import Axis
from hcpf.core.collective import LOCAL
from hcpf.core.priors import Priors
from hcpf.core.shard import ShardData
from hcpf.core.value_model import ValueModel
from hcpf.elements import Binomial, Degenerate, Gamma, InverseGaussian, Normal
from hcpf.training.solvers.cavi import cavi_pass, forget_theta, push, restart_if_fallen
from hcpf.training.start import start_from_noise
from model.small import name_of, settings_of
from prepared import prepared

PASSES = 20


def reference(g, before, share):
    """The move of log g, by the rational function that stands for the power."""
    ahead, behind = 1.0 + share, 1.0 - share
    return g * (ahead * g + behind * before) / (behind * g + ahead * before)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.6, 0.9])
def test_rows_move_on_in_the_direction_of_their_last_move(share):
    rng = np.random.default_rng(0)
    before = rng.gamma(1.0, 1.0, (40, 5)).astype(np.float32) + np.float32(1e-3)
    last = np.exp(rng.uniform(-0.3, 0.3, before.shape)).astype(np.float32)
    start = before * last
    g, was = np.zeros((40, 16), np.float32), before.copy()
    g[:, :5] = start
    kernels.extrapolate(0, len(g), g, was, np.zeros(40), share, 5.0)
    expected = reference(start.astype(float), before.astype(float), share)
    np.testing.assert_allclose(g[:, :5], expected, rtol=1e-6)
    np.testing.assert_allclose(g[:, :5], start * last.astype(float) ** share, rtol=3e-3)
    np.testing.assert_array_equal(was, start)
    assert not g[:, 5:].any()


def test_no_move_is_larger_than_the_largest_allowed():
    before = np.array([[1e-20, 1.0, 0.0]], np.float32)
    g = np.array([[1.0, 1e-20, 0.0]], np.float32)
    kernels.extrapolate(0, len(g), g, before, np.zeros(1), 0.99, 5.0)
    np.testing.assert_allclose(g, [[5.0, 0.2e-20, 0.0]], rtol=1e-6)


def test_rows_that_are_scaled_stay_where_they_are():
    before = np.ones((3, 2), np.float32)
    scaled, free = np.array([0.0, -4.0, 0.0]), np.zeros(3)
    for log_scale in (scaled, free):  # scaled now, then scaled the time before
        g = np.full((3, 2), 2.0, np.float32)
        kernels.extrapolate(0, len(g), g, before, log_scale, 0.5, 5.0)
        np.testing.assert_array_equal(g[1], 2.0)
        before[[0, 2]] = 1.0
        assert np.all(g[[0, 2]] > 2.0)
    g = np.full((3, 2), 3.0, np.float32)
    kernels.extrapolate(0, len(g), g, before, free, 0.5, 5.0)
    assert np.all(g > 3.0)


@pytest.mark.parametrize(
    ("value_model", "density"),
    [
        (ValueModel(Degenerate()), 0.2),
        (ValueModel(Gamma(2.0, 0.5)), 0.2),
        (ValueModel(Binomial(5, 0.6)), 0.2),
        (ValueModel(Gamma(2.0, 0.5), vary_by="both"), 0.2),
        (ValueModel(Normal(3.0, 1.0), train_on="observed"), 0.2),
        (ValueModel(Gamma(2.0, 0.5), vary_by="user"), 0.9),
        (ValueModel(InverseGaussian(2.0, 3.0), vary_by="both"), 0.9),
    ],
    ids=lambda x: name_of(x) if isinstance(x, ValueModel) else str(x),
)
def test_the_elbo_is_higher_after_as_many_passes(value_model, density):
    element = value_model.element
    data = hcpf.simulate(
        150, 80, n_components=6, density=density, element=element, random_state=3
    ).interactions
    settings = settings_of(value_model) | {"element": type(element)()}
    elbo = {}
    for solver in ("auto", "cavi"):
        model = HCPF(
            6, **settings, solver=solver, max_iter=PASSES, tol=0.0, n_fits=1, random_state=0,
            learn_element=False, tempering=1.0,
        )  # fmt: skip
        elbo[solver] = model.fit(data).history_[-1].elbo
    assert elbo["auto"] > elbo["cavi"]


def some_state(value_model, density=0.2):
    data = hcpf.simulate(
        60, 40, n_components=3, density=density, element=value_model.element, random_state=1
    )
    shard = shard_of(ShardData.whole(data.interactions.matrix), value_model)
    rng = np.random.default_rng(0)
    return start_from_noise(shard, Priors.matched(density, 4), 4, rng, LOCAL), shard


def test_the_first_push_only_remembers_and_a_restart_forgets():
    state, shard = some_state(ValueModel(Normal(1.0, 1.0)))
    g = state.users.factors.g
    start = g.copy()
    push(state, shard)
    np.testing.assert_array_equal(g, start)
    g *= 1.1
    push(state, shard)  # of age 0: no share of the move yet
    np.testing.assert_allclose(g, 1.1 * start, rtol=1e-6)
    g *= 1.1
    push(state, shard)
    assert np.all(g[:, :4] > 1.21 * start[:, :4])
    restart_if_fallen(state, -3.0)
    assert state.momentum.elbo == -3.0
    restart_if_fallen(state, -3.5)
    assert state.momentum is None


def test_on_observed_entries_the_means_of_the_items_move_along():
    state, shard = some_state(ValueModel(Normal(1.0, 1.0), train_on="observed"))
    for _ in range(2):
        push(state, shard)
    items = state.items.factors
    mean = items.mean.copy()
    items.g[:] *= 1.2
    g = items.g.copy()
    push(state, shard)
    np.testing.assert_allclose(items.mean / mean, items.g[:, :4] / g[:, :4], rtol=1e-5)
    assert np.all(items.mean > mean)


def grow(mine, times):
    """Multiply what the entries of one axis say of nu."""
    theta = mine.theta
    mine.theta = theta.observing(theta.chi - theta.chi0, times * (theta.nu - theta.nu0))


@pytest.mark.parametrize("axis", Axis)
def test_theta_moves_along_where_most_pairs_are_observed(axis):
    state, shard = some_state(ValueModel(Gamma(2.0, 0.5), vary_by="both"), 0.9)
    cavi_pass(state, shard)
    mine = state.axis(axis)
    for _ in range(2):
        push(state, shard)
        grow(mine, 1.1)
    theta, shift = mine.theta, mine.factors.shift.copy()
    push(state, shard)
    moved = mine.theta
    before, after = theta.nu - theta.nu0, moved.nu - moved.nu0
    part = 1.0 / 4.0  # of age 1
    np.testing.assert_allclose(after, before * 1.1**part, rtol=1e-3)
    np.testing.assert_allclose(moved.chi, theta.chi)
    assert np.all(mine.factors.shift > shift)  # more elements in a value, each of them smaller
    restart_if_fallen(state, -1.0)
    forget_theta(state)  # at another kappa, neither theta nor the ELBO can be compared
    assert not state.momentum.theta
    assert state.momentum.elbo is None


@pytest.mark.parametrize(
    ("value_model", "density"),
    [
        (ValueModel(Gamma(2.0, 0.5), vary_by="both"), 0.2),
        (ValueModel(Gamma(2.0, 0.5), vary_by="both", train_on="observed"), 0.9),
        (ValueModel(Gamma(2.0, 0.5), vary_by="user", hurdle=True), 0.9),
    ],
    ids=["few entries", "observed only", "hurdle"],
)
def test_theta_stays_where_rows_have_few_entries_or_n_no_part_in_it(value_model, density):
    state, shard = some_state(value_model, density)
    for _ in range(3):
        push(state, shard)
        grow(state.users, 1.1)
    theta = state.users.theta
    push(state, shard)
    assert state.users.theta is theta


def test_theta_never_leaves_its_range():
    state, shard = some_state(ValueModel(Binomial(5, 0.6), vary_by="item"), 0.9)
    items = state.items
    for _ in range(2):
        push(state, shard)
        # closer and closer to a probability of 1, and on the next move beyond it
        items.theta = items.theta.observing(items.theta.chi, items.theta.chi * 1.02)
    theta = items.theta
    state.momentum.theta[Axis.ITEMS][1] *= 2.0
    push(state, shard)
    assert np.all(items.theta.chi < items.theta.nu)
    np.testing.assert_array_equal(items.theta.nu, theta.nu)


@pytest.mark.parametrize("vary_by", ["user", pytest.param("item", marks=pytest.mark.slow), "both"])
@pytest.mark.parametrize("element", [Normal(3.0, 1.0), Gamma(4.0, 1.0)], ids=lambda e: e.name)
def test_a_new_dispersion_is_not_a_move_of_theta(element, vary_by):
    """Otherwise the ELBO would fall by more than its size when kappa changes."""
    data = hcpf.simulate(60, 40, n_components=3, density=0.9, element=element, random_state=1)
    model = prepared(
        5, element=type(element)(), vary_by=vary_by, n_fits=1, random_state=0, check_every=1,
        max_iter=12, tol=0.0, tempering=1.0,
    ).fit(data.interactions)  # fmt: skip
    elbo = np.array([check.elbo for check in model.history_])
    assert np.diff(elbo).min() > -0.01 * abs(elbo[-1])
    assert elbo[-1] > elbo[0]


@pytest.mark.parametrize("vary_by", ["user", "both"])
def test_the_sign_of_the_values_does_not_matter(vary_by):
    data = hcpf.simulate(
        60, 40, n_components=3, density=0.9, element=Normal(3.0, 1.0), random_state=1
    )
    matrix, elbo = data.interactions.matrix, []
    for sign in (1.0, -1.0):
        model = prepared(
            5, element=Normal(3.0 * sign, 1.0), vary_by=vary_by, n_fits=1, random_state=0,
            check_every=1, max_iter=9, tol=0.0, tempering=1.0, learn_element=False,
        ).fit(sign * matrix)  # fmt: skip
        elbo.append([check.elbo for check in model.history_])
    np.testing.assert_allclose(*elbo, rtol=1e-6)


def test_excluded_pairs_count_as_neither_observed_nor_missing():
    def is_dense(matrix, train_on="full", excluded=None):
        data = ShardData.whole(sparse.csr_array(matrix), excluded)
        return shard_of(data, ValueModel(Gamma(2.0, 1.0), train_on=train_on)).is_dense

    few, many = np.eye(10), np.triu(np.ones((10, 10)))
    assert is_dense(many)
    assert not is_dense(many, "observed")
    assert not is_dense(few)
    out = np.triu(np.ones((10, 10)), 1) + np.tril(np.ones((10, 10)), -2)  # all but 19 pairs
    assert is_dense(few, excluded=sparse.csr_array(out))
