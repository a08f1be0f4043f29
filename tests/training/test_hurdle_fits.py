"""Hurdle models, where a value is a single element whatever n is: whole fits."""

import numpy as np
import pytest
from scipy import sparse, stats

from hcpf import HCPF
from hcpf.core.axis import Axis
from hcpf.core.value_model import ValueModel
from hcpf.elements import Binomial, Degenerate, Gamma, InverseGaussian, Normal, Poisson
from hcpf.errors import SupportError
from hcpf.model.typical_values import typical_values
from hcpf.training import auto
from prepared import prepared


def draw_ratings(n_users=120, n_items=90, seed=0):
    """Most pairs observed, the more the larger their rate; the ratings are independent of it."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(0.5, 1.0, (n_users, 3)) @ rng.gamma(1.0, 1.0, (3, n_items))
    chance = rng.beta(6, 3, n_items)
    values = 1.0 + rng.binomial(4, chance, rate.shape)
    return sparse.csr_array(np.where(rng.random(rate.shape) < -np.expm1(-rate), values, 0.0)), rate


RATINGS, RATE = draw_ratings()
USERS, ITEMS = (x.ravel() for x in np.indices(RATINGS.shape))
MEANS = RATINGS.sum(axis=0) / np.maximum((RATINGS != 0).sum(axis=0), 1)
"""Of the ratings of each item."""


def fit(matrix, **settings):
    defaults = {"element": "binomial", "hurdle": True, "n_components": 4}
    defaults |= {"n_fits": 1, "random_state": 0, "progress": False}
    return prepared(**(defaults | settings)).fit(matrix)


@pytest.fixture(scope="module")
def per_item():
    return fit(RATINGS, vary_by="item")


@pytest.fixture(scope="module")
def per_user():
    return fit(RATINGS, vary_by="user")


def test_a_fit_recovers_who_takes_what_and_the_ratings_apart_from_it(per_item):
    predicted = per_item.predict(USERS, ITEMS).reshape(RATINGS.shape)
    assert predicted.max() <= 5.0
    np.testing.assert_allclose(np.ptp(predicted, axis=0), 0.0, atol=1e-12)  # whatever the rate
    assert np.corrcoef(predicted[0], MEANS)[0, 1] > 0.98
    chance = per_item.predict_proba(USERS, ITEMS)
    assert stats.spearmanr(chance, RATE.ravel()).statistic > 0.8
    expected = per_item.predict_expected_value(USERS, ITEMS)
    np.testing.assert_allclose(expected, chance * predicted.ravel(), rtol=1e-9)


def test_typical_values_are_those_of_one_element(per_item):
    found = typical_values(per_item, "items")
    assert found.levels.max() <= found.value.max() <= 5.0
    assert found.levels[1] == pytest.approx(np.median(MEANS), rel=0.05)


def test_entries_and_averages_are_those_trained_on():
    excluded = sparse.csr_array((np.ones(40), (np.arange(40), np.zeros(40, int))), RATINGS.shape)
    model = prepared(2, element="binomial", hurdle=True, vary_by="item", n_fits=1, max_iter=2)
    found = typical_values(model.fit(RATINGS, exclude=excluded), "item")
    kept = RATINGS.toarray()[40:, 0]
    assert found.entries[0] == np.count_nonzero(kept)
    assert found.average[0] == pytest.approx(kept[kept > 0].mean())


def test_the_median_user_has_entries_that_were_trained_on():
    rows = np.arange(RATINGS.shape[0]) < 0.7 * RATINGS.shape[0]
    excluded = sparse.csr_array(RATINGS.toarray() * rows[:, None])
    model = prepared(2, element="gamma", hurdle=True, vary_by="both", n_fits=1, max_iter=2)
    found = typical_values(model.fit(RATINGS, exclude=excluded), "items")
    users, items = (model.posterior_.axis(axis).predictive_theta for axis in Axis)
    has_entries = ~rows & (np.diff(RATINGS.indptr) > 0)
    middle = np.median((users.chi / users.nu)[has_entries])
    expected = float(model.element_.kappa) * items.chi / items.nu * middle
    np.testing.assert_allclose(found.value, expected, rtol=1e-9)


def draw_sums():
    rng = np.random.default_rng(1)
    counts = rng.poisson(rng.gamma(0.5, 1.0, (60, 2)) @ rng.gamma(1.0, 0.8, (2, 45)))
    return sparse.csr_array(Gamma(4.0, 1.0).sample(counts, rng))


@pytest.mark.parametrize(
    ("matrix", "hurdle"), [(draw_ratings(60, 45)[0], True), (draw_sums(), False)],
    ids=["ratings", "sums"],
)  # fmt: skip
def test_auto_takes_a_hurdle_for_ratings_and_sums_for_sums(matrix, hurdle, monkeypatch):
    monkeypatch.setattr(auto, "_DENSE_PASSES", (12,))
    monkeypatch.setattr(auto, "_DENSE_BASE_PASSES", 8)
    found = fit(matrix, element="auto", hurdle=False, max_iter=1).value_model_
    assert found.hurdle == hurdle


def test_auto_takes_a_hurdle_where_most_pairs_are_observed_and_all_values_are_1():
    found = fit(RATINGS.astype(bool).astype(float), element="auto", hurdle=False, max_iter=1)
    assert found.value_model_ == ValueModel(Degenerate(), hurdle=True)


@pytest.mark.parametrize("seed", range(3))
def test_the_rates_of_excluded_pairs_stay_bounded(seed):
    matrix, _ = draw_ratings(80, 60)
    out = sparse.csr_array((np.random.default_rng(2).random(matrix.shape) < 0.3).astype(float))
    training = sparse.csr_array(matrix - matrix.multiply(out))
    training.eliminate_zeros()
    model = HCPF(
        12, element="binomial", vary_by="item", hurdle=True, n_fits=1, random_state=seed
    ).fit(training, exclude=out, progress=False)  # fmt: skip
    assert model.tempering_ == 1.0
    assert model.rate(*out.nonzero()).max() < 40.0


def test_a_loaded_model_predicts_folds_in_and_explains(per_user, tmp_path):
    per_user.save(tmp_path / "model")
    loaded = HCPF.load(tmp_path / "model")
    assert loaded.value_model_ == per_user.value_model_
    np.testing.assert_array_equal(loaded.predict([3], [5]), per_user.predict([3], [5]))
    new = per_user.fold_in(RATINGS[:4])
    np.testing.assert_allclose(new.predict([0, 3], [5]), per_user.predict([0, 3], [5]), rtol=0.01)
    best = per_user.recommend([3], n=5, by="expected_value", exclude_seen=False)
    assert np.all(np.diff(best.expected_value) <= 1e-6)
    parts = per_user.explain(3, 5)
    assert parts.rate.sum() == pytest.approx(per_user.rate([3], [5])[0], rel=1e-6)


def test_values_beyond_one_element_are_refused(per_user):
    with pytest.raises(SupportError, match="hurdle=True allows one"):
        fit(RATINGS, element=Binomial(3, 0.5))
    with pytest.raises(SupportError, match="hurdle=True allows one"):
        per_user.fold_in(RATINGS[:2] * 3.0)


@pytest.mark.parametrize(
    "element",
    [
        Gamma(8.0, 1.0),
        Normal(8.0, 0.5),
        pytest.param(InverseGaussian(20.0, 300.0), marks=pytest.mark.slow),
        pytest.param(Poisson(20.0), marks=pytest.mark.slow),
    ],
    ids=lambda element: element.name,
)
def test_users_and_items_have_typical_ratings(element, tmp_path):
    rng, kind = np.random.default_rng(4), type(element)
    generous, good = rng.normal(0.0, 0.3, (90, 1)), rng.normal(0.0, 0.4, 60)
    mean = 8.0 + 2.0 * (generous + good) if kind is Normal else 20.0 * np.exp(generous + good)
    drawn = np.maximum(element.with_mean(mean).sample(np.ones(mean.shape), rng), 1.0)
    matrix = sparse.csr_array(np.where(rng.random(mean.shape) < 0.4, drawn, 0.0))
    model = fit(matrix, element=kind(), vary_by="both", max_iter=40)
    users, items = (x.ravel() for x in np.indices(matrix.shape))
    predicted = model.predict(users, items).reshape(mean.shape)
    assert np.sqrt(np.mean((predicted - mean) ** 2)) < 0.4 * np.std(mean)
    model.save(tmp_path / "model")
    loaded = HCPF.load(tmp_path / "model")
    assert loaded.value_model_ == model.value_model_
    np.testing.assert_array_equal(loaded.predict(users[:9], items[:9]), predicted.ravel()[:9])
    # Ranked by value, the items come in the order of their typical values.
    best = model.recommend([3], n=60, by="value", exclude_seen=False)
    assert np.all(np.diff(best.value) <= 1e-5 * np.abs(best.value[1:]))
    assert stats.spearmanr(mean[3, best.item], -np.arange(60)).statistic > 0.8
    # A new user who gives twice as much is expected to do so with other items, too.
    new = model.fold_in(sparse.csr_array(2.0 * matrix[[3]].toarray()))
    assert new.predict([0], [5])[0] > 1.3 * model.predict([3], [5])[0]


@pytest.mark.parametrize("given", [{}, {"probability": 0.3}])
def test_the_element_reaches_larger_values_that_are_held_out(given):
    validation = sparse.csr_array(([90.0], ([3], [5])), shape=RATINGS.shape)
    training = RATINGS.tolil()
    training[3, 5] = 0.0
    settings = {"element": Binomial(**given), "hurdle": True, "n_fits": 1, "random_state": 0}
    model = HCPF(4, max_iter=10, **settings).fit(
        sparse.csr_array(training), validation=validation, progress=False
    )
    assert model.element_.trials == 90.0


def test_a_warm_start_reaches_values_that_the_element_did_not():
    model = fit(RATINGS, warm_start=True, max_iter=10)
    more = RATINGS.copy()
    more.data[7] = 9.0
    assert np.isfinite(model.fit(more).history_[-1].elbo)
    assert model.element_.trials >= 9.0


@pytest.mark.parametrize("vary_by", [None, "user"])
def test_by_value_the_likely_come_first_where_all_values_are_alike(vary_by):
    shifted = RATINGS.copy()
    shifted.data = shifted.data - 8.0
    model = fit(shifted, element="normal", vary_by=vary_by, max_iter=20)
    best = model.recommend([3], n=5, by="value", exclude_seen=False)
    assert np.all(np.diff(best.probability) <= 1e-6)
