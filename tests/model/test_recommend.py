"""Recommendations against a plain NumPy ranking."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcpf import CompoundPoisson
from hcpf.core import kernels
from hcpf.elements import Gamma, Normal, Poisson
from hcpf.errors import InputError
from hcpf.model import ranking
from model.small import by_hand, quick

CRITERIA = ("probability", "value", "expected_value")


@pytest.fixture(autouse=True, scope="module", params=["compiled", "without kernels"])
def are_loaded(request):
    """Rank by compiled kernels, and as a process does that has not loaded any."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "are_loaded", lambda: request.param == "compiled")
        yield


def brute_force(rates, seen, rows, n, allowed, sign=1.0):
    """(row, item) pairs: the n largest rates, at the same rate the first item, nothing seen."""
    pairs = []
    for row in rows:
        free = [i for i in range(rates.shape[1]) if allowed[i] and not seen[row, i]]
        pairs += [(row, i) for i in sorted(free, key=lambda i: (-sign * rates[row, i], i))[:n]]
    return pairs


@st.composite
def worlds(draw):
    """Factors that are small integers, so that rates are exact and often tie."""
    users, items, size = (draw(st.integers(1, most)) for most in (5, 9, 3))
    seed, fits = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from([1, 2, 4]))
    rng = np.random.default_rng(seed)
    factors = [
        (rng.integers(0, 3, (users, size)), rng.integers(0, 3, (items, size))) for _ in range(fits)
    ]
    seen = rng.random((users, items)) < draw(st.sampled_from([0.0, 0.3, 0.9, 1.0]))
    return factors, seen


@given(
    world=worlds(),
    n=st.integers(1, 12),
    by=st.sampled_from(CRITERIA),
    element=st.sampled_from([Poisson(2.0), Gamma(2.0, 0.1), Normal(-1.5, 1.0)]),
    exclude_seen=st.booleans(),
    data=st.data(),
)
def test_recommendations_are_those_of_a_plain_ranking(world, n, by, element, exclude_seen, data):
    factors, seen = world
    users, items = seen.shape
    model = by_hand(factors, seen, element)
    rates = sum(np.asarray(s) @ np.asarray(v).T for s, v in factors) / len(factors)
    some_items = st.one_of(st.none(), st.lists(st.integers(0, items - 1)))
    among, deny = data.draw(some_items), data.draw(some_items)
    rows = data.draw(st.lists(st.integers(0, users - 1), max_size=7))
    allowed = np.ones(items, bool) if among is None else np.isin(np.arange(items), among)
    allowed &= True if deny is None else ~np.isin(np.arange(items), deny)
    hidden = seen if exclude_seen else np.zeros_like(seen)
    sign = -1.0 if by != "probability" and element.mean < 0 else 1.0
    expected = brute_force(rates, hidden, rows, n, allowed, sign)

    found = model.recommend(
        np.array(rows, dtype=int), n, by=by, exclude_seen=exclude_seen, among=among, deny=deny
    )
    assert list(zip(found.user.tolist(), found.item.tolist(), strict=True)) == expected
    rate = np.array([rates[pair] for pair in expected], dtype=float)
    np.testing.assert_allclose(found.probability, -np.expm1(-rate), rtol=1e-6)
    np.testing.assert_allclose(found.value, CompoundPoisson(rate, element).mean_observed, rtol=1e-6)
    np.testing.assert_allclose(found.expected_value, rate * element.mean, rtol=1e-6)


@given(world=worlds(), n=st.integers(1, 12))
def test_ranks_count_from_one_for_each_request_and_the_criterion_never_rises(world, n):
    factors, seen = world
    model = by_hand(factors, seen)
    rows = [0, len(seen) - 1, 0]
    found = model.recommend(rows, n, by="probability")
    free = [min(n, int((~seen[row]).sum())) for row in rows]
    assert found.rank.tolist() == [r for count in free for r in range(1, count + 1)]
    assert len(found) == sum(free)
    steps = np.diff(found.probability)[np.diff(found.rank) > 0]
    assert np.all(steps <= 0)


@given(world=worlds(), n=st.integers(1, 12))
def test_a_consensus_is_the_geometric_mean_of_the_fits(world, n):
    factors, seen = world
    rates = [np.asarray(s, float) @ np.asarray(v, float).T for s, v in factors]
    log_mean = np.mean(np.log(np.maximum(rates, 1e-37)), axis=0)
    model = by_hand(factors, seen)
    for row in range(len(seen)):
        found = model.recommend(row, n).item
        best = np.sort(log_mean[row][~seen[row]])[::-1][:n]
        np.testing.assert_allclose(log_mean[row][found], best, rtol=0, atol=2e-5)
        assert len(np.unique(found)) == len(found)


def test_what_all_fits_agree_on_comes_before_what_one_is_sure_of():
    sure, agreed = [[9.0], [0.1], [0.1]], [[2.0], [2.0], [2.0]]
    factors = [([[1.0]], [a, b]) for a, b in zip(sure, agreed, strict=True)]
    model = by_hand(factors, np.zeros((1, 2), bool))
    assert model.recommend(0, 2).item.tolist() == [1, 0]
    assert model.recommend(0, 2, by="probability").item.tolist() == [0, 1]


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(5)
    counts = (rng.random((40, 25)) < 0.3) * (1.0 + rng.poisson(2.0, (40, 25)))
    counts[3], counts[4] = 0.0, 1.0 + np.arange(25)  # nothing seen, and everything
    return quick(4, element=Poisson(), n_fits=3).fit(counts)


@pytest.mark.parametrize("by", CRITERIA)
def test_a_fitted_average_ranks_by_its_own_predictions(fitted, by):
    predict = {
        "probability": fitted.predict_proba, "value": fitted.predict,
        "expected_value": fitted.predict_expected_value,
    }[by]  # fmt: skip
    users = np.array([7, 0, 39, 7, 3, 4])
    score = predict(users[:, None], np.arange(25))
    score[fitted.interactions_.matrix[users].toarray() > 0] = -np.inf
    best = np.argsort(-score, axis=1, kind="stable")
    found = fitted.recommend(users, 6, by=by)
    expected = [(u, i) for u, row in zip(users, best[:, :6], strict=True) for i in row if u != 4]
    assert list(zip(found.user, found.item, strict=True)) == expected
    told = {name: getattr(found, name) for name in CRITERIA}
    np.testing.assert_allclose(
        told["probability"], fitted.predict_proba(found.user, found.item), 1e-5
    )
    np.testing.assert_allclose(told["value"], fitted.predict(found.user, found.item), 1e-5)
    np.testing.assert_allclose(
        told["expected_value"], fitted.predict_expected_value(found.user, found.item), 1e-5
    )


def test_there_is_never_any_padding(fitted):
    assert len(fitted.recommend(4)) == 0  # has seen everything
    assert len(fitted.recommend(4, exclude_seen=False, n=100)) == 25
    assert len(fitted.recommend(3, n=100)) == 25  # has seen nothing
    assert len(fitted.recommend(3, n=10**18, among=[2, 5])) == 2
    assert len(fitted.recommend([3, 3], among=[])) == 0
    assert len(fitted.recommend([])) == 0
    assert fitted.recommend([]).item.dtype == fitted.items_.dtype
    assert len(fitted.recommend(3, among=[2, 5], deny=[5, 2])) == 0


@pytest.mark.parametrize("seen", [0.0, 1.0])
def test_one_user_and_one_item(seen):
    model = by_hand([([[2.0]], [[0.25]])], [[seen]])
    found = model.recommend(0)
    assert len(found) == (0 if seen else 1)
    if not seen:
        assert found.probability[0] == pytest.approx(-np.expm1(-0.5))


def test_blocks_make_no_difference(fitted, monkeypatch):
    users = np.random.default_rng(0).integers(0, 40, 100)
    whole = fitted.recommend(users, 7)
    near = fitted.similar_users(users, 7)
    for block in (1, 7, 33):
        monkeypatch.setattr(ranking, "MAX_BLOCK", block)
        monkeypatch.setattr(ranking, "TILE", 10 * block)
        monkeypatch.setattr(ranking, "_USERS_AT_ONCE", 3 * block)
        parts = fitted.recommend(users, 7)
        for name, column in whole.columns().items():
            np.testing.assert_allclose(getattr(parts, name), column, rtol=1e-6)
        np.testing.assert_array_equal(fitted.similar_users(users, 7).of, near.of)


def test_the_rows_of_one_user(fitted):
    found = fitted.recommend([7, 0, 7], 3)
    assert found.of(7).rank.tolist() == [1, 2, 3, 1, 2, 3]
    assert found.of(0).user.tolist() == [0, 0, 0]
    with pytest.raises(InputError, match=r"user: unknown id 1. Ids are integers, for example 7"):
        found.of(1)
    with pytest.raises(InputError, match="user: the fitted ids are integers, but these are str"):
        found.of("7")


# -- neighbors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["items", "users"])
def test_neighbors_are_those_of_the_cosine_of_whole_rows_of_rates(fitted, what):
    rates = fitted.rate(np.arange(40)[:, None], np.arange(25))
    rows = rates if what == "users" else rates.T
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, -np.inf)
    asked = [3, 0, 3, 19]
    found = getattr(fitted, f"similar_{what}")(asked, 8)
    assert found.of.tolist() == [j for j in asked for _ in range(8)]
    best = np.sort(cosine[asked], axis=1)[:, ::-1][:, :8].ravel()
    np.testing.assert_allclose(found.similarity, best, rtol=0, atol=1e-6)
    np.testing.assert_allclose(cosine[found.of, found.id], best, rtol=0, atol=1e-6)


def test_there_are_at_most_as_many_neighbors_as_others(fitted):
    assert len(fitted.similar_items(2, 10**9)) == 24
    assert len(fitted.similar_users([])) == 0
    assert fitted.similar_users([]).id.dtype == fitted.users_.dtype
    alone = by_hand([([[2.0]], [[0.25]])])
    assert len(alone.similar_items(0)) == len(alone.similar_users(0)) == 0


@pytest.mark.parametrize("vary_by", [None, "both"])
def test_details_agree_with_the_explanation_of_each_pair(vary_by, monkeypatch):
    from hcpf import HCPF, simulate
    from hcpf.model import explain

    monkeypatch.setattr(explain, "_BLOCK", 40)  # several blocks of users
    data = simulate(30, 20, density=0.25, random_state=1).interactions
    marks = data.matrix[:, :].copy()
    marks.data[:] = np.random.default_rng(0).random(marks.nnz) < 0.2
    marks.eliminate_zeros()
    settings = {"element": "gamma", "vary_by": vary_by, "n_fits": 2, "max_iter": 4}
    model = HCPF(2, **settings, random_state=0).fit(data, exclude=marks).model_
    users = np.random.default_rng(1).permutation(30)
    found = model.recommend(users, n=3, details=True)
    plain = model.recommend(users, n=3)
    assert list(found.item) == list(plain.item)
    low, high = model.predict_distribution(found.user, found.item).observed.interval(0.9)
    np.testing.assert_allclose(found.low, low, rtol=0.02)
    np.testing.assert_allclose(found.high, high, rtol=0.02)
    entries = np.diff(data.matrix.indptr)
    for row in found:
        expected = model.explain(row.user, row.item)
        assert row.user_entries == entries[row.user]
        assert row.item_entries == np.sum(data.matrix.indices == row.item)
        if row.reason is None:
            assert list(expected.source) == ["(prior)"]
        else:
            assert row.reason == expected.source[0]
            assert row.reason_share == pytest.approx(expected.share[0])
