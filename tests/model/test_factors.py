"""Factors by name, the items of components, and the columns that scikit-learn shows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from hcpf import HCPF, Interactions
from hcpf.elements import Poisson
from hcpf.errors import InputError, ParameterError
from hcpf.model.components import summarize_components
from model.small import draw_matrix, quick

GENES = [f"g{j}" for j in range(15)]


@pytest.fixture(scope="module")
def data():
    matrix = draw_matrix(Poisson(1.5), seed=4, shape=(25, 15))
    return Interactions.from_matrix(matrix, users=[f"c{j}" for j in range(25)], items=GENES)


@pytest.fixture(scope="module")
def model(data):
    return quick(3, element=Poisson(), n_fits=2, max_iter=20).fit(data)


def test_means_of_all_columns_give_the_rates(model, data):
    users, items = (model.factors(axis).values for axis in ("users", "items"))
    assert users.shape == (25, 6)
    assert items.shape == (15, 6)
    expected = model.rate(data.users[:, None], data.items)
    np.testing.assert_allclose(users @ items.T, expected, rtol=1e-5)
    np.testing.assert_array_equal(model.components_, items.T)
    rates = model.transform(data) @ model.components_
    assert rates.shape == expected.shape


def test_one_fit_has_the_columns_of_its_posterior(model):
    for fit, posterior in enumerate(model.posteriors_):
        table = model.factors("items", fit=fit)
        np.testing.assert_array_equal(table.values, posterior.items.mean)
        assert list(table.columns()) == ["item", *(f"hcpf{3 * fit + k}" for k in range(3))]


def test_scaled_factors_are_those_of_schpf(model):
    expected = []
    for posterior in model.posteriors_:
        rows = posterior.users
        activity = [a / b for a, b in zip(rows.activity_a, rows.activity_b, strict=True)]
        expected.append([[s * r for s in row] for row, r in zip(rows.mean, activity, strict=True)])
    found = model.factors("users", "scaled").values
    np.testing.assert_allclose(found, np.hstack(expected), rtol=1e-12)


def test_shares_of_items_are_topics_and_those_of_users_documents(model):
    items, users = (model.factors(axis, "share").values for axis in ("items", "users"))
    np.testing.assert_allclose(items.sum(axis=0), 1.0)
    np.testing.assert_allclose(users.sum(axis=1), 1.0)
    s, v = (model.factors(axis).values for axis in ("users", "items"))
    by_hand = [[sum(s[u, k] * v[i, k] for i in range(15)) for k in range(6)] for u in range(25)]
    np.testing.assert_allclose(users, by_hand / np.sum(by_hand, axis=1, keepdims=True), rtol=1e-6)


def test_frames_have_the_ids_as_their_index(model):
    frame = model.factors("items").to_pandas()
    assert frame.index.tolist() == GENES
    assert frame.index.name == "item"
    assert frame.columns.tolist() == model.get_feature_names_out().tolist()
    assert model.factors("users").to_polars().columns[0] == "user"
    assert model.factors("user").ids.tolist() == model.users_.tolist()


def test_scikit_learn_makes_frames_with_these_columns(data):
    X = pd.DataFrame(data.matrix.toarray(), index=data.users, columns=GENES)
    model = quick(2, element=Poisson(), n_fits=2).set_output(transform="pandas").fit(data)
    frame = model.transform(X)
    assert frame.columns.tolist() == ["hcpf0", "hcpf1", "hcpf2", "hcpf3"]
    assert frame.index.tolist() == data.users.tolist()
    same = quick(2, element=Poisson(), n_fits=2).fit(data).transform(X)
    np.testing.assert_array_equal(frame.to_numpy(), same)


@pytest.mark.parametrize("kind", ["relevance", "scaled", "share", "mean"])
def test_top_items_are_the_highest_scores(model, kind):
    for fit, posterior in enumerate(model.posteriors_):
        table = model.top_items(4, kind=kind, fit=fit, weight=0.3)
        users, items = posterior.users.mean, posterior.items.mean
        share = items / items.sum(axis=0)
        everything = items @ users.sum(axis=0)
        lift = share / (everything / everything.sum())[:, None]
        activity = posterior.items.activity_a / posterior.items.activity_b
        score = {
            "relevance": 0.3 * np.log(share) + 0.7 * np.log(lift), "share": share, "mean": items,
            "scaled": items * activity[:, None],
        }[kind]  # fmt: skip
        assert table.component.tolist() == [3 * fit + k for k in range(3) for _ in range(4)]
        assert table.rank.tolist() == [1, 2, 3, 4] * 3
        for k in range(3):
            best = np.argsort(-score[:, k])[:4]
            assert table.of(3 * fit + k).tolist() == model.items_[best].tolist()
            rows = table.select(table.component == 3 * fit + k)
            np.testing.assert_allclose(rows.score, score[best, k], rtol=1e-5)
            np.testing.assert_allclose(rows.share, share[best, k], rtol=1e-5)
            np.testing.assert_allclose(rows.lift, lift[best, k], rtol=1e-5)
        with pytest.raises(InputError, match="component: unknown id 30"):
            table.of(30)


def test_numbers_of_components_are_columns_of_the_factors(model):
    found = summarize_components(model.model_, fit=1)
    assert np.all(np.diff(found.share) <= 0)
    columns = model.factors("items", "share").values[:, found.number].T
    np.testing.assert_allclose(found.item_share, columns, rtol=1e-6)


def test_names_of_top_items(model):
    names = [f"gene {j}" for j in range(15)]
    expected = model.top_items(2).item.tolist()
    for given_names in (names, np.array(names), dict(zip(GENES, names, strict=True))):
        table = model.top_items(2, names=given_names)
        assert table.name.tolist() == [f"gene {item[1:]}" for item in expected]
    with pytest.raises(InputError, match="names has 2 names, but 15 items"):
        model.top_items(names=["a", "b"])


@given(st.integers(1, 40), st.floats(0.0, 1.0))
def test_every_component_has_its_items(model, n, weight):
    table = model.top_items(n, weight=weight)
    size = min(n, 15)
    assert len(table) == 3 * size
    assert all(len(set(table.of(k).tolist())) == size for k in range(3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.factors("genes"), "axis must be one of users, user, items, item; got 'genes'"),
        (lambda m: m.factors("items", "loading"), "kind must be one of mean, scaled, share"),
        (lambda m: m.factors("items", fit=2), "fit must be less than 2"),
        (lambda m: m.factors("items", fit=-1), "fit must be an integer, 0 or more"),
        (lambda m: m.top_items(0), "n must be an integer, 1 or more"),
        (lambda m: m.top_items(kind="lift"), "kind must be one of relevance, mean"),
        (lambda m: m.top_items(weight=1.5), "weight must be between 0 and 1"),
        (lambda m: m.top_items(fit="first"), "fit must be an integer"),
    ],
)
def test_words_and_numbers_that_are_not_choices(model, call, message):
    with pytest.raises(ParameterError, match=message):
        call(model)


def test_texts_in_a_pipeline():
    texts = ["tea milk tea", "milk tea sugar", "bolt nut bolt", "nut screw bolt"] * 5
    pipe = make_pipeline(CountVectorizer(), quick(2, element=Poisson(), max_iter=30))
    factors = pipe.fit_transform(texts)
    assert factors.shape == (20, 2)
    words = pipe[0].get_feature_names_out()
    tops = pipe[1].top_items(3, names=words)
    topics = {frozenset(tops.name[tops.component == k]) for k in range(2)}
    assert topics == {frozenset({"tea", "milk", "sugar"}), frozenset({"bolt", "nut", "screw"})}
    new = pipe.transform(["sugar milk", "screw nut nut"])
    assert np.argmax(new[0]) != np.argmax(new[1])
    assert isinstance(pipe[1], HCPF)
