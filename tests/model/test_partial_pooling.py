"""Fitted models with means per user, item or both: recovery, new rows, intervals, rankings."""

import numpy as np
import pytest
from scipy import sparse

from hcpf import HCPF, Interactions
from hcpf.core.axis import Axis
from hcpf.elements import Gamma, Geometric, InverseGaussian
from hcpf.errors import ModelError
from hcpf.model.persist.folder import read_folder, write_folder
from model.small import VARYING, draw_matrix, name_of, quick, settings_of

EVERYONE = np.arange(14)[:, None], np.arange(11)
USERS, ITEMS = np.arange(120)[:, None], np.arange(40)


class World:
    """Data whose items (and users) differ in their means, and a second draw of all pairs."""

    def __init__(self, vary_by, spread=1.2, seed=0):
        rng = np.random.default_rng(seed)
        self.rate = rng.gamma(20.0, 0.05, (120, 1)) * rng.gamma(4.0, 0.13, 40)
        of_users = np.exp(spread * rng.uniform(-1, 1, 120)) if vary_by in ("user", "both") else 1.0
        of_items = np.exp(spread * rng.uniform(-1, 1, 40)) if vary_by in ("item", "both") else 1.0
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
        return float(
            np.mean(model.predict_distribution(*pairs).log_density_observed(self.test.data))
        )


@pytest.fixture(scope="module", params=VARYING, ids=name_of)
def model(request):
    """Three short fits of each value model; the first row and the first column are empty."""
    matrix = draw_matrix(request.param.element)
    return quick(2, **settings_of(request.param), n_fits=3, max_iter=2).fit(matrix)


@pytest.fixture(scope="module", params=["item", "user", "both"])
def recovered(request):
    world = World(request.param)
    options = {"max_iter": 25, "check_every": 25}
    return (
        world,
        quick(2, element=Gamma(), vary_by=request.param, **options).fit(world.train),
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
    found = model.predict_distribution(*pairs, n_samples=n_samples, random_state=0)
    low, high = found.observed.interval(0.9)
    values = world.test.data[::4]
    assert 0.85 < np.mean((values >= low) & (values <= high)) < 0.95


def test_where_nothing_varies_little_is_lost():
    world = World("nothing")
    shared = world.score(quick(2, element=Gamma(), max_iter=20).fit(world.train))
    for way in ("item", "user", "both"):
        model = quick(2, element=Gamma(), vary_by=way, max_iter=20).fit(world.train)
        assert world.score(model) > shared - 0.02
        means = model.element_at(USERS, ITEMS).mean
        assert np.std(means) < 0.12 * np.mean(means)


# -- new rows -------------------------------------------------------------------------------------


def test_rows_without_entries_have_exactly_the_prior_and_finite_predictions(model):
    matrix = model.interactions_.matrix
    some = sparse.csr_array(np.vstack([np.zeros(11), matrix[[5]].toarray()]))
    for axis, found in (
        (Axis.USERS, model.fold_in(some)), (Axis.USERS, model.fold_in(np.zeros((2, 11)))),
        (Axis.ITEMS, model.fold_in_items(np.zeros((14, 3)))), (Axis.ITEMS, model.model_),
    ):  # fmt: skip
        for fit in found.posteriors:
            theta = fit.axis(axis).theta
            if theta is not None:
                assert (theta.chi[0], theta.nu[0]) == (theta.chi0, theta.nu0)
        assert np.all(np.isfinite(found.predict(found.users[:, None], found.items)))
        mean = found.predict_distribution(0, 0, n_samples=5, random_state=0).mean
        assert np.isfinite(mean)
    assert np.all(np.isfinite(model.predict_distribution(0, 0).observed.interval(0.5)))
    assert model.transform(some).shape == (2, 6)  # of three fits


@pytest.mark.parametrize("vary_by", ["item", "user", "both"])
def test_continuing_with_more_data_comes_near_a_new_fit(vary_by):
    world = World(vary_by)
    coo = world.train.tocoo()
    early = (coo.row < 90) & (coo.col < 32)
    first, rest = (
        Interactions.from_arrays(coo.row[part], coo.col[part], coo.data[part])
        for part in (early, ~early)
    )
    assert first.shape == (90, 32)
    options = {"element": Gamma(), "vary_by": vary_by, "max_iter": 10, "check_every": 10}
    grown = quick(2, **options).fit(first).partial_fit(rest)
    for fit in grown.posteriors_:
        for side, size in ((fit.users, 120), (fit.items, 40)):
            assert side.theta is None or len(side.theta.chi) == size
    everything = quick(2, **options).fit(world.train)
    pairs = world.test.nonzero()
    one, other = (np.log(m.element_at(*pairs).mean) for m in (grown, everything))
    assert np.corrcoef(one, other)[0, 1] > 0.97
    assert world.score(grown) > world.score(everything) - 0.05


@pytest.mark.parametrize("learn_element", [True, False])
def test_a_warm_start_goes_on_where_it_was(learn_element):
    matrix = World("item").train
    model = quick(2, element=Gamma(3.0, 0.6), vary_by="item", warm_start=True, max_iter=8)
    model.set_params(learn_element=learn_element, check_every=1).fit(matrix)
    last = model.history_[-1].elbo
    assert model.set_params(max_iter=3).fit(matrix).history_[0].elbo > last - 1e-6 * abs(last)


@pytest.mark.parametrize("learn_element", [True, False])
@pytest.mark.parametrize(
    ("element", "vary_by"),
    [(Gamma(3.0, 0.6), None), (Gamma(3.0, 0.6), "user"), (Gamma(3.0, 0.6), "both"),
     (InverseGaussian(5.0, 3.0), "item"), (Geometric(0.8), "item")],
    ids=repr,
)  # fmt: skip
def test_a_warm_start_may_vary_in_another_way(element, vary_by, learn_element):
    matrix = World("both").train.ceil()
    model = quick(2, element=Gamma(3.0, 0.6), vary_by="item", warm_start=True, max_iter=3).fit(
        matrix
    )
    model.set_params(element=element, vary_by=vary_by, learn_element=learn_element, check_every=1)
    model.fit(matrix)
    assert model.value_model_.vary_by == vary_by
    for axis in Axis:
        theta = model.posterior_.axis(axis).theta
        assert (theta is not None) == model.value_model_.varies(axis)
    assert np.all(np.diff([check.elbo for check in model.history_]) > 0)
    assert np.all(np.isfinite(model.predict(USERS, ITEMS)))


# -- several fits ---------------------------------------------------------------------------------


def test_three_fits_share_one_element_and_average_their_thetas(model):
    element, matrix = model.element_, model.interactions_.matrix
    assert np.all(np.isfinite(model.predict_expected_value(*EVERYONE)))
    assert np.mean(model.predict(*matrix.nonzero())) == pytest.approx(matrix.data.mean(), rel=0.3)
    sides = [side for fit in model.posteriors_ for side in (fit.users, fit.items)]
    for theta in (side.theta for side in sides if side.theta is not None):
        low, high = element.conjugate.min_center, element.conjugate.max_center
        for chi, nu in ((theta.chi, theta.nu), (theta.chi0, theta.nu0)):
            assert np.all((chi / nu > low) & (chi / nu < high))


# -- saved models ---------------------------------------------------------------------------------


def short(tensors):
    tensors["fit0.items.theta.chi"] = tensors["fit0.items.theta.chi"][:-1]


def square(tensors):
    tensors["fit0.items.theta.nu"] = np.ones((11, 2))


def long_prior(tensors):
    tensors["fit0.items.theta.prior"] = np.ones(4)


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
    model = quick(2, element=Gamma(2.0, 0.5), vary_by="item", max_iter=2)
    model.fit(draw_matrix(Gamma(2.0, 0.5))).save(tmp_path / "model")
    stored = read_folder(tmp_path / "model", check=True)
    change(stored.tensors)
    write_folder(tmp_path / "other", stored, overwrite=False)
    with pytest.raises(ModelError, match=r"theta|parts do not fit"):
        HCPF.load(tmp_path / "other")


# -- rankings and explanations --------------------------------------------------------------------


def test_recommendations_are_in_the_order_of_the_predictions(model):
    for by, method in (("expected_value", model.predict_expected_value), ("value", model.predict)):
        for user in (0, 3, 7):
            found = model.recommend(user, 11, by=by, exclude_seen=False)
            value = method(user, np.arange(11))
            best = np.sort(value)[::-1]
            np.testing.assert_allclose(getattr(found, by), best, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(value[found.item], best, rtol=1e-5, atol=1e-6)
    assert len(model.recommend([], 3, by="expected_value")) == 0


def test_parts_of_a_rate_add_up(model):
    for user, item in ((3, 2), (5, 0), (0, 4)):
        found = model.explain(user, item)
        assert found.rate.sum() == pytest.approx(float(model.rate(user, item)), rel=1e-6)
        assert found.share.sum() == pytest.approx(1.0)
