"""The special functions, at their extremes, against mpmath."""

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from hcpf.elements import special
from hcpf.elements.sums import poisson_mixture, sum_of_draws, truncated_poisson

MANY = 700  # digits that hold 1 + 1e-300


def exact(function, *arguments, digits=60):
    with mp.workdps(digits):
        return float(function(*map(mp.mpf, arguments)))


def assert_exact(found, function, *arguments, rtol=4e-15, atol=0.0, digits=60):
    expected = exact(function, *arguments, digits=digits)
    assert_allclose(float(found), expected, rtol=rtol, atol=atol)


TINY_TO_HUGE = [1e-300, 1e-30, 1e-9, 0.01, 0.5, 1.0, 2.5, 14.999, 15.0, 100.0, 12345.6, 1e9, 1e15]


@pytest.mark.parametrize("x", TINY_TO_HUGE)
def test_stirling_error(x):
    def textbook(x):
        return mp.loggamma(x + 1) - (x * mp.log(x) - x + mp.log(2 * mp.pi * x) / 2)

    assert_exact(special.stirling_error(x), textbook, x, rtol=2e-14, atol=2e-15)


@pytest.mark.parametrize("x", [*TINY_TO_HUGE, 15.9999, 16.0, 40.0])
def test_digamma(x):
    assert_exact(special.digamma(x), mp.digamma, x)


def test_digamma_of_an_array_with_small_and_large_elements():
    x = np.array([[0.1, 17.0], [1e6, 3.0]])
    assert_allclose(special.digamma(x), [[exact(mp.digamma, v) for v in row] for row in x])


@pytest.mark.parametrize(
    "x",
    [-1 + 1e-15, -0.9, -0.2000001, -0.19999, -1e-3, -1e-12, 0.0, 1e-300, 1e-9, 0.199, 0.21, 1e9],
)
def test_log1p_minus(x):
    assert_exact(special.log1p_minus(x), lambda x: mp.log(1 + x) - x, x, digits=MANY)


def test_log1p_minus_at_its_pole():
    assert special.log1p_minus(-1.0) == -np.inf


@pytest.mark.parametrize("x", [*TINY_TO_HUGE[:-2], 700.0, 1e4])
def test_log_expm1(x):
    assert_exact(special.log_expm1(x), lambda x: mp.log(mp.expm1(x)), x, atol=4e-16)


@pytest.mark.parametrize("x", [-1e-300, -1e-12, -0.1, -0.69, -0.7, -5.0, -40.0, -700.0])
def test_log1mexp(x):
    assert_exact(special.log1mexp(x), lambda x: mp.log(-mp.expm1(x)), x, digits=MANY)


@pytest.mark.parametrize("n", [0.0, 1e-300, 1e-9, 0.3, 1.0, 2.0, 14.9, 15.0, 1e3, 1e6, 1e12])
def test_log_poisson(n):
    """Including a rate far below n, where rate - n holds no digit of the rate."""
    for rate in [1e-300, 1e-12, 1e-3, 0.3, 1.0, 999.0, 1e3, 1001.0, 1e4, 1e6, 1e6 + 1, 1e12, 1e15]:
        found = special.log_poisson(n, rate)
        textbook = exact(lambda n, r: n * mp.log(r) - r - mp.loggamma(n + 1), n, rate)
        assert_allclose(float(found), textbook, rtol=1e-14, atol=3e-14)


@pytest.mark.parametrize("total", [1.0, 2.5, 40.0, 1e6, 1e15])
@pytest.mark.parametrize("p", [1e-12, 0.3, 1 - 1e-9])
def test_log_binomial(total, p):
    for share in (0.0, 1e-3, 0.29, 0.5, 0.999, 1.0):
        x = share * total
        textbook = exact(
            lambda x, n, p: (
                mp.loggamma(n + 1)
                - mp.loggamma(x + 1)
                - mp.loggamma(n - x + 1)
                + x * mp.log(p)
                + (n - x) * mp.log(1 - p)
            ),
            *(x, total, p),
        )
        assert_allclose(special.log_binomial(x, total, p), textbook, rtol=1e-13, atol=2e-13)


@pytest.mark.parametrize("a", [1e-300, 1e-12, 1e-3, 0.5, 9.999, 10.0, 50.0, 1e4, 1e10])
def test_log_rising(a):
    for y in [0.0, 1.0, 2.0, 10.0, 1e3, 1e6]:
        found = special.log_rising(a, y)
        textbook = exact(lambda a, y: mp.loggamma(a + y) - mp.loggamma(a), a, y)
        assert_allclose(float(found), textbook, rtol=1e-14, atol=2e-14)


@pytest.mark.parametrize("rate", [1e-300, 1e-12, 1e-3, 0.0999, 0.1001, 1.0, 30.0, 1e4])
def test_truncated_poisson_moments(rate):
    mean, variance = special.truncated_poisson_moments(rate)
    assert_exact(mean, lambda r: r / -mp.expm1(-r), rate)
    with mp.workdps(MANY):
        r = mp.mpf(rate)
        textbook = r / -mp.expm1(-r)
        assert_allclose(variance, float(textbook * (1 + r - textbook)), rtol=1e-12)


ANGLES = np.array([0.0, 1e-6, 0.3, 1.5, 3.0, np.pi])


@pytest.mark.parametrize("rate", [1e-12, 1e-3, 1.0, 35.0, 39.9, 40.1, 1e4])
def test_characteristic_function_of_the_truncated_poisson(rate):
    def textbook(r, angle):
        z = r * mp.expj(angle)
        return mp.expm1(z) / mp.expm1(r) / mp.expj(angle)

    found = np.exp(special.log_characteristic_truncated_poisson(rate, ANGLES))
    with mp.workdps(60):
        expected = [complex(textbook(mp.mpf(rate), angle)) for angle in ANGLES]
    assert_allclose(found, expected, atol=1e-16 * max(rate, 100.0))


@pytest.mark.parametrize("p", [1e-12, 1e-3, 0.0499, 0.0501, 0.5, 0.999999])
def test_characteristic_function_of_the_logarithmic(p):
    def textbook(p, angle):
        return mp.log(1 - p * mp.expj(angle)) / mp.log(1 - p) / mp.expj(angle)

    found = np.exp(special.log_characteristic_logarithmic(p, ANGLES))
    with mp.workdps(60):
        assert_allclose(found, [complex(textbook(mp.mpf(p), a)) for a in ANGLES], atol=1e-14)


@pytest.mark.parametrize("c", [1.0, 30.0, 1e4, 1e6, 1e8, 1e10, 1e12])
@pytest.mark.parametrize("ratio", [0.01, 1.0, 7.3, 1e3])
def test_prob_beta_below_of_densities_of_any_width(c, ratio):
    """Pr(P <= Q) for P ~ Beta(1, b) is 1 - E[(1 - Q)^b], which is one of gamma functions."""
    b, d = max(ratio, 1.0), ratio * c

    def textbook(b, c, d):
        powers = mp.loggamma(d + b) - mp.loggamma(d) + mp.loggamma(c + d) - mp.loggamma(c + d + b)
        return 1 - mp.exp(powers)

    assert_exact(special.prob_beta_below(1.0, b, c, d), textbook, b, c, d, rtol=0.0, atol=1e-6)


def test_functions_broadcast():
    assert special.log_poisson(np.ones((3, 1)), np.ones(4)).shape == (3, 4)
    assert special.log_rising(np.ones((3, 1)), np.ones(4)).shape == (3, 4)
    assert special.log_poisson(np.empty(0), 1.0).shape == (0,)


def test_poisson_mixture_sums_to_what_is_not_zero():
    rate = np.array([1e-300, 1e-12, 0.1, 3.0, 50.0, 1e4, 1e6])
    total = poisson_mixture(rate, lambda pick, n: np.ones(n.shape))
    assert_allclose(total, -np.expm1(-rate), rtol=1e-12)
    mean = poisson_mixture(rate[2:5], lambda pick, n: n / 1e3)
    assert_allclose(mean, rate[2:5] / 1e3, rtol=1e-13)


@pytest.mark.parametrize("rate", [1e-300, 1e-9, 0.7, 30.0, 1e12])
def test_truncated_poisson_draws(rate, rng):
    draws = truncated_poisson(np.full(20_000, rate), rng)
    mean, variance = special.truncated_poisson_moments(rate)
    assert draws.min() >= 1
    assert abs(draws.mean() - mean) <= 5 * np.sqrt(variance / 20_000) + 1e-12


def test_sums_of_draws_are_cut_into_pieces(monkeypatch):
    monkeypatch.setattr("hcpf.elements.sums._CHUNK_DRAWS", 10)
    n = np.array([[3.0, 25.0, 1.0], [9.0, 2.0, 11.0]])
    weights = np.arange(1.0, 7.0).reshape(2, 3)
    assert_allclose(sum_of_draws(n, weights, lambda parameter: parameter), n * weights)
