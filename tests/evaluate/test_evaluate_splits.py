"""Splits: what is held out, how much, and that nothing is in two places."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hcpf import Interactions, simulate
from hcpf.errors import InputError
from hcpf.evaluate import leave_out, split


@st.composite
def matrices(draw):
    rows, cols = draw(st.integers(2, 9)), draw(st.integers(3, 9))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    mask = rng.random((rows, cols)) < draw(st.floats(0.2, 0.7))
    mask[0, :3] = True
    mask[-1, -1] = False
    users, items = np.nonzero(mask)
    values = rng.integers(0, 5, len(users)).astype(float)  # observed zeros too
    return Interactions.from_matrix(
        sparse.csr_array((values, (users, items)), shape=(rows, cols)),
        users=[f"u{j}" for j in range(rows)],
    )


def keys(users, items, data):
    return set((np.asarray(users) * data.n_items + np.asarray(items)).tolist())


def check(data, parts):
    """Every entry is in exactly one part; missing pairs are missing, distinct, and marked."""
    stored = data.matrix.tocoo()
    everything = dict(
        zip((stored.row * data.n_items + stored.col).tolist(), stored.data, strict=True)
    )
    train = parts.train.matrix.tocoo()
    seen = dict(zip((train.row * data.n_items + train.col).tolist(), train.data, strict=True))
    marked = set()
    for pairs in (parts.test, parts.validation):
        place = (pairs.users * data.n_items + pairs.items).tolist()
        assert not set(place) & set(seen)
        seen |= dict(zip(place, pairs.values, strict=True))
        missing = keys(pairs.missing_users, pairs.missing_items, data)
        assert len(missing) == len(pairs.missing_users)
        assert not missing & set(everything)
        assert not missing & marked
        marked |= missing | set(place)
    assert seen == everything
    assert len(train.data) + len(parts.test) + len(parts.validation) == len(everything)
    exclude = parts.held_out.tocoo()
    assert keys(exclude.row, exclude.col, data) == marked
    assert parts.n_missing == data.n_users * data.n_items - len(everything)
    assert parts.train.users.tolist() == data.users.tolist()


@given(matrices(), st.integers(0, 99))
def test_a_split_parts_the_entries(data, seed):
    parts = split(data, test=0.3, validation=0.2, random_state=seed)
    check(data, parts)
    assert len(parts.test) == round(0.3 * data.n_observed)
    assert len(parts.validation) == round(0.2 * data.n_observed)
    free = parts.n_missing
    held = len(parts.test) + len(parts.validation)
    assert len(parts.test.missing_users) + len(parts.validation.missing_users) == min(held, free)


@given(matrices(), st.integers(1, 3), st.integers(0, 99))
def test_leave_out_takes_n_of_each_user_with_more(data, n, seed):
    degree = np.diff(data.matrix.indptr)
    if not np.any(degree > n):
        with pytest.raises(InputError, match="more than"):
            leave_out(data, n, random_state=seed)
        return
    parts = leave_out(data, n, random_state=seed)
    check(data, parts)
    taken = np.bincount(parts.test.users, minlength=data.n_users)
    assert taken.tolist() == np.where(degree > n, n, 0).tolist()
    stands_for = parts.test.missing_weight * parts.test.n_missing
    assert stands_for == pytest.approx(parts.n_missing * len(parts.test) / data.n_observed)


@given(matrices(), st.integers(0, 99))
def test_a_split_by_time_tests_on_the_latest(data, seed):
    times = np.random.default_rng(seed).integers(0, 6, data.n_observed)  # with ties
    parts = split(data, times=times, test=0.3, validation=0.2, random_state=seed)
    check(data, parts)
    stored = data.matrix.tocoo()
    of = dict(zip(zip(stored.row, stored.col, strict=True), times, strict=True))
    kept = parts.train.matrix.tocoo()
    pairs = [
        (kept.row, kept.col),
        (parts.validation.users, parts.validation.items),
        (parts.test.users, parts.test.items),
    ]
    when = [of[pair] for part in pairs for pair in sorted(zip(*part, strict=True), key=of.get)]
    assert when == sorted(when)


@given(matrices(), st.integers(1, 2), st.integers(0, 99))
def test_leave_out_with_times_takes_the_latest_of_each_user(data, n, seed):
    if not np.any(np.diff(data.matrix.indptr) > n):
        return
    times = np.random.default_rng(seed).permutation(data.n_observed)
    parts = leave_out(data, n, times=times, random_state=seed)
    check(data, parts)
    pointer = data.matrix.indptr
    for user in range(data.n_users):
        entries = np.arange(pointer[user], pointer[user + 1])
        latest = sorted(entries, key=lambda e: times[e])[-n:] if len(entries) > n else []
        wanted = sorted(data.matrix.indices[latest].tolist()) if len(latest) else []
        assert sorted(parts.test.items[parts.test.users == user].tolist()) == wanted


def test_random_leave_out_is_uniform():
    data = Interactions.from_matrix(np.ones((4000, 5)) * [1, 1, 1, 1, 0])
    counts = np.bincount(leave_out(data, 2, random_state=0).test.items, minlength=5)
    np.testing.assert_allclose(counts, [2000, 2000, 2000, 2000, 0], atol=150)


def test_the_same_seed_gives_the_same_split_and_another_does_not():
    data = simulate(60, 40, density=0.2, random_state=1).interactions
    one, two, other = (split(data, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.test.users, two.test.users)
    np.testing.assert_array_equal(one.test.missing_items, two.test.missing_items)
    assert not np.array_equal(one.test.users, other.test.users)


def test_times_may_be_dates_or_interactions():
    who, what = ["a", "a", "b", "b"], ["x", "y", "x", "z"]
    data = Interactions.from_arrays(who, what, [1.0, 2.0, 3.0, 4.0])
    dates = np.array(["2024-01-05", "2024-01-01", "2024-01-03", "2024-01-02"], "M8[D]")
    stamps = Interactions.from_arrays(who, what, dates.astype(int))
    for times in (dates, stamps):
        parts = split(data, times=times, test=0.25, validation=0.25)
        assert parts.test.values.tolist() == [1.0]
        assert parts.validation.values.tolist() == [3.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda data: split(data, test=0.0),
        lambda data: split(data, test=0.9, validation=0.1),
        lambda data: split(data, test=0.01, validation=0.0),
        lambda data: split(data, times=[1.0, 2.0]),
        lambda data: split(data, times=np.full(data.n_observed, np.nan)),
        lambda data: split(data, times=np.full(data.n_observed, "NaT", "M8[s]")),
        lambda data: split(data, times=["x"] * data.n_observed),
        lambda data: split(data, times=Interactions.from_matrix(np.eye(4))),
        lambda data: leave_out(data, 0),
        lambda data: leave_out(data, 4),
    ],
)
def test_what_cannot_be_split_is_refused(call):
    with pytest.raises(InputError):
        call(Interactions.from_matrix(np.triu(np.ones((4, 4)))))


def test_a_share_of_too_few_entries_is_named():
    with pytest.raises(InputError, match=r"test=0\.01 of 16 entries leaves none for the test"):
        split(Interactions.from_matrix(np.ones((4, 4))), test=0.01)
