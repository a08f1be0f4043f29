"""Conjugate priors of theta, and elements with theta integrated out, against plain integrals."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special

import reference
from hcpf import CompoundPoisson
from hcpf.distributions import Hurdle
from hcpf.distributions.posterior_predictive import PosteriorPredictive
from hcpf.distributions.series import sum_over_n
from hcpf.elements import (
    Binomial,
    Gamma,
    Geometric,
    InverseGaussian,
    Logarithmic,
    NegativeBinomial,
    Normal,
    Poisson,
    ZeroTruncatedPoisson,
)
from hcpf.elements.integrated import Integrated
from hcpf.elements.logarithmic import probability_for_mean
from hcpf.elements.special import (
    log_expm1,
    truncated_poisson_excess,
    truncated_poisson_moments,
)
from hcpf.elements.zero_truncated_poisson import rate_for_mean

# An element, and centers chi / nu: everyday ones first, then towards the ends of their ranges.
CENTRES = {
    Normal(0.7, 2.0): (0.35, -40.0),
    Gamma(2.0, 0.05): (20.0, 1e-3),
    InverseGaussian(3.0, 4.0): (1.5, 0.02),
    Poisson(0.8): (0.8, 60.0),
    Binomial(5, 0.7): (0.7, 0.02),
    NegativeBinomial(2.5, 0.3): (0.43, 15.0),
    Geometric(0.4): (1.7, 1.05),
}
BY_MODE = (ZeroTruncatedPoisson(0.5), Logarithmic(0.6))
STRENGTHS = (0.3, 4.0, 3e3)
CASES = [
    pytest.param(element, np.array(center * nu), np.array(nu), id=f"{element.name}-{center}-{nu:g}")
    for element, centers in CENTRES.items()
    for center in centers
    for nu in STRENGTHS
]
every_case = pytest.mark.parametrize(("element", "chi", "nu"), CASES)
FIRST = [
    pytest.param(element, np.array(centers[0] * 4.0), np.array(4.0), id=element.name)
    for element, centers in CENTRES.items()
]
every_first = pytest.mark.parametrize(("element", "chi", "nu"), FIRST)


class Prior:
    """exp(chi theta - nu Psi(theta)) on a fine grid, where it is not negligible."""

    def __init__(self, element, chi, nu):
        self._element, self._chi, self._nu = element, float(chi), float(nu)
        self._center = float(element.with_mean(element.kappa * chi / nu).theta)
        wide = 20_000.0 if element.name in ("normal", "poisson", "binomial") else 700.0
        t = np.linspace(-wide, wide, 200_001)
        for _ in range(3):
            log_weight = self._on(t)[2]
            kept = np.flatnonzero(log_weight > log_weight.max() - 60.0)
            t = np.linspace(t[max(kept[0] - 1, 0)], t[min(kept[-1] + 1, len(t) - 1)], 50_001)
        self.theta, self.psi, log_weight = self._on(t)
        self.log_total = float(special.logsumexp(log_weight))
        self.weight = np.exp(log_weight - self.log_total)
        self.mean = mean_of(element, self.theta)

    def _on(self, t):
        """Theta, Psi and the log weight along t: theta itself, or its logarithm if below 0."""
        step = t[1] - t[0]
        if self._element.name in ("normal", "poisson", "binomial"):
            theta, log_slope = self._center + t, np.log(step)
        else:
            theta = self._center * np.exp(t)
            log_slope = np.log(np.abs(theta) * step)
        with np.errstate(all="ignore"):
            psi = self._element.log_partition(theta)
            log_weight = self._chi * theta - self._nu * psi + log_slope
        return theta, psi, np.where(np.isfinite(log_weight), log_weight, -np.inf)

    def expect(self, values):
        kept = self.weight > 0
        return float(np.sum(self.weight[kept] * values[kept]))


def mean_of(element, theta):
    """Psi'(theta)."""
    with np.errstate(all="ignore"):
        return {
            "normal": lambda: theta,
            "gamma": lambda: -1.0 / theta,
            "inverse_gaussian": lambda: (-2.0 * theta) ** -0.5,
            "poisson": lambda: np.exp(theta),
            "binomial": lambda: special.expit(theta),
            "negative_binomial": lambda: np.exp(theta) / -np.expm1(theta),
            "geometric": lambda: -1.0 / np.expm1(theta),
        }[element.name]()


@every_case
def test_moments_and_the_normalizer_are_integrals(element, chi, nu):
    prior, conjugate = Prior(element, chi, nu), element.conjugate
    theta, psi = conjugate.moments(chi, nu)
    spread = np.sqrt(prior.expect(prior.theta**2) - prior.expect(prior.theta) ** 2)
    assert theta == pytest.approx(prior.expect(prior.theta), rel=1e-6, abs=1e-6 * spread)
    assert psi == pytest.approx(prior.expect(prior.psi), rel=1e-6, abs=1e-7)
    assert conjugate.log_normalizer(chi, nu) == pytest.approx(prior.log_total, rel=1e-7, abs=1e-6)


@every_case
def test_the_mean_and_its_variance_are_integrals(element, chi, nu):
    prior, conjugate = Prior(element, chi, nu), element.conjugate
    heavy = element.name in ("gamma", "negative_binomial", "geometric")  # 1/b has a tail
    if not heavy or nu > 2:
        mean = prior.expect(prior.mean)
        assert conjugate.mean(chi, nu) == pytest.approx(mean, rel=1e-5)
        if element.name != "inverse_gaussian":
            variance = prior.expect((prior.mean - mean) ** 2)
            assert conjugate.variance_of_mean(chi, nu) == pytest.approx(variance, rel=1e-4)
            within = float(element.kappa) * nu * variance
            assert Integrated(chi, nu, base=element).variance == pytest.approx(within, rel=1e-4)
    if heavy and nu <= 1:
        assert conjugate.variance_of_mean(chi, nu) == np.inf


def second_moment_from(element, chi, nu, reach):
    """E[Psi'^2] where theta, or t of the inverse Gaussian, is between e^-reach and 1 below 0."""
    x = np.linspace(0.0, reach, 20_001)
    if element.name == "inverse_gaussian":  # density t exp(nu t - chi t^2 / 2), mean 1 / t
        t = np.exp(-x)
        return np.trapezoid(np.exp(nu * t - chi * t * t / 2), x)
    theta = -np.exp(-x)
    log_fail = np.log(-np.expm1(theta))
    mean = np.exp(theta) / (np.expm1(theta) * log_fail)
    return np.trapezoid(mean**2 * np.exp(chi * theta - x) * (-log_fail) ** -nu, x)


@pytest.mark.parametrize("element", [InverseGaussian(3.0, 4.0), Logarithmic(0.6)], ids=repr)
def test_variances_are_infinite_where_their_integrals_diverge(element, rng):
    chi, nu = (2.0, 1.0) if element.name == "inverse_gaussian" else (15.0, 5.0)
    parts = [second_moment_from(element, chi, nu, reach) for reach in (40.0, 80.0, 160.0, 320.0)]
    assert np.all(np.diff(np.diff(parts)) > 0)
    found = Integrated(np.array([chi, 100 * chi]), np.array([nu, 100 * nu]), base=element)
    assert np.all(found.variance == np.inf)
    assert np.all(found.variance_of_mean == np.inf)
    pairs = CompoundPoisson(np.array([0.0, 0.7]), found)
    np.testing.assert_array_equal(pairs.variance, [0.0, np.inf])
    averaged = PosteriorPredictive(CompoundPoisson(0.7, found).at(np.newaxis)).observed
    for distribution in (pairs.observed, averaged):
        assert np.all(distribution.variance == np.inf)
        median = distribution.quantile(0.5)
        assert np.all(distribution.cdf(median * (1.0 + 1e-9)) >= 0.5)
        assert np.all(distribution.cdf(0.999 * median) < 0.5)


@pytest.mark.parametrize("nu", [0.3, 3.0, 400.0])
@pytest.mark.parametrize("center", [1.02, 2.0, 30.0])
def test_the_variance_of_truncated_poissons_is_an_integral(center, nu):
    chi, element = center * nu, ZeroTruncatedPoisson(2.0)
    theta = np.linspace(-60.0 / (chi - nu) - 10.0, np.log(center) + 8.0, 400_001)
    rate = np.exp(np.maximum(theta, -30.0))  # below, Psi is theta
    log_density = chi * theta - nu * np.where(theta > -30.0, log_expm1(rate), theta)
    weight = np.exp(log_density - log_density.max())
    excess = truncated_poisson_excess(rate)
    mean = 1.0 + np.average(excess, weights=weight)
    variance = np.average(np.square(1.0 + excess - mean), weights=weight)
    within = np.average(truncated_poisson_moments(rate)[1], weights=weight)
    found = Integrated(np.array(chi), np.array(nu), base=element)
    assert found.mean == pytest.approx(mean, rel=1e-5)
    assert found.variance_of_mean == pytest.approx(variance, rel=2e-3)
    assert found.variance == pytest.approx(within, rel=2e-3)


@every_case
def test_draws_of_the_mean_are_from_the_prior(element, chi, nu):
    rng = np.random.default_rng(1)
    prior = Prior(element, chi, nu)
    drawn = element.conjugate.sample_mean(np.full(4000, chi), np.full(4000, nu), rng)
    assert np.all(np.isfinite(drawn))
    low, high = element.conjugate.min_center, element.conjugate.max_center
    order = np.argsort(prior.mean)
    cumulative = np.cumsum(prior.weight[order])
    for level in np.linspace(0.05, 0.95, 19):
        place = min(np.searchsorted(cumulative, level), len(order) - 1)
        edge = prior.mean[order[place]]
        if min(edge - low, high - edge) > 1e-11:  # probabilities stop 1e-12 short of it
            assert np.mean(drawn <= edge) == pytest.approx(cumulative[place], abs=0.035)


# -- theta integrated out -------------------------------------------------------------------------


def averaged(element, chi, nu, function):
    """The average of a function of the element over the prior of its theta."""
    prior = Prior(element, chi, nu)
    kept = np.flatnonzero(prior.weight > 0)[::40]
    weight = prior.weight[kept] / prior.weight[kept].sum()
    with np.errstate(all="ignore"):
        return float(weight @ function(element.with_mean(element.kappa * prior.mean[kept])))


@pytest.mark.parametrize("n", [1.0, 3.0])
@pytest.mark.parametrize("share", [0.4, 2.2])
@every_first
def test_density_and_cdf_are_averages_over_theta(element, chi, nu, n, share):
    found = Integrated(chi, nu, base=element)
    y = share * n * float(found.mean)
    if element.support.discrete:
        y = np.round(np.clip(y, n * element.support.lowest, n * element.highest))
    y, count = np.array(y), np.array(n)
    density = averaged(element, chi, nu, lambda e: np.exp(e.log_density_unchecked(y, count)))
    assert np.exp(found.log_density(y, n)) == pytest.approx(density, rel=1e-4)
    cdf = averaged(element, chi, nu, lambda e: e.cdf_unchecked(y, count))
    assert found.cdf(y, n) == pytest.approx(cdf, abs=1e-3)


@every_first
def test_masses_and_densities_add_up_to_one_and_to_the_cdf(element, chi, nu):
    found = Integrated(chi, nu, base=element)
    if element.support.discrete:
        y = np.arange(element.support.lowest, 4000.0)
        mass = np.exp(found.log_density_unchecked(y, np.ones_like(y)))
        assert mass.sum() == pytest.approx(1.0, abs=2e-3)
        np.testing.assert_allclose(np.cumsum(mass)[:30], found.cdf(y[:30]), atol=1e-6)
        return
    low = -60.0 if element.name == "normal" else 0.0
    middle = float(found.mean)

    def density(y):
        return float(np.exp(found.log_density(y)))

    first = integrate.quad(density, low, middle, limit=200)[0]
    assert first == pytest.approx(float(found.cdf(middle)), abs=1e-3)
    rest = integrate.quad(density, middle, 60.0 * abs(middle) + 60.0, limit=200)[0]
    assert first + rest == pytest.approx(1.0, abs=3e-3)


@pytest.mark.parametrize(
    ("base", "chi", "nu"),
    [
        (NegativeBinomial(1.0, 0.5), 0.9, 0.3),  # few entries, a long tail
        (NegativeBinomial(0.02, 0.5), 4.0, 2.0),
        (NegativeBinomial(1e4, 0.5), 0.2, 6.0),  # a value says more than the other entries
        (NegativeBinomial(3.0, 0.5), 900.0, 400.0),
        (Binomial(20, 0.5), 0.03, 0.06),  # of a probability close to 0 or 1
        (Binomial(5000, 0.5), 3.0, 8.0),
        (NegativeBinomial(500.0, 0.5), 2e6, 1.5e6),  # many entries, which leave theta no room
        (Binomial(90, 0.5), 2.8e5, 2.3e6),
        (Geometric(0.4), 1.2, 0.8),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n", [1.0, 3.0])
def test_the_cdf_is_the_sum_of_the_masses_in_the_tail_as_well(base, chi, nu, n):
    found = Integrated(chi, nu, base=base)
    y = np.arange(0.0, min(n * float(base.highest), 60_000.0) + 1.0)
    with np.errstate(divide="ignore"):
        cumulative = np.cumsum(np.exp(found.log_density_unchecked(y, n)))
    assert cumulative[-1] > 0.99
    some = np.unique(np.geomspace(1, len(y), 60).astype(int)) - 1
    np.testing.assert_allclose(found.cdf(y[some], n), cumulative[some], atol=1e-6)
    np.testing.assert_array_equal(
        found.cdf([-np.inf, -1.0, -1e-9, 1e300, np.inf], n), [0, 0, 0, 1, 1]
    )


@pytest.mark.parametrize(
    ("shape", "chi", "nu"), [(4.0, 2.0, 1.0), (1e6, 3.0, 4.0), (2.0, 1e4, 3e4), (0.01, 0.05, 0.3)]
)
@pytest.mark.parametrize("n", [1.0, 3.0])
def test_the_cdf_of_inverse_gaussians_is_the_integral_in_the_tail_as_well(shape, chi, nu, n):
    found = Integrated(chi, nu, base=InverseGaussian(1.0, shape))
    typical = np.log(n * np.sqrt(shape) * chi / nu)
    x = np.linspace(typical - 40.0, typical + 40.0, 400_001)
    mass = np.exp(found.log_density(np.exp(x), n) + x) * (x[1] - x[0])
    cumulative = np.cumsum(mass) - 0.5 * mass
    some = np.searchsorted(cumulative, [1e-4, 0.1, 0.5, 0.9, 0.99, 0.999, 0.99999])
    np.testing.assert_allclose(found.cdf(np.exp(x[some]), n), cumulative[some], atol=1e-6)


def test_quantiles_of_long_tails_are_exact():
    observed = Hurdle(1.0, Integrated(0.9, 0.3, base=NegativeBinomial(1.0, 0.5))).observed
    np.testing.assert_array_equal(observed.quantile([0.995, 0.999]), [59.0, 206.0])


@pytest.mark.parametrize("rate", [0.2, 3.0])
@every_first
def test_moments_of_the_compound_are_exact_sums(element, chi, nu, rate):
    # N elements share one theta: E[X] = E[N] m, E[X^2] = E[N] v + E[N^2] E[mean^2].
    nu, chi = 3.0 * nu, 3.0 * chi
    compound = CompoundPoisson(rate, Integrated(chi, nu, base=element))
    mean = averaged(element, chi, nu, lambda e: np.broadcast_to(e.mean, e.theta.shape))
    square = averaged(element, chi, nu, lambda e: np.broadcast_to(e.mean**2, e.theta.shape))
    within = averaged(element, chi, nu, lambda e: np.broadcast_to(e.variance, e.theta.shape))
    assert compound.mean == pytest.approx(rate * mean, rel=1e-3)
    if element.name == "inverse_gaussian":
        assert compound.variance == np.inf
        return
    variance = rate * within + (rate + rate**2) * square - (rate * mean) ** 2
    assert compound.variance == pytest.approx(variance, rel=5e-3)


@every_first
def test_draws_agree_with_the_cdf(element, chi, nu):
    rng = np.random.default_rng(2)
    compound = CompoundPoisson(np.full(3000, 0.8), Integrated(chi, nu, base=element)).observed
    drawn = compound.sample(rng=rng)
    one = CompoundPoisson(0.8, Integrated(chi, nu, base=element)).observed
    for level in (0.1, 0.5, 0.9):
        y = float(one.quantile(level))
        assert np.mean(drawn <= y) == pytest.approx(float(one.cdf(y)), abs=0.03)


@given(
    element=st.sampled_from(list(CENTRES)),
    strength=st.floats(0.01, 1e4),
    rate=st.floats(1e-6, 20.0),
    size=st.floats(0.05, 15.0),
)
def test_the_sum_over_n_finds_its_mode(element, strength, rate, size):
    # With theta integrated out the terms need not be log-concave; see also the test below.
    center = CENTRES[element][0]
    found = Integrated(center * strength, strength, base=element)
    y = size * abs(float(element.with_mean(element.kappa * center).mean))
    y = np.array([max(np.round(y), element.support.lowest) if element.support.discrete else y])
    n = np.arange(1.0, 400.0)
    with np.errstate(all="ignore"):
        terms = found.log_density_unchecked(y, n) - special.gammaln(n + 1.0)
    plain = special.logsumexp(terms + n * np.log(rate) - rate)
    assert sum_over_n(found, y, np.array([rate])).log_sum[0] == pytest.approx(plain, abs=1e-8)


@pytest.mark.parametrize(
    ("base", "chi", "nu", "y", "rate"),
    [
        (Normal(5e6, 1e6), 50.0, 10.0, 5e6, 400.0),  # the mode near the rate is the higher one
        (Normal(5e6, 1e6), 50.0, 10.0, 5e6, 200.0),
        (Normal(5e6, 1e6), 50.0, 10.0, 5e6, 3000.0),
        (Binomial(100_000, 0.5), 5.0, 10.0, 2e7, 20.0),  # it lies below the other one
        (Poisson(1e4), 40_000.0, 4.0, 1e4, 60.0),
    ],
)
def test_the_sum_over_n_has_both_modes(base, chi, nu, y, rate):
    found = Integrated(chi, nu, base=base)
    n = np.arange(1.0, 6000.0)
    with np.errstate(all="ignore"):
        density = found.log_density_unchecked(np.full_like(n, y), n)
    terms = density + n * np.log(rate) - rate - special.gammaln(n + 1.0)
    total = special.logsumexp(terms)
    sums = sum_over_n(found, np.array([y]), np.array([rate]))
    assert sums.log_sum[0] == pytest.approx(total, abs=1e-6)
    assert sums.mean[0] == pytest.approx(np.exp(terms - total) @ n, rel=1e-6)
    far = sum_over_n(found, np.array([y]), np.array([1e6]))  # too far apart to sum in between
    assert np.isfinite(far.log_sum[0])


@pytest.mark.parametrize(
    "element",
    [*CENTRES, NegativeBinomial(1e6, 3e-6), Gamma(1e4, 1.0), Binomial(1000, 0.01)],
    ids=repr,
)
@pytest.mark.parametrize("nu", [0.3, 1e4, 1e10, 1e13])
def test_the_predictive_density_keeps_its_digits_in_rows_of_many_entries(element, nu):
    kappa = np.array(float(element.kappa))
    center = float(element.mean) / float(kappa)
    y = float(element.mean) * np.array([0.3, 1.0, 4.0])
    if element.support.discrete:
        y = np.clip(np.ceil(y), element.support.lowest, element.highest)
    found = element.conjugate.log_predictive(y, kappa, np.array(center * nu), np.array(nu))
    exact = [float(reference.log_predictive(element, v, kappa, center * nu, nu)) for v in y]
    np.testing.assert_allclose(found, exact, atol=1e-8)


def test_the_range_of_n_is_the_base_s():
    y = np.array([0.0, 1.0, 7.0])
    found = Integrated(2.0, 4.0, base=Binomial(3, 0.5))
    np.testing.assert_array_equal(found.n_range(y)[0], [1, 1, 3])
    assert found.log_density(7.0, 2) == -np.inf
    geometric = Integrated(9.0, 4.0, base=Geometric(0.4))
    np.testing.assert_array_equal(geometric.n_range(y + 1)[1], y + 1)


# -- both sides at once, and theta by its mode -----------------------------------------------------


@pytest.mark.parametrize(
    "element", [Gamma(2.0, 1.0), Poisson(3.0), Normal(1.0, 2.0), InverseGaussian(2.0, 3.0)],
    ids=lambda e: e.name,
)  # fmt: skip
@pytest.mark.parametrize("nu", [30.0, 400.0])
def test_a_pair_s_pooled_theta_has_the_mean_and_spread_of_the_two(element, nu):
    rng = np.random.default_rng(0)
    conjugate, sharing = element.conjugate, element.conjugate.sharing
    one, other = (np.array(1.7 * nu), np.array(nu)), (np.array(0.9 * 2 * nu), np.array(2 * nu))
    parts = [
        conjugate.sample_mean(np.full(40_000, chi), np.full(40_000, strength), rng)
        for chi, strength in (one, other)
    ]
    drawn = parts[0] + parts[1] if sharing.additive else parts[0] * parts[1]
    chi, strength = sharing.pooled(one, other)
    assert conjugate.mean(chi, strength) == pytest.approx(np.mean(drawn), rel=0.02)
    if element.name != "inverse_gaussian":
        assert conjugate.variance_of_mean(chi, strength) == pytest.approx(np.var(drawn), rel=0.25)


@pytest.mark.parametrize("kappa", [1.0, 4.0])
def test_a_gamma_pair_of_few_entries_has_the_density_of_the_product(kappa):
    """The rate of a pair is the product of two gamma variables, here of nu = 3 and center 1."""
    nu = np.array(3.0)
    conjugate, base = Gamma.conjugate, Gamma(kappa, 1.0)
    pair = Integrated(*conjugate.sharing.pooled((nu, nu), (nu, nu)), base=base)
    # The product posterior: log rates on a grid, and the density of values under each.
    u = np.linspace(-12.0, 4.0, 401)
    weight = np.exp((nu + 1.0) * u - nu * np.exp(u))
    log_rate = 2.0 * u[0] + (u[1] - u[0]) * np.arange(2 * len(u) - 1)
    weight = np.convolve(weight, weight)
    weight /= weight.sum()
    y = np.exp(np.linspace(-12.0, 9.0, 300))
    given = base.replace(rate=np.exp(log_rate)).log_density_unchecked(y[:, None], np.array(1.0))
    exact = np.exp(given) @ weight
    mass = exact * y / np.sum(exact * y)
    same_variance = Integrated(np.array(1.8), np.array(1.8), base=base)
    lost, lost_by_variance = (
        float(mass @ (np.log(exact) - found.log_density(y))) for found in (pair, same_variance)
    )
    assert lost < 0.005
    assert lost < 0.6 * lost_by_variance
    assert weight @ np.exp(-log_rate) == pytest.approx(float(pair.mean) / kappa)
    # Its variance is overstated, because 1 / nu adds up.
    variance = weight @ np.exp(-2.0 * log_rate) - 1.0
    assert variance == pytest.approx(1.25, rel=1e-3)
    assert pair.variance_of_mean == pytest.approx(2.0 * kappa**2)


@pytest.mark.parametrize("element", BY_MODE, ids=lambda e: e.name)
@pytest.mark.parametrize("center", [1.02, 1.6, 30.0])
def test_the_mode_is_where_the_mean_is_the_center(element, center):
    nu = np.array(50.0)
    theta, psi = element.conjugate.moments(center * nu, nu)
    at = element.with_mean(center)
    assert float(at.mean) == pytest.approx(center, rel=1e-9)
    assert theta == pytest.approx(float(at.theta), rel=1e-6, abs=1e-9)
    assert psi == pytest.approx(float(element.log_partition(at.theta)), rel=1e-6, abs=1e-9)
    excess_at = element.conjugate.excess_at
    assert excess_at(theta) == pytest.approx(center - 1.0, rel=1e-9)
    slope = (excess_at(theta + 1e-5) - excess_at(theta - 1e-5)) / 2e-5
    assert element.conjugate.curvature(theta) == pytest.approx(slope, rel=1e-4)


@given(excess=st.floats(1e-8, 1e6))
def test_rates_and_probabilities_give_their_means_back(excess):
    mean = 1.0 + excess
    rate = float(rate_for_mean(np.array(mean)))
    assert rate / -np.expm1(-rate) - 1.0 == pytest.approx(excess, rel=1e-6, abs=1e-9)
    p = float(probability_for_mean(np.array(mean)))
    assert -p / ((1 - p) * np.log1p(-p)) == pytest.approx(mean, rel=1e-6)


def test_means_at_and_below_the_lowest_give_the_smallest_parameter():
    np.testing.assert_allclose(rate_for_mean(np.array([1.0, 0.5])), 1e-9, rtol=1e-6)
    np.testing.assert_allclose(probability_for_mean(np.array([1.0, 0.5])), 1e-9, rtol=1e-6)
    for inverse in (rate_for_mean, probability_for_mean):
        assert np.isnan(inverse(np.array([np.nan, 2.0]))).tolist() == [True, False]


@pytest.mark.parametrize("element", BY_MODE, ids=lambda e: e.name)
@pytest.mark.parametrize("nu", [3.0, 20.0, 500.0])
@pytest.mark.parametrize("excess", [0.01, 0.1, 0.5, 3.0, 40.0])
def test_predictions_of_rows_whose_values_are_all_but_1(element, nu, excess):
    """The integral over theta, whose density is flat toward -inf where the excess is small."""
    conjugate, chi = element.conjugate, nu + excess
    theta = np.linspace(-40.0 / excess - 5.0, 5.0 if element.name[0] == "z" else -1e-9, 1_000_001)

    psi = np.where(theta > -30.0, element.log_partition(np.maximum(theta, -30.0)), theta)

    def log_integral(y, n):
        log_density = (chi + y) * theta - (nu + n) * psi
        return special.logsumexp(log_density)

    y = np.array([1.0, 2.0, 3.0])
    found = conjugate.log_predictive(y, np.ones(3), np.full(3, chi), np.full(3, nu))
    expected = [log_integral(value, 1.0) - log_integral(0.0, 0.0) for value in y]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    means, weights = zip(*conjugate.nodes(np.array([chi]), np.array([nu])), strict=True)
    assert sum(weights) == pytest.approx(1.0)
    if element.name[0] == "z" or nu > 3.0:  # E[1 / (1 - p)] has a tail that few nodes see
        assert sum(m * w for m, w in zip(means, weights, strict=True)) == pytest.approx(
            chi / nu, rel=0.02
        )


def exact_log_integral(element, excess, nu):
    """The log of the integral of exp(chi theta - nu Psi(theta)) with 20 digits, chi = nu + excess.

    Below p (or l) = e^-40, Psi is theta, and the rest of the integral is closed.
    """

    def log_density(t):
        if element.name == "logarithmic":  # t = logit p
            fail = 1 / (1 + mpmath.exp(t))
            theta, psi = -mpmath.log1p(mpmath.exp(-t)), mpmath.log(-mpmath.log(fail))
            return excess * theta - nu * (psi - theta) + mpmath.log(fail)
        rate = mpmath.exp(t)  # t = theta
        return excess * t - nu * (mpmath.log(mpmath.expm1(rate)) - t)

    with mpmath.workdps(20):
        # The trapezoid rule is exponentially accurate, since the density is smooth.
        last = 320 if element.name == "logarithmic" else 96
        terms = [mpmath.exp(log_density(mpmath.mpf(j) / 8)) for j in range(-320, last)]
        below = mpmath.exp(-40 * excess) / excess
        return float(mpmath.log((mpmath.fsum(terms) - terms[0] / 2) / 8 + below))


@pytest.mark.parametrize("element", BY_MODE, ids=lambda e: e.name)
@pytest.mark.parametrize("nu", [0.05, 0.3, 1.0, 30.0])
@pytest.mark.parametrize("excess", [0.01, 0.6, 40.0])
def test_predictions_with_few_entries_are_integrals(element, nu, excess):
    """With few entries the density of theta is skewed, and its tails are long."""
    conjugate = element.conjugate
    chi, y, n = nu + excess, np.array([1.0, 2.0, 25.0]), np.array([1.0, 1.0, 3.0])
    found = conjugate.log_predictive(y, n, np.full(3, chi), np.full(3, nu))
    before = exact_log_integral(element, excess, nu)
    later = [exact_log_integral(element, excess + a - b, nu + b) for a, b in zip(y, n, strict=True)]
    np.testing.assert_allclose(found, np.array(later) - before, atol=1e-4)


@pytest.mark.parametrize("element", BY_MODE, ids=lambda e: e.name)
@pytest.mark.parametrize(("nu", "excess"), [(0.3, 0.02), (2.0, 1.0), (200.0, 80.0)])
def test_nodes_and_draws_have_the_probabilities_of_theta(element, nu, excess, rng):
    conjugate, chi = element.conjugate, np.array([nu + excess])
    means, weights = zip(*conjugate.nodes(chi, np.array([nu])), strict=True)
    assert sum(weights) == pytest.approx(1.0)
    # Pr(a value is 1) by quadrature, by draws, and closed by the normalizers.
    closed = np.exp(conjugate.log_predictive(np.ones(1), np.ones(1), chi, np.array([nu])))[0]
    closed *= np.exp(element.log_base_measure(np.array(1.0), np.array(1.0)))
    ones = [element.with_mean(np.maximum(m, 1.0)).log_density(1.0) for m in means]
    found = sum(float(w[0]) * float(np.exp(p[0])) for w, p in zip(weights, ones, strict=True))
    assert found == pytest.approx(closed, abs=1e-4)
    drawn = conjugate.sample_mean(np.full(20_000, chi[0]), np.full(20_000, nu), rng)
    share = np.exp(element.with_mean(drawn).log_density(1.0)).mean()
    assert share == pytest.approx(closed, abs=0.015)


@pytest.mark.parametrize("element", BY_MODE, ids=lambda e: e.name)
def test_rows_whose_values_are_all_1_have_a_mean_of_1(element, rng):
    conjugate, nu = element.conjugate, np.array([3.0, 20.0, 1e4])
    for chi in (nu, nu * (1.0 + 1e-15)):
        one = conjugate.log_predictive(np.ones(3), np.ones(3), chi, nu)
        np.testing.assert_allclose(one, 0.0, atol=1e-4)
        assert np.all(conjugate.sample_mean(chi, nu, rng) == 1.0)
        assert np.all(np.isfinite(conjugate.log_normalizer(chi, nu)))
