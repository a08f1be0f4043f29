"""Ranking measures against hand-worked lists, a plain twin and scikit-learn."""

from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from evaluate.oracles import Oracle, plain_ranking, world
from hcpf import HCPF, Interactions, simulate
from hcpf.elements import Degenerate
from hcpf.errors import InputError
from hcpf.evaluate import Popularity, ranking, split
from hcpf.evaluate.ranks import rank_metrics

SEEN = np.array([[1, 0, 0, 0, 0], [0, 0, 0, 0, 1]])
RATES = np.array([[0.9, 0.5, 0.4, 0.3, 0.2], [0.1, 0.2, 0.3, 0.4, 0.5]])


def test_two_users_by_hand():
    # User 0 sees items 1, 2, 3 (0 is seen) and wants 2 and 4: one hit, at rank 2.
    # User 1 sees items 3, 2, 1 (4 is seen) and wants 3: one hit, at rank 1.
    parts = world(SEEN, [(0, 2, 1), (0, 4, 1), (1, 3, 1)])
    found = ranking(Oracle(RATES, Degenerate(), SEEN), parts, n=3)
    first = (1 / log2(3)) / (1 + 1 / log2(3))
    assert found.ndcg.value == pytest.approx((first + 1) / 2)
    assert found.recall.value == pytest.approx((1 / 2 + 1) / 2)
    assert found.precision.value == pytest.approx(1 / 3)
    assert found.map.value == pytest.approx((0.5 / 2 + 1) / 2)
    assert found.mrr.value == pytest.approx((1 / 2 + 1) / 2)
    assert found.hit_rate.value == 1.0
    assert (found.n, found.n_users) == (3, 2)
    assert "at 3, over 2 users" in repr(found)
    assert list(found) == ["ndcg", "recall", "precision", "map", "mrr", "hit_rate"]


def test_lists_longer_than_the_catalog_are_short():
    parts = world(SEEN, [(0, 4, 1)])
    found = ranking(Oracle(RATES, Degenerate(), SEEN), parts, n=50)
    assert found.recall.value == found.hit_rate.value == 1.0
    assert found.mrr.value == pytest.approx(1 / 4)
    assert found.precision.value == pytest.approx(1 / 50)


@st.composite
def worlds(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(1, 7)), draw(st.integers(2, 12))
    kind = rng.random(shape)
    kind[0, 0] = 0.5
    held = (kind > 0.4) & (kind < 0.6)
    return rng.permutation(shape[0] * shape[1]).reshape(shape) + 1.0, kind < 0.3, held


@given(worlds(), st.integers(1, 15))
def test_measures_agree_with_a_plain_twin(drawn, k):
    rates, seen, held = drawn
    model = Oracle(rates, Degenerate(), seen)
    parts = world(seen, [(u, i, 1) for u, i in np.argwhere(held)])
    found = ranking(model, parts, k)
    best = model.recommend(np.arange(len(rates)), n=rates.shape[1])
    lists = {u: best.item[best.user == u].tolist() for u in range(len(rates))}
    relevant = {u: set(np.flatnonzero(row)) for u, row in enumerate(held) if row.any()}
    wanted = plain_ranking(lists, relevant, k)
    assert {name: score.value for name, score in found.items()} == pytest.approx(wanted)
    assert found.n_users == len(relevant)
    assert all(0 <= score.value <= 1 for score in found.values())


@given(worlds(), st.integers(1, 12))
def test_ndcg_and_average_precision_agree_with_sklearn(drawn, k):
    rates, _, held = drawn
    some = held.any(axis=1)
    rates, held = rates[some], held[some]
    order = np.argsort(-rates, axis=1)
    hits = np.take_along_axis(held, order, axis=1)
    found = rank_metrics(hits[:, :k], held.sum(axis=1))
    assert np.mean(found["ndcg"]) == pytest.approx(ndcg_score(held, rates, k=k))
    whole = rank_metrics(hits, held.sum(axis=1))["map"]
    each = [average_precision_score(h, r) for h, r in zip(held, rates, strict=True)]
    assert whole.tolist() == pytest.approx(each)


def test_the_fitted_model_and_the_plain_twin_agree(monkeypatch):
    data = simulate(80, 60, density=0.15, random_state=0).interactions
    data = Interactions(
        data.matrix, np.array([f"u{j}" for j in range(80)], object), data.items + 1000
    )
    parts = split(data, random_state=0)
    model = HCPF(4, max_iter=5, random_state=0)
    model.fit(parts.train, exclude=parts.held_out)
    rates = model.rate(data.users[:, None], data.items[None, :]).astype(np.float32)
    rates[parts.train.matrix.toarray() > 0] = -1.0
    lists = {u: np.argsort(-row, kind="stable").tolist() for u, row in enumerate(rates)}
    relevant: dict[int, set[int]] = {}
    for u, i in zip(parts.test.users.tolist(), parts.test.items.tolist(), strict=True):
        relevant.setdefault(u, set()).add(i)
    wanted = plain_ranking(lists, relevant, 10)
    for block in (1 << 21, 35):  # in one block, and a few users at a time
        monkeypatch.setattr("hcpf.evaluate.ranks._BLOCK", block)
        found = ranking(model, parts, 10, by="probability")
        assert {name: score.value for name, score in found.items()} == pytest.approx(wanted)


def test_popular_items_come_first_and_seen_ones_never():
    train = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 0, 0]])
    best = Popularity(Degenerate()).fit(train).recommend([0, 1], n=3)
    assert best.item.tolist() == [2, 3, 1, 3]
    assert best.rank.tolist() == [1, 2, 1, 2]
    assert best.user.tolist() == [0, 0, 1, 1]


def test_nothing_held_out_is_refused():
    parts = world(SEEN, [])
    with pytest.raises(InputError, match="no observed pairs"):
        ranking(Oracle(RATES, Degenerate(), SEEN), parts)
    with pytest.raises(InputError, match="n must be"):
        ranking(Oracle(RATES, Degenerate(), SEEN), parts, n=0)
