"""One odd entry does not rule the mean of its row: limits, against readable loops."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hcpf import HCPF, Interactions, load
from hcpf.core import odd_entries
from hcpf.core.odd_entries import EntryTerms, choose_limit, limited
from hcpf.core.theta import ThetaPosterior
from hcpf.elements import Gamma, Poisson

CHI0, NU0, KAPPA = 6.0, 2.0, 1.5


def rows_of(values_by_row):
    """Return theta and terms of rows with the given values, one element per entry."""
    row = np.repeat(np.arange(len(values_by_row)), [len(values) for values in values_by_row])
    chi = np.array([y for values in values_by_row for y in values])
    terms = EntryTerms(row.astype(np.int64), chi, np.full(len(chi), KAPPA))
    size = len(values_by_row)
    theta = ThetaPosterior(
        CHI0 + np.bincount(row, chi, size),
        NU0 + KAPPA * np.bincount(row, minlength=size),
        CHI0,
        NU0,
    )
    return theta, terms


def counted(values, limit):
    """Return what the entries of a row count: up to the limit, or as much as the rest of it."""
    cap = limit * CHI0 / NU0 * KAPPA
    return [min(y, max(cap, CHI0 + sum(values) - y)) for y in values]


def leave_one_out(values_by_row, limit, conjugate):
    """Do the same in loops: each entry given the others of its row, which are capped."""
    total = 0.0
    for values in values_by_row:
        for left_out, y in enumerate(values):
            others = [x for j, x in enumerate(counted(values, limit)) if j != left_out]
            chi, nu = CHI0 + sum(others), NU0 + KAPPA * len(others)
            arguments = (np.array(x) for x in (y, KAPPA, chi, nu))
            total += float(conjugate.log_predictive(*arguments))
    return total


@given(
    st.lists(st.lists(st.floats(0.1, 1e5), min_size=1, max_size=5), min_size=1, max_size=6),
    st.floats(1.0, 1e3),
)
def test_against_loops(values_by_row, limit):
    theta, terms = rows_of(values_by_row)
    conjugate = Gamma(1, 1).conjugate
    theta = replace(theta, limit=limit)
    found = odd_entries._leave_one_out(theta, terms, conjugate).sum()
    assert np.isclose(found, leave_one_out(values_by_row, limit, conjugate), rtol=1e-9)
    expected = [CHI0 + sum(counted(values, limit)) for values in values_by_row]
    chi = limited(theta, terms).for_predictions.chi
    np.testing.assert_allclose(chi, expected, rtol=1e-12)
    assert np.all(chi <= theta.chi * (1 + 1e-12))


def ordinary_rows(n_rows, rng, spread=0.5):
    means = 3.0 * np.exp(spread * rng.standard_normal(n_rows))
    return [list(mean * rng.gamma(KAPPA, 1.0, 8)) for mean in means]


def test_a_single_huge_entry_counts_like_the_largest_confirmed_one():
    rows = ordinary_rows(300, np.random.default_rng(0))
    rows[0] = [900.0, 800.0]  # 200 and 178 times what the prior expects: large, and confirmed
    rows += [[1e6]]
    theta, terms = rows_of(rows)
    limit = choose_limit(theta, terms, Gamma(1, 1).conjugate)
    assert limit == pytest.approx(800.0 / (CHI0 / NU0 * KAPPA))
    found = limited(replace(theta, limit=limit), terms).for_predictions
    assert found.chi[-1] == pytest.approx(CHI0 + 800.0)
    assert found.chi[0] == pytest.approx(CHI0 + 800.0 + (CHI0 + 800.0))
    np.testing.assert_array_equal(found.chi[1:-1], theta.chi[1:-1])


def test_a_heavy_tail_in_a_row_of_many_entries_keeps_its_weight():
    rng = np.random.default_rng(4)
    rows = ordinary_rows(300, rng)
    rows[0] = list(np.exp(2.0 * rng.standard_normal(200)))
    rows[1] = [3.0, 4000.0]
    theta, terms = rows_of(rows)
    found = limited(replace(theta, limit=5.0), terms).for_predictions
    assert max(rows[0]) > 5.0 * CHI0 / NU0 * KAPPA
    assert found.chi[0] == pytest.approx(theta.chi[0])
    assert found.chi[1] == pytest.approx(CHI0 + 3.0 + 5.0 * CHI0 / NU0 * KAPPA)


def rows_with_odd_entries():
    """Return rows of which a fifth has one odd entry in eight, and one has two."""
    rng = np.random.default_rng(1)
    rows = ordinary_rows(300, rng)
    for row in rows[:60]:
        row[0] = 4000.0 * rng.random()
    rows[0] = [4000.0, 4000.0]
    return rows


def test_odd_entries_that_others_contradict_lower_the_limit():
    rows = rows_with_odd_entries()
    theta, terms = rows_of(rows)
    conjugate = Gamma(1, 1).conjugate
    limit = choose_limit(theta, terms, conjugate)
    assert limit < 50.0
    assert leave_one_out(rows, limit, conjugate) > leave_one_out(rows, np.inf, conjugate) + 50.0


def test_few_data_say_nothing():
    theta, terms = rows_of([[1.0, 2.0], [3.0], [1e9]])
    assert choose_limit(theta, terms, Poisson(1).conjugate) == np.inf


def test_only_some_rows_of_large_data_are_compared(monkeypatch):
    theta, terms = rows_of(rows_with_odd_entries())
    every = choose_limit(theta, terms, Gamma(1, 1).conjugate)
    monkeypatch.setattr(odd_entries, "_MAX_ENTRIES", 200)
    some = choose_limit(theta, terms, Gamma(1, 1).conjugate)
    assert every < 50.0
    assert some < 50.0


@pytest.fixture(scope="module", params=["gamma", "inverse_gaussian"])
def fitted(request):
    """A model of shoppers, one of whom once bought for 100,000 times the usual amount."""
    rng = np.random.default_rng(3)
    dense = np.where(rng.random((150, 40)) < 0.3, rng.integers(1, 30, (150, 40)), 0).astype(float)
    dense[0] = 0.0
    dense[0, 0] = 1e6
    data = Interactions.from_matrix(sparse.csr_array(dense))
    model = HCPF(2, element=request.param, vary_by="both", n_fits=2, max_iter=20, random_state=0)
    return model.fit(data)


def test_all_fits_share_the_limits_of_the_first(fitted):
    for axis in ("users", "items"):
        limits = [getattr(fit, axis).theta.limit for fit in fitted.posteriors_]
        assert limits[0] == limits[1] < np.inf


def test_predictions_of_an_odd_user(fitted, tmp_path):
    others = fitted.predict(np.repeat(1, 39), np.arange(1, 40))
    odd = fitted.predict(np.repeat(0, 39), np.arange(1, 40))
    assert np.all(odd < 200 * others)  # without a limit, 10,000 times and more
    shares = fitted.explain(0, 5).share
    assert np.isclose(shares.sum(), 1.0)
    assert np.all((shares > -1e-6) & (shares < 1.0 + 1e-6))
    fitted.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(np.repeat(0, 39), np.arange(1, 40)), odd)
    limits = [fit.users.theta.limit for fit in again.posteriors]
    assert all(5.0 <= limit < 100.0 for limit in limits)


def test_a_new_user_with_an_odd_entry(fitted):
    new = fitted.fold_in({0: 1e6})
    known = fitted.predict(np.repeat(0, 39), np.arange(1, 40))
    found = new.predict(np.repeat("new", 39), np.arange(1, 40))
    np.testing.assert_allclose(found, known, rtol=0.3)
