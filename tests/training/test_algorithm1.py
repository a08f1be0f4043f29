"""Algorithm 1: the draws, their weights, and the update of one entry."""

import copy

import numpy as np
import pytest
from scipy import stats

from hcpf.core.kernels.entry import _draw
from hcpf.elements import Gamma, Poisson
from hcpf.training.solvers.algorithm1 import EntryOptions, _excluded, entry_pass, observed_share
from core import dense
from core.worlds import (
    ELEMENTS,
    PRIORS,
    TRAINING,
    TRAINING_IDS,
    as_production,
    assert_same_point,
    draw_model,
)

TAU, XI = 2.0, 0.7


def draw_pairs(problem, share, rng, size):
    """The pairs that a pass with this generator draws."""
    users = problem.users
    arguments = (
        users.entries,
        users.owner(np.arange(problem.n_observed)),
        _excluded(users),
        problem.items.size,
        share,
        rng,
    )
    return [tuple(int(x) for x in _draw(*arguments)) for _ in range(size)]


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


@pytest.mark.parametrize(("element", "train_on"), TRAINING, ids=TRAINING_IDS)
@pytest.mark.parametrize("stratified", [True, False])
def test_a_pass_is_algorithm_1_to_the_letter(element, train_on, stratified):
    model = draw_model(element, train_on, excluded=0.15)
    problem, state = as_production(model, train_on)
    share = observed_share(problem, stratified)
    rng = np.random.default_rng(7)
    pairs = draw_pairs(problem, share, copy.deepcopy(rng), problem.n_observed)
    entry_pass(state, problem, PRIORS, EntryOptions(TAU, XI, stratified), rng)
    assert_same_point(state, run_twin(model, pairs, share), rtol=5e-6)


def test_the_clocks_and_the_float64_point_go_on_in_the_next_pass():
    model = draw_model(Gamma(2.0, 0.5))
    problem, state = as_production(model)
    share = observed_share(problem, True)
    rng = np.random.default_rng(3)
    pairs = draw_pairs(problem, share, copy.deepcopy(rng), 3 * problem.n_observed)
    for _ in range(3):
        entry_pass(state, problem, PRIORS, EntryOptions(TAU, XI), rng)
    assert_same_point(state, run_twin(model, pairs, share), rtol=1e-5)
    clocks = state.extras["user_clock"], state.extras["item_clock"]
    assert [clock.sum() for clock in clocks] == [3 * problem.n_observed] * 2


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda e: e.name)
def test_uniform_draws_have_the_papers_weights(element):
    model = draw_model(element)
    problem, _ = as_production(model)
    share = observed_share(problem, stratified=False)
    assert share == pytest.approx(model.observed.mean())
    # C_I for a user and C_U for an item, observed or missing (0 where there is none such).
    weights = dense.draw_weights(model, share)
    assert np.all((weights == 0) | np.isclose(weights, model.values.shape[1]))


@pytest.mark.parametrize("stratified", [True, False])
def test_draws_are_uniform_among_the_observed_and_among_the_missing(stratified):
    model = draw_model(Poisson(1.0), excluded=0.3, shape=(5, 4))
    problem, _ = as_production(model)
    share = observed_share(problem, stratified)
    pairs = draw_pairs(problem, share, np.random.default_rng(0), 20_000)
    counts = np.zeros(model.values.shape)
    np.add.at(counts, tuple(np.array(pairs)[:, :2].T), 1.0)
    assert np.all(counts[~model.exposed] == 0)
    missing = model.exposed & ~model.observed
    assert np.sum(counts[model.observed]) / 20_000 == pytest.approx(share, abs=0.015)
    for kind in (model.observed, missing):
        assert stats.chisquare(counts[kind]).pvalue > 1e-4


def test_the_expected_step_is_the_full_one_whatever_the_share():
    # Weighted by how often it is drawn, a row's draws stand for all of its exposed pairs.
    model = draw_model(Poisson(1.0), excluded=0.3)
    degree = model.observed.sum(axis=1)
    missing = (model.exposed & ~model.observed).sum(axis=1)
    for share in (0.2, 0.5, 0.9):
        weights = dense.draw_weights(model, share)
        drawn = np.stack([share * degree / degree.sum(), (1 - share) * missing / missing.sum()], 1)
        expected = np.sum(weights * drawn, axis=1) / drawn.sum(axis=1)
        np.testing.assert_allclose(expected, degree + missing)


def test_a_matrix_without_missing_pairs_draws_observed_ones_only():
    model = draw_model(Poisson(1.0))
    everywhere = np.ones_like(model.observed)
    model = dense.replace(model, observed=everywhere, exposed=everywhere)
    problem, state = as_production(model)
    assert observed_share(problem, True) == observed_share(problem, False) == 1.0
    entry_pass(state, problem, PRIORS, EntryOptions(), np.random.default_rng(0))
    assert np.all(np.isfinite(state.users.mean))


def test_an_early_step_never_overshoots():
    model = draw_model(Gamma(2.0, 0.5))
    problem, state = as_production(model)
    for _ in range(5):
        options = EntryOptions(tau=0.01, xi=1.0)
        entry_pass(state, problem, PRIORS, options, np.random.default_rng(0))
    for factors in (state.users, state.items):
        assert np.all(factors.a > 0)
        assert np.all(factors.mean > 0)
