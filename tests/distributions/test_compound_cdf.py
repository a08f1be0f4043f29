"""The compound Poisson distribution: cdf, quantiles, intervals and samples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats

from cases import CASES, EVERYDAY, whole_numbers
from hcpf import CompoundPoisson
from hcpf.elements import (
    Binomial,
    Degenerate,
    Element,
    Gamma,
    Geometric,
    InverseGaussian,
    Logarithmic,
    Normal,
    Poisson,
    ZeroTruncatedPoisson,
)
from hcpf.elements.sums import poisson_mixture
from hcpf.errors import InputError

ELEMENTS = [case.element for case in EVERYDAY]
each_case = pytest.mark.parametrize("element", [case.element for case in CASES], ids=repr)
each_element = pytest.mark.parametrize("element", ELEMENTS, ids=repr)
each_discrete = pytest.mark.parametrize(
    "element", [case.element for case in CASES if case.element.support.discrete], ids=repr
)
RATES = np.array([1e-9, 0.1, 1.0, 60.0])[:, None]
LEVELS = np.array([1e-12, 1e-3, 0.05, 0.31, 0.5, 0.77, 0.95, 0.999, 1 - 1e-9])


def both(rate, element):
    compound = CompoundPoisson(rate, element)
    return compound, compound.observed


# -- cdf -------------------------------------------------------------------------------------------


@each_discrete
@pytest.mark.parametrize("rate", [1e-9, 0.1, 2.0])
def test_cdf_sums_the_masses(element, rate):
    y = whole_numbers(element, 2)[:400]
    whole, observed = both(rate, element)
    summed = np.cumsum(np.exp(observed.log_density(y)))
    assert_allclose(observed.cdf(y), summed, rtol=1e-11, atol=1e-13)
    assert_allclose(observed.cdf(y + 0.7), summed, rtol=1e-11, atol=1e-13)
    assert_allclose(whole.cdf(y), np.exp(-rate) - np.expm1(-rate) * summed, rtol=1e-12)


@pytest.mark.parametrize(
    "element", [Gamma(2.0, 0.5), InverseGaussian(3, 4), Normal(-1, 2)], ids=repr
)
def test_cdf_integrates_the_density(element):
    _, observed = both(1.3, element)
    for low, high in [(0.1, 1.0), (1.0, 7.0), (7.0, 30.0)]:
        integral, _ = integrate.quad(lambda y: float(np.exp(observed.log_density(y))), low, high)
        assert_allclose(observed.cdf(high) - observed.cdf(low), integral, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("inner", [1e-9, 1e-3, 5.0, 60.0])
@pytest.mark.parametrize("rate", [1e-9, 0.3, 40.0])
def test_cdf_of_truncated_poissons_by_way_of_plain_ones(inner, rate):
    element = ZeroTruncatedPoisson(inner)
    _, observed = both(rate, element)
    y = np.unique(np.floor(np.linspace(1, observed.mean + 9 * observed.variance**0.5 + 9, 60)))
    parts = poisson_mixture(
        np.full(y.shape, rate), lambda pick, n: element.cdf_unchecked(y[pick], n)
    )
    assert_allclose(observed.cdf(y), parts / -np.expm1(-rate), rtol=1e-12, atol=1e-13)


SUMMED = [case.element for case in CASES if type(case.element).compound_cdf is Element.compound_cdf]
SKEWED = [Binomial(1, 0.99), Geometric(0.99), Gamma(0.01, 1.0), InverseGaussian(1.0, 1e-3)]


@pytest.mark.parametrize("element", SUMMED + SKEWED, ids=repr)
@pytest.mark.parametrize("rate", [150.0, 2000.0])
def test_sums_over_many_n_may_leave_some_out(element, rate):
    """Where the cdf is smooth in n, a few of many terms give the same sum."""
    compound = CompoundPoisson(rate, element)
    y = compound.mean + compound.variance**0.5 * np.linspace(-6.0, 6.0, 21)
    every_n = poisson_mixture(
        np.full(y.shape, rate), lambda pick, n: element.cdf(y[pick], n)
    ) + np.exp(-rate) * (y >= 0)
    assert_allclose(compound.cdf(y), every_n, atol=2e-13)


def test_cdf_of_logarithmics_with_a_very_long_tail():
    """A table of masses would be far too long here."""
    compound, observed = both(0.01, Logarithmic(1 - 1e-9))
    y = np.array([1.0, 1e3, 1e6, 1e9, 1e11])
    assert np.all(np.diff(observed.cdf(y)) > 0)
    assert_allclose(observed.cdf(y[0]), np.exp(observed.log_density(1.0)), rtol=1e-12)
    with pytest.raises(InputError, match="needs a table of"):
        compound.element.cdf(3.0, 2)


@pytest.mark.parametrize(
    ("p", "largest"), [(1e-9, 1000), (0.3, 1000), (0.97, 10**4), (1 - 1e-5, 10**6)]
)
def test_cdf_of_one_logarithmic_is_the_sum_of_its_masses(p, largest):
    element, y = Logarithmic(p), np.arange(1.0, largest + 1)
    some = np.array([1, 2, 10, 59, 60, 61, 1000, largest])
    assert_allclose(
        element.cdf(some), np.cumsum(np.exp(element.log_density(y)))[some - 1], atol=1e-12
    )
    np.testing.assert_array_equal(element.cdf([-1.0, 0.9, 1e300]), [0.0, 0.0, 1.0])


@pytest.mark.parametrize("rate", [1e-9, 0.5, 30.0, 2000.0])
def test_cdf_of_one_truncated_poisson_is_the_sum_of_its_masses(rate):
    element, y = ZeroTruncatedPoisson(rate), np.arange(1.0, 3000.0)
    expected = np.cumsum(np.exp(element.log_density(y)))
    assert_allclose(element.cdf(y), expected, atol=1e-11)
    np.testing.assert_array_equal(element.cdf([-1.0, 0.9, 1e300]), [0.0, 0.0, 1.0])


@each_case
def test_cdf_rises_from_zero_to_one(element):
    whole, observed = both(RATES, element)
    y = np.linspace(-3, 8, 90) * (observed.mean + observed.variance**0.5) + 0.01
    for distribution in (whole, observed):
        cdf = distribution.cdf(np.sort(y, axis=1))
        assert np.all(np.diff(cdf, axis=1) >= -1e-15)
        ends = distribution.cdf([-np.inf, np.inf, 1.7e308])
        assert_allclose(ends, np.broadcast_to([0, 1, 1], ends.shape), atol=1e-13)
        assert cdf.min() >= 0
        assert cdf.max() <= 1
    jump = whole.cdf(0.0) - whole.cdf(-1e-300)
    assert_allclose(jump, whole.prob_zero, rtol=1e-12, atol=1e-16)


def test_cdf_of_nothing_known():
    with pytest.raises(InputError, match="NaN"):
        CompoundPoisson(1.0, Degenerate()).cdf(np.nan)


# -- quantiles -------------------------------------------------------------------------------------


def just_below(element, y):
    """A point below y by more than the tolerance of the search, and by nothing that matters."""
    if element.support.discrete:
        return y - 1
    return np.where(y == 0, -1e-300, y - 1e-12 * np.abs(y))


@each_case
def test_quantile_is_the_smallest_value_that_reaches_the_level(element):
    for distribution in both(RATES, element):
        y = distribution.quantile(LEVELS)
        cdf, before = distribution.cdf(y), distribution.cdf(just_below(element, y))
        reachable = distribution.cdf(1e300) >= LEVELS
        assert np.all((cdf >= LEVELS) | ~reachable)
        assert np.all((before < LEVELS) | (y == element.support.lowest))
        assert np.all(np.diff(y, axis=1) >= 0)


@each_element
def test_quantile_undoes_the_cdf(element):
    for distribution in both(1.5, element):
        y = distribution.mean + distribution.variance**0.5 * np.array([-0.5, 0.1, 1.0, 2.5])
        if element.support.discrete:
            y = np.maximum(np.round(y), element.support.lowest)
        y = y[(y != 0) & (y >= element.support.lowest)]
        assert_allclose(distribution.quantile(distribution.cdf(y)), y, rtol=1e-8)


def test_quantiles_at_the_atom():
    """A normal X+ of rate 0.5 is 0 with probability 0.61, with mass on either side."""
    compound = CompoundPoisson(0.5, Normal(-1.0, 4.0))
    below, upto = compound.cdf(-1e-300), compound.cdf(0.0)
    assert_allclose(upto - below, np.exp(-0.5))
    inside = np.linspace(below, upto, 9)[1:]
    assert_array_equal(compound.quantile(inside), 0.0)
    assert compound.quantile(below - 1e-9) < 0 < compound.quantile(upto + 1e-9)
    assert compound.quantile(0.01) < compound.quantile(0.1) < 0


@each_element
def test_quantiles_at_zero_and_one(element):
    lowest = element.support.lowest
    whole, observed = both([0.0, 0.4], element)
    assert_array_equal(whole.quantile(0.0), [0.0, min(lowest, 0.0)])
    assert_array_equal(whole.quantile(1.0), [0.0, np.inf])
    assert_array_equal(observed.quantile(0.0), [lowest, lowest])
    assert_array_equal(observed.quantile(1.0), [element.highest, np.inf])


def test_highest_values_at_rate_zero():
    assert CompoundPoisson(0.0, Binomial(7, 0.5)).observed.quantile(1.0) == 7.0
    assert CompoundPoisson(0.0, Degenerate()).observed.quantile(1.0) == 1.0
    assert_array_equal(CompoundPoisson(0.0, Normal(3.0, 1.0)).quantile([0.1, 0.5, 0.9]), 0.0)


@each_element
def test_quantiles_next_to_one(element):
    """However close to 1, the quantile is finite, and rounding never sends it to the end."""
    compound = CompoundPoisson(0.7, element)
    _, observed = both(0.7, element)
    last = observed.quantile(1 - 1e-15)
    for q in (np.nextafter(1.0, 0.0), 1 - 1e-16):
        assert (1 - 1e-9) * last <= observed.quantile(q) <= 100 * last + 200
        assert np.isfinite(compound.quantile(q))


def test_tiny_quantiles():
    """A gamma of shape 0.01 has quantiles of any size, down to the smallest double."""
    observed = CompoundPoisson(1e-6, Gamma(0.01, 1.0)).observed
    q = np.array([1e-2, 0.1, 0.5])
    assert_allclose(observed.quantile(q), stats.gamma(0.01).ppf(q), rtol=1e-4)
    assert 0 < observed.quantile(1e-9) < 1e-300


@each_element
def test_quantiles_broadcast(element):
    rates = np.array([[1e-9], [0.2], [700.0]])
    q = np.array([0.05, 0.5, 0.9, 0.99])
    varied = element.replace(**{k: np.full(4, v) for k, v in element.parameters.items()})
    for own in (element, varied):
        for distribution in both(rates, own):
            together = distribution.quantile(q)
            assert together.shape == (3, 4)
            for i, rate in enumerate(rates[:, 0]):
                alone = type(distribution)(rate, element)
                assert_allclose(together[i], alone.quantile(q), rtol=1e-10)


@pytest.mark.parametrize("q", [-0.1, 1.1, np.nan, [0.5, 2.0]])
def test_levels_outside_their_range(q):
    with pytest.raises(InputError, match="between 0 and 1"):
        CompoundPoisson(1.0, Poisson(1.0)).quantile(q)


@pytest.mark.parametrize("level", [0.0, 1.0, -1, np.nan, "0.9", None, [0.5, 0.9]])
def test_levels_of_intervals(level):
    with pytest.raises(InputError, match="level"):
        CompoundPoisson(1.0, Poisson(1.0)).interval(level)


# -- samples ---------------------------------------------------------------------------------------


@each_element
@pytest.mark.parametrize("rate", [0.1, 3.0])
def test_samples_follow_the_distribution(element, rate, rng):
    for distribution in both(rate, element):
        sample = distribution.sample(20_000, rng=rng)
        error = np.sqrt(distribution.variance / 20_000)
        assert abs(sample.mean() - distribution.mean) < 4.5 * error + 1e-12
        y = distribution.quantile([0.02, 0.3, 0.8, 0.99])
        shares = np.mean(sample[:, None] <= y, axis=0)
        assert_allclose(shares, distribution.cdf(y), atol=4.5 * 0.5 / np.sqrt(20_000))
        assert_allclose(sample.var(), distribution.variance, rtol=0.25, atol=1e-12)


@each_element
def test_samples_of_x_plus_are_zero_where_missing(element, rng):
    compound = CompoundPoisson(0.3, element)
    sample = compound.sample(20_000, rng=rng)
    assert_allclose(np.mean(sample == 0), compound.prob_zero, atol=0.016)
    element.support.check("sample", sample[sample != 0])
    element.support.check("sample", compound.observed.sample(1000, rng=rng))


@each_element
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_hold_their_share(element, level, rng):
    rates = rng.gamma(0.5, 2.0, 1500) + 1e-9
    observed = CompoundPoisson(rates, element).observed
    low, high = observed.interval(level)
    assert np.all(low <= high)
    sample = observed.sample(rng=rng)
    share = np.mean((sample >= low) & (sample <= high))
    exact = np.mean(observed.cdf(high) - observed.cdf(just_below(element, low)))
    assert_allclose(share, exact, atol=4.5 * 0.5 / np.sqrt(1500))
    if element.support.discrete:
        assert exact >= level - 1e-9
    else:
        assert_allclose(exact, level, atol=1e-9)


def test_sizes_of_samples(rng):
    compound = CompoundPoisson([0.1, 1.0, 5.0], Gamma(2.0, [[1.0], [2.0]]))
    assert compound.shape == (2, 3)
    assert compound.sample(rng=rng).shape == (2, 3)
    assert compound.sample(4, rng=rng).shape == (4, 2, 3)
    assert compound.sample(np.int64(4), rng=rng).shape == (4, 2, 3)
    assert compound.observed.sample((5, 4), rng=rng).shape == (5, 4, 2, 3)
    assert compound.sample(0, rng=rng).shape == (0, 2, 3)
    for size in (-1, 2.5, "many", (3, None)):
        with pytest.raises(InputError, match="size"):
            compound.sample(size, rng=rng)


def test_samples_repeat_with_the_seed():
    compound = CompoundPoisson(2.0, Logarithmic(0.5))
    first, second = (compound.sample(50, rng=np.random.default_rng(3)) for _ in range(2))
    assert_array_equal(first, second)


# -- many at once ----------------------------------------------------------------------------------


@each_element
def test_mixed_rates_in_one_array(element):
    rates = np.array([0.0, 1e-300, 1e-12, 0.5, 1e4, 3.0])
    for distribution in both(rates, element):
        median = distribution.quantile(0.5)
        density = distribution.log_density(2.0)
        for index, rate in enumerate(rates):
            alone = type(distribution)(rate, element)
            assert_allclose(median[index], alone.quantile(0.5), rtol=1e-10)
            assert_allclose(density[index], alone.log_density(2.0), rtol=1e-13)


def test_pieces_of_long_arrays(monkeypatch, rng):
    compound = CompoundPoisson(rng.gamma(1.0, 3.0, (40, 5)), Gamma(rng.gamma(2.0, size=5), 0.5))
    y = rng.gamma(2.0, 4.0, (40, 5))
    whole = compound.cdf(y)
    monkeypatch.setattr("hcpf.distributions.pair._CHUNK", 7)
    assert_array_equal(compound.cdf(y), whole)
