"""Draws from the posterior as InferenceData of ArviZ."""

import sys
import warnings
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from hcpf import HCPF, simulate
from hcpf.elements import Gamma
from hcpf.errors import InputError, MissingDependencyError
from hcpf.model import inference_data as module
from hcpf.model import posterior
from model.small import draw_matrix, quick

GRID = np.arange(40)[:, None], np.arange(30)


@pytest.fixture(scope="module")
def model():
    world = simulate(
        40, 30, n_components=3, element=Gamma(2.0, 1.0), density=0.3, user_shape=0.2,
        item_shape=0.2, random_state=1,
    )  # fmt: skip
    settings = {"element": "gamma", "tempering": 1.0, "n_fits": 2, "random_state": 0}
    excluded = np.zeros((40, 30))
    excluded[:5, :2] = 1.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(posterior, "_MAX_PASSES", 60)
        found = HCPF(3, **settings).fit(world.interactions, exclude=excluded).model_
        assert len(found.posterior) == 128
    return found


@pytest.fixture(scope="module")
def arviz():
    return module._arviz()


def test_arviz_summarizes_the_rates_and_factors(arviz, model):
    found = model.posterior.to_arviz(*GRID, random_state=0)
    assert found.posterior.sizes["chain"] == 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = arviz.summary(found, var_names=["rate", "item_factors", "item_activity_mean"])
    assert len(table) == 40 * 30 + 30 * 3 + 1
    assert "user_activity_mean" not in found.posterior  # it fixes the scale
    drawn = model.posterior.rate(3, 7)
    np.testing.assert_allclose(table.loc["rate[3, 7]", "mean"], drawn.mean(), atol=2e-3)
    assert 0.9 < table.loc["rate[3, 7]", "r_hat"] < 1.2


def test_without_pairs_it_has_the_factors_of_all_rows(arviz, model):
    found = model.posterior.to_arviz()
    assert found.groups() == ["posterior"]
    assert found.posterior.user_factors.shape == (4, 32, 40, 3)
    assert found.posterior.item_factors.dims == ("chain", "draw", "item", "component")


def test_components_are_matched_to_those_of_the_first_fit(arviz, model):
    """Also where draws have them in another order; the rates do not depend on it."""
    draws = model.posterior
    swapped = replace(draws, users=draws.users.copy(), items=draws.items.copy())
    for factors in (swapped.users, swapped.items):
        factors[::2] = factors[::2][:, :, [2, 0, 1]]
    first, second = draws.to_arviz().posterior, swapped.to_arviz().posterior
    np.testing.assert_array_equal(first.item_factors, second.item_factors)
    np.testing.assert_array_equal(first.user_factors, second.user_factors)
    reference = model.posteriors[0].items.mean
    for draw in np.asarray(first.item_factors).reshape(128, 30, 3)[::20]:
        unit = [m / np.linalg.norm(m, axis=0) for m in (reference, draw)]
        cosine = unit[0].T @ unit[1]
        sums = {order: cosine[range(3), order].sum() for order in permutations(range(3))}
        assert max(sums, key=sums.get) == (0, 1, 2)


def test_the_likelihood_is_that_of_the_pairs_trained_on(arviz, model):
    found = model.posterior.to_arviz(*GRID, random_state=0)
    likelihood = found.log_likelihood.value
    assert likelihood.shape == (4, 32, 40 * 30 - 10)
    assert "3, 1" not in likelihood.counted_pair.values  # excluded
    dense, rate = model.data.matrix.toarray(), found.posterior.rate
    for user, item in ((7, 2), (8, 3), (9, 4), (10, 5), (11, 6), (12, 7)):
        here = rate.sel(pair=f"{user}, {item}").values
        expected = -here
        if dense[user, item]:
            distribution = model.value_model.distribution(here, model.element)
            expected = distribution.log_density(dense[user, item])
        shown = likelihood.sel(counted_pair=f"{user}, {item}").values
        np.testing.assert_allclose(shown, expected, rtol=1e-10)
    values = found.observed_data.value
    assert 0 < np.count_nonzero(values) < values.size
    np.testing.assert_allclose(values.sum(), dense.sum() - dense[:5, :2].sum(), rtol=1e-6)


def test_the_predictive_draws_resemble_the_data(arviz, model):
    found = model.posterior.to_arviz(*GRID, random_state=0)
    drawn, values = found.posterior_predictive.value, found.observed_data.value
    share = np.mean(np.asarray(drawn) > 0, axis=2)
    np.testing.assert_allclose(share.mean(), np.mean(np.asarray(values) > 0), atol=0.02)


@pytest.mark.parametrize("vary_by", [None, "both"])
def test_models_of_observed_pairs_count_observed_pairs(arviz, vary_by):
    settings = {"element": Gamma(2.0, 1.0), "train_on": "observed", "vary_by": vary_by}
    fitted = quick(2, **settings).fit(draw_matrix(Gamma(2.0, 1.0))).model_
    found = fitted.posterior.to_arviz(np.arange(14)[:, None], np.arange(11), random_state=0)
    assert found.log_likelihood.value.shape[2] == fitted.data.n_observed
    assert np.isfinite(found.log_likelihood.value).all()
    assert (np.asarray(found.posterior_predictive.value) > 0).all()


def test_without_training_data_there_are_rates_only(arviz, model):
    found = replace(model, data=None).posterior.to_arviz([0, 1], 2)
    assert found.groups() == ["posterior"]
    assert found.posterior.rate.shape == (2, 64, 2)
    assert "item_activity_mean" not in found.posterior


def test_errors_say_what_to_do(arviz, model, monkeypatch):
    with pytest.raises(InputError, match="pass both users and items"):
        model.posterior.to_arviz([0, 1])
    monkeypatch.setattr(module, "_MAX_NUMBERS", 1000)
    with pytest.raises(InputError, match="Pass fewer users and items"):
        model.posterior.to_arviz(*GRID)
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(MissingDependencyError, match=r"pip install '.\[science\]'"):
        model.posterior.to_arviz()
