"""Going on with more data: new users, new items, more entries of known ones."""

from functools import cache

import numpy as np
import pytest
from scipy import sparse

from hcpf import HCPF, CompoundPoisson, Interactions, simulate
from hcpf.data.sampling import select, without
from hcpf.elements import Gamma, Poisson
from hcpf.errors import InputError, SupportError
from hcpf.model.alignment import joined
from model.small import draw_matrix, quick

ELEMENT = Gamma(2.0, 0.5)


@cache
def world():
    """Entries of 300 x 120 pairs to train on, by halves, and others to test with."""
    sim = simulate(
        300, 120, n_components=4, element=ELEMENT, density=0.12, user_shape=0.8, item_shape=0.8,
        random_state=8,
    )  # fmt: skip
    matrix = sim.interactions.matrix.tocoo()
    rng = np.random.default_rng(0)
    part = rng.choice(3, size=matrix.nnz, p=[0.45, 0.45, 0.1])
    users, items = (np.array([f"{s}{j:03}" for j in range(n)]) for s, n in (("u", 300), ("i", 120)))

    def entries(chosen):
        return Interactions.from_arrays(
            users[matrix.row[chosen]], items[matrix.col[chosen]], matrix.data[chosen]
        )

    late = (matrix.row >= 220) | (matrix.col >= 95)  # new users, new items
    cuts = {
        "entries": (part == 0, part == 1),
        "users": ((part < 2) & (matrix.row < 220), (part < 2) & (matrix.row >= 220)),
        "items": ((part < 2) & (matrix.col < 95), (part < 2) & (matrix.col >= 95)),
        "everything": ((part == 0) & ~late, (part < 2) & late | (part == 1)),
    }
    test = part == 2
    held = users[matrix.row[test]], items[matrix.col[test]], matrix.data[test]
    return {name: tuple(map(entries, cut)) for name, cut in cuts.items()}, entries(part < 2), held


def make(**settings):
    return quick(4, **({"element": Gamma(), "max_iter": 150, "tol": 1e-5} | settings))


def short():
    return quick(4, element=Gamma(), n_fits=2)


@cache
def refit():
    return make().fit(world()[1])


@pytest.mark.parametrize("element", ["auto", "quick"])
def test_what_the_data_chose_stays_chosen(element):
    first, second = world()[0]["entries"]
    model = make(vary_by="item", max_iter=3).fit(first)
    chosen = HCPF.from_model(model.model_)
    chosen.set_params(element=element, vary_by=None, tempering="auto", max_iter=3)
    chosen.partial_fit(second)
    assert chosen.value_model_.description == "gamma per item"
    model.partial_fit(second)
    assert chosen.history_[-1].elbo == model.history_[-1].elbo


@pytest.mark.parametrize("given", [{"vary_by": "item"}, {"hurdle": True}], ids=repr)
def test_what_is_given_with_quick_counts_in_a_warm_start(given):
    data = world()[0]["entries"][0]
    model = make(element="quick", vary_by=None, max_iter=2).fit(data)
    kind = type(model.element_)
    model.set_params(**given).fit(data, warm_start=True)
    assert type(model.element_) is kind
    fitted = model.value_model_
    assert {name: getattr(fitted, name) for name in given} == given


def held_out(model):
    """Log likelihood of a held-out entry with its share of the missing pairs, on average."""
    users, items, values = world()[2]
    everywhere = model.rate(model.users_[:, None], model.items_[None, :]).sum()
    observed = CompoundPoisson(model.rate(users, items), model.element_).log_density(values)
    return float(np.mean(observed) - everywhere * 0.1 / len(values))


@pytest.mark.parametrize("what", ["entries", "users", "items", "everything"])
def test_it_ends_near_a_fit_to_all_of_the_data(what):
    first, second = world()[0][what]
    model = make().fit(first)
    assert model.partial_fit(second) is model
    again = refit()
    assert set(model.users_) == set(again.users_)
    assert set(model.items_) == set(again.items_)
    assert list(model.users_[: first.n_users]) == list(first.users)  # new ids come after
    assert model.interactions_.n_observed == again.interactions_.n_observed
    bound, full = model.history_[-1].elbo, again.history_[-1].elbo
    # Measured: bounds within 0.6%, likelihoods within 0.02; other seeds give 0.2% and 0.06.
    assert abs(bound - full) < 0.01 * abs(full)
    assert abs(held_out(model) - held_out(again)) < 0.08
    assert model.n_iter_ < again.n_iter_ or what not in ("users", "items")
    assert model.element_.mean == pytest.approx(again.element_.mean, rel=0.05)


def test_without_an_earlier_fit_it_is_a_fit():
    data = world()[1]
    found, expected = short().partial_fit(data), short().fit(data)
    for mine, theirs in zip(found.posteriors_, expected.posteriors_, strict=True):
        np.testing.assert_array_equal(mine.users.mean_, theirs.users.mean_)
        np.testing.assert_array_equal(mine.items.mean_, theirs.items.mean_)


@pytest.mark.parametrize(
    ("policy", "value"), [("sum", 7.0), ("mean", 3.5), ("last", 5.0), ("error", None)]
)
def test_a_pair_seen_before_follows_the_policy(policy, value):
    first = Interactions.from_arrays(
        ["a", "a", "b", "c"], ["x", "y", "x", "y"], [2.0, 1.0, 4.0, 1.5]
    )
    more = Interactions.from_arrays(["a", "d"], ["x", "z"], [5.0, 3.0])
    model = quick(2, element=Gamma(1.0, 1.0)).fit(first)
    if value is None:
        with pytest.raises(InputError, match=r"user 'a' and item 'x'.*stored more than once"):
            model.partial_fit(more)
        assert model.interactions_ is first
        assert list(model.users_) == ["a", "b", "c"]
        return
    model.partial_fit(more, duplicates=policy)
    matrix = model.interactions_.matrix.toarray()
    assert list(model.users_) == ["a", "b", "c", "d"]
    assert list(model.items_) == ["x", "y", "z"]
    np.testing.assert_array_equal(
        matrix, [[value, 1.0, 0.0], [4.0, 0.0, 0.0], [0.0, 1.5, 0.0], [0.0, 0.0, 3.0]]
    )
    assert not set(model.recommend("d", 5).item) & {"z"}


def test_the_rows_of_a_matrix_are_new_users():
    twin = draw_matrix(Poisson(1.5), seed=1, shape=(20, 9))
    model = quick(2, element=Poisson()).fit(twin[:12])
    model.partial_fit(twin[12:])
    np.testing.assert_array_equal(model.users_, np.arange(20))
    np.testing.assert_array_equal(model.interactions_.matrix.toarray(), twin.toarray())
    named = Interactions.from_matrix(twin[:12], users=[f"u{j}" for j in range(12)])
    with pytest.raises(InputError, match="Pass Interactions, which have ids"):
        quick(2, element=Poisson()).fit(named).partial_fit(twin[12:])


@pytest.mark.parametrize("train_on", ["full", "observed"])
def test_several_fits_all_go_on(train_on):
    twin = draw_matrix(Poisson(1.5), seed=1, shape=(20, 9))
    model = quick(2, element=Poisson(), n_fits=3, train_on=train_on).fit(twin[:12])
    model.partial_fit(twin[12:])
    assert len(model.posteriors_) == 3
    assert {len(fit.users.mean_) for fit in model.posteriors_} == {20}


def test_a_failure_leaves_the_model_as_it_was():
    model = quick(2, element=Poisson()).fit(draw_matrix(Poisson(1.5), seed=1))
    before, rates = dict(vars(model)), model.rate(np.arange(14)[:, None], np.arange(11))
    for wrong in (np.full((2, 11), 1.5), -np.ones((2, 11))):
        with pytest.raises(SupportError, match="Poisson takes integers"):
            model.partial_fit(wrong)
    with pytest.raises(InputError, match="10 columns, but 11 items are fitted"):
        model.partial_fit(np.ones((2, 10)))
    with pytest.raises(InputError, match="duplicates must be one of"):
        model.partial_fit(np.ones((2, 11)), duplicates="add")
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.rate(np.arange(14)[:, None], np.arange(11)), rates)


def test_a_loaded_model_goes_on_like_the_one_that_was_saved(tmp_path):
    first, second = world()[0]["everything"]
    model = short().fit(first)
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model").partial_fit(second)
    model.partial_fit(second)
    for mine, theirs in zip(loaded.posteriors_, model.posteriors_, strict=True):
        np.testing.assert_array_equal(mine.users.mean_, theirs.users.mean_)
        np.testing.assert_array_equal(mine.items.mean_, theirs.items.mean_)


def held_out_pairs(data, seed=0):
    """Marks of a tenth of all pairs of some data, observed or missing."""
    rng = np.random.default_rng(seed)
    return sparse.csr_array((rng.random(data.shape) < 0.1).astype(float))


@pytest.mark.parametrize("what", ["entries", "users", "items", "everything"])
def test_pairs_excluded_by_fit_stay_excluded(what):
    first, second = world()[0][what]
    held = held_out_pairs(first)
    model = make(max_iter=80).fit(first, exclude=held)
    model.partial_fit(second, duplicates="last")
    kept = model.model_.excluded.toarray()
    assert kept.shape == model.interactions_.shape
    np.testing.assert_array_equal(kept[: first.n_users, : first.n_items], held.toarray())
    assert kept.sum() == held.nnz  # no new pair is excluded
    again = make(max_iter=80).fit(model.interactions_, exclude=kept)
    forgotten = make(max_iter=80).fit(model.interactions_)
    one, other, without = (m.history_[-1].elbo for m in (model, again, forgotten))
    assert abs(one - other) < 0.01 * abs(other) < abs(one - without)


def test_entries_of_excluded_pairs_make_no_difference():
    first, second = world()[0]["entries"]
    everything = joined(first, second, "last")
    held = held_out_pairs(first)
    model = short().fit(first, exclude=held).partial_fit(second)
    kept = without(everything.matrix, model.model_.excluded)
    kept = Interactions(kept, everything.users, everything.items)
    fewer = Interactions(without(first.matrix, held), first.users, first.items)
    rest = without(kept.matrix, _marks(fewer, kept))
    again = short().fit(first, exclude=held)
    again.partial_fit(Interactions(rest, everything.users, everything.items))
    np.testing.assert_array_equal(model.posterior_.users.mean_, again.posterior_.users.mean_)


def _marks(data, over):
    """The pairs of some data as a matrix over the ids of others, which begin with the same."""
    coo = data.matrix.tocoo()
    return sparse.csr_array((coo.data, (coo.row, coo.col)), shape=over.shape)


def test_validation_pairs_stay_excluded_too():
    data, rng = world()[1], np.random.default_rng(2)
    chosen = rng.random(data.n_observed) < 0.1
    validation = Interactions(select(data.matrix, chosen), data.users, data.items)
    model = short().fit(data, validation=validation)
    assert model.model_.excluded.nnz == chosen.sum()
    model.partial_fit(Interactions.from_arrays(["newcomer"], data.items[:1], [2.0]))
    assert model.model_.excluded.shape == (data.n_users + 1, data.n_items)
    assert model.model_.excluded.nnz == chosen.sum()
