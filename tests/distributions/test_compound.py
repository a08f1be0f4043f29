"""The compound Poisson distribution: its density, and the theorems about it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special, stats

from accuracy import GRID_ELEMENTS
from cases import CASES, EVERYDAY, mass, whole_numbers
from hcpf import CompoundPoisson, ObservedCompoundPoisson
from hcpf.distributions.series import sum_over_n
from hcpf.elements import (
    Binomial,
    Degenerate,
    Gamma,
    InverseGaussian,
    Logarithmic,
    NegativeBinomial,
    Normal,
    Poisson,
    ZeroTruncatedPoisson,
)
from hcpf.elements.special import log_poisson
from hcpf.errors import IncompleteElementError, InputError, ParameterError
from reference import log_compound, relative_error

each_case = pytest.mark.parametrize("element", [case.element for case in CASES], ids=repr)
each_element = pytest.mark.parametrize("element", [case.element for case in EVERYDAY], ids=repr)
each_discrete = pytest.mark.parametrize(
    "element", [case.element for case in CASES if case.element.support.discrete], ids=repr
)


# -- the density -----------------------------------------------------------------------------------


FIRST_OF_FAMILY = {type(element): element for element in reversed(GRID_ELEMENTS)}


@pytest.mark.parametrize(
    "element",
    [
        pytest.param(element, marks=[] if is_first else pytest.mark.slow, id=repr(element))
        for element in GRID_ELEMENTS
        for is_first in [FIRST_OF_FAMILY[type(element)] is element]
    ],
)
def test_density_against_high_precision(element):
    """Rates over 16 orders of magnitude and values up to a million; tests/accuracy.py has more."""
    rates, values = np.array([1e-12, 0.3, 1e4]), np.array([2.0, 1e3, 1.001e3, 1e6])
    found = CompoundPoisson(rates[:, None], element).log_density(values)
    for i, rate in enumerate(rates):
        for j, y in enumerate(values):
            allowed = 1e-10 if y <= 1000 else 1e-6
            assert relative_error(element, rate, y, found[i, j]) < allowed


@each_element
@pytest.mark.parametrize("rate", [1e-12, 1.0])
def test_density_of_the_observed_part(element, rate):
    found = CompoundPoisson(rate, element).log_density_observed(3.0)
    exact = float(log_compound(element, rate, 3.0)) - np.log(-np.expm1(-rate))
    assert_allclose(found, exact, rtol=1e-12)
    assert CompoundPoisson(rate, element).observed.log_density(3.0) == found


@pytest.mark.parametrize("y", [2000.0, 80_000.0, 1e6])
def test_equivalent_compounds_at_large_values(y):
    """Logarithmic elements make a negative binomial, truncated Poissons one of plain Poissons."""
    rate, p, inner = np.array([1e-6, 0.3, 20.0, 5000.0]), 0.999, 12.0
    twin = NegativeBinomial(rate / -np.log1p(-p), p).log_density(y)
    assert_allclose(CompoundPoisson(rate, Logarithmic(p)).log_density(y), twin, atol=1e-8)
    twin = CompoundPoisson(rate / -np.expm1(-inner), Poisson(inner)).log_density(y)
    truncated = CompoundPoisson(rate, ZeroTruncatedPoisson(inner)).log_density(y)
    assert_allclose(truncated, twin, atol=1e-7)


@each_case
def test_terms_are_log_concave_in_n(element):
    """The summation from the mode outward relies on it."""
    for y in (1.0, 2.0, 9.0, 60.0, 400.0):
        low, high = (float(end) for end in element.n_range(np.array(y)))
        n = np.arange(low, min(high, low + 300) + 1)
        for rate in (1e-6, 1.0, 100.0):
            terms = log_poisson(n, rate) + element.log_density(y, n)
            rounding = 1e-13 * np.abs(terms).max()
            assert np.all(np.diff(terms, 2) <= rounding)


@each_element
def test_sums_over_n(element):
    """The log of the sum, and the mean and second moment of n given y, against plain sums."""
    y, rate = np.array([1.0, 5.0, 30.0]), np.array([[1e-4], [2.0], [40.0]])
    n = np.arange(1.0, 400.0)[:, None, None]
    found = sum_over_n(element, y, rate)
    terms = log_poisson(n, rate) + element.log_density(y, n)
    log_sum = special.logsumexp(terms, axis=0)
    posterior = np.exp(terms - log_sum)
    assert_allclose(found.log_sum, log_sum, rtol=1e-12, atol=1e-11)
    assert_allclose(found.mean, np.sum(posterior * n, axis=0), rtol=1e-11)
    assert_allclose(found.second, np.sum(posterior * n * n, axis=0), rtol=1e-11)


def test_long_arrays_are_summed_in_pieces(monkeypatch):
    element, y = Gamma(np.linspace(0.5, 2.0, 9), 1.0), np.linspace(0.1, 9.0, 9)
    rate = np.geomspace(1e-6, 1e3, 20)[:, None]
    whole = CompoundPoisson(rate, element).log_density(y)
    monkeypatch.setattr("hcpf.distributions.series._CHUNK", 7)
    assert_array_equal(CompoundPoisson(rate, element).log_density(y), whole)


# -- theorems --------------------------------------------------------------------------------------


def full_mass(element, rate, y):
    """The masses of X+ at integers from 0, a missing entry counted as 0."""
    observed = np.zeros(len(y))
    inside = element.support.contains(y)
    observed[inside] = np.exp(CompoundPoisson(rate, element).log_density(y[inside]))
    observed[0] += np.exp(-rate)
    return observed


@each_discrete
def test_sums_of_compounds_are_compounds_of_the_sum(element):
    y = np.arange(0.0, min(whole_numbers(element, 4)[-1], 300.0))
    together = np.convolve(full_mass(element, 0.7, y), full_mass(element, 1.6, y))[: len(y)]
    assert_allclose(full_mass(element, 2.3, y), together, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("element", [Gamma(2.0, 0.5), InverseGaussian(3.0, 4.0)], ids=repr)
def test_sums_of_continuous_compounds(element):
    rates = (0.7, 1.6)
    parts = [CompoundPoisson(rate, element) for rate in rates]
    for y in (0.5, 4.0, 15.0):
        u = np.linspace(-60, 60, 6001)  # x = y / (1 + e^-u)
        x, rest = y / (1 + np.exp(-u)), y / (1 + np.exp(u))
        inner = np.exp(parts[0].log_density(x) + parts[1].log_density(rest)) * x * rest / y
        single = np.exp(-np.array(rates[::-1]) + [part.log_density(y) for part in parts])
        convolved = inner.sum() * (u[1] - u[0]) + single.sum()
        together = CompoundPoisson(sum(rates), element).log_density(y)
        assert_allclose(np.log(convolved), together, atol=1e-9)


@each_case
def test_probability_of_zero(element):
    for rate in (1e-9, 0.3, 5.0):
        compound = CompoundPoisson(rate, element)
        p0 = float(np.exp(element.log_prob_zero))
        assert_allclose(compound.prob_zero, np.exp(-rate * (1 - p0)), rtol=1e-13)
        assert_allclose(compound.prob_observed, -np.expm1(-rate), rtol=1e-15)
        if element.support.discrete:
            seen = np.exp(compound.log_density(0.0)) if element.support.has_zero else 0.0
            assert_allclose(compound.prob_zero, np.exp(-rate) + seen, rtol=1e-12)
            assert_allclose(compound.cdf(0.0), compound.prob_zero, rtol=1e-12)
        else:
            assert p0 == 0.0


@each_element
@pytest.mark.parametrize("rate", [1e-4, 0.5, 6.0])
def test_moments_and_normalization(element, rate):
    compound = CompoundPoisson(rate, element)
    y, _, weights = mass(element, int(rate) + 9)
    density = weights * np.exp(compound.log_density(y))
    observed = -np.expm1(-rate)
    assert_allclose(density.sum(), observed, rtol=1e-8)
    assert_allclose((density * y).sum(), compound.mean, rtol=1e-7, atol=1e-12)
    second = (density * y * y).sum()
    assert_allclose(second - compound.mean**2, compound.variance, rtol=1e-6)
    assert_allclose((density * y).sum() / observed, compound.mean_observed, rtol=1e-7)
    spread = second / observed - compound.mean_observed**2
    assert_allclose(spread, compound.observed.variance, rtol=1e-5, atol=1e-12)


@each_case
def test_means_given_observation(element):
    rate = np.array([1e-300, 1e-12, 0.1, 1.0, 50.0, 1e4])
    compound = CompoundPoisson(rate, element)
    assert_allclose(compound.mean, rate * element.mean, rtol=1e-14)
    assert_allclose(compound.mean_observed, rate / -np.expm1(-rate) * element.mean, rtol=1e-14)
    square = element.variance + np.square(element.mean)
    assert_allclose(compound.variance, rate * square, rtol=1e-12)


@each_element
def test_sparse_limit_is_one_element(element):
    """The total variation between X++ and X shrinks in proportion to the rate, at most rate / 2."""
    y, _, weights = mass(element, 3)
    one = np.exp(element.log_density(y))

    def distance(rate):
        observed = np.exp(CompoundPoisson(rate, element).log_density_observed(y))
        return 0.5 * np.sum(weights * np.abs(observed - one))

    at = {rate: distance(rate) for rate in (0.08, 0.04, 0.02, 0.01)}
    for rate, found in at.items():
        assert found <= 0.5 * rate + 1e-9
    assert_allclose(at[0.01] / at[0.02], 0.5, rtol=0.01)
    assert_allclose(at[0.04] / at[0.08], 0.5, rtol=0.04)


def test_poisson_if_degenerate():
    y, rate = np.arange(1.0, 80.0), np.array([[0.01], [3.0], [30.0]])
    compound = CompoundPoisson(rate, Degenerate())
    assert_allclose(compound.log_density(y), stats.poisson(rate).logpmf(y), rtol=1e-11)
    assert_allclose(compound.cdf(y), stats.poisson(rate).cdf(y), rtol=1e-12)
    # Coins that may show 0 only thin the count out.
    thinned = CompoundPoisson(rate, Binomial(1, 0.3))
    assert_allclose(thinned.log_density(y), stats.poisson(0.3 * rate).logpmf(y), rtol=1e-10)


@each_case
def test_poisson_only_if_degenerate(element):
    """Variance equals mean if E[X²] = E[X], which is so only where X is 0 or 1."""
    compound = CompoundPoisson(2.0, element)
    coin = isinstance(element, Degenerate) or element == Binomial(1, 0.2)
    assert (abs(compound.variance - compound.mean) < 1e-12) == coin


# -- shapes, limits and bad input ------------------------------------------------------------------


@each_element
def test_rates_values_and_parameters_broadcast(element):
    rates = np.array([[1e-12], [1e-3], [2.0], [3000.0]])
    y = np.array([1.0, 4.0, 9.0])
    varied = element.replace(**{k: np.full(3, v) for k, v in element.parameters.items()})
    for compound in (CompoundPoisson(rates, element), CompoundPoisson(rates, varied)):
        together = compound.log_density(y)
        assert together.shape == (4, 3)
        for i, rate in enumerate(rates[:, 0]):
            for j, value in enumerate(y):
                alone = CompoundPoisson(rate, element).log_density(value)
                assert alone.shape == ()
                assert_allclose(together[i, j], alone, rtol=1e-13)


@each_element
def test_rate_zero(element):
    compound, y = CompoundPoisson([0.0, 0.5], element), np.array([[1.0], [2.0]])
    found = compound.log_density(y)
    assert_array_equal(found[:, 0], -np.inf)
    assert np.isfinite(found[0, 1])
    assert_array_equal(compound.observed.log_density(y)[:, 0], element.log_density(y)[:, 0])
    assert compound.prob_observed[0] == 0.0
    assert compound.prob_zero[0] == 1.0
    assert compound.mean[0] == compound.variance[0] == 0.0
    assert_allclose(compound.mean_observed[0], element.mean)
    assert_allclose(compound.observed.variance[0], element.variance, atol=1e-290)
    assert_array_equal(compound.cdf([[-1.0], [0.0]])[:, 0], [0.0, 1.0])
    assert_allclose(compound.observed.cdf(1.5)[0], element.cdf(1.5), rtol=1e-12)


def test_values_beyond_one_element_at_rate_zero():
    assert ObservedCompoundPoisson(0.0, Binomial(5, 0.5)).log_density(6.0) == -np.inf


@pytest.mark.parametrize("y", [1e11, 1e12, 1e13])
def test_so_many_elements_that_the_sum_is_an_integral(y):
    """A sum of n exponentials: the terms add up to a Bessel function, and n is about x / 2."""
    rate, size = 1e9, 5.0
    found = sum_over_n(Gamma(1.0, size), np.array([y]), np.array([rate]))
    x = 2.0 * np.sqrt(rate * size * y)
    bessel = x - 0.5 * np.log(2.0 * np.pi * x)  # log I_1(x) for so large an x
    log_sum = -rate - size * y + 0.5 * np.log(rate * size / y) + bessel
    assert_allclose(found.log_sum, log_sum, rtol=1e-13)
    assert_allclose(found.mean, 0.5 * x + 0.25, rtol=1e-8)
    assert_allclose(found.second - found.mean**2, 0.25 * x, rtol=1e-3)


def test_values_so_large_that_rounding_hides_n_end_in_a_finite_density():
    found = sum_over_n(Gamma(2.0, 1.0), np.array([1e16, 1e20, 1e59]), np.full(3, 100.0))
    assert_allclose(found.log_sum, [-1e16, -1e20, -1e59], rtol=1e-2)
    assert np.all(np.isfinite([found.mean, found.second]))


@each_element
def test_no_entries(element, rng):
    compound = CompoundPoisson(np.empty((0, 2)), element)
    for found in (
        compound.log_density(1.0),
        compound.cdf(1.0),
        compound.quantile(0.5),
        compound.observed.quantile([0.5, 0.1]),
        compound.interval()[0],
        compound.mean,
        compound.sample(rng=rng),
    ):
        assert found.shape == (0, 2)
    assert CompoundPoisson(1.0, element).cdf([]).shape == (0,)


@pytest.mark.parametrize("rate", [-1.0, np.nan, np.inf, [0.1, -1e-9]])
def test_rates_outside_their_domain(rate):
    with pytest.raises(ParameterError, match="CompoundPoisson: rate"):
        CompoundPoisson(rate, Degenerate())


@pytest.mark.parametrize("rate", ["1", None, [None], {}, 1j])
def test_rates_of_the_wrong_type(rate):
    with pytest.raises(InputError, match="rate must be numbers"):
        CompoundPoisson(rate, Degenerate())


@pytest.mark.parametrize("element", [None, "gamma", Gamma, 3])
def test_elements_of_the_wrong_type(element):
    with pytest.raises(InputError, match="element"):
        CompoundPoisson(1.0, element)


def test_incomplete_element():
    with pytest.raises(IncompleteElementError, match="rate=\\?"):
        CompoundPoisson(1.0, Gamma(shape=2.0))


def test_immutable_and_printable():
    compound = CompoundPoisson(0.5, Normal(1.0, 2.0))
    assert "Normal(mean=1, variance=2)" in repr(compound)
    assert repr(compound).startswith("CompoundPoisson(")
    with pytest.raises(AttributeError):
        compound.rate = 2.0
