"""New users and new items beside what was fitted, against training and against the dense twin."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse, special

from hcpf import Interactions
from hcpf.elements import Binomial, Degenerate, Gamma, NegativeBinomial, Poisson
from hcpf.errors import InputError, SupportError
from inference import dense
from model.small import (
    PRIORS,
    TRAINING,
    TRAINING_IDS,
    as_matrix,
    by_hand,
    draw_model,
    quick,
    with_posterior,
)

each_training = pytest.mark.parametrize(("element", "train_on"), TRAINING, ids=TRAINING_IDS)


def even_start(twin, train_on):
    """The twin with every component of a user alike, as fold-in begins."""
    size = twin.users.a.shape[1]
    a = np.repeat(PRIORS.user_shape + twin.observed.sum(axis=1, keepdims=True) / size, size, axis=1)
    level = np.ones(size) if train_on == "observed" else twin.items.mean.sum(axis=0)
    mean = a / (1.0 + level)
    activity_b = twin.users.activity_rate + mean.sum(axis=1)
    return replace(twin, users=replace(twin.users, a=a, b=a / mean, activity_b=activity_b))


def settle(twin, tolerance=1e-8):
    """The twin's users after as many half-steps as it takes; rates are low, and so is n."""
    twin = replace(twin, most=60)
    for _ in range(3000):
        before, twin = twin.users.mean, dense.update_users(twin)
        if np.all(np.abs(twin.users.mean - before) < tolerance * before):
            return twin
    raise AssertionError("the twin does not settle")


def assert_close(found, side, rtol=2e-4):
    np.testing.assert_allclose(found.a, side.a, rtol=rtol)
    np.testing.assert_allclose(found.mean, side.mean, rtol=rtol)
    np.testing.assert_allclose(found.activity_b, side.activity_b, rtol=rtol)
    np.testing.assert_allclose(found.activity_a, side.activity_a)


@each_training
def test_new_users_get_what_the_twin_s_half_step_settles_at(element, train_on):
    twin = draw_model(element, train_on, shape=(7, 6))
    found = with_posterior(twin, train_on).fold_in(as_matrix(twin))
    assert_close(found.posterior_.users, settle(even_start(twin, train_on)).users)


@each_training
def test_new_items_are_the_mirror_image(element, train_on):
    twin = draw_model(element, train_on, seed=1, shape=(6, 7))
    model = with_posterior(twin, train_on)
    found = model.fold_in_items(as_matrix(twin)).posterior_.items
    other = twin.transposed
    size = other.users.a.shape[1]
    a = np.repeat(PRIORS.item_shape + other.observed.sum(axis=1, keepdims=True) / size, size, 1)
    mean = a / (1.0 + (np.ones(size) if train_on == "observed" else other.items.mean.sum(axis=0)))
    side = replace(
        other.users, a=a, b=a / mean, activity_b=other.users.activity_rate + mean.sum(axis=1)
    )
    assert_close(found, settle(replace(other, users=side)).users)


@pytest.mark.parametrize(
    ("element", "value"),
    [
        (Poisson(0.05), 900.0), (NegativeBinomial(2.0, 0.5), 3000.0), (Binomial(3, 0.2), 2000.0),
        (Gamma(2.0, 1.0), 3000.0),
    ],
    ids=lambda given: getattr(given, "name", ""),
)  # fmt: skip
def test_rates_beyond_what_is_tabulated_are_summed_all_the_same(element, value):
    model = by_hand([(np.ones((1, 1)), np.full((4, 1), 400.0))], element=element)
    found = model.fold_in(np.full((1, 4), value)).posterior_.users
    log_item = special.psi(1.0) + np.log(400.0)
    activity_a = PRIORS.user_activity_shape + PRIORS.user_shape
    a, mean, before = 4.0, 4.0, 0.0
    while abs(a - before) > 1e-9 * a:  # one component: the update, as the design prints it
        log_rate = special.psi(a) - np.log(a / mean) + log_item
        count, _ = dense.one_sum_over_counts(element, value, log_rate)
        activity_b = PRIORS.user_activity_shape / PRIORS.user_activity_mean + mean
        before, a = a, PRIORS.user_shape + 4 * count
        mean = a / (activity_a / activity_b + 1600.0)
    assert mean * 400.0 > 700.0
    np.testing.assert_allclose(found.a[0, 0], a, rtol=1e-5)
    np.testing.assert_allclose(found.mean[0, 0], mean, rtol=1e-5)


@pytest.mark.parametrize("train_on", ["full", "observed", "binary"])
@pytest.mark.parametrize("side", ["users", "items"])
def test_at_convergence_a_row_gets_what_training_gave_it(train_on, side):
    element = Degenerate() if train_on == "binary" else Gamma(2.0, 1.0)
    # Shapes above 1 leave each row a single optimum.
    twin = draw_model(element, train_on, seed=3)
    model = quick(2, element=element, train_on=train_on, learn_element=False, max_iter=3000)
    model.set_params(priors=replace(PRIORS, user_shape=1.5, item_shape=1.5))
    model.fit(as_matrix(twin))
    fold = model.fold_in if side == "users" else model.fold_in_items
    found = getattr(fold(as_matrix(twin)).posterior_, side)
    trained = getattr(model.posterior_, side)
    np.testing.assert_allclose(found.mean, trained.mean, rtol=5e-4)
    np.testing.assert_allclose(found.a, trained.a, rtol=5e-4)
    np.testing.assert_allclose(found.activity_b, trained.activity_b, rtol=5e-4)


@pytest.fixture(scope="module")
def model():
    twin = draw_model(Poisson(1.5), seed=4, shape=(30, 20))
    return quick(3, element=Poisson(), n_fits=2, max_iter=30).fit(as_matrix(twin))


@pytest.fixture(scope="module")
def more():
    return as_matrix(draw_model(Poisson(1.5), seed=5, shape=(12, 20)))


def test_the_model_it_came_from_is_left_alone(model, more):
    before = dict(vars(model))
    rates = model.rate(np.arange(30)[:, None], np.arange(20))
    found = model.fold_in(more)
    model.fold_in_items(_columns(model))
    assert found is not model
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.rate(np.arange(30)[:, None], np.arange(20)), rates)
    assert len(found.users_) == 12
    assert [fit.items for fit in found.posteriors_] == [fit.items for fit in model.posteriors_]


def _columns(model):
    rng = np.random.default_rng(0)
    return sparse.random_array((len(model.users_), 4), density=0.3, rng=rng).astype(bool)


def test_transform_gives_the_factors_of_all_fits_side_by_side(model, more):
    found = model.transform(more)
    fits = model.fold_in(more).posteriors_
    np.testing.assert_array_equal(found, np.hstack([fit.users.mean for fit in fits]))
    assert found.shape == (12, 6)
    assert found.dtype == np.float64
    columns = model.transform_items(_columns(model))
    fits = model.fold_in_items(_columns(model)).posteriors_
    expected = np.hstack([fit.items.mean for fit in fits]) / 2  # products are average rates
    np.testing.assert_allclose(columns, expected, rtol=1e-6)


def test_each_row_is_on_its_own(model, more):
    everyone = model.transform(more)
    order = np.random.default_rng(0).permutation(12)
    np.testing.assert_allclose(model.transform(more[order]), everyone[order], rtol=1e-4)
    np.testing.assert_allclose(model.transform(more[[7]])[0], everyone[7], rtol=1e-4)


def test_a_row_without_entries_gets_the_prior(model):
    found = model.fold_in(np.zeros((2, 20)))
    for fit in found.posteriors_:
        np.testing.assert_array_equal(fit.users.a, np.float32(model.priors_.user_shape))
        expected = fit.users.activity_a[:, None] / fit.users.activity_b[:, None]
        expected = expected + fit.items.mean.sum(axis=0)
        np.testing.assert_allclose(fit.users.b, expected, rtol=1e-5)
    assert len(found.recommend(0, 100)) == 20
    explained = found.explain(1, 3)
    assert explained.source.tolist() == ["(prior)"]
    assert explained.rate[0] == pytest.approx(found.rate(1, 3))


@each_training
def test_any_element_takes_rows_without_entries(element, train_on):
    model = with_posterior(draw_model(element, train_on), train_on)
    users = model.fold_in(np.zeros((2, 11))).posterior_.users
    items = model.fold_in_items(np.zeros((14, 3))).posterior_.items
    np.testing.assert_array_equal(users.a, np.full((2, 3), np.float32(PRIORS.user_shape)))
    np.testing.assert_array_equal(items.a, np.full((3, 3), np.float32(PRIORS.item_shape)))


def test_new_users_are_known_by_their_own_ids_and_items_matched_by_theirs(model, more):
    names = [f"u{j}" for j in range(12)]
    shuffled = np.random.default_rng(1).permutation(20)
    data = Interactions.from_matrix(more[:, shuffled], users=names, items=shuffled)
    found = model.fold_in(data)
    assert list(found.users_) == names
    np.testing.assert_array_equal(found.items_, model.items_)
    np.testing.assert_allclose(
        found.posterior_.users.mean, model.fold_in(more).posterior_.users.mean, rtol=1e-4
    )
    seen = more[[3]].indices
    assert not set(found.recommend("u3", 20).item) & set(seen)


def test_binary_training_sees_ones_whatever_the_values(more):
    model = quick(element=Degenerate(), train_on="binary").fit(more)
    np.testing.assert_array_equal(model.transform(more * -2.5), model.transform(more.astype(bool)))


def test_what_cannot_be_folded_in(model):
    strange = Interactions.from_arrays(["a", "a"], [3, 99], [1.0, 2.0])
    with pytest.raises(InputError, match="Unknown item 99"):
        model.fold_in(strange)
    with pytest.raises(InputError, match="fitted ids are whole numbers, but these are strings"):
        model.fold_in(Interactions.from_arrays(["a"], ["b"], [1.0]))
    with pytest.raises(InputError, match="Unknown user 55"):
        model.fold_in_items(Interactions.from_arrays([55], ["b"], [1.0]))
    for method in (model.fold_in, model.transform, model.score):
        with pytest.raises(SupportError, match=r"Poisson takes whole numbers.*1\.5"):
            method(np.full((3, 20), 1.5))
        with pytest.raises(InputError, match="19 columns, but 20 items"):
            method(np.ones((3, 19)))
    with pytest.raises(InputError, match="29 rows, but 30 users"):
        model.transform_items(np.ones((29, 3)))


# -- explanations ---------------------------------------------------------------------------------


@each_training
def test_parts_of_a_rate_add_up_and_match_the_twin_at_convergence(element, train_on):
    twin = settle(draw_model(element, train_on, seed=2, shape=(7, 6)))
    model = with_posterior(twin, train_on)
    counts, _ = dense.expected_counts(twin)
    log_rate = dense.log_rates(twin)
    for user, item in ((3, 2), (5, 0), (0, 4)):
        share = np.exp(twin.users.log_mean[user] + twin.items.log_mean - log_rate[user][:, None])
        per_count = twin.items.mean[item] / twin.users.b[user]
        parts = (counts[user][:, None] * share) @ per_count
        found = model.explain(user, item)
        assert found.source[-1] == "(prior)"
        own = np.array(found.source[:-1], dtype=int)
        assert sorted(own) == np.flatnonzero(twin.observed[user]).tolist()
        np.testing.assert_allclose(found.rate[:-1], parts[own], rtol=1e-4)
        assert np.all(np.diff(found.rate[:-1]) <= 0)
        prior = twin.users.shape * per_count.sum()
        np.testing.assert_allclose(found.rate[-1], prior, rtol=1e-3)
        np.testing.assert_allclose(found.rate.sum(), model.rate(user, item), rtol=1e-6)
        np.testing.assert_allclose(found.share, found.rate / found.rate.sum(), rtol=1e-12)
        by_component = model.explain_components(user, item)
        assert by_component.shape == (1, 3)
        np.testing.assert_allclose(by_component.sum(), model.rate(user, item), rtol=1e-6)


def test_an_average_is_explained_by_the_average_of_its_fits(model):
    found = model.explain(2, 5)
    assert found.rate.sum() == pytest.approx(model.rate(2, 5), rel=1e-6)
    assert model.explain_components(2, 5).shape == (2, 3)
    assert model.explain_components(2, 5).sum() == pytest.approx(model.rate(2, 5), rel=1e-6)
    assert found.share.sum() == pytest.approx(1.0)
