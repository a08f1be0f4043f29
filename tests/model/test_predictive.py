"""Whole predictive distributions: coverage, and that their parts agree with each other."""

from functools import cache

import numpy as np
import pytest
from scipy import integrate, sparse

from hcpf import CompoundPoisson, simulate
from hcpf.elements import Gamma, Normal, Poisson
from hcpf.errors import InputError
from model.small import draw_matrix, quick


@cache
def held_out_world(element):
    """A model fitted to nine tenths of simulated entries, and the pairs of the others."""
    sim = simulate(
        500, 250, n_components=4, element=element, density=0.12, user_shape=0.7, item_shape=0.7,
        random_state=3,
    )  # fmt: skip
    matrix = sim.interactions.matrix.tocoo()
    held = np.random.default_rng(1).random(matrix.nnz) < 0.2

    def part(chosen):
        cells = matrix.data[chosen], (matrix.row[chosen], matrix.col[chosen])
        return sparse.csr_array(cells, shape=matrix.shape)

    model = quick(4, element=type(element)(), max_iter=60)
    model.fit(part(~held), exclude=part(held))
    return model, matrix.row[held], matrix.col[held], matrix.data[held]


@pytest.mark.parametrize("element", [Gamma(2.0, 0.1), Normal(3.0, 1.0)], ids=["gamma", "normal"])
def test_nine_tenths_of_held_out_responses_lie_in_their_intervals(element):
    model, users, items, values = held_out_world(element)
    predictive = model.predict_distribution(users, items, n_samples=20, random_state=0).observed
    place = predictive.cdf(values)
    inside = (place >= 0.05) & (place <= 0.95)
    assert len(values) > 2500
    assert 0.88 <= np.mean(inside) <= 0.92
    some = slice(0, 60)  # inverting the cdf takes longer
    few = type(predictive)(predictive._parts.at(np.s_[:, some]), predictive._weights[:, some])
    low, high = few.interval(0.9)
    np.testing.assert_array_equal((low <= values[some]) & (values[some] <= high), inside[some])
    # And the distribution itself is right, not only its two ends.
    share = np.histogram(place, np.linspace(0.0, 1.0, 6))[0] / len(values)
    np.testing.assert_allclose(share, 0.2, atol=0.03)


@pytest.fixture(scope="module", params=[Gamma(2.0, 0.1), Normal(-1.0, 2.0), Poisson(1.5)], ids=str)
def model(request):
    element = request.param
    return quick(3, element=element, n_fits=2, learn_element=False).fit(
        draw_matrix(element, seed=6)
    )


@pytest.fixture(scope="module")
def drawn(model):
    return model.predict_distribution([[1, 3], [5, 0]], [2, 7], n_samples=30, random_state=0)


@pytest.mark.parametrize("which", ["all", "observed"])
def test_moments_cdf_and_quantiles_agree_with_samples(drawn, which):
    part = drawn if which == "all" else drawn.observed
    values = part.sample(10_000, rng=np.random.default_rng(0))
    assert values.shape == (10_000, 2, 2)
    spread = np.sqrt(part.variance / 10_000)
    np.testing.assert_array_less(np.abs(values.mean(axis=0) - part.mean), 5 * spread)
    np.testing.assert_allclose(values.var(axis=0), part.variance, rtol=0.2)
    for level in (0.05, 0.5, 0.95):
        at = part.quantile(level)
        below = np.mean(values <= at, axis=0)
        np.testing.assert_allclose(below, part.cdf(at), atol=0.025)
        assert np.all(part.cdf(at) >= level - 1e-9)
        before = at - 1.0 if part.element.support.discrete else at - 1e-6 * (1 + np.abs(at))
        assert np.all((part.cdf(before) < level) | (at == 0))
    low, high = part.interval(0.8)
    np.testing.assert_allclose(low, part.quantile(0.1), rtol=1e-9)
    np.testing.assert_allclose(high, part.quantile(0.9), rtol=1e-9)


def test_the_density_adds_up_to_the_probability_of_being_observed(drawn):
    if drawn.element.support.discrete:
        y = np.arange(200.0)[:, None, None]
        weight = np.ones_like(y)
    else:
        low = 1e-9 if drawn.element.support.lowest == 0 else -60.0
        y = np.linspace(low, 400.0 if low > 0 else 40.0, 801)[:, None, None]
        weight = np.full_like(y, y[1, 0, 0] - y[0, 0, 0])
    for log_density, total in (
        (drawn.log_density, drawn.prob_observed),
        (drawn.log_density_observed, 1.0),
    ):
        density = np.exp(log_density(y))
        whole = np.sum(density * weight, axis=0)
        if not drawn.element.support.discrete:
            whole = integrate.simpson(density, x=y[:, 0, 0], axis=0)
        np.testing.assert_allclose(whole, np.broadcast_to(total, (2, 2)), rtol=2e-3)


def test_an_average_is_that_of_its_draws(drawn):
    rates, element = drawn.rate, drawn.element
    each = [CompoundPoisson(rate, element) for rate in rates]
    np.testing.assert_allclose(drawn.mean, np.mean([one.mean for one in each], axis=0))
    np.testing.assert_allclose(
        drawn.prob_observed, np.mean([one.prob_observed for one in each], axis=0)
    )
    np.testing.assert_allclose(drawn.cdf(2.0), np.mean([one.cdf(2.0) for one in each], axis=0))
    np.testing.assert_allclose(
        np.exp(drawn.log_density(2.0)), np.mean([np.exp(one.log_density(2.0)) for one in each], 0)
    )
    total = sum(one.prob_observed * one.mean_observed for one in each)
    np.testing.assert_allclose(drawn.mean_observed, total / sum(one.prob_observed for one in each))
    np.testing.assert_allclose(drawn.mean_observed * drawn.prob_observed, drawn.mean)


def test_values_never_meet_the_draws_by_accident(drawn):
    # As many values as draws: each must be seen against all draws, not against its own.
    y = np.arange(1.0, 31.0)[:, None, None]
    for method in (drawn.cdf, drawn.log_density, drawn.observed.cdf):
        one_by_one = np.stack([method(float(value)) for value in y.ravel()])
        assert one_by_one.shape == (30, 2, 2)
        np.testing.assert_allclose(method(y), one_by_one)
    levels = np.linspace(0.1, 0.9, 30)[:, None, None]
    found = drawn.observed.quantile(levels)
    assert found.shape == (30, 2, 2)
    np.testing.assert_allclose(found[3], drawn.observed.quantile(float(levels[3, 0, 0])))


def test_draws_lie_around_the_fitted_rates_and_repeat_with_the_seed(model):
    users, items = np.arange(14)[:, None], np.arange(11)
    many = model.predict_distribution(users, items, n_samples=128, random_state=1)
    low, high = np.quantile(many.rate, [0.01, 0.99], axis=0)
    fitted = model.rate(users, items)
    assert np.mean((low < fitted) & (fitted < high)) > 0.9
    few = [
        model.predict_distribution(users, items, n_samples=4, random_state=seed).rate
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(few[0], few[1])
    assert not np.array_equal(few[0], few[2])


def test_the_pairs_of_a_user_share_its_draws(model):
    drawn = model.predict_distribution([1, 1, 2], [2, 2, 2], n_samples=5, random_state=0)
    np.testing.assert_array_equal(drawn.rate[:, 0], drawn.rate[:, 1])


def test_without_draws_it_is_the_compound_poisson_of_the_mean_rate(model):
    plain = model.predict_distribution([1, 2], [3, 4])
    assert isinstance(plain, CompoundPoisson)
    np.testing.assert_array_equal(plain.rate, model.rate([1, 2], [3, 4]))
    np.testing.assert_array_equal(plain.prob_observed, model.predict_proba([1, 2], [3, 4]))
    np.testing.assert_array_equal(plain.mean_observed, model.predict([1, 2], [3, 4]))
    np.testing.assert_array_equal(plain.mean, model.predict_expected_value([1, 2], [3, 4]))
    assert model.predict_distribution(1, 3).shape == ()
    assert model.predict_distribution(1, 3, n_samples=np.int64(2)).shape == ()


@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, np.nan, "x", None])
def test_levels_outside_the_unit_interval(drawn, q):
    for method in (drawn.quantile, drawn.observed.quantile, drawn.interval):
        with pytest.raises(InputError, match=r"(strictly between 0 and 1|must be numbers)"):
            method(q)


def test_shapes_that_do_not_go_with_the_pairs(drawn):
    for method in (drawn.cdf, drawn.log_density, drawn.quantile):
        with pytest.raises(
            InputError, match=r"shape \(3,\) do not broadcast with pairs of shape \(2, 2\)"
        ):
            method([0.5, 0.25, 0.125] if method == drawn.quantile else [1.0, 2.0, 3.0])
    for size in (-1, 2.5, None, (2, 3)):
        with pytest.raises(InputError, match="size must be an integer"):
            drawn.sample(size, rng=np.random.default_rng(0))
