"""Draws from the posterior: where they come from, and how sure the model is."""

from dataclasses import replace

import numpy as np
import pytest

from hcpf import HCPF, FittedModel, simulate
from hcpf.elements import Gamma
from hcpf.errors import InputError, ParameterError
from hcpf.model import posterior as module


@pytest.fixture(autouse=True)
def short_chains(monkeypatch):
    monkeypatch.setattr(module, "_MAX_PASSES", 60)
    monkeypatch.setattr(module, "_MIN_PASSES", 60)


@pytest.fixture(scope="module")
def world():
    element = Gamma(2.0, 1.0)
    return simulate(80, 60, n_components=3, element=element, density=0.25, random_state=1)


@pytest.fixture(scope="module")
def model(world):
    settings = {"element": world.element, "learn_element": False, "tempering": 4.0, "n_fits": 2}
    return HCPF(3, **settings, max_iter=60, random_state=0).fit(world.interactions).model_


def share_inside(world, draws, rng):
    users, items = rng.integers(0, 80, 2000), rng.integers(0, 60, 2000)
    true = world.rate(users, items)
    low, high = draws.interval(users, items, 0.9)
    return np.mean((low <= true) & (true <= high))


def test_intervals_of_a_cold_fit_hold_the_true_rates(world, model):
    draws = model.posterior
    assert draws.source == "gibbs"
    assert len(draws) == 128
    assert set(draws.fits) == {0, 1}
    assert 0.84 <= share_inside(world, draws, np.random.default_rng(0)) <= 0.95
    assert model.posterior is draws


def test_the_same_model_has_the_same_draws_and_n_samples_takes_some(model):
    again = replace(model).posterior
    np.testing.assert_array_equal(again.users, model.posterior.users)
    first, second = (model.posterior.sample(5, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.items, second.items)
    assert len(model.posterior.sample(300, random_state=0)) == 300
    predicted = model.predict_distribution([0, 1], [[2], [3]], n_samples=9, random_state=3)
    chosen = model.posterior.sample(9, random_state=np.random.default_rng(3))
    np.testing.assert_allclose(predicted.rate, chosen.rate([0, 1], [[2], [3]]))


def test_chains_that_disagree_are_reported(model, caplog):
    rng = np.random.default_rng(0)
    draws = replace(model.posterior, chains=rng.permutation(model.posterior.chains))
    caplog.clear()
    module._warn_of_differing_chains(draws, rng)
    assert not caplog.records
    users = draws.users * np.where(draws.chains == 0, 20.0, 1.0)[:, None, None]
    module._warn_of_differing_chains(replace(draws, users=users), rng)
    assert "the chains disagree about" in caplog.text


def test_r_hat_compares_halves_of_chains():
    same = np.random.default_rng(0).normal(size=(4, 500, 3))
    np.testing.assert_allclose(module.r_hat(same), 1.0, atol=0.01)
    apart, drifting = same.copy(), same.copy()
    apart[0] += 2.0
    drifting[:, 250:] += 2.0
    assert (module.r_hat(apart) > 1.2).all()
    assert (module.r_hat(drifting) > 1.2).all()


def test_without_training_data_the_draws_are_variational_and_not_tempered(tmp_path, world, model):
    model.save(tmp_path / "bare", include_data=False)
    bare = FittedModel.load(tmp_path / "bare").posterior
    assert bare.source == "variational"
    fit = model.posteriors[0].users
    shape = model.priors.user_shape + (fit.a - model.priors.user_shape) / model.tempering
    spread = bare.users[bare.fits == 0].std(axis=0)
    np.testing.assert_allclose(np.median(spread / (fit.mean / np.sqrt(shape))), 1.0, atol=0.1)
    cold, rng = fit.sample(60, np.random.default_rng(0)), np.random.default_rng(0)
    assert np.median(cold.std(axis=0) / spread) < 0.7
    assert share_inside(world, bare, rng) < share_inside(world, model.posterior, rng)


def test_a_loaded_model_samples_like_the_saved_one(tmp_path, model):
    model.save(tmp_path / "model")
    loaded = FittedModel.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.posterior.items, model.posterior.items)


def test_new_users_are_drawn_given_the_items(tmp_path, world, model):
    """The same users as in training: nearly the same intervals as from the joint chain."""
    folded = model.fold_in(world.interactions)
    draws = folded.posterior
    assert draws.source == "fold-in"
    assert sorted(draws.items[:, 0, 0]) == sorted(model.posterior.items[:, 0, 0])
    assert 0.82 <= share_inside(world, draws, np.random.default_rng(0)) <= 0.95
    folded.save(tmp_path / "folded")
    loaded = FittedModel.load(tmp_path / "folded")
    assert loaded.folded is not None
    assert loaded.folded.model is None
    assert loaded.posterior.source == "fold-in"
    assert loaded.posterior.users.shape == draws.users.shape


def test_new_items_and_measured_items(world, model):
    items = model.fold_in_items(world.interactions)
    assert items.posterior.users.shape == model.posterior.users.shape
    ratio = items.posterior.rate(3, [1, 2]).mean(axis=0) / model.posterior.rate(3, [1, 2]).mean(0)
    np.testing.assert_allclose(ratio, 1.0, atol=0.6)
    some = {1: 2.0, 5: 1.0, 9: 3.0}
    every, only = model.fold_in(some), model.fold_in(some, measured_items="listed")
    # With three measured items, all observed, the others say nothing about the user's activity.
    high = only.posterior.rate("new", 9).mean()
    assert high > 1.3 * every.posterior.rate("new", 9).mean()


def test_bad_input(model):
    with pytest.raises(InputError, match="level"):
        model.posterior.interval(0, 1, 1.5)
    with pytest.raises(ValueError, match="size"):
        model.posterior.sample(0)


@pytest.mark.parametrize("size", [10**13, 2**63, 10**30])
def test_more_draws_than_memory_holds_are_refused_at_once(model, size):
    with pytest.raises(ParameterError, match=rf"size={size} draws do not fit in memory"):
        model.posterior.sample(size)
