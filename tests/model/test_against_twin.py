"""Folding in and explanations against the dense twin of training."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from core import dense
from core.worlds import as_matrix, as_posterior, draw_model
from hcpf import FittedModel, Interactions
from hcpf.core.value_model import ValueModel
from hcpf.elements import Binomial, Gamma, NegativeBinomial, Poisson
from model.small import PRIORS, TRAINING, VARYING, by_hand, name_of

HURDLES = [ValueModel(Gamma(2.0, 0.5), vary_by, hurdle=True) for vary_by in (None, "item", "both")]
each_value_model = pytest.mark.parametrize("value_model", TRAINING + VARYING + HURDLES, ids=name_of)


def model_at(twin):
    """The model at the point where a twin is, with the twin's data."""
    data = Interactions.from_matrix(as_matrix(twin))
    posteriors = (as_posterior(twin),)
    return FittedModel(twin.value_model, PRIORS, posteriors, data.users, data.items, data=data)


def even_start(twin):
    """The twin with every component of a user alike and theta at its prior, as fold-in begins."""
    size = twin.users.a.shape[1]
    degrees = twin.observed.sum(axis=1, keepdims=True)
    a = np.repeat(twin.users.shape + degrees / size, size, axis=1)
    is_full = twin.value_model.train_on == "full"
    mean = a / (1.0 + (twin.items.mean.sum(axis=0) if is_full else np.ones(size)))
    activity_b = twin.users.activity_rate + mean.sum(axis=1)
    twin = replace(twin, users=replace(twin.users, a=a, b=a / mean, activity_b=activity_b))
    if twin.thetas is None or twin.thetas.users is None:
        return twin
    theta, ones = twin.thetas.users, np.ones(len(a))
    theta = replace(theta, chi=theta.chi0 * ones, nu=theta.nu0 * ones)
    return replace(twin, thetas=replace(twin.thetas, users=theta))


def converge(twin, tolerance=1e-8):
    """The twin's users after as many half-steps as it takes; rates are low, and so is n."""
    twin = replace(twin, max_count=60)
    for _ in range(3000):
        before, twin = twin.users.mean, dense.update_users(twin)
        if np.all(np.abs(twin.users.mean - before) < tolerance * before):
            return twin
    raise AssertionError("the twin does not converge")


@each_value_model
@pytest.mark.parametrize("axis", ["users", "items"])
def test_new_rows_get_what_the_twin_s_half_step_converges_to(value_model, axis):
    twin = draw_model(value_model, shape=(7, 6) if axis == "users" else (6, 7))
    model = model_at(twin)
    fold = model.fold_in if axis == "users" else model.fold_in_items
    found = getattr(fold(as_matrix(twin)).posteriors[0], axis)
    twin = converge(even_start(twin if axis == "users" else twin.transposed))
    np.testing.assert_allclose(found.a, twin.users.a, rtol=3e-4)
    np.testing.assert_allclose(found.mean, twin.users.mean, rtol=3e-4)
    np.testing.assert_allclose(found.activity_b, twin.users.activity_b, rtol=3e-4)
    np.testing.assert_allclose(found.activity_a, twin.users.activity_a)
    expected = None if twin.thetas is None else twin.thetas.users
    assert (found.theta is None) == (expected is None)
    if expected is not None:
        scale = np.abs(expected.chi).max()
        np.testing.assert_allclose(found.theta.chi, expected.chi, rtol=3e-4, atol=3e-4 * scale)
        np.testing.assert_allclose(found.theta.nu, expected.nu, rtol=3e-4)


def test_new_users_of_items_far_below_the_usual_are_summed_to_the_end():
    """A value then consists of so many elements that the first tables do not hold them."""
    twin = draw_model(ValueModel(Gamma(2.0, 0.05), vary_by="item"), shape=(5, 6))
    items = twin.thetas.items
    twin = replace(twin, thetas=replace(twin.thetas, items=replace(items, chi=items.chi / 60.0)))
    found = model_at(twin).fold_in(as_matrix(twin)).posteriors[0].users
    twin = even_start(twin)
    for _ in range(400):
        twin = dense.update_users(twin)
    assert dense.expected_counts(twin)[0].max() > 80
    np.testing.assert_allclose(found.mean, twin.users.mean, rtol=3e-4)


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
    found = model.fold_in(np.full((1, 4), value)).posteriors[0].users
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


@pytest.mark.parametrize("value_model", TRAINING, ids=name_of)
def test_parts_of_a_rate_match_the_twin_at_convergence(value_model):
    twin = converge(draw_model(value_model, seed=2, shape=(7, 6)))
    model = model_at(twin)
    counts, _ = dense.expected_counts(twin)
    log_rate = dense.log_rates(twin)
    for user, item in ((3, 2), (5, 0), (0, 4)):
        share = np.exp(twin.users.log_mean[user] + twin.items.log_mean - log_rate[user][:, None])
        per_count = twin.items.mean[item] / twin.users.b[user]
        parts = (counts[user][:, None] * share) @ per_count
        found = model.explain(user, item)
        own = np.array(found.source[:-1], dtype=int)
        assert sorted(own) == np.flatnonzero(twin.observed[user]).tolist()
        np.testing.assert_allclose(found.rate[:-1], parts[own], rtol=1e-4)
        prior = twin.users.shape * per_count.sum()
        np.testing.assert_allclose(found.rate[-1], prior, rtol=1e-3)
        np.testing.assert_allclose(found.rate.sum(), model.rate(user, item), rtol=1e-6)
