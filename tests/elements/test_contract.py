"""What every element promises, on one table of cases."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats

from cases import CASES, mass, moments, some_values, whole_numbers
from hcpf.elements import Separable, Tabulated
from reference import log_density

pytestmark = pytest.mark.parametrize("case", CASES, ids=repr)


@pytest.fixture
def element(case):
    return case.element


@pytest.mark.parametrize("n", [1, 2, 7])
def test_log_density_is_that_of_an_exponential_dispersion_model(element, n):
    y = some_values(element, n)
    theta, kappa = element.theta, element.kappa
    identity = y * theta - n * kappa * element.log_partition(theta)
    identity = identity + element.log_base_measure(y, n * kappa)
    assert_allclose(element.log_density(y, n), identity, rtol=1e-9, atol=1e-8)


def test_mean_and_variance_are_derivatives_of_the_log_partition(element):
    theta, kappa = float(element.theta), float(element.kappa)
    # The natural scale of theta is where the log-partition bends: 1 over the spread.
    step = 2e-3 * min(1.0, abs(theta) or 1.0) / max(1.0, float(element.variance) ** 0.5)
    psi = [float(element.log_partition(theta + k * step)) for k in range(-3, 4)]
    first = np.dot([-1, 9, -45, 0, 45, -9, 1], psi) / (60 * step)
    second = np.dot([2, -27, 270, -490, 270, -27, 2], psi) / (180 * step**2)
    assert_allclose(kappa * first, element.mean, rtol=1e-6, atol=1e-7)
    assert_allclose(kappa * second, element.variance, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [1, 3, 20])
def test_normalized_with_the_stated_moments(element, n):
    y, density, weights = mass(element, n)
    mean, spread = moments(element, n)
    assert_allclose(np.sum(weights * density), 1.0, rtol=1e-10)
    assert_allclose(np.sum(weights * density * y), mean, rtol=1e-9, atol=1e-12)
    variance = np.sum(weights * density * np.square(y - mean))
    assert_allclose(variance, spread**2, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 11])
def test_agrees_with_the_textbook_in_high_precision(element, n):
    y = some_values(element, n)[::4]
    exact = [float(log_density(element, value, n)) for value in y]
    assert_allclose(element.log_density(y, n), exact, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3)])
def test_sums_add_up(element, n, m):
    """The density of n elements convolved with that of m is the density of n + m."""
    if element.support.discrete:
        y = whole_numbers(element, n + m)
        parts = [np.exp(element.log_density(y, k)) for k in (n, m)]
        # The first entry of either stands for the lowest value, and so of the sum for twice it.
        start = int(element.support.lowest)
        convolved = np.convolve(*parts)[: len(y) - start]
        y = y[start:]
    else:
        y = some_values(element, n + m)[::3]
        convolved = [_convolution(element, n, m, value) for value in y]
    together = np.exp(element.log_density(y, n + m))
    assert_allclose(convolved, together, rtol=1e-8, atol=1e-11 * together.max())


def _convolution(element, n, m, y):
    if element.support.lowest < 0:
        mean, spread = moments(element, n)
        x = np.linspace(mean - 15 * spread, mean + 15 * spread, 4001)
        weights = np.full_like(x, x[1] - x[0])
        rest = y - x
    else:
        u = np.linspace(-120, 120, 24001)  # x = y / (1 + e^-u)
        x, rest = y / (1 + np.exp(-u)), y / (1 + np.exp(u))
        weights = x * rest / y * (u[1] - u[0])
    logs = element.log_density(x, n) + element.log_density(rest, m)
    return np.sum(weights * np.exp(logs))


@pytest.mark.parametrize("n", [1, 4])
def test_cdf_sums_the_density(element, n):
    if element.support.discrete:
        y = whole_numbers(element, n)
        summed = np.cumsum(np.exp(element.log_density(y, n)))
    else:
        y = some_values(element, n)[1::5]
        summed = [_integral_to(element, n, value) for value in y]
    assert_allclose(element.cdf(y, n), summed, rtol=1e-8, atol=1e-12)


def _integral_to(element, n, y):
    if element.support.lowest < 0:
        mean, spread = moments(element, n)
        low, high, at = mean - 15 * spread, y, lambda u: (u, 0.0)
    else:
        low, high, at = np.log(y) - 150, np.log(y), lambda u: (np.exp(u), u)

    def integrand(u):
        x, log_slope = at(u)
        return float(np.exp(element.log_density(x, n) + log_slope))

    edges = high - (high - low) * np.geomspace(1e-3, 1, 12)
    pieces = zip([low, *edges[::-1][1:]], [*edges[::-1][1:], high], strict=True)
    return sum(integrate.quad(integrand, a, b, epsabs=1e-14, epsrel=1e-11)[0] for a, b in pieces)


@pytest.mark.parametrize("n", [1, 3])
def test_cdf_between_and_beyond_the_values(element, n):
    y = some_values(element, n)
    assert np.all(np.diff(element.cdf(y, n)) >= -1e-15)
    assert_array_equal(element.cdf([-np.inf, np.inf, 1.7e308], n), [0.0, 1.0, 1.0])
    if element.support.discrete:
        assert_array_equal(element.cdf(y + 0.999, n), element.cdf(y, n))
        assert_array_equal(element.cdf([-0.5, -3.0], n), [0.0, 0.0])
    if element.support.lowest >= 0 and not element.support.has_zero:
        assert_array_equal(element.cdf([0.0, -1.0], n), [0.0, 0.0])


@pytest.mark.parametrize("n", [1, 5])
def test_samples_follow_the_cdf(element, n, rng):
    sample = element.sample(np.full(4000, n), rng)
    element.support.check("sample", sample)
    if element.support.discrete:
        values, observed = np.unique(sample, return_counts=True)
        p = _chi_square(element, n, values, observed)
    else:
        p = stats.kstest(sample, lambda y: element.cdf(y, n)).pvalue
    assert p > 1e-4


def _chi_square(element, n, values, observed):
    """The p-value of a chi-square test over bins that each expect 20 or more."""
    edges, total = [], observed.sum()
    grid = whole_numbers(element, n)
    cdf = element.cdf(grid, n)
    reached = 0.0
    for y, share in zip(grid, cdf, strict=True):
        if (share - reached) * total >= 20 and (1 - share) * total >= 20:
            edges.append(y)
            reached = share
    bins = np.searchsorted(edges, values)
    counts = np.bincount(bins, weights=observed, minlength=len(edges) + 1)
    expected = np.diff([0.0, *element.cdf(np.array(edges), n), 1.0]) * total
    if len(expected) == 1:
        return 1.0
    return stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue


def test_samples_of_no_elements_are_zero(element, rng):
    counts = np.array([[0, 2, 0], [1, 0, 3]])
    sample = element.sample(counts, rng)
    assert sample.shape == (2, 3)
    assert_array_equal(sample[counts == 0], 0.0)


def test_form_gives_the_log_density(element):
    n = np.arange(1.0, 12.0)
    y = some_values(element)[:, None]
    form, expected = element.form, element.log_density(y, n)
    if isinstance(form, Separable):
        found = form.c(y) + form.f(n) + form.g(y) * form.phi(n)
        scale = np.abs(form.f(n)) + np.abs(form.g(y) * form.phi(n)) + np.abs(form.c(y)) + 1
        assert np.all(np.abs(found - expected) <= 1e-13 * scale)
    else:
        assert isinstance(form, Tabulated)
        assert_array_equal(form.table(y, n), expected)


def test_n_range_holds_every_possible_n(element):
    y = some_values(element)
    n = np.arange(1.0, 40.0)
    low, high = element.n_range(y)
    possible = (n >= low[:, None]) & (n <= high[:, None])
    assert_array_equal(np.isfinite(element.log_density(y[:, None], n)), possible)


def test_probability_of_zero(element):
    p0 = np.exp(element.log_prob_zero)
    expected = element.cdf(0.0) if element.support.discrete else 0.0
    assert_allclose(p0, expected, rtol=1e-12, atol=0)


def test_highest_value(element):
    if np.isfinite(element.highest):
        assert np.isfinite(element.log_density(element.highest))
        assert element.log_density(element.highest + 1) == -np.inf
