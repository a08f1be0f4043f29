"""Fitted models whose theta varies: recovery, new rows, saved models, intervals, rankings."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from hcpf import HCPF, Interactions
from hcpf.elements import Gamma, Geometric, InverseGaussian
from hcpf.errors import ModelError
from hcpf.model.persist import model as persist
from inference import dense
from inference.dense_theta import Thetas
from inference.worlds import VARYING, VARYING_IDS
from model.small import PRIORS, as_matrix, draw_model, quick, with_posterior
from model.test_foldin import even_start, settle

each_way = pytest.mark.parametrize("element", VARYING, ids=VARYING_IDS)
EVERYONE = np.arange(14)[:, None], np.arange(11)
USERS, ITEMS = np.arange(120)[:, None], np.arange(40)
PAIRS = USERS + 0 * ITEMS, ITEMS + 0 * USERS


class World:
    """Data whose items (and users) have means of their own, and a second draw of all pairs."""

    def __init__(self, per, spread=1.2, seed=0):
        rng = np.random.default_rng(seed)
        self.rate = rng.gamma(20.0, 0.05, (120, 1)) * rng.gamma(4.0, 0.13, 40)
        of_users = np.exp(spread * rng.uniform(-1, 1, 120)) if per in ("user", "both") else 1.0
        of_items = np.exp(spread * rng.uniform(-1, 1, 40)) if per in ("item", "both") else 1.0
        self.means = 5.0 * np.ones((120, 40)) * np.reshape(of_users, (-1, 1)) * of_items
        self.train = self.draw(rng)
        self.test = self.draw(rng)

    def draw(self, rng):
        counts = rng.poisson(self.rate)
        users, items = np.nonzero(counts)
        element = Gamma(3.0, 3.0 / self.means[users, items])
        values = element.sample(counts[users, items].astype(float), rng)
        return sparse.csr_array((values, (users, items)), shape=counts.shape)

    def score(self, model):
        """Log likelihood of the second draw's values, each given that it is observed."""
        pairs = self.test.nonzero()
        return float(np.mean(model.predictive(*pairs).log_density_observed(self.test.data)))


@pytest.fixture(scope="module", params=VARYING, ids=VARYING_IDS)
def model(request):
    """Three short fits of each element; the first row and the first column are empty."""
    matrix = as_matrix(draw_model(request.param))
    return quick(2, element=request.param, n_fits=3, max_iter=2).fit(matrix)


@pytest.fixture(scope="module", params=["item", "user", "both"])
def recovered(request):
    world = World(request.param)
    options = {"max_iter": 25, "check_every": 25}
    return (
        world,
        quick(2, element=Gamma(per=request.param), **options).fit(world.train),
        quick(2, element=Gamma(), **options).fit(world.train),
    )


def test_means_that_differ_tenfold_come_back_and_predict_better(recovered):
    world, model, shared = recovered
    found = model.element_at(USERS, ITEMS).mean
    true = world.means
    assert true.max() / true.min() > 8
    assert np.corrcoef(np.log(found).ravel(), np.log(true).ravel())[0, 1] > 0.95
    assert np.mean(found) == pytest.approx(np.mean(true), rel=0.15)
    assert world.score(model) > world.score(shared) + 0.05


@pytest.mark.parametrize("n_samples", [0, 25])
def test_intervals_hold_what_they_say(recovered, n_samples):
    world, model, _ = recovered
    pairs = [side[::4] for side in world.test.nonzero()]
    found = model.predictive(*pairs, n_samples=n_samples, random_state=0)
    low, high = found.observed.interval(0.9)
    values = world.test.data[::4]
    assert 0.85 < np.mean((values >= low) & (values <= high)) < 0.95


def test_where_nothing_varies_little_is_lost():
    world = World("nothing")
    shared = world.score(quick(2, element=Gamma(), max_iter=20).fit(world.train))
    for per in ("item", "user", "both"):
        model = quick(2, element=Gamma(per=per), max_iter=20).fit(world.train)
        assert world.score(model) > shared - 0.02
        means = model.element_at(USERS, ITEMS).mean
        assert np.std(means) < 0.12 * np.mean(means)


# -- new rows -------------------------------------------------------------------------------------


@each_way
def test_new_users_get_what_the_twin_settles_at(element):
    twin = replace(draw_model(element, shape=(7, 6)), most=60)
    found = with_posterior(twin).fold_in(as_matrix(twin)).posterior_.users
    twin = even_start(twin, "full")
    if twin.thetas.users is not None:
        prior = twin.thetas.users
        ones = np.ones(7)
        start = replace(prior, chi=prior.chi0 * ones, nu=prior.nu0 * ones)
        twin = replace(twin, thetas=replace(twin.thetas, users=start))
    twin = settle(twin)
    np.testing.assert_allclose(found.mean, twin.users.mean, rtol=3e-4)
    assert (found.groups is None) == (twin.thetas.users is None)
    if found.groups is not None:
        expected = twin.thetas.users
        scale = np.abs(expected.chi).max()
        np.testing.assert_allclose(found.groups.chi, expected.chi, rtol=3e-4, atol=3e-4 * scale)
        np.testing.assert_allclose(found.groups.nu, expected.nu, rtol=3e-4)


@each_way
def test_new_items_are_the_mirror_image(element):
    twin = replace(draw_model(element, seed=1, shape=(6, 7)), most=60)
    found = with_posterior(twin).fold_in_items(as_matrix(twin)).posterior_.items
    other = twin.transposed
    size = other.users.a.shape[1]
    a = np.repeat(PRIORS.item_shape + other.observed.sum(axis=1, keepdims=True) / size, size, 1)
    mean = a / (1.0 + other.items.mean.sum(axis=0))
    activity_b = other.users.activity_rate + mean.sum(axis=1)
    other = replace(other, users=replace(other.users, a=a, b=a / mean, activity_b=activity_b))
    if other.thetas.users is not None:
        prior = other.thetas.users
        ones = np.ones(7)
        start = replace(prior, chi=prior.chi0 * ones, nu=prior.nu0 * ones)
        other = replace(other, thetas=replace(other.thetas, users=start))
    other = settle(other)
    np.testing.assert_allclose(found.mean, other.users.mean, rtol=3e-4)
    if found.groups is not None:
        np.testing.assert_allclose(found.groups.nu, other.thetas.users.nu, rtol=3e-4)


def test_rows_without_entries_have_exactly_the_prior_and_finite_predictions(model):
    matrix = model.interactions_.matrix
    some = sparse.csr_array(np.vstack([np.zeros(11), matrix[[5]].toarray()]))
    for users, found in (
        (True, model.fold_in(some)), (True, model.fold_in(np.zeros((2, 11)))),
        (False, model.fold_in_items(np.zeros((14, 3)))), (False, model),
    ):  # fmt: skip
        for fit in found.posteriors_:
            groups = (fit.users if users else fit.items).groups
            if groups is not None:
                assert groups.chi[0] == groups.chi0
                assert groups.nu[0] == groups.nu0
        assert np.all(np.isfinite(found.predict(found.users_[:, None], found.items_)))
        mean = found.predictive(0, 0, n_samples=5, random_state=0).mean
        assert np.isfinite(mean)
    assert np.all(np.isfinite(model.predictive(0, 0).observed.interval(0.5)))
    assert model.transform(some).shape == (2, 6)  # of three fits


def test_new_users_of_items_far_below_the_usual_are_summed_to_the_end():
    """A value is then made of so many elements that the first tables do not hold them."""
    twin = draw_model(Gamma(2.0, 0.05, per="item"), shape=(5, 6))
    items = twin.thetas.items
    twin = replace(twin, thetas=Thetas(None, replace(items, chi=items.chi / 60.0)))
    found = with_posterior(twin).fold_in(as_matrix(twin)).posterior_.users
    twin = even_start(twin, "full")
    for _ in range(400):
        twin = dense.update_users(twin)
    assert dense.expected_counts(twin)[0].max() > 80
    np.testing.assert_allclose(found.mean, twin.users.mean, rtol=3e-4)


@pytest.mark.parametrize("per", ["item", "user", "both"])
def test_going_on_with_more_data_comes_near_a_new_fit(per):
    world = World(per)
    coo = world.train.tocoo()
    early = (coo.row < 90) & (coo.col < 32)
    first, rest = (
        Interactions.from_arrays(coo.row[part], coo.col[part], coo.data[part])
        for part in (early, ~early)
    )
    assert first.shape == (90, 32)
    options = {"element": Gamma(per=per), "max_iter": 10, "check_every": 10}
    grown = quick(2, **options).fit(first).partial_fit(rest)
    for fit in grown.posteriors_:
        for side, size in ((fit.users, 120), (fit.items, 40)):
            assert side.groups is None or len(side.groups.chi) == size
    everything = quick(2, **options).fit(world.train)
    pairs = world.test.nonzero()
    one, other = (np.log(m.element_at(*pairs).mean) for m in (grown, everything))
    assert np.corrcoef(one, other)[0, 1] > 0.97
    assert world.score(grown) > world.score(everything) - 0.05


@pytest.mark.parametrize("learn_element", [True, False])
def test_a_warm_start_goes_on_where_it_was(learn_element):
    matrix = World("item").train
    model = quick(2, element=Gamma(3.0, 0.6, per="item"), warm_start=True, max_iter=8)
    model.set_params(learn_element=learn_element, check_every=1).fit(matrix)
    last = model.history_[-1].elbo
    assert model.set_params(max_iter=3).fit(matrix).history_[0].elbo > last - 1e-6 * abs(last)


@pytest.mark.parametrize("learn_element", [True, False])
@pytest.mark.parametrize(
    "next_element",
    [Gamma(3.0, 0.6), Gamma(3.0, 0.6, per="user"), Gamma(3.0, 0.6, per="both"),
     InverseGaussian(5.0, 3.0, per="item"), Geometric(0.8, per="item")],
    ids=repr,
)  # fmt: skip
def test_a_warm_start_may_vary_in_another_way(next_element, learn_element):
    matrix = World("both").train.ceil()
    model = quick(2, element=Gamma(3.0, 0.6, per="item"), warm_start=True, max_iter=3).fit(matrix)
    model.set_params(element=next_element, learn_element=learn_element, check_every=1).fit(matrix)
    assert model.element_.per == next_element.per
    assert (model.posterior_.users.groups is not None) == (next_element.per in ("user", "both"))
    assert (model.posterior_.items.groups is not None) == (next_element.per in ("item", "both"))
    assert np.all(np.diff([check.elbo for check in model.history_]) > 0)
    assert np.all(np.isfinite(model.predict(USERS, ITEMS)))


# -- several fits ---------------------------------------------------------------------------------


def test_three_fits_share_one_element_and_average_their_thetas(model):
    element, matrix = model.element_, model.interactions_.matrix
    assert np.all(np.isfinite(model.predict_expected(*EVERYONE)))
    assert np.mean(model.predict(*matrix.nonzero())) == pytest.approx(matrix.data.mean(), rel=0.3)
    sides = [side for fit in model.posteriors_ for side in (fit.users, fit.items)]
    for groups in (side.groups for side in sides if side.groups is not None):
        low, high = element.conjugate.lowest, element.conjugate.highest
        for chi, nu in ((groups.chi, groups.nu), (groups.chi0, groups.nu0)):
            assert np.all((chi / nu > low) & (chi / nu < high))


# -- saved models ---------------------------------------------------------------------------------


def test_a_model_comes_back_bit_for_bit(model, tmp_path):
    matrix = model.interactions_.matrix
    model.save(tmp_path / "model")
    found = HCPF.load(tmp_path / "model")
    assert found.get_params() == model.get_params()
    assert found.element == model.element
    assert found.element_ == model.element_
    for one, other in zip(found.posteriors_, model.posteriors_, strict=True):
        for side in ("users", "items"):
            mine, theirs = (getattr(fit, side).groups for fit in (one, other))
            assert (mine is None) == (theirs is None)
            if mine is not None:
                assert (mine.chi0, mine.nu0) == (theirs.chi0, theirs.nu0)
                np.testing.assert_array_equal(mine.chi, theirs.chi)
                np.testing.assert_array_equal(mine.nu, theirs.nu)
    for method in ("predict", "predict_expected"):
        np.testing.assert_array_equal(
            getattr(found, method)(*EVERYONE), getattr(model, method)(*EVERYONE)
        )
    np.testing.assert_array_equal(found.transform(matrix[:3]), model.transform(matrix[:3]))


def short(tensors):
    tensors["fit0.items.theta.chi"] = tensors["fit0.items.theta.chi"][:-1]


def square(tensors):
    tensors["fit0.items.theta.nu"] = np.ones((11, 2))


def long_prior(tensors):
    tensors["fit0.items.theta.prior"] = np.ones(3)


def left_out(tensors):
    for name in ("chi", "nu", "prior"):
        del tensors[f"fit0.items.theta.{name}"]


def half(tensors):
    del tensors["fit0.items.theta.nu"]


def other_side(tensors):
    for name, size in (("chi", 14), ("nu", 14), ("prior", 2)):
        tensors[f"fit0.users.theta.{name}"] = np.ones(size)


@pytest.mark.parametrize("change", [short, square, long_prior, left_out, half, other_side])
def test_a_theta_that_does_not_fit_is_refused(change, tmp_path):
    model = quick(2, element=Gamma(2.0, 0.5, per="item"), max_iter=2)
    model.fit(as_matrix(draw_model(Gamma(2.0, 0.5)))).save(tmp_path / "model")
    stored = persist.read_folder(tmp_path / "model", check=True)
    change(stored.tensors)
    persist.write_folder(tmp_path / "other", stored, overwrite=False)
    with pytest.raises(ModelError, match=r"theta|parts do not fit"):
        HCPF.load(tmp_path / "other")


# -- rankings and explanations --------------------------------------------------------------------


def test_recommendations_are_in_the_order_of_the_predictions(model):
    for by, method in (("expected", model.predict_expected), ("response", model.predict)):
        for user in (0, 3, 7):
            found = model.recommend(user, 11, by=by, exclude_seen=False)
            value = method(user, np.arange(11))
            best = np.sort(value)[::-1]
            np.testing.assert_allclose(getattr(found, by), best, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(value[found.item], best, rtol=1e-5, atol=1e-6)
    assert len(model.recommend([], 3, by="expected")) == 0


def test_parts_of_a_rate_add_up(model):
    for user, item in ((3, 2), (5, 0), (0, 4)):
        found = model.explain(user, item)
        assert found.rate.sum() == pytest.approx(float(model.rate(user, item)), rel=1e-6)
        assert found.share.sum() == pytest.approx(1.0)
