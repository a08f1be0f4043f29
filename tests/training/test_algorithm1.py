"""Algorithm 1: the draws, their weights, and the update of one entry."""

import copy

import numba
import numpy as np
import pytest
from scipy import stats

from core import dense
from core.worlds import as_production, assert_same_point, draw_model
from hcpf import Algorithm1
from hcpf.core.axis import Axis
from hcpf.core.kernels.entry import _draw
from hcpf.elements import Gamma, Poisson
from hcpf.training.solvers.algorithm1 import (
    algorithm1_pass,
    excluded_pairs,
    observed_share,
)
from model.small import ELEMENTS, TRAINING, name_of

TAU, XI = 2.0, 0.7


@numba.njit
def compiled_draw(entries, owner, excluded, n_items, share, rng):
    return _draw(entries, owner, excluded, n_items, share, rng)


def draw_pairs(shard, share, rng, size):
    """The pairs that a pass with this generator draws."""
    users = shard.users
    arguments = (
        users.entries,
        users.owner(np.arange(shard.totals.n_entries)),
        excluded_pairs(shard, Axis.USERS),
        shard.totals.n_items,
        share,
        rng,
    )
    return [tuple(int(x) for x in compiled_draw(*arguments)) for _ in range(size)]


def run_twin(model, pairs, share):
    user_weights = dense.draw_weights(model, share)
    item_weights = dense.draw_weights(model.transposed, share)
    t_u, t_i = np.full(len(model.users.a), TAU), np.full(len(model.items.a), TAU)
    for u, i, e in pairs:
        kind = 0 if model.observed[u, i] else 1
        assert (e >= 0) == model.observed[u, i]
        weights = user_weights[u, kind], item_weights[i, kind]
        model = dense.algorithm_1(model, u, i, *weights, t_u[u], t_i[i], XI)
        t_u[u] += 1
        t_i[i] += 1
    return model


@pytest.mark.parametrize("value_model", TRAINING, ids=name_of)
@pytest.mark.parametrize("stratified", [True, False])
def test_a_pass_is_algorithm_1_to_the_letter(value_model, stratified):
    model = draw_model(value_model, excluded=0.15)
    shard, state = as_production(model)
    share = observed_share(shard, stratified)
    pairs = draw_pairs(shard, share, copy.deepcopy(state.rng), shard.totals.n_entries)
    algorithm1_pass(state, shard, Algorithm1(TAU, XI, stratified))
    assert_same_point(state, run_twin(model, pairs, share), rtol=5e-6)


def test_the_clocks_and_the_float64_point_go_on_in_the_next_pass():
    model = draw_model(Gamma(2.0, 0.5))
    shard, state = as_production(model)
    share, n_draws = observed_share(shard, True), 3 * shard.totals.n_entries
    pairs = draw_pairs(shard, share, copy.deepcopy(state.rng), n_draws)
    for _ in range(3):
        algorithm1_pass(state, shard, Algorithm1(TAU, XI))
    assert_same_point(state, run_twin(model, pairs, share), rtol=1e-5)
    assert [rows.clock.sum() for rows in (state.draws.users, state.draws.items)] == [n_draws] * 2


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda e: e.name)
def test_uniform_draws_have_the_papers_weights(element):
    model = draw_model(element)
    shard, _ = as_production(model)
    share = observed_share(shard, stratified=False)
    assert share == pytest.approx(model.observed.mean())
    # C_I for a user and C_U for an item, observed or missing (0 where there is none such).
    weights = dense.draw_weights(model, share)
    assert np.all((weights == 0) | np.isclose(weights, model.values.shape[1]))


@pytest.mark.parametrize("stratified", [True, False])
def test_draws_are_uniform_among_the_observed_and_among_the_missing(stratified):
    model = draw_model(Poisson(1.0), excluded=0.3, shape=(5, 4))
    shard, _ = as_production(model)
    share = observed_share(shard, stratified)
    pairs = draw_pairs(shard, share, np.random.default_rng(0), 20_000)
    counts = np.zeros(model.values.shape)
    np.add.at(counts, tuple(np.array(pairs)[:, :2].T), 1.0)
    assert np.all(counts[~model.included] == 0)
    missing = model.included & ~model.observed
    assert np.sum(counts[model.observed]) / 20_000 == pytest.approx(share, abs=0.015)
    for kind in (model.observed, missing):
        assert stats.chisquare(counts[kind]).pvalue > 1e-4


def test_the_expected_step_is_the_full_one_whatever_the_share():
    # Weighted by how often it is drawn, a row's draws stand for all of its included pairs.
    model = draw_model(Poisson(1.0), excluded=0.3)
    degree = model.observed.sum(axis=1)
    missing = (model.included & ~model.observed).sum(axis=1)
    for share in (0.2, 0.5, 0.9):
        weights = dense.draw_weights(model, share)
        drawn = np.stack([share * degree / degree.sum(), (1 - share) * missing / missing.sum()], 1)
        expected = np.sum(weights * drawn, axis=1) / drawn.sum(axis=1)
        np.testing.assert_allclose(expected, degree + missing)


def test_a_matrix_without_missing_pairs_draws_observed_ones_only():
    model = draw_model(Poisson(1.0))
    everywhere = np.ones_like(model.observed)
    model = dense.replace(model, observed=everywhere, included=everywhere)
    shard, state = as_production(model)
    assert observed_share(shard, True) == observed_share(shard, False) == 1.0
    algorithm1_pass(state, shard, Algorithm1())
    assert np.all(np.isfinite(state.users.factors.mean))


def test_an_early_step_never_overshoots():
    model = draw_model(Gamma(2.0, 0.5))
    shard, state = as_production(model)
    for _ in range(5):
        algorithm1_pass(state, shard, Algorithm1(tau=0.01, xi=1.0))
    for mine in state.axes:
        assert np.all(mine.factors.a > 0)
        assert np.all(mine.factors.mean > 0)
