"""What holds for whatever parameters: properties on random elements, rates and values."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from cases import moments
from hcpf.distributions import CompoundPoisson, Hurdle
from hcpf.elements import (
    Binomial,
    Degenerate,
    Gamma,
    Geometric,
    InverseGaussian,
    Logarithmic,
    NegativeBinomial,
    Normal,
    Poisson,
    ZeroTruncatedPoisson,
)


def log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(np.log(low), np.log(high)).map(lambda t: float(np.exp(t)))


probabilities = st.floats(0.01, 0.95)
continuous = st.one_of(
    st.builds(Normal, st.floats(-50, 50), log_uniform(1e-2, 1e3)),
    st.builds(Gamma, log_uniform(0.05, 200), log_uniform(1e-3, 1e2)),
    st.builds(InverseGaussian, log_uniform(0.01, 100), log_uniform(0.05, 1e3)),
)
counted_from_one = st.one_of(
    st.builds(ZeroTruncatedPoisson, log_uniform(1e-4, 40)),
    st.builds(Logarithmic, probabilities),
    st.builds(Geometric, probabilities),
    st.just(Degenerate()),
)
discrete = st.one_of(
    st.builds(Poisson, log_uniform(1e-3, 60)),
    st.builds(Binomial, st.integers(1, 40), probabilities),
    st.builds(NegativeBinomial, log_uniform(0.05, 50), probabilities),
    counted_from_one,
)
any_element = st.one_of(continuous, discrete)
rates = log_uniform(1e-9, 200)
levels = st.floats(1e-9, 1 - 1e-9)
few = st.integers(1, 6)
models = st.sampled_from([CompoundPoisson, Hurdle])


def masses(element, n, length):
    """From 0 on, whether or not the element has mass there."""
    y = np.arange(float(length))
    inside = element.support.contains(y)
    out = np.zeros(length)
    out[inside] = np.exp(element.log_density(y[inside], n))
    return out


@given(discrete, few, few)
def test_sums_of_discrete_elements_add_up(element, n, m):
    together = np.convolve(masses(element, n, 250), masses(element, m, 250))[:250]
    assert_allclose(masses(element, n + m, 250), together, rtol=1e-9, atol=1e-14)


@given(continuous, few, few)
def test_sums_of_continuous_elements_add_up(element, n, m):
    """By way of log E[e^tY] = n kappa (Psi(theta + t) - Psi(theta))."""
    theta, kappa = float(element.theta), float(element.kappa)
    t = 0.01 * abs(theta) if theta else 0.01

    def log_mgf(count):
        rise = float(element.log_partition(theta + t) - element.log_partition(theta))
        return count * kappa * rise

    assert_allclose(log_mgf(n) + log_mgf(m), log_mgf(n + m), rtol=1e-12)
    # Tilting by t moves along the family: p(y | theta + t) = p(y | theta) e^(ty - log mgf).
    y = np.array(moments(element, n + m)) @ [[1.0, 1.0], [0.1, 1.0]]
    assume(np.all(element.support.contains(y)))
    tilted = element.log_density(y, n + m) + t * y - log_mgf(n + m)
    direct = (
        y * (theta + t)
        - (n + m) * kappa * element.log_partition(theta + t)
        + element.log_base_measure(y, (n + m) * kappa)
    )
    assert_allclose(tilted, direct, rtol=1e-9, atol=1e-7)


@given(discrete, few)
def test_masses_are_normalized(element, n):
    mean, spread = moments(element, n)
    assume(mean + 60 * spread < 5000)
    assert_allclose(masses(element, n, int(mean + 60 * spread) + 60).sum(), 1.0, rtol=1e-10)


@given(discrete, rates)
def test_compound_masses_are_normalized(element, rate):
    compound = CompoundPoisson(rate, element)
    top = compound.quantile(1 - 1e-12) + 1
    assume(top < 900)
    y = np.arange(element.support.lowest, top + 1)
    total = np.exp(compound.log_density(y)).sum()
    assert_allclose(total, compound.prob_observed, rtol=1e-9, atol=3e-12)


@given(models, any_element, rates, st.lists(st.floats(-1e3, 1e4), min_size=2, max_size=30))
def test_cdfs_are_monotone(model, element, rate, points):
    y = np.sort(points)
    pair = model(rate, element)
    for cdf in (element.cdf(y), element.cdf(y, 3), pair.cdf(y), pair.observed.cdf(y)):
        assert np.all((cdf >= 0) & (cdf <= 1))
        assert np.all(np.diff(cdf) >= -1e-13)


@given(models, any_element, rates, levels, st.floats(-1e3, 1e4))
def test_quantile_and_cdf_are_a_galois_connection(model, element, rate, q, y):
    """quantile(q) <= y if and only if q <= cdf(y)."""
    for distribution in (model(rate, element), model(rate, element).observed):
        reached, found = distribution.cdf(y), distribution.quantile(q)
        if q <= reached - 1e-13:
            assert found <= y
        elif q > reached + 1e-13:
            assert found > y
        assert distribution.cdf(found) >= q - 1e-13


@given(models, any_element, rates)
def test_observed_values_lie_in_the_support(model, element, rate):
    sample = model(rate, element).observed.sample(20, rng=np.random.default_rng(0))
    element.support.check("sample", sample)


@given(any_element, st.integers(0, 2**32))
def test_estimates_beat_the_truth(element, seed):
    """No parameters have a larger likelihood than those estimated: not the true ones either."""
    y = element.sample(np.ones(60), np.random.default_rng(seed))
    assume(np.ptp(y) > 0)
    estimate = type(element).estimate(y)
    gain = estimate.log_density(y).sum() - element.log_density(y).sum()
    assert gain >= -1e-6


@given(counted_from_one, rates, st.integers(1, 300))
def test_density_given_n_never_exceeds_one(element, rate, y):
    assert CompoundPoisson(rate, element).log_density(float(y)) <= 1e-12
    assert element.log_density(float(y)) <= 1e-12
