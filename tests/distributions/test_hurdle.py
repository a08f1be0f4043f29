"""The hurdle distribution: its density, cdf, quantiles, moments and draws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate

from cases import CASES, EVERYDAY, mass, some_values, whole_numbers
from hcpf.distributions import CompoundPoisson, Hurdle, ObservedHurdle, PosteriorPredictive
from hcpf.elements import Binomial, Degenerate, Gamma, Geometric, Normal, Poisson, Presence
from hcpf.elements.integrated import Integrated
from hcpf.errors import IncompleteElementError, InputError, ParameterError, SupportError

RATES = np.array([1e-9, 0.2, 3.0, 40.0])
LEVELS = np.array([1e-12, 1e-3, 0.05, 0.31, 0.5, 0.77, 0.95, 0.999, 1 - 1e-9])
each_case = pytest.mark.parametrize("element", [case.element for case in CASES], ids=repr)
each_element = pytest.mark.parametrize("element", [case.element for case in EVERYDAY], ids=repr)


# -- the density -----------------------------------------------------------------------------------


@each_case
def test_density_and_missing_mass_sum_to_one(element):
    y, _, weights = mass(element)
    pairs = Hurdle(RATES[:, None], element)
    total = np.sum(weights * np.exp(pairs.log_density(y)), axis=1)
    assert_allclose(total + np.exp(-RATES), 1.0, rtol=1e-9)
    assert_allclose(total, pairs.prob_observed[:, 0], rtol=1e-9)


@each_element
def test_density_is_that_of_one_element_times_the_probability(element):
    y = some_values(element)
    pairs = Hurdle(RATES[:, None], element)
    one = element.log_density(y)
    assert_allclose(pairs.log_density(y), one + np.log(-np.expm1(-RATES))[:, None], atol=1e-12)
    for observed in (pairs.log_density_observed(y), pairs.observed.log_density(y)):
        assert_allclose(observed, np.broadcast_to(one, observed.shape), atol=1e-12)


@pytest.mark.parametrize(("element", "y"), [(Binomial(5, 0.5), 6.0), (Degenerate(), 2.0)], ids=str)
def test_values_beyond_one_element_have_no_density(element, y):
    assert_array_equal(Hurdle(RATES, element).log_density(y), -np.inf)
    assert np.all(np.isfinite(CompoundPoisson(RATES, element).log_density(y)))


@each_element
def test_rare_pairs_agree_with_the_compound_model(element):
    """Where a pair hardly ever has two elements, both models are the same."""
    rate, y = 1e-9, some_values(element)
    y = y[element.log_density(y) > -20.0]
    hurdle, compound = Hurdle(rate, element), CompoundPoisson(rate, element)
    assert_allclose(hurdle.log_density(y), compound.log_density(y), atol=1e-3)
    assert_allclose(hurdle.observed.cdf(y), compound.observed.cdf(y), atol=1e-8)
    assert_allclose(hurdle.observed.variance, compound.observed.variance, rtol=1e-6, atol=1e-8)
    assert_allclose(hurdle.prob_zero, compound.prob_zero, rtol=1e-12)


# -- cdf and quantiles -----------------------------------------------------------------------------


@each_element
def test_cdf_sums_the_density(element):
    if element.support.discrete:
        y = whole_numbers(element)
        summed = np.cumsum(np.exp(Hurdle(2.0, element).observed.log_density(y)))
        between = y + 0.7
    else:
        y = between = some_values(element)[::5]
        summed = [_integral_to(element, value) for value in y]
    for rate in RATES:
        whole, observed = Hurdle(rate, element), Hurdle(rate, element).observed
        assert_allclose(observed.cdf(y), summed, rtol=1e-8, atol=1e-12)
        assert_allclose(observed.cdf(between), observed.cdf(y), rtol=1e-12)
        expected = np.exp(-rate) * (y >= 0) - np.expm1(-rate) * np.asarray(summed)
        assert_allclose(whole.cdf(y), expected, rtol=1e-8, atol=1e-12)


def _integral_to(element, y):
    def density(x):
        return float(np.exp(Hurdle(2.0, element).observed.log_density(x)))

    low = element.mean - 12 * element.variance**0.5 if element.support.lowest < 0 else 0.0
    return integrate.quad(density, low, y, limit=200, epsabs=1e-12, epsrel=1e-10)[0]


@each_case
def test_quantile_is_the_smallest_value_that_reaches_the_level(element):
    whole = Hurdle(RATES[:, None], element)
    for distribution in (whole, whole.observed):
        y = distribution.quantile(LEVELS)
        step = 1.0 if element.support.discrete else 1e-12 * np.abs(y)
        below = distribution.cdf(np.where(y == 0, -1e-300, y - step))
        assert np.all(distribution.cdf(y) >= LEVELS)
        assert np.all((below < LEVELS) | (y == element.support.lowest))
        assert np.all(np.diff(y, axis=1) >= 0)
    # Whatever its rate, an observed pair has one element.
    assert_allclose(y, np.broadcast_to(y[0], y.shape), rtol=1e-7, atol=1e-12)


def test_quantiles_at_the_mass_of_missing_pairs():
    pairs = Hurdle(0.5, Normal(-1.0, 4.0))
    below, upto = pairs.cdf(-1e-300), pairs.cdf(0.0)
    assert_allclose(upto - below, np.exp(-0.5))
    assert_array_equal(pairs.quantile(np.linspace(below, upto, 9)[1:]), 0.0)
    assert pairs.quantile(below - 1e-9) < 0 < pairs.quantile(upto + 1e-9)


@each_element
def test_quantiles_at_zero_and_one(element):
    lowest, highest = element.support.lowest, element.highest
    pairs = Hurdle([0.0, 0.4, 50.0], element)
    assert_array_equal(pairs.quantile(0.0), [0.0, min(lowest, 0.0), min(lowest, 0.0)])
    assert_array_equal(pairs.quantile(1.0), [0.0, highest, highest])
    assert_array_equal(pairs.observed.quantile(0.0), [lowest] * 3)
    assert_array_equal(pairs.observed.quantile(1.0), [highest] * 3)


@each_element
def test_intervals_of_observed_pairs_do_not_depend_on_the_rate(element):
    low, high = Hurdle(RATES, element).observed.interval(0.9)
    assert np.all(element.cdf(high) >= 0.95 - 1e-9)
    assert_allclose(low, np.full(4, low[0]), rtol=1e-9)
    assert_allclose(high, np.full(4, high[0]), rtol=1e-9)
    assert np.all(low <= high)


# -- moments and draws -----------------------------------------------------------------------------


@each_element
def test_moments_are_sums_over_the_density(element):
    y, _, weights = mass(element)
    for rate in RATES:
        pairs = Hurdle(rate, element)
        density = weights * np.exp(pairs.log_density(y))
        mean = np.sum(density * y)
        assert_allclose(pairs.mean, mean, rtol=1e-8)
        assert_allclose(pairs.variance, np.sum(density * y**2) - mean**2, rtol=1e-6, atol=1e-15)
        assert_allclose(pairs.mean_observed, element.mean, rtol=1e-14)
        assert_allclose(pairs.observed.variance, element.variance, rtol=1e-14)


def test_variance_includes_an_uncertain_mean():
    """Theta integrated out: the values of one element vary by its own mean as well."""
    element = Integrated(np.array(30.0), np.array(12.0), base=Gamma(2.0, 1.0))
    pairs = Hurdle(0.8, element)
    drawn = pairs.sample(200_000, rng=np.random.default_rng(5))
    assert_allclose(pairs.mean, drawn.mean(), rtol=0.01)
    assert_allclose(pairs.variance, drawn.var(), rtol=0.02)
    total = element.variance + element.variance_of_mean
    assert_allclose(pairs.observed.variance, total, rtol=1e-12)


@each_element
def test_draws_follow_the_distribution(element, rng):
    size = 20_000
    pairs = Hurdle([0.1, 3.0], element)
    for distribution in (pairs, pairs.observed):
        drawn = distribution.sample(size, rng=rng)
        error = np.sqrt(distribution.variance / size)
        assert np.all(np.abs(drawn.mean(axis=0) - distribution.mean) < 4.5 * error + 1e-12)
        assert_allclose(drawn.var(axis=0), distribution.variance, rtol=0.25, atol=1e-12)
        for level in (0.02, 0.3, 0.8, 0.99):
            y = distribution.quantile(level)
            assert_allclose(np.mean(drawn <= y, axis=0), distribution.cdf(y), atol=0.016)
    element.support.check("draws", drawn)
    missing = np.mean(pairs.sample(size, rng=rng) == 0, axis=0)
    assert_allclose(missing, pairs.prob_zero, atol=0.016)


def test_draws_repeat_with_the_seed_and_have_the_shape_asked_for():
    pairs = Hurdle([0.1, 1.0, 5.0], Gamma(2.0, [[1.0], [2.0]]))
    first, second = (pairs.sample((4, 5), rng=np.random.default_rng(3)) for _ in range(2))
    assert_array_equal(first, second)
    assert first.shape == (4, 5, 2, 3)


# -- zeros -----------------------------------------------------------------------------------------


@each_case
def test_probability_of_zero(element):
    pairs = Hurdle(RATES, element)
    p0 = float(np.exp(element.log_prob_zero))
    assert_allclose(pairs.prob_zero, np.exp(-RATES) - np.expm1(-RATES) * p0, rtol=1e-12)
    jump = pairs.cdf(0.0) - pairs.cdf(-1e-300)
    assert_allclose(jump, pairs.prob_zero, rtol=1e-12, atol=1e-16)


@each_element
def test_rate_zero_is_never_observed(element):
    pairs, y = Hurdle([0.0, 0.5], element), np.array([[1.0], [2.0]])
    assert_array_equal(pairs.log_density(y)[:, 0], -np.inf)
    assert pairs.prob_observed[0] == 0.0
    assert pairs.prob_zero[0] == 1.0
    assert pairs.mean[0] == pairs.variance[0] == 0.0
    assert_array_equal(pairs.cdf([[-1.0], [0.0]])[:, 0], [0.0, 1.0])
    assert_array_equal(pairs.quantile([[0.1], [0.9]])[:, 0], 0.0)
    assert_array_equal(pairs.sample(5, rng=np.random.default_rng(0))[:, 0], 0.0)
    # The limit of the observed value is one element, as at every other rate.
    assert_array_equal(pairs.observed.log_density(y)[:, 0], element.log_density(y)[:, 0])
    assert_allclose(pairs.observed.cdf(1.5)[0], element.cdf(1.5), rtol=1e-12)
    assert_allclose(pairs.mean_observed, np.full(2, element.mean))


@pytest.mark.parametrize("kind", [Hurdle, CompoundPoisson], ids=lambda kind: kind.__name__)
def test_stored_zeros_of_presence_are_observed(kind):
    """Presence takes any stored value, 0 included, but a present pair is never 0."""
    pairs = kind(RATES, Presence())
    assert_allclose(pairs.prob_zero, np.exp(-RATES), rtol=1e-12)
    assert_allclose(pairs.cdf(0.0), np.exp(-RATES), rtol=1e-12)
    assert_array_equal(pairs.log_density(0.0), pairs.log_density(1.0))


# -- the parts it is made of -----------------------------------------------------------------------


def test_observed_is_the_distribution_of_observed_pairs():
    pairs = Hurdle(RATES, Poisson(1.5))
    assert isinstance(pairs.observed, ObservedHurdle)
    assert pairs.observed.element is pairs.element
    assert_array_equal(pairs.observed.rate, RATES)


@each_element
def test_rates_values_and_parameters_broadcast(element):
    rates, y, q = RATES[:, None], np.array([1.0, 4.0, 9.0]), np.array([0.05, 0.5, 0.99])
    varied = element.replace(**{k: np.full(3, v) for k, v in element.parameters.items()})
    for pairs in (Hurdle(rates, element), Hurdle(rates, varied)):
        for i, rate in enumerate(RATES):
            alone = Hurdle(rate, element)
            assert_allclose(pairs.log_density(y)[i], alone.log_density(y), rtol=1e-13)
            assert_allclose(pairs.cdf(y)[i], alone.cdf(y), rtol=1e-13)
            assert_allclose(pairs.quantile(q)[i], alone.quantile(q), rtol=1e-10)
    nothing = Hurdle(np.empty((0, 2)), element)
    for empty in (nothing.log_density(1.0), nothing.cdf(1.0), nothing.quantile(0.5), nothing.mean):
        assert empty.shape == (0, 2)


def test_average_over_draws_of_the_rates():
    """Rates that differ between draws change how often, not how much."""
    element = Geometric(0.4)
    average = PosteriorPredictive(Hurdle(RATES[:, None] * np.ones(2), element))
    chance = np.mean(-np.expm1(-RATES))
    assert_allclose(average.prob_observed, chance)
    assert_allclose(average.mean, chance * element.mean)
    assert_allclose(average.mean_observed, element.mean)
    y = np.array([[1.0], [3.0]])
    assert_allclose(average.log_density(y), element.log_density(y) + np.log([chance] * 2))
    assert_allclose(average.observed.cdf(y), np.broadcast_to(element.cdf(y), (2, 2)))
    drawn = average.observed.sample(20_000, rng=np.random.default_rng(1))
    assert_allclose(drawn.mean(axis=0), element.mean, rtol=0.03)


@pytest.mark.parametrize("rate", [-1.0, np.nan, np.inf, [0.1, -1e-9]])
def test_rates_outside_their_domain(rate):
    with pytest.raises(ParameterError, match="Hurdle: rate"):
        Hurdle(rate, Degenerate())


def test_input_that_cannot_be_used():
    with pytest.raises(InputError, match="element must be an Element"):
        Hurdle(1.0, "gamma")
    with pytest.raises(IncompleteElementError, match="rate=\\?"):
        Hurdle(1.0, Gamma(shape=2.0))
    with pytest.raises(SupportError, match="Gamma"):
        Hurdle(1.0, Gamma(2.0, 1.0)).log_density(-1.0)
    with pytest.raises(InputError, match="between 0 and 1"):
        Hurdle(1.0, Poisson(1.0)).quantile(1.1)
    assert repr(Hurdle(0.5, Normal(1.0, 2.0))).startswith("Hurdle(")
