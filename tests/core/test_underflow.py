"""Rates and shapes near the ends of float32: nothing dies, and the twin agrees."""

import numba
import numpy as np
import pytest
from scipy import sparse

import hcpf
from core import dense
from core.worlds import as_matrix, as_production, assert_same_point, at_fit, draw_model
from hcpf import Priors
from hcpf.core.collective import LOCAL
from hcpf.core.kernels.sums import log_rate_of
from hcpf.elements import Gamma, NegativeBinomial, Poisson
from hcpf.training.solvers.cavi import cavi_pass
from model.small import ELEMENTS, quick

PAPER = Priors.paper(2e-8, 2)
ALIVE = np.finfo(np.float32).tiny


@numba.njit
def compiled_log_rate(rows, cols, u, i, shares):
    return log_rate_of(rows, cols, u, i, shares)


def assert_alive(fitted):
    for side in (fitted.posterior_.users, fitted.posterior_.items):
        for array in (side.a, side.b, side.mean, side.activity_b):
            assert np.all(np.isfinite(array))
            assert np.all(array >= ALIVE)
        assert np.all(np.isfinite(side.log_mean))
    assert all(np.isfinite(check.elbo) for check in fitted.history_)
    users, items = np.arange(len(fitted.users_)), np.arange(len(fitted.items_))
    assert np.all(fitted.rate(users[:, None], items) > 0)


def two_blocks(element, joined=True):
    """Users 0-3 with items 0-3 on one component, 4-7 with 4-7 on the other; one entry joins."""
    model = draw_model(element, shape=(8, 8), size=2, priors=PAPER)
    rng = np.random.default_rng(1)
    block = np.arange(8) // 4
    observed = block[:, None] == block
    observed[0, 7] = joined
    values = np.where(observed, element.sample(np.ones((8, 8)), rng), 0.0)
    own = np.eye(2)[block]
    a = np.where(own == 1, rng.gamma(5.0, 1.0, (8, 2)), PAPER.user_shape)
    a = a.astype(np.float32).astype(float)
    mean = (a / 3.0).astype(np.float32)
    sides = [dense.replace(side, a=a, b=a / mean) for side in (model.users, model.items)]
    return dense.replace(
        model, users=sides[0], items=sides[1], values=values, observed=observed,
        included=np.ones((8, 8), dtype=bool),
    )  # fmt: skip


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda e: e.name)
def test_blocks_joined_by_one_entry_at_a_log_rate_of_minus_100000(element):
    model = two_blocks(element)
    shard, state = as_production(model)
    pairs, shares = np.argwhere(model.observed), np.empty(2)
    factors = state.users.factors, state.items.factors
    log_rate = np.array([compiled_log_rate(*factors, u, i, shares) for u, i in pairs])
    expected = dense.log_rates(model)[model.observed]
    np.testing.assert_allclose(log_rate, expected, rtol=1e-6, atol=1e-6)
    assert log_rate.min() < -90_000
    assert state.elbo(shard, LOCAL) == pytest.approx(dense.elbo(model), rel=1e-6)
    for _ in range(3):
        cavi_pass(state, shard)
        model = dense.cavi_pass(model)
    assert_same_point(state, model, rtol=1e-5)
    assert state.elbo(shard, LOCAL) == pytest.approx(dense.elbo(model), rel=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_shapes_of_all_sizes_side_by_side(seed):
    # Some rows lie wholly below what exp(digamma) keeps in float32, some only in part.
    model = draw_model(Poisson(0.8), seed=seed, size=4)
    rng = np.random.default_rng(seed)
    sides = []
    for side in (model.users, model.items):
        a = 10.0 ** rng.uniform(-6.0, rng.uniform(-4.0, 1.0, (len(side.a), 1)), side.a.shape)
        a = a.astype(np.float32).astype(float)
        mean = (a * 10.0 ** rng.uniform(-2.0, 2.0, a.shape)).astype(np.float32).astype(float)
        sides.append(dense.replace(side, a=a, b=a / mean))
    model = dense.replace(model, users=sides[0], items=sides[1])
    shard, state = as_production(model)
    assert state.elbo(shard, LOCAL) == pytest.approx(dense.elbo(model), rel=1e-6)
    cavi_pass(state, shard)
    assert_same_point(state, dense.cavi_pass(model), rtol=2e-5)


@pytest.mark.parametrize("solver", ["cavi", "svi", "algorithm1"])
@pytest.mark.parametrize("train_on", ["full", "observed"])
def test_the_papers_priors_on_sparse_data(solver, train_on):
    data = hcpf.simulate(
        90, 60, n_components=3, density=0.03, element=Poisson(2.0), random_state=0
    ).interactions
    fitted = quick(
        5, priors="paper", element="poisson", train_on=train_on, solver=solver, max_iter=30
    ).fit(data)
    if train_on == "full":
        assert fitted.priors_.user_shape == pytest.approx(0.1 * np.sqrt(0.03 / 5), rel=0.1)
    assert_alive(fitted)


def test_a_fit_of_two_blocks_with_the_papers_priors_separates_them():
    model = two_blocks(NegativeBinomial(2.0, 0.3))
    fitted = quick(2, element=model.element, priors=PAPER, max_iter=300).fit(as_matrix(model))
    assert_alive(fitted)
    assert fitted.history_[-1].elbo == pytest.approx(dense.elbo(at_fit(model, fitted)), rel=1e-6)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e6, 1e12])
def test_priors_from_end_to_end_of_what_is_allowed(scale):
    model = draw_model(Gamma(2.0, 0.5))
    for extreme in (
        Priors(scale, 1.0, 1.0, scale, 1.0, 1.0),
        Priors(1.0, scale, 1.0, 1.0, scale, 1.0),
        Priors(1.0, 1.0, scale, 1.0, 1.0, scale),
    ):
        fitted = quick(priors=extreme, element=Gamma(2.0, 0.5)).fit(as_matrix(model))
        for side in (fitted.posterior_.users, fitted.posterior_.items):
            assert np.all(np.isfinite(side.a))
            assert np.all(np.isfinite(side.mean))
        assert np.isfinite(fitted.history_[-1].elbo)


def test_rates_far_beyond_the_tables_widen_them(monkeypatch):
    # 3,000 events of an element with mean 1/2 take about 6,000 of them.
    model = draw_model(Poisson(0.5))
    values = np.where(model.observed, 3000.0 + model.values, 0.0)
    model = dense.replace(model, values=values)
    fitted = quick(element=Poisson(0.5), learn_element=False, max_iter=60, check_every=1).fit(
        as_matrix(model)
    )
    assert_alive(fitted)
    assert fitted.rate(3, np.flatnonzero(model.observed[3])).max() > 5_000
    elbo = np.array([check.elbo for check in fitted.history_])
    assert np.all(np.diff(elbo) > -1e-6 * np.abs(elbo[1:]))
    monkeypatch.setattr(dense, "LARGEST_N", 12_000)
    assert elbo[-1] == pytest.approx(dense.elbo(at_fit(model, fitted)), rel=1e-6)


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda e: e.name)
def test_values_from_1_to_80000_in_one_fit(element):
    model = draw_model(element)
    values = model.values.copy()
    users, items = np.nonzero(model.observed)
    values[users[0], items[0]], values[users[-1], items[-1]] = 80_000.0, 9_000.0
    matrix = as_matrix(dense.replace(model, values=values))
    assert_alive(quick(element=element, max_iter=4).fit(matrix))
    if element.domains():
        assert_alive(quick(element=type(element)(), max_iter=4).fit(matrix))


@pytest.mark.parametrize("solver", ["cavi", "svi", "algorithm1"])
def test_empty_rows_and_columns(solver):
    matrix = sparse.lil_array((30, 20))
    matrix[3, 4], matrix[3, 5], matrix[17, 4] = 2.5, 1.0, 7.0
    fitted = quick(element=Gamma(2.0, 1.0), solver=solver, max_iter=40).fit(matrix.tocsr())
    assert_alive(fitted)
    assert fitted.rate(3, 4) > fitted.rate(0, 0)


@pytest.mark.parametrize("shape", [(1, 9), (9, 1), (1, 1), (2, 3)])
@pytest.mark.parametrize("n_components", [1, 20])
@pytest.mark.parametrize("solver", ["auto", "svi", "algorithm1"])
def test_tiny_matrices(shape, n_components, solver):
    rng = np.random.default_rng(0)
    fitted = quick(n_components, element=Gamma(2.0, 1.0), solver=solver, max_iter=8).fit(
        rng.gamma(2.0, 1.0, shape)
    )
    assert_alive(fitted)
