"""Values that are one element each, however large n is: steps, bound and fits."""

import numpy as np
import pytest
from scipy import sparse, stats

from core import dense
from core.worlds import (
    ELEMENTS,
    PRIORS,
    VARYING,
    as_matrix,
    as_production,
    assert_same_point,
    draw_model,
    excluded_matrix,
    quick,
)
from hcpf import HCPF, CompoundPoisson
from hcpf.core.elbo import elbo
from hcpf.core.half_step import cavi_step
from hcpf.elements import (
    Binomial,
    Degenerate,
    Gamma,
    Geometric,
    InverseGaussian,
    Normal,
    Poisson,
)
from hcpf.errors import ParameterError, SupportError
from hcpf.model.typical_values import typical_values
from hcpf.training.element_update import update_theta
from hcpf.training.solvers.svi import SviOptions, svi_pass


def once(element):
    return type(element)(**element.parameters, per=element.per, once=True)


SHARED = [once(element) for element in ELEMENTS]
EACH = SHARED + [once(element) for element in VARYING]
each_way = pytest.mark.parametrize("element", EACH, ids=lambda e: f"{e.name}-{e.per}")


@each_way
@pytest.mark.parametrize(("excluded", "weight"), [(0.0, 1.0), (0.2, 2.5)])
def test_steps_and_bounds_are_the_twins(element, excluded, weight):
    model = dense.replace(draw_model(element, excluded=excluded), weight=weight)
    problem, state = as_production(model)
    for _ in range(3):
        assert elbo(state, problem, PRIORS) == pytest.approx(dense.bound(model), rel=1e-6)
        cavi_step(state, problem, PRIORS)
        model = dense.cavi_step(model)
        assert_same_point(state, model, rtol=1e-5)


@pytest.mark.parametrize("element", SHARED, ids=lambda e: e.name)
def test_a_minibatch_pass_is_the_twins(element):
    model = draw_model(element, excluded=0.2)
    problem, state = as_production(model)
    svi_pass(state, problem, PRIORS, SviOptions(batches=4, local_sweeps=2, tau=1.5, xi=0.7))
    assert_same_point(state, dense.svi_pass(model, 4, 2, 0, 1.5, 0.7), rtol=1e-5)


@each_way
def test_the_bound_never_falls_and_follows_the_element(element):
    model = draw_model(element, excluded=0.1)
    problem, state = as_production(model)
    before = elbo(state, problem, PRIORS)
    for _ in range(6):
        cavi_step(state, problem, PRIORS)
        model = dense.cavi_step(model)
        if element.per is None:
            update_theta(state, problem)
            model = dense.m_step(model)
        after = elbo(state, problem, PRIORS)
        if element.conjugate is None or element.conjugate.is_exact or element.per is None:
            assert after >= before - 1e-6 * abs(before)
        assert after == pytest.approx(dense.bound(model), rel=1e-5)
        before = after


@pytest.mark.parametrize(
    "element", [one for one in EACH if one.per is not None], ids=lambda e: f"{e.name}-{e.per}"
)
def test_the_bound_of_whole_fits_never_falls(element):
    model = draw_model(element, excluded=0.15)
    fitted = quick(
        element=type(element)(per=element.per, once=True), max_iter=12, check_every=1, tempering=1.5
    ).fit(as_matrix(model), exclude=excluded_matrix(model))
    bounds = np.array([check.elbo for check in fitted.history_])
    rounding = 1e-6 if element.conjugate.is_exact else 1e-3
    assert np.all(np.diff(bounds) >= -rounding * np.abs(bounds[1:]))
    assert bounds[-1] > bounds[0]


def dense_ratings(n_users=120, n_items=90, seed=0):
    """Most pairs observed, and more often so where a few components say; the ratings are apart."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(0.5, 1.0, (n_users, 3)) @ rng.gamma(1.0, 1.0, (3, n_items))
    chance = rng.beta(6, 3, n_items)
    values = 1.0 + rng.binomial(4, chance, rate.shape)
    return sparse.csr_array(np.where(rng.random(rate.shape) < -np.expm1(-rate), values, 0.0)), rate


def fitted(matrix, **more):
    settings = {"n_fits": 1, "random_state": 0, "progress": False, "n_components": 4} | more
    return HCPF(**settings).fit(matrix)


def test_a_fit_recovers_who_takes_what_and_the_ratings_beside_it():
    matrix, rate = dense_ratings()
    model = fitted(matrix, element=Binomial(per="item", once=True))
    users, items = (x.ravel() for x in np.indices(matrix.shape))
    predicted = model.predict(users, items).reshape(matrix.shape)
    assert predicted.max() <= 5.0
    np.testing.assert_allclose(np.ptp(predicted, axis=0), 0.0, atol=1e-12)  # whatever the rate
    observed = matrix.toarray()
    seen = observed > 0
    means = observed.sum(axis=0) / seen.sum(axis=0)
    assert np.corrcoef(predicted[0], means)[0, 1] > 0.98
    chance = model.predict_proba(users, items)
    assert stats.spearmanr(chance, rate.ravel()).statistic > 0.8
    expected = model.predict_expected(users, items)
    np.testing.assert_allclose(expected, chance * predicted.ravel(), rtol=1e-9)


def test_auto_takes_one_element_for_ratings_and_sums_for_sums():
    matrix, _ = dense_ratings()
    assert fitted(matrix, element="auto").element_.once
    ones = sparse.csr_array((matrix > 0).astype(float))
    assert fitted(ones, element="auto").element_ == Degenerate(once=True)
    rng = np.random.default_rng(1)
    counts = rng.poisson(rng.gamma(0.5, 1.0, (120, 2)) @ rng.gamma(1.0, 0.8, (2, 90)))
    totals = Gamma(4.0, 1.0).sample(counts, rng)
    assert not fitted(sparse.csr_array(totals), element="auto").element_.once


@pytest.mark.parametrize("seed", range(3))
def test_pairs_that_take_no_part_do_not_run_away(seed):
    matrix, _ = dense_ratings(80, 60)
    out = sparse.csr_array((np.random.default_rng(2).random(matrix.shape) < 0.3).astype(float))
    training = sparse.csr_array(matrix - matrix.multiply(out))
    training.eliminate_zeros()
    model = HCPF(
        12, element=Binomial(per="item", once=True), n_fits=1, random_state=seed, progress=False
    ).fit(training, exclude=out)
    assert model.tempering_ == 1.0
    assert model.rate(*out.nonzero()).max() < 40.0


def test_a_model_goes_on_as_it_is(tmp_path):
    matrix, _ = dense_ratings()
    model = fitted(matrix, element=Binomial(per="user", once=True))
    model.save(tmp_path / "model")
    again = HCPF.load(tmp_path / "model")
    assert again.element_ == model.element_
    assert again.element_.once
    np.testing.assert_array_equal(again.predict([3], [5]), model.predict([3], [5]))
    new = model.fold_in(matrix[:4])
    np.testing.assert_allclose(new.predict([0, 3], [5]), model.predict([0, 3], [5]), rtol=0.01)
    best = model.recommend([3], n=5, by="expected", exclude_seen=False)
    assert np.all(np.diff(best.expected) <= 1e-6)
    parts = model.explain(3, 5)
    assert parts.rate.sum() == pytest.approx(model.rate([3], [5])[0], rel=1e-6)


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda m: Poisson(once="yes"), ParameterError, "True or False"),
        (lambda m: fitted(m, element=Binomial(3, 0.5, once=True)), SupportError, "single one"),
        (
            lambda m: fitted(m, element=Poisson(once=True), train_on="observed"),
            ParameterError,
            "train_on='observed'",
        ),
    ],
)
def test_what_cannot_be_is_said(make, error, says):
    with pytest.raises(error, match=says):
        make(dense_ratings()[0])


def test_new_rows_are_checked_too():
    matrix, _ = dense_ratings()
    model = fitted(matrix, element=Binomial(per="user", once=True))
    with pytest.raises(SupportError, match="single one"):
        model.fold_in(matrix[:2] * 3.0)


def test_a_pair_that_is_observed_has_one_element_whatever_n_is():
    element = Geometric(0.4, once=True)
    y = np.arange(1.0, 8.0)
    np.testing.assert_allclose(element.log_density(y, 5), element.log_density(y, 1))
    np.testing.assert_allclose(element.cdf(y, 5), Geometric(0.4).cdf(y, 1))
    rng = np.random.default_rng(0)
    drawn = element.sample(np.full(20_000, 30), rng)
    assert drawn.mean() == pytest.approx(float(element.mean), rel=0.05)
    assert element.sample(np.zeros(3), rng).sum() == 0.0
    assert element != Geometric(0.4)
    assert "once=True" in repr(element)


@pytest.mark.parametrize("element", [Poisson(1.5, once=True), Gamma(2.0, 0.5, once=True)])
def test_the_compound_distribution_of_one_element(element):
    rate = np.array([0.0, 0.2, 3.0, 40.0])
    pair, one = CompoundPoisson(rate, element), element.replace()
    y = np.array([[0.0], [1.0], [4.0]]) + (0.5 if not element.support.discrete else 0.0)
    observed = -np.expm1(-rate)
    with np.errstate(divide="ignore"):
        expected = one.log_density(y) + np.log(observed)
    np.testing.assert_allclose(pair.log_density(y), expected, rtol=1e-12)
    np.testing.assert_allclose(pair.observed.log_density(y), one.log_density(y) + 0 * rate)
    np.testing.assert_allclose(pair.cdf(y), np.exp(-rate) + observed * one.cdf(y), rtol=1e-12)
    np.testing.assert_allclose(pair.mean, observed * element.mean)
    np.testing.assert_allclose(pair.mean_observed, element.mean)
    second = observed * (element.variance + element.mean**2)
    np.testing.assert_allclose(pair.variance, second - (observed * element.mean) ** 2, rtol=1e-12)
    np.testing.assert_allclose(pair.observed.variance, element.variance)
    zero = np.exp(-rate) + observed * np.exp(element.log_prob_zero)
    np.testing.assert_allclose(pair.prob_zero, zero, rtol=1e-12)
    low, high = pair.observed.interval(0.9)
    assert np.all(one.cdf(high) >= 0.95 - 1e-9)
    assert np.ptp(high) < 1e-6
    assert np.all(low <= element.mean)
    drawn = pair.sample(20_000, rng=np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(axis=0), pair.mean, atol=0.1)


@pytest.mark.parametrize(
    "element",
    [Normal(8.0, 0.5), Gamma(8.0, 1.0), InverseGaussian(20.0, 300.0), Poisson(20.0)],
    ids=lambda element: element.name,
)
def test_both_sides_have_a_usual_rating_of_their_own(element, tmp_path):
    rng, kind = np.random.default_rng(4), type(element)
    generous, good = rng.normal(0.0, 0.3, (90, 1)), rng.normal(0.0, 0.4, 60)
    mean = 8.0 + 2.0 * (generous + good) if kind is Normal else 20.0 * np.exp(generous + good)
    drawn = np.maximum(element.with_mean(mean).sample(np.ones(mean.shape), rng), 1.0)
    matrix = sparse.csr_array(np.where(rng.random(mean.shape) < 0.4, drawn, 0.0))
    model = fitted(matrix, element=kind(per="both", once=True), max_iter=40)
    users, items = (x.ravel() for x in np.indices(matrix.shape))
    predicted = model.predict(users, items).reshape(mean.shape)
    assert np.sqrt(np.mean((predicted - mean) ** 2)) < 0.4 * np.std(mean)
    model.save(tmp_path / "model")
    again = HCPF.load(tmp_path / "model")
    assert again.element_ == model.element_
    np.testing.assert_array_equal(again.predict(users[:9], items[:9]), predicted.ravel()[:9])
    # Ranked by response, the items come in the order of what is usual for them.
    best = model.recommend([3], n=60, by="response", exclude_seen=False)
    assert np.all(np.diff(best.response) <= 1e-5 * np.abs(best.response[1:]))
    assert stats.spearmanr(mean[3, best.item], -np.arange(60)).statistic > 0.8
    # A new user who gives twice as much is expected to go on so.
    new = model.fold_in(sparse.csr_array(2.0 * matrix[[3]].toarray()))
    assert new.predict([0], [5])[0] > 1.3 * model.predict([3], [5])[0]


def test_typical_values_are_those_of_one_element():
    matrix, _ = dense_ratings()
    model = fitted(matrix, element=Binomial(per="item", once=True))
    found = typical_values(model, "item")
    assert found.levels.max() <= 5.0
    values = matrix.toarray()
    means = values.sum(axis=0) / (values > 0).sum(axis=0)
    assert found.levels[1] == pytest.approx(np.median(means), rel=0.05)


def test_a_larger_value_that_is_held_out_is_within_reach():
    matrix, _ = dense_ratings()
    validation = sparse.csr_array(([9.0], ([3], [5])), shape=matrix.shape)
    training = matrix.tolil()
    training[3, 5] = 0.0
    settings = {"element": Binomial(once=True), "n_fits": 1, "random_state": 0, "progress": False}
    model = HCPF(4, **settings).fit(sparse.csr_array(training), validation=validation)
    assert model.element_.trials >= 9.0


def test_going_on_with_a_value_that_was_out_of_reach():
    matrix, _ = dense_ratings()
    settings = {"element": Binomial(once=True), "n_fits": 1, "random_state": 0, "progress": False}
    model = HCPF(4, warm_start=True, max_iter=10, **settings).fit(matrix)
    more = matrix.copy()
    more.data[7] = 9.0
    assert np.isfinite(model.fit(more).history_[-1].elbo)
    assert model.element_.trials >= 9.0


@pytest.mark.parametrize("per", [None, "user"])
def test_by_response_the_likely_come_first_where_all_responses_are_alike(per):
    matrix, _ = dense_ratings()
    shifted = matrix.copy()
    shifted.data = shifted.data - 8.0
    model = fitted(shifted, element=Normal(once=True, per=per))
    best = model.recommend([3], n=5, by="response", exclude_seen=False)
    assert np.all(np.diff(best.probability) <= 1e-6)
