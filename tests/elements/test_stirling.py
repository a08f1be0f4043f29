"""Stirling numbers against integer arithmetic, and large ones against exact identities."""

import math

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

from hcpf.elements import stirling
from hcpf.elements.special import log_rising
from reference import log_stirling2_alternating, stirling_row

BOTH = [(1, stirling.log_stirling1), (2, stirling.log_stirling2)]
both_kinds = pytest.mark.parametrize(("kind", "function"), BOTH, ids=["first", "second"])


def logs(row):
    with mp.workdps(30):
        return np.array([float(mp.log(value)) for value in row[1:]])


@both_kinds
@pytest.mark.parametrize("y", [1, 2, 10, 64, 65, 300])
def test_triangles(kind, function, y):
    n = np.arange(1.0, y + 1)
    assert_allclose(function(np.full(y, float(y)), n), logs(stirling_row(kind, y)), atol=2e-12)


@both_kinds
def test_last_triangle_row_and_first_contour_row(kind, function):
    exact = logs(stirling_row(kind, stirling.MAX_TRIANGLE))
    n = np.arange(1.0, stirling.MAX_TRIANGLE + 1)
    y = np.full(n.shape, float(stirling.MAX_TRIANGLE))
    assert_allclose(function(y, n), exact, atol=3e-12)
    contour = stirling._contour_first if kind == 1 else stirling._contour_second
    assert_allclose(contour(y, n), exact, atol=3e-11)


@both_kinds
def test_contour_rows(kind, function):
    exact = logs(stirling_row(kind, 1201))
    n = np.arange(1.0, 1202.0)
    assert_allclose(function(np.full(n.shape, 1201.0), n), exact, atol=5e-11)


@pytest.mark.parametrize(("y", "n"), [(3000, 10), (20_000, 3), (20_000, 60), (100_000, 7)])
def test_second_kind_against_the_alternating_sum(y, n):
    with mp.workdps(40):
        exact = float(log_stirling2_alternating(y, n))
    assert_allclose(stirling.log_stirling2(float(y), float(n)), exact, rtol=1e-14, atol=1e-9)


@pytest.mark.parametrize("y", [1001, 5000, 10**5, 10**6])
def test_next_to_the_diagonal(y):
    """S(y, y-1) = C(y, 2) for both kinds; S(y, y-2) = a C(y, 3) + 3 C(y, 4) with a = 2 or 1."""
    value, comb = float(y), lambda k: math.comb(y, k)
    for kind, function in BOTH:
        assert_allclose(function(value, value), 0.0, atol=1e-8)
        assert_allclose(function(value, value - 1), math.log(comb(2)), atol=1e-8)
        two = (2 if kind == 1 else 1) * comb(3) + 3 * comb(4)
        assert_allclose(function(value, value - 2), math.log(two), atol=1e-8)


@pytest.mark.parametrize("y", [1001, 10**4, 10**6])
def test_few_sets_and_cycles(y):
    """S2(y, 2) = 2^(y-1) - 1 and |s(y, 2)| = (y-1)! times a harmonic number."""
    value = float(y)
    assert_allclose(stirling.log_stirling2(value, 1.0), 0.0, atol=1e-8)
    assert_allclose(stirling.log_stirling2(value, 2.0), (y - 1) * math.log(2), rtol=1e-14)
    factorial = special.gammaln(value)
    assert_allclose(stirling.log_stirling1(value, 1.0), factorial, rtol=1e-14)
    harmonic = math.log(special.psi(value) + np.euler_gamma)
    assert_allclose(stirling.log_stirling1(value, 2.0), factorial + harmonic, rtol=1e-14)


@pytest.mark.parametrize(("y", "x"), [(1e6, 0.3), (1e6, 50.0), (1e5, 2e5), (5000.0, 1e7)])
def test_first_kind_sums_to_the_rising_factorial(y, x):
    """The sum of |s(y, n)| x^n over n is x (x+1) ... (x+y-1)."""
    mean = x * (special.psi(x + y) - special.psi(x))
    n = np.arange(max(1, mean - 12 * mean**0.5 - 60), min(y, mean + 12 * mean**0.5 + 60) + 1)
    n = np.unique(np.floor(n))
    total = special.logsumexp(stirling.log_stirling1(y, n) + n * np.log(x))
    assert_allclose(total, log_rising(x, y), rtol=1e-14, atol=1e-8)


def test_outside_the_triangle_and_odd_shapes():
    for _, function in BOTH:
        y, n = np.array([[3.0], [2000.0]]), np.array([0.0, 1.0, 3.0, 4.0, 2001.0])
        found = function(y, n)
        assert_array_equal(np.isfinite(found), [[0, 1, 1, 0, 0], [0, 1, 1, 1, 0]])
        for value in (5.0, 5000.0):
            assert function(np.array(value), np.array(2.0)).shape == ()
        assert function(np.empty((0, 2)), np.ones(2)).shape == (0, 2)


def test_long_arrays_are_cut_into_pieces(monkeypatch):
    n = np.arange(1.0, 500.0)
    whole = [function(1500.0, n) for _, function in BOTH]
    monkeypatch.setattr(stirling, "_CHUNK", 37)
    for expected, (_, function) in zip(whole, BOTH, strict=True):
        assert_allclose(function(1500.0, n), expected, rtol=1e-15)
