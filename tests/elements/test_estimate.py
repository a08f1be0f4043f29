"""Maximum likelihood: the optimum that a brute search finds, and what happens where none exists."""

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, special

from cases import EVERYDAY
from hcpf import CompoundPoisson, elements
from hcpf.elements import (
    POSITIVE,
    UNIT_INTERVAL,
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
from hcpf.errors import EstimationError

# -- data of many kinds, shaped to the support of an element ---------------------------------------


def _reals(element, rng):
    return {
        "own": element.sample(np.ones(400), rng),
        "two humps": np.concatenate([rng.normal(-5, 0.1, 50), rng.normal(80, 9, 20)]),
        "tiny": np.array([-1.0, 0.0, 7.0]),
        "heavy tail": rng.standard_t(1.5, 500),
        "large": 1e6 + rng.normal(size=300),
        "narrow": 5.0 + 1e-6 * rng.random(50),
    }


def _positive_reals(element, rng):
    return {
        "own": element.sample(np.ones(400), rng),
        "uniform": rng.uniform(1, 2, 300),
        "tiny": np.array([0.4, 3.0]),
        "heavy tail": rng.lognormal(0, 2.5, 500),
        "large": 1e6 * rng.gamma(3.0, size=300),
        "small": 1e-7 * rng.gamma(0.5, size=300) + 1e-12,
        "narrow": 5.0 + 1e-3 * rng.random(50),
    }


def _counts(element, rng):
    return {
        "own": element.sample(np.ones(400), rng),
        "mostly zeros": np.r_[np.zeros(300), rng.poisson(3, 20)].astype(float),
        "tiny": np.array([0.0, 3.0, 1.0]),
        "heavy tail": rng.negative_binomial(0.1, 0.002, 500).astype(float),
        "large": rng.negative_binomial(5, 5e-5, 25).astype(float),
        "under-dispersed": rng.binomial(12, 0.6, 300).astype(float),
        "two humps": np.r_[np.full(30, 2.0), np.full(20, 90.0)],
    }


def datasets(element, rng):
    if element.support.lowest < 0:
        return _reals(element, rng)
    if not element.support.discrete:
        return _positive_reals(element, rng)
    shift = element.support.lowest
    kinds = _counts(element, rng)
    return {k: y if k == "own" else y + shift for k, y in kinds.items()}


KINDS = [
    (case.element, kind)
    for case in EVERYDAY
    for kind in datasets(case.element, np.random.default_rng(0))
]
each_kind = pytest.mark.parametrize(("element", "kind"), KINDS, ids=str)
MOST_STIRLING_NUMBERS = (ZeroTruncatedPoisson, "large")  # the brute search takes seconds there


# -- the brute search ------------------------------------------------------------------------------


def log_likelihood(element, y):
    """Per value."""
    values, counts = np.unique(y, return_counts=True)
    return float(counts @ element.log_density(values)) / len(y)


_INVERSE = {POSITIVE: np.log, UNIT_INTERVAL: special.logit}
_FORWARD = {
    POSITIVE: lambda t: np.exp(np.clip(t, np.log(1e-9), 30)),
    UNIT_INTERVAL: lambda t: special.expit(np.clip(t, special.logit(1e-9), 34)),
}


def brute_force(element, missing, y):
    """The best likelihood over the missing parameters, by direct search from many starts."""
    domains = element.domains()
    forward = [_FORWARD.get(domains[name], float) for name in missing]
    upper = {"successes": 1e6}

    def at(point):
        moved = {k: float(f(t)) for k, f, t in zip(missing, forward, point, strict=True)}
        return element.replace(**{k: min(v, upper.get(k, np.inf)) for k, v in moved.items()})

    def loss(point):
        value = -log_likelihood(at(point), y)
        return value if np.isfinite(value) else 1e300

    own = [_INVERSE.get(domains[name], float)(element.parameters[name]) for name in missing]
    found = []
    for offset in (0.0, -3.0, 2.0):
        options = {"xatol": 1e-6, "fatol": 1e-12, "maxiter": 2000, "maxfev": 2000}
        start = np.asarray(own) + offset
        found.append(optimize.minimize(loss, start, method="Nelder-Mead", options=options).fun)
    return -min(found)


def assert_optimal(estimate, missing, y):
    reached = log_likelihood(estimate, y)
    assert np.isfinite(reached)
    best = brute_force(estimate, missing, y)
    # Terms of the size of the log-likelihood itself are summed on either side.
    assert reached >= best - 1e-9 * (1 + abs(best))


def _continuous_parameters(family):
    return [name for name in family.domains() if name != "trials"]


@pytest.mark.parametrize(
    ("element", "kind"),
    [
        pytest.param(
            element,
            kind,
            marks=pytest.mark.slow if (type(element), kind) == MOST_STIRLING_NUMBERS else [],
            id=f"{element}-{kind}",
        )
        for element, kind in KINDS
    ],
)
def test_estimate_reaches_the_optimum(element, kind, rng):
    y = datasets(element, rng)[kind]
    estimate = type(element).estimate(y)
    if estimate.domains():
        assert_optimal(estimate, _continuous_parameters(type(element)), y)
    else:
        assert estimate == element


@each_kind
def test_estimate_with_a_parameter_given(element, kind, rng):
    y = datasets(element, rng)[kind]
    names = list(element.domains())
    for given in names if len(names) > 1 else []:
        value = float(getattr(element, given))
        if given == "trials":
            value = 2.0 * y.max()
        estimate = type(element).estimate(y, **{given: value})
        assert getattr(estimate, given) == value
        missing = [name for name in _continuous_parameters(type(element)) if name != given]
        if missing:
            assert_optimal(estimate, missing, y)


@pytest.mark.parametrize("kind", list(_counts(Binomial(5, 0.5), np.random.default_rng(0))))
@pytest.mark.parametrize(
    "probability",
    [None, 0.3, *(pytest.param(p, marks=pytest.mark.slow) for p in (0.001, 0.99))],
)
def test_best_number_of_trials(kind, probability, rng):
    """No integer has a higher likelihood, near the estimate, near the maximum or far away."""
    y = datasets(Binomial(5, 0.5), rng)[kind]
    given = {} if probability is None else {"probability": probability}
    estimate = Binomial.estimate(y, **given)
    trials, largest = estimate.trials, y.max()
    assert trials >= largest
    nearby = trials + np.arange(-40, 41)
    last = 1000 * largest if probability is None else 3 * max(trials, largest)
    scan = np.unique(np.round(np.r_[largest + np.arange(200), np.geomspace(largest, last), nearby]))
    scan = scan[(scan >= largest) & (scan <= last)]
    reached = log_likelihood(estimate, y)
    for candidate in scan:
        other = Binomial.estimate(y, trials=candidate, **given)
        assert log_likelihood(other, y) <= reached + 1e-10 * (1 + abs(reached))


def test_trials_of_large_and_nearly_equal_values():
    """Where the likelihood is flat its own differences are lost to rounding."""
    y = np.array([1e6, 1e6 + 5])
    estimate = Binomial.estimate(y)
    assert log_likelihood(estimate, y) >= log_likelihood(Binomial.estimate(y, trials=y.max()), y)
    assert estimate.trials < 2e6


def test_well_specified_estimates_are_near_the_truth(rng):
    for case in EVERYDAY:
        truth = case.element
        estimate = type(truth).estimate(truth.sample(np.ones(100_000), rng))
        for name, value in truth.parameters.items():
            assert_allclose(getattr(estimate, name), value, rtol=0.05, atol=0.01)


@pytest.mark.parametrize("spread", [3.0, 0.3, 0.02, 0.01, 1e-5])
def test_gamma_solves_its_equations(spread):
    """log a - psi(a) = log mean - mean log, whose two sides nearly cancel for large shapes."""
    y = np.array([1.0, 1.0 + spread, 2.0, 2.0 * (1.0 + spread)][: 2 if spread < 0.1 else 4])
    estimate = Gamma.estimate(y)
    with mp.workdps(50):
        exact = [mp.mpf(value) for value in y]
        gap = mp.log(mp.fsum(exact) / len(exact)) - mp.fsum(map(mp.log, exact)) / len(exact)
        shape = mp.mpf(estimate.shape)
        assert_allclose(float(mp.log(shape) - mp.digamma(shape)), float(gap), rtol=1e-10)
    assert_allclose(estimate.mean, y.mean(), rtol=1e-14)


def test_shape_of_values_does_not_matter(rng):
    y = rng.gamma(2.0, size=(6, 5))
    assert Gamma.estimate(y) == Gamma.estimate(y.ravel()) == Gamma.estimate(y.tolist())


# -- data without an inner maximum -----------------------------------------------------------------


@pytest.mark.parametrize("family", [Normal, Gamma, InverseGaussian], ids=lambda f: f.__name__)
@pytest.mark.parametrize("y", [[0.1], [3.0, 3.0], [0.1] * 999, [1e6 / 3] * 7, [1e-20] * 3])
def test_equal_values_of_continuous_elements(family, y):
    with pytest.raises(EstimationError, match="close to"):
        family.estimate(y)


def test_equal_values_with_the_spread_given():
    assert Normal.estimate([3.0, 3.0], variance=2.0) == Normal(3.0, 2.0)
    assert Normal.estimate([3.0], mean=1.0) == Normal(1.0, 4.0)
    assert Gamma.estimate([3.0], shape=2.0) == Gamma(2.0, 2.0 / 3.0)
    assert InverseGaussian.estimate([3.0], shape=2.0) == InverseGaussian(3.0, 2.0)
    assert_allclose(InverseGaussian.estimate([3.0], mean=1.0).shape, 3.0 / 4.0)
    with pytest.raises(EstimationError):
        InverseGaussian.estimate([3.0, 3.0], mean=3.0)


@pytest.mark.parametrize("y", [[0.0], [0.0, 0.0, 0.0]])
def test_all_zeros(y):
    assert Poisson.estimate(y) == Poisson(1e-9)
    assert Binomial.estimate(y) == Binomial(1, 1e-9)
    assert Binomial.estimate(y, trials=7) == Binomial(7, 1e-9)
    assert Binomial.estimate(y, probability=0.2) == Binomial(1, 0.2)
    assert NegativeBinomial.estimate(y) == NegativeBinomial(1.0, 1e-9)
    assert NegativeBinomial.estimate(y, successes=3.0) == NegativeBinomial(3.0, 1e-9)
    assert NegativeBinomial.estimate(y, probability=0.2) == NegativeBinomial(1e-9, 0.2)
    with pytest.raises(EstimationError):
        Normal.estimate(y)


@pytest.mark.parametrize("y", [[1.0], [1.0] * 50])
def test_all_ones(y):
    assert ZeroTruncatedPoisson.estimate(y) == ZeroTruncatedPoisson(1e-9)
    assert_allclose(Logarithmic.estimate(y).probability, 1e-9)
    assert Geometric.estimate(y) == Geometric(1e-9)
    assert Degenerate.estimate(y) == Degenerate()
    assert Binomial.estimate(y) == Binomial(1, 1 - 1e-9)
    assert Poisson.estimate(y) == Poisson(1.0)


@pytest.mark.parametrize("value", [2.0, 17.0, 1e6])
def test_equal_counts(value):
    y = [value, value]
    assert Binomial.estimate(y) == Binomial(value, 1 - 1e-9)
    assert NegativeBinomial.estimate(y).successes == 1e6
    assert_allclose(NegativeBinomial.estimate(y).mean, value)
    for family in (ZeroTruncatedPoisson, Logarithmic, Geometric, Poisson):
        assert_allclose(family.estimate(y).mean, value, rtol=1e-6)


def test_under_dispersed_counts_for_the_negative_binomial(rng):
    y = rng.binomial(10, 0.7, 500).astype(float)
    estimate = NegativeBinomial.estimate(y)
    assert estimate.successes == 1e6
    assert_allclose(estimate.mean, y.mean())
    assert_allclose(log_likelihood(estimate, y), log_likelihood(Poisson.estimate(y), y), rtol=1e-4)


def test_over_dispersed_counts_for_the_binomial(rng):
    y = rng.negative_binomial(2, 0.3, 500).astype(float)
    estimate = Binomial.estimate(y)
    assert estimate.trials == 1000 * y.max()
    assert_allclose(estimate.mean, y.mean())


def test_maximum_at_the_boundary_of_the_trials():
    y = np.repeat([4.0, 5.0], [1, 60])
    assert Binomial.estimate(y).trials == 5


@pytest.mark.parametrize("size", [1e9, 1e14, 1e17, 1e300])
def test_huge_values_give_a_limit_or_an_error(size):
    for family in elements.ALL:
        y = [size, 3 * size, 3 * size]
        try:
            estimate = family.estimate(y)
        except EstimationError:
            continue
        assert estimate.is_complete
        assert all(np.isfinite(value) for value in estimate.parameters.values())


def test_a_few_values_above_one():
    """Next to the limit the estimates still solve for the mean."""
    y = np.r_[np.ones(999_999), 2.0]
    for family in (ZeroTruncatedPoisson, Logarithmic, Geometric):
        assert_allclose(family.estimate(y).mean - 1, 1e-6, rtol=1e-6)


@pytest.mark.parametrize("case", EVERYDAY, ids=repr)
def test_a_million_values_give_the_mean(case, rng):
    y = case.element.sample(np.ones(1_000_000), rng)
    assert_allclose(type(case.element).estimate(y).mean, y.mean(), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("family", [NegativeBinomial, Binomial])
def test_a_million_counts_that_nearly_all_differ(family, rng):
    y = np.floor(rng.lognormal(10, 2, 1_000_000))
    assert_allclose(family.estimate(y).mean, y.mean(), rtol=1e-6)


# -- real values, if the data sets are present -----------------------------------------------------

REAL_SETS = [
    ("online_retail_quantity", "counts"),  # up to 80,000
    ("lastfm_user_tags", "counts"),
    ("ml1m", "counts"),
    ("online_retail_spend", "amounts"),
    ("steam_hours", "amounts"),
]


@pytest.mark.parametrize(("name", "kind"), REAL_SETS)
def test_all_fitting_elements_take_real_values(name, kind, shared_data):
    parquet = pytest.importorskip("pyarrow.parquet")
    y = parquet.read_table(shared_data / name / f"{name}.parquet").column("value").to_numpy()
    y = y.astype(np.float64)
    for family in elements.ALL:
        if kind == "amounts" and family.support.discrete:
            continue
        estimate = family.estimate(y)
        assert estimate.is_complete
        observed = CompoundPoisson([1e-4, 0.1], estimate).observed
        some = y[np.argsort(y)[[0, len(y) // 2, -1]], None]
        density = observed.log_density(some)
        assert not np.any(np.isnan(density))
        assert np.all(np.isfinite(observed.quantile([[0.05], [0.95]])))
