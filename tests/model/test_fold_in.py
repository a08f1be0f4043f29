"""New users and new items of a fitted model, and explanations of rates."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from hcpf import Interactions
from hcpf.core.axis import Axis
from hcpf.core.value_model import ValueModel
from hcpf.elements import Gamma, Poisson, Presence
from hcpf.errors import InputError, SupportError
from model.small import PRIORS, TRAINING, VARYING, draw_matrix, name_of, quick, settings_of

ONE_OPTIMUM = replace(PRIORS, user_shape=1.5, item_shape=1.5)  # shapes above 1 leave each row one


@pytest.mark.parametrize(
    "value_model",
    [
        ValueModel(Gamma(2.0, 1.0)), ValueModel(Gamma(2.0, 1.0), train_on="observed"),
        ValueModel(Gamma(2.0, 1.0), hurdle=True), ValueModel(Presence()),
    ],
    ids=name_of,
)  # fmt: skip
@pytest.mark.parametrize("axis", ["users", "items"])
def test_at_convergence_a_row_gets_what_training_gave_it(value_model, axis):
    matrix = draw_matrix(Gamma(2.0, 1.0), seed=3)
    model = quick(2, **settings_of(value_model), learn_element=False, max_iter=3000)
    fitted = model.set_params(priors=ONE_OPTIMUM).fit(matrix).model_
    fold = fitted.fold_in if axis == "users" else fitted.fold_in_items
    assert_same_rows(fold(matrix), fitted, axis)


def assert_same_rows(folded, fitted, axis):
    found, trained = (getattr(m.posteriors[0], axis) for m in (folded, fitted))
    np.testing.assert_allclose(found.mean, trained.mean, rtol=5e-4)
    np.testing.assert_allclose(found.a, trained.a, rtol=5e-4)
    np.testing.assert_allclose(found.activity_b, trained.activity_b, rtol=5e-4)


@pytest.fixture(scope="module")
def model():
    matrix = draw_matrix(Poisson(1.5), seed=4, shape=(30, 20))
    return quick(3, element=Poisson(), n_fits=2, max_iter=30).fit(matrix).model_


@pytest.fixture(scope="module")
def more():
    return draw_matrix(Poisson(1.5), seed=5, shape=(12, 20))


def _columns(model):
    rng = np.random.default_rng(0)
    return sparse.random_array((len(model.users), 4), density=0.3, rng=rng).astype(bool)


def test_the_model_it_came_from_is_left_alone(model, more):
    rates = model.rate(np.arange(30)[:, None], np.arange(20))
    found = model.fold_in(more)
    model.fold_in_items(_columns(model))
    np.testing.assert_array_equal(model.rate(np.arange(30)[:, None], np.arange(20)), rates)
    assert len(found.users) == 12
    assert [fit.items for fit in found.posteriors] == [fit.items for fit in model.posteriors]


def test_transform_gives_the_factors_of_all_fits_side_by_side(model, more):
    found = model.transform(more)
    fits = model.fold_in(more).posteriors
    np.testing.assert_array_equal(found, np.hstack([fit.users.mean for fit in fits]))
    assert found.shape == (12, 6)
    assert found.dtype == np.float64
    columns = model.transform_items(_columns(model))
    fits = model.fold_in_items(_columns(model)).posteriors
    expected = np.hstack([fit.items.mean for fit in fits]) / 2  # products are average rates
    np.testing.assert_allclose(columns, expected, rtol=1e-6)


def test_each_row_is_on_its_own(model, more):
    everyone = model.transform(more)
    order = np.random.default_rng(0).permutation(12)
    np.testing.assert_allclose(model.transform(more[order]), everyone[order], rtol=1e-4)
    np.testing.assert_allclose(model.transform(more[[7]])[0], everyone[7], rtol=1e-4)


def test_a_row_without_entries_gets_the_prior(model):
    found = model.fold_in(np.zeros((2, 20)))
    for fit in found.posteriors:
        np.testing.assert_array_equal(fit.users.a, np.float32(model.priors.user_shape))
        expected = fit.users.activity_a[:, None] / fit.users.activity_b[:, None]
        expected = expected + fit.items.mean.sum(axis=0)
        np.testing.assert_allclose(fit.users.b, expected, rtol=1e-5)
    assert len(found.recommend(0, 100)) == 20
    explained = found.explain(1, 3)
    assert explained.source.tolist() == ["(prior)"]
    assert explained.rate[0] == pytest.approx(found.rate(1, 3))


@pytest.mark.parametrize("value_model", TRAINING + VARYING, ids=name_of)
def test_any_value_model_takes_rows_without_entries(value_model):
    matrix = draw_matrix(value_model.element)
    settings = settings_of(value_model) | {"learn_element": False, "priors": PRIORS, "max_iter": 1}
    model = quick(**settings).fit(matrix).model_
    users = model.fold_in(np.zeros((2, 11))).posteriors[0].users
    items = model.fold_in_items(np.zeros((14, 3))).posteriors[0].items
    np.testing.assert_array_equal(users.a, np.full((2, 3), np.float32(PRIORS.user_shape)))
    np.testing.assert_array_equal(items.a, np.full((3, 3), np.float32(PRIORS.item_shape)))
    for rows in (users, items):
        if rows.theta is not None:
            assert (rows.theta.chi[0], rows.theta.nu[0]) == (rows.theta.chi0, rows.theta.nu0)


def test_new_users_are_known_by_their_own_ids_and_items_matched_by_theirs(model, more):
    names = [f"u{j}" for j in range(12)]
    shuffled = np.random.default_rng(1).permutation(20)
    data = Interactions.from_matrix(more[:, shuffled], users=names, items=shuffled)
    found = model.fold_in(data)
    assert list(found.users) == names
    np.testing.assert_array_equal(found.items, model.items)
    np.testing.assert_allclose(
        found.posteriors[0].users.mean, model.fold_in(more).posteriors[0].users.mean, rtol=1e-4
    )
    seen = more[[3]].indices
    assert not set(found.recommend("u3", 20).item) & set(seen)


def test_presence_sees_ones_whatever_the_values(more):
    model = quick(element="presence").fit(more)
    np.testing.assert_array_equal(model.transform(more * -2.5), model.transform(more.astype(bool)))


def test_what_cannot_be_folded_in(model):
    strange = Interactions.from_arrays(["a", "a"], [3, 99], [1.0, 2.0])
    with pytest.raises(InputError, match="Unknown item 99"):
        model.fold_in(strange)
    with pytest.raises(InputError, match=r"fitted ids are .*, but these are strings"):
        model.fold_in(Interactions.from_arrays(["a"], ["b"], [1.0]))
    with pytest.raises(InputError, match="Unknown user 55"):
        model.fold_in_items(Interactions.from_arrays([55], ["b"], [1.0]))
    for method in (model.fold_in, model.transform, model.score):
        with pytest.raises(SupportError, match=r"Poisson takes integers.*1\.5"):
            method(np.full((3, 20), 1.5))
        with pytest.raises(InputError, match="19 columns, but 20 items"):
            method(np.ones((3, 19)))
    with pytest.raises(InputError, match="29 rows, but 30 users"):
        model.transform_items(np.ones((29, 3)))


# -- excluded pairs -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def held_out():
    """A converged model and its data, of which some pairs, observed or missing, are excluded."""
    matrix = draw_matrix(Poisson(1.5), seed=3)
    held = sparse.csr_array(np.random.default_rng(5).random(matrix.shape) < 0.2).astype(float)
    names = {"users": [f"u{j}" for j in range(14)], "items": [f"i{j}" for j in range(11)]}
    data = Interactions.from_matrix(matrix, **names)
    model = quick(2, element=Poisson(1.5), learn_element=False, max_iter=3000, priors=ONE_OPTIMUM)
    return model.fit(data, exclude=held), data, Interactions.from_matrix(held, **names)


@pytest.mark.parametrize("axis", ["users", "items"])
def test_excluded_pairs_take_no_part_in_folding_in(held_out, axis):
    model, data, held = held_out[0].model_, held_out[1], held_out[2]
    fold = model.fold_in if axis == "users" else model.fold_in_items
    new = Interactions(
        data.matrix,
        np.array([f"new {u}" for u in data.users], object) if axis == "users" else data.users,
        np.array([f"new {i}" for i in data.items], object) if axis == "items" else data.items,
    )
    assert_same_rows(fold(new, exclude=held.matrix), model, axis)
    found = fold(new)
    assert found.excluded is None
    trained = getattr(model.posteriors[0], axis).mean
    assert not np.allclose(getattr(found.posteriors[0], axis).mean, trained, rtol=0.01)
    with pytest.raises(InputError, match=r"exclude has shape \(1, 1\)"):
        fold(new, exclude=np.ones((1, 1)))


@pytest.mark.parametrize("axis", ["users", "items"])
def test_pairs_excluded_in_training_stay_excluded_where_ids_are_the_same(held_out, axis):
    model, data, held = held_out[0].model_, held_out[1], held_out[2]
    fold = model.fold_in if axis == "users" else model.fold_in_items
    order = np.random.default_rng(0).permutation(14 if axis == "users" else 11)
    if axis == "users":
        shuffled = Interactions(sparse.csr_array(data.matrix[order]), data.users[order], data.items)
    else:
        matrix = sparse.csr_array(data.matrix[:, order])
        matrix.sort_indices()
        shuffled = Interactions(matrix, data.users, data.items[order])
    found = fold(shuffled)
    expected = held.matrix.toarray()[order] if axis == "users" else held.matrix.toarray()[:, order]
    np.testing.assert_array_equal(found.excluded.toarray(), expected)
    mine = getattr(found.posteriors[0], axis).mean
    np.testing.assert_allclose(mine, getattr(model.posteriors[0], axis).mean[order], rtol=5e-4)
    assert fold(data.matrix).excluded is None  # the rows of a matrix have no ids


def test_excluded_pairs_are_matched_by_their_ids_whatever_the_order(held_out):
    model, data, held = held_out
    order = np.random.default_rng(1).permutation(14)
    shuffled = Interactions(sparse.csr_array(held.matrix[order]), held.users[order], held.items)
    more = Interactions.from_arrays(["u0", "stranger"], ["i0", "i1"])  # unknown pairs are no matter
    again = quick(**model.get_params()).fit(data, exclude=shuffled)
    np.testing.assert_array_equal(again.posterior_.users.mean_, model.posterior_.users.mean_)
    none = quick(2, element=Poisson(1.5)).fit(data, exclude=more).model_.excluded
    assert (none.nnz, none[0, 0]) == (1, 1.0)


def test_transform_ignores_what_fold_in_ignores(model, more):
    for axis, X in (("users", more), ("items", _columns(model))):
        is_users = axis == "users"
        fold = model.fold_in if is_users else model.fold_in_items
        transform = model.transform if is_users else model.transform_items
        without = fold(X, exclude=X)
        factors = without.combined.factors(Axis(axis))
        np.testing.assert_allclose(transform(X, exclude=X), factors, rtol=1e-6)
        assert not np.allclose(transform(X), factors)


def test_fit_transform_ignores_what_the_fit_ignores():
    matrix = draw_matrix(Poisson(1.5), shape=(30, 20))
    exclude, depth = matrix[:, :].copy(), np.linspace(0.5, 2.0, 30)
    exclude.data[:] = np.arange(exclude.nnz) % 3 == 0
    exclude.eliminate_zeros()
    options = {"exclude": exclude, "user_exposure": depth}
    model = quick(2, element=Poisson(), max_iter=5)
    found = model.fit_transform(matrix, **options)
    np.testing.assert_array_equal(found, model.transform(matrix, **options))


def test_entries_of_unknown_users_are_dropped_from_new_items(model):
    X = Interactions.from_arrays([3, 8, 99], ["a", "a", "b"], [2.0, 1.0, 4.0])
    with pytest.raises(InputError, match="Unknown user 99 "):
        model.fold_in_items(X)
    known = Interactions.from_arrays([3, 8], ["a", "a"], [2.0, 1.0])
    found = model.transform_items(X, unknown="drop")
    np.testing.assert_allclose(found[:1], model.transform_items(known), rtol=1e-6)


def test_entries_of_unknown_items_are_dropped_from_a_score(model, more):
    wider = sparse.hstack([more, np.ones((12, 1))], format="csr")
    X, known = (Interactions.from_matrix(matrix) for matrix in (wider, more))
    with pytest.raises(InputError, match="Unknown item 20 "):
        model.score(X)
    assert model.score(X, unknown="drop") == model.score(known)


# -- explanations ---------------------------------------------------------------------------------


def test_an_average_is_explained_by_the_average_of_its_fits(model):
    found = model.explain(2, 5)
    assert found.rate.sum() == pytest.approx(model.rate(2, 5), rel=1e-6)
    assert model.explain_components(2, 5).shape == (2, 3)
    assert model.explain_components(2, 5).sum() == pytest.approx(model.rate(2, 5), rel=1e-6)
    assert found.share.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("train_on", ["full", "observed"])
def test_at_convergence_the_prior_gives_what_its_shape_gives(train_on):
    matrix = draw_matrix(Poisson(1.5), seed=3)
    model = quick(2, element=Poisson(1.5), learn_element=False, max_iter=3000, train_on=train_on)
    fitted = model.set_params(priors=ONE_OPTIMUM).fit(matrix).model_
    fit = fitted.posteriors[0]
    for user, item in ((3, 2), (5, 0), (0, 4)):
        found = fitted.explain(user, item)
        assert sorted(found.source[:-1]) == matrix[[user]].indices.tolist()
        assert np.all(np.diff(found.rate[:-1]) <= 0)
        prior = 1.5 * np.sum(fit.items.mean[item] / fit.users.b[user])
        assert found.rate[-1] == pytest.approx(prior, rel=1e-3)


def test_entries_that_took_no_part_explain_nothing(held_out):
    model, data, held = held_out[0].model_, held_out[1], held_out[2]
    both = data.matrix.multiply(held.matrix).tocsr()
    user = int(np.argmax(np.diff(both.indptr)))
    left_out = set(model.items[both[[user]].indices])
    assert left_out
    found = model.explain(f"u{user}", "i2")
    assert not left_out & set(found.source)
    prior = 1.5 * np.sum(model.posteriors[0].items.mean[2] / model.posteriors[0].users.b[user])
    assert found.rate[-1] == pytest.approx(prior, rel=1e-3)
