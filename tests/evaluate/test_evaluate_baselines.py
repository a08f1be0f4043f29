"""Baselines: closed forms, margins that exclusion keeps, and values by item."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hcpf import HCPF, Interactions, simulate
from hcpf.elements import Binomial, Degenerate, Gamma, Normal, ZeroTruncatedPoisson
from hcpf.errors import InputError, NotFittedError
from hcpf.evaluate import HPF, BinaryHPF, GlobalElement, PerItemElement, Popularity, scores, split

QUICK = {"max_iter": 5, "random_state": 0}


def all_rates(model, shape):
    return model.rate(np.arange(shape[0])[:, None], np.arange(shape[1])[None, :])


def test_without_smoothing_rates_are_products_of_the_margins():
    counts = np.array([[2.0, 1.0, 0.0], [3.0, 0.0, 0.0], [0.0, 1.0, 4.0]])
    model = Popularity(Degenerate(), smoothing=0.0).fit(counts)
    wanted = np.outer([2, 1, 2], [2, 2, 1]) / 5
    np.testing.assert_allclose(all_rates(model, (3, 3)), wanted)
    np.testing.assert_allclose(
        model.predict_distribution([0, 1], [2, 0]).prob_observed, 1 - np.exp([-2 / 5, -2 / 5])
    )


@given(st.integers(0, 2**32 - 1))
def test_rates_of_the_pairs_that_take_part_add_up_to_the_entries(seed):
    rng = np.random.default_rng(seed)
    observed, out = rng.random((12, 9)) < 0.4, rng.random((12, 9)) < 0.2
    observed[0, 0], out[0, 0] = True, False
    exclude = sparse.csr_array(out * 2.5)
    model = Popularity(Degenerate(), smoothing=0.0)
    model.fit(observed.astype(float), exclude=exclude)
    rates, seen = all_rates(model, (12, 9)) * ~out, observed & ~out
    np.testing.assert_allclose(rates.sum(axis=1), seen.sum(axis=1), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(rates.sum(axis=0), seen.sum(axis=0), rtol=1e-6, atol=1e-9)


def test_smoothing_leaves_nothing_impossible_and_tends_to_the_density():
    train = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    some = all_rates(Popularity(Degenerate()).fit(train), (4, 2))
    assert np.all(some > 0)
    assert some[0, 0] > some[0, 1]
    much = all_rates(Popularity(Degenerate(), smoothing=1e9).fit(train), (4, 2))
    np.testing.assert_allclose(much, 3 / 8, rtol=1e-6)


def test_popularity_is_scored_like_a_model():
    data = simulate(150, 100, density=0.1, element=Gamma(2, 0.5), random_state=0).interactions
    parts = split(data, random_state=0)
    model = Popularity(Gamma()).fit(parts.train, exclude=parts.held_out)
    found = scores(model, parts)
    rate = model.rate(parts.test.users, parts.test.items)
    density = model.element_.log_density(parts.test.values)
    assert found.nonmissing.value == pytest.approx(np.mean(np.log1p(-np.exp(-rate)) + density))
    assert found.conditional_nonmissing.value == pytest.approx(np.mean(density))
    assert found.auc.value > 0.6


def test_means_by_item_are_shrunk_to_the_overall_mean():
    values = np.array([[2.0, 8.0, 0.0], [4.0, 0.0, 0.0], [6.0, 0.0, 0.0]])
    model = PerItemElement(Gamma(), smoothing=2.0).fit(values)
    means = model.predict_distribution(0, [0, 1, 2]).mean_observed
    assert means.tolist() == pytest.approx([(10 + 12) / 5, (10 + 8) / 3, 5.0])


@pytest.mark.parametrize(
    ("make", "spread"),
    [(lambda m: Gamma(5.0, 5.0 / m), "shape"), (lambda m: Normal(m, 5.0), "variance")],
    ids=["gamma", "normal"],
)
def test_the_dispersion_within_items_is_found(make, spread, rng):
    means = rng.uniform(2.0, 40.0, 1500)  # more than are solved for one by one
    values = make(means).sample(np.ones((60, 1500)), rng)
    model = PerItemElement(type(make(1.0))()).fit(sparse.csr_array(values))
    assert float(model.item_elements_.parameters[spread]) == pytest.approx(5.0, rel=0.06)
    found = model.predict_distribution(0, np.arange(1500)).mean_observed
    np.testing.assert_allclose(found, (values.sum(axis=0) + values.mean()) / 61, rtol=1e-3)


@pytest.mark.parametrize("element", [Binomial(), ZeroTruncatedPoisson(), Degenerate()], ids=repr)
def test_elements_without_a_dispersion_vary_by_item_too(element, rng):
    values = 1.0 + rng.binomial(4, np.linspace(0.1, 0.9, 30), (80, 30))
    data = Interactions.from_matrix(values * (rng.random((80, 30)) < 0.7))
    parts = split(data, random_state=0)
    one, many = (
        scores(kind(element).fit(parts.train), parts).conditional_nonmissing.value
        for kind in (GlobalElement, PerItemElement)
    )
    assert many > one or (many == one == -np.inf)


def test_hpf_is_the_model_with_the_degenerate_element():
    data = simulate(80, 60, density=0.2, element=Degenerate(), random_state=0).interactions
    parts = split(data, random_state=0)
    wrapped = HPF(4, **QUICK).fit(parts.train, exclude=parts.held_out)
    plain = HCPF(4, element="degenerate", **QUICK).fit(parts.train, exclude=parts.held_out)
    assert scores(wrapped, parts).as_dict() == scores(plain, parts).as_dict()
    assert wrapped.recommend([3], n=4).item.tolist() == plain.recommend([3], n=4).item.tolist()


def test_binary_hpf_takes_values_from_one_element():
    data = simulate(80, 60, density=0.2, element=Gamma(2, 0.5), random_state=0).interactions
    model = BinaryHPF(4, element="gamma", **QUICK).fit(data)
    plain = HCPF(4, element="presence", **QUICK).fit(data)
    found = model.predict_distribution([1, 2], [3, 4])
    np.testing.assert_allclose(found.prob_observed, plain.predict_proba([1, 2], [3, 4]))
    assert model.element_ == Gamma.estimate(data.values)
    np.testing.assert_allclose(found.observed.mean, model.element_.mean)
    assert repr(model) == "BinaryHPF(4)"


@pytest.mark.parametrize(
    "model", [Popularity(), GlobalElement(), PerItemElement(), HPF()], ids=repr
)
def test_what_is_not_fitted_says_so(model):
    with pytest.raises(NotFittedError, match="call fit first"):
        model.rate(0, 0)
    if hasattr(model, "recommend"):
        with pytest.raises(NotFittedError, match="call fit first"):
            model.recommend([0])


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="smoothing"):
        Popularity(smoothing=-1.0).fit(np.eye(3))
    with pytest.raises(InputError, match="smoothing"):
        PerItemElement(smoothing=0.0).fit(np.eye(3))
    model = Popularity().fit(np.eye(3))
    with pytest.raises(InputError, match="unknown id"):
        model.rate(7, 0)
    with pytest.raises(InputError, match="by must be"):
        model.recommend([0], by="value")
    with pytest.raises(InputError, match="all are excluded"):
        Popularity().fit(np.eye(3), exclude=np.eye(3))


@pytest.mark.parametrize("model", [Popularity, GlobalElement, PerItemElement, BinaryHPF])
def test_exclusions_are_matched_by_id_and_take_no_part(model):
    data = simulate(30, 20, density=0.4, element=Gamma(2, 0.5), random_state=0).interactions
    odd = data.matrix.copy()
    odd.data[::7] *= 1e4
    data = Interactions(odd, data.users, data.items)
    marked = np.zeros(odd.nnz, bool)
    marked[::7] = True
    out = sparse.csr_array((marked * 1.0, odd.indices, odd.indptr), shape=odd.shape).toarray()
    by_position = sparse.csr_array(out)
    users, items = np.flatnonzero(out.any(axis=1))[::-1], np.flatnonzero(out.any(axis=0))[::-1]
    by_id = Interactions.from_matrix(out[np.ix_(users, items)], users=users, items=items)
    settings = {"element": "gamma", **({} if model is not BinaryHPF else QUICK)}
    one, other = (model(**settings).fit(data, exclude=by) for by in (by_position, by_id))
    assert one.element_ == other.element_ == Gamma.estimate(odd.data[~marked])
    np.testing.assert_array_equal(one.rate([1, 2], [3, 4]), other.rate([1, 2], [3, 4]))
