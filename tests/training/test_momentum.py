"""Momentum of the default solver: the step itself, what it gains, and when it starts anew."""

import numpy as np
import pytest
from hcpf.core.state import initial_state
from scipy import sparse

import hcpf
from hcpf import HCPF
from hcpf.core import kernels
from hcpf.core.half_step import cavi_step
from hcpf.core.layout import make_problem
from hcpf.core.priors import Priors
from hcpf.elements import Binomial, Degenerate, Gamma, InverseGaussian, Normal
from hcpf.training.solvers.momentum import push, restart

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
    ("element", "train_on", "density"),
    [
        (Degenerate(), "full", 0.2), (Gamma(2.0, 0.5), "full", 0.2),
        (Binomial(5, 0.6), "full", 0.2), (Gamma(2.0, 0.5, per="both"), "full", 0.2),
        (Normal(3.0, 1.0), "observed", 0.2),
        (Gamma(2.0, 0.5, per="user"), "full", 0.9),
        (InverseGaussian(2.0, 3.0, per="both"), "full", 0.9),
    ],
    ids=repr,
)  # fmt: skip
def test_the_bound_is_higher_after_as_many_passes(element, train_on, density):
    data = hcpf.simulate(
        150, 80, n_components=6, density=density, element=element.varying(None), random_state=3
    ).interactions
    bounds = {}
    for solver in ("auto", "cavi"):
        model = HCPF(
            6, element=type(element)(per=element.per), train_on=train_on, solver=solver,
            max_iter=PASSES, tol=0.0, n_fits=1, random_state=0, learn_element=False,
            tempering=1.0,
        )  # fmt: skip
        bounds[solver] = model.fit(data).history_[-1].elbo
    assert bounds["auto"] > bounds["cavi"]


def some_state(train_on="full", density=0.2, element=None):
    element = Normal(1.0, 1.0) if element is None else element
    data = hcpf.simulate(
        60, 40, n_components=3, density=density, element=element.varying(None), random_state=1
    )
    problem = make_problem(data.interactions.matrix, element, train_on=train_on)
    return initial_state(problem, Priors.matched(0.2, 4), 4, np.random.default_rng(0)), problem


def test_the_first_push_only_remembers_and_a_restart_forgets():
    state, problem = some_state()
    start = state.users.g.copy()
    push(state, problem)
    np.testing.assert_array_equal(state.users.g, start)
    state.users.g[:] *= 1.1
    push(state, problem)  # of age 0: no share of the move yet
    np.testing.assert_allclose(state.users.g, 1.1 * start, rtol=1e-6)
    state.users.g[:] *= 1.1
    push(state, problem)
    assert np.all(state.users.g[:, :4] > 1.21 * start[:, :4])
    restart(state)
    assert not state.extras


def test_on_observed_entries_the_means_of_the_items_move_along():
    state, problem = some_state("observed")
    for _ in range(2):
        push(state, problem)
    mean = state.items.mean.copy()
    state.items.g[:] *= 1.2
    g = state.items.g.copy()
    push(state, problem)
    np.testing.assert_allclose(state.items.mean / mean, state.items.g[:, :4] / g[:, :4], rtol=1e-5)
    assert np.all(state.items.mean > mean)


def grow(state, users, times):
    """Multiply what the entries of one side say of nu."""
    groups = state.varying.side(users)
    nu = groups.nu - groups.nu0
    state.varying.put(users, groups.observing(groups.chi - groups.chi0, times * nu))


@pytest.mark.parametrize("users", [True, False])
def test_theta_moves_along_where_most_pairs_are_observed(users):
    state, problem = some_state(density=0.9, element=Gamma(2.0, 0.5, per="both"))
    cavi_step(state, problem, Priors.matched(0.9, 4))
    factors = state.users if users else state.items
    for _ in range(2):
        push(state, problem)
        grow(state, users, 1.1)
    groups, shift = state.varying.side(users), factors.shift.copy()
    push(state, problem)
    moved = state.varying.side(users)
    before, after = groups.nu - groups.nu0, moved.nu - moved.nu0
    part = 1.0 / 4.0  # of age 1
    np.testing.assert_allclose(after, before * 1.1**part, rtol=1e-3)
    np.testing.assert_allclose(moved.chi, groups.chi)
    assert np.all(factors.shift > shift)  # more elements in a value: each of them is smaller
    restart(state)
    assert not state.extras


@pytest.mark.parametrize(
    ("train_on", "density", "element"),
    [
        ("full", 0.2, Gamma(2.0, 0.5, per="both")),
        ("observed", 0.9, Gamma(2.0, 0.5, per="both")),
        ("full", 0.9, Gamma(2.0, 0.5, per="user", once=True)),
    ],
)
def test_theta_stays_where_rows_have_few_entries_or_n_no_part_in_it(train_on, density, element):
    state, problem = some_state(train_on, density, element)
    for _ in range(3):
        push(state, problem)
        grow(state, True, 1.1)
    groups = state.varying.users
    push(state, problem)
    assert state.varying.users is groups


def test_theta_never_leaves_its_range():
    state, problem = some_state(density=0.9, element=Binomial(5, 0.6, per="item"))
    for _ in range(2):
        push(state, problem)
        groups = state.varying.items
        # closer and closer to a probability of 1, and on the next move beyond it
        state.varying.put(False, groups.observing(groups.chi, groups.chi * 1.02))
    groups = state.varying.items
    state.extras["momentum_item_theta"][1] *= 2.0
    push(state, problem)
    moved = state.varying.items
    assert np.all(moved.chi < moved.nu)
    np.testing.assert_array_equal(moved.nu, groups.nu)


@pytest.mark.parametrize("per", ["user", "item", "both"])
@pytest.mark.parametrize("element", [Normal(3.0, 1.0), Gamma(4.0, 1.0)], ids=lambda e: e.name)
def test_a_new_dispersion_is_no_move_of_theta(element, per):
    """The bound would fall by more than it is, after the passes that bring another kappa."""
    data = hcpf.simulate(60, 40, n_components=3, density=0.9, element=element, random_state=1)
    model = HCPF(
        5, element=type(element)(per=per), n_fits=1, random_state=0, check_every=1, max_iter=40,
        tol=0.0, tempering=1.0,
    ).fit(data.interactions)  # fmt: skip
    bounds = np.array([check.elbo for check in model.history_])
    assert np.diff(bounds).min() > -0.01 * abs(bounds[-1])
    assert bounds[-1] > bounds[0]


@pytest.mark.parametrize("per", ["user", "both"])
def test_the_sign_of_the_values_does_not_matter(per):
    data = hcpf.simulate(
        60, 40, n_components=3, density=0.9, element=Normal(3.0, 1.0), random_state=1
    )
    matrix, bounds = data.interactions.matrix, []
    for sign in (1.0, -1.0):
        model = HCPF(
            5, element=Normal(3.0 * sign, 1.0, per=per), n_fits=1, random_state=0, check_every=1,
            max_iter=9, tol=0.0, tempering=1.0, learn_element=False,
        ).fit(sign * matrix)  # fmt: skip
        bounds.append([check.elbo for check in model.history_])
    np.testing.assert_allclose(*bounds, rtol=1e-6)


def test_pairs_that_are_excluded_count_as_neither_observed_nor_missing():
    element, few = Gamma(2.0, 1.0, per="user"), sparse.csr_array(np.eye(10))
    many = sparse.csr_array(np.triu(np.ones((10, 10))))
    assert make_problem(many, element).is_dense
    assert not make_problem(many, element, train_on="observed").is_dense
    assert not make_problem(few, element).is_dense
    out = np.triu(np.ones((10, 10)), 1) + np.tril(np.ones((10, 10)), -2)  # all but 19 pairs
    assert make_problem(few, element, exclude=sparse.csr_array(out)).is_dense
