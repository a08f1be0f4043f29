"""Gibbs sampling compared with a slow referee, and the referee with integrals."""

import numpy as np
import pytest
from scipy import sparse, special

from cases import EVERYDAY
from gibbs import SHAPES, Referee, shape_masses
from hcpf.core.axis import Axis
from hcpf.core.gibbs import Chain, GibbsData
from hcpf.core.posterior import FactorPosterior, Posterior
from hcpf.core.priors import Priors
from hcpf.core.threads import kernel_threads
from hcpf.core.value_model import ValueModel
from hcpf.elements import Gamma, Normal, Poisson

PRIORS = Priors(0.5, 2.0, 0.8, 0.7, 3.0, 1.2)


def at_means(shape, n_components, exposures=(None, None)):
    """A posterior to begin at: gammas of shape 1 and mean 0.5."""
    axes = [
        FactorPosterior(
            np.ones((rows, n_components), np.float32),
            np.full((rows, n_components), 0.5, np.float32),
            np.ones(rows),
            np.ones(rows),
            exposure=exposure,
        )
        for rows, exposure in zip(shape, exposures, strict=True)
    ]
    return Posterior(*axes)


def exact_mean_rate(element, y):
    """E[rate | y] of a single pair with one component, its activities integrated out."""

    def log_prior(x, axis):
        shape, activity_shape, mean = PRIORS.axis(axis)
        power = shape + activity_shape
        return (shape - 1.0) * np.log(x) - power * np.log(activity_shape / mean + x)

    n = np.arange(1.0, 60.0)
    weights = element.log_density_unchecked(np.full(len(n), y), n) - special.gammaln(n + 1.0)
    log_x = np.linspace(-12.0, 6.0, 400)
    x = np.exp(log_x)
    log_rate = (log_x[:, None] + log_x).ravel()
    likelihood = special.logsumexp(weights + log_rate[:, None] * n, axis=1) - np.exp(log_rate)
    prior = (log_prior(x, Axis.USERS) + log_x)[:, None] + log_prior(x, Axis.ITEMS) + log_x
    density = np.exp(likelihood + prior.ravel())
    return density @ np.exp(log_rate) / density.sum()


def test_the_referee_agrees_with_an_integral():
    element, y = Poisson(1.5), 4.0
    priors = [PRIORS.axis(axis) for axis in Axis]
    chain = Referee(np.array([[y]]), element, 1, priors, seed=1)
    rates = chain.run(300, 8_000)[:, 0, 0]
    assert rates.mean() == pytest.approx(exact_mean_rate(element, y), rel=0.08)


def small_world(element, *, hurdle=False, seed=0, shape=(24, 21)):
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.6, 1.0, (shape[0], 2)) @ rng.gamma(0.6, 1.0, (2, shape[1]))
    counts = rng.poisson(rates)
    drawn = element.sample(np.minimum(counts, 1) if hurdle else counts, rng)
    values = np.where(counts > 0, drawn, np.nan)
    excluded = rng.random(shape) < 0.1
    return values, excluded


def as_data(values, excluded, value_model):
    present = np.isfinite(values) & ~excluded
    rows, columns = np.nonzero(present)
    matrix = sparse.csr_array((values[present], (rows, columns)), shape=values.shape)
    marks = sparse.csr_array(excluded.astype(float))
    return GibbsData(value_model, PRIORS, matrix, marks)


def draws_of(data, n_burn_in, n_passes, *, exposures=(None, None), seed=0):
    start = at_means(data.matrix.shape, 2, exposures)
    chain = Chain(data, start, np.random.default_rng(seed))
    out = np.empty((n_passes, *data.matrix.shape))
    for _ in range(n_burn_in):
        chain.make_pass()
    for draw in out:
        chain.make_pass()
        draw[:] = chain.factors(Axis.USERS).astype(np.float64) @ chain.factors(Axis.ITEMS).T
    return out


@pytest.mark.parametrize(
    ("element", "hurdle"),
    [(Gamma(2.0, 1.0), False), (Poisson(1.5), False), (Normal(3.0, 1.0), True)],
    ids=["gamma", "poisson", "normal hurdle"],
)
def test_the_compiled_chain_agrees_with_the_referee(element, hurdle):
    """Means and spreads of all rates, with excluded pairs, exposures and learned priors."""
    values, excluded = small_world(element, hurdle=hurdle)
    data = as_data(values, excluded, ValueModel(element, hurdle=hurdle))
    exposures = np.linspace(0.5, 2.0, values.shape[0]), np.linspace(3.0, 0.7, values.shape[1])
    exposure = np.outer(*exposures)
    ours = exposure * draws_of(data, 150, 1200, exposures=exposures)
    priors = [PRIORS.axis(axis) for axis in Axis]
    referee = Referee(
        values, element, 2, priors, marks=~excluded, exposure=exposure, hurdle=hurdle,
        learn_priors=True,
    )  # fmt: skip
    theirs = referee.run(150, 1200)
    mean, spread = theirs.mean(axis=0), theirs.std(axis=0)
    ratio = ours.std(axis=0) / spread
    assert 0.9 < np.median(ratio) < 1.1
    shift = (ours.mean(axis=0) - mean) / spread
    assert abs(np.median(shift)) < 0.12
    assert np.median(np.abs(shift)) < 0.25


def test_only_observed_pairs_enter_where_training_did_so():
    element = Gamma(2.0, 1.0)
    values, excluded = small_world(element)
    value_model = ValueModel(element, train_on="observed")
    ours = draws_of(as_data(values, np.zeros_like(excluded), value_model), 150, 1000)
    present, priors = np.isfinite(values), [PRIORS.axis(axis) for axis in Axis]
    referee = Referee(values, element, 2, priors, marks=present, learn_priors=True)
    theirs = referee.run(150, 1000)
    ratio = (ours.std(axis=0) / theirs.std(axis=0))[present]
    assert 0.9 < np.median(ratio) < 1.1
    shift = (ours.mean(axis=0) - theirs.mean(axis=0))[present] / theirs.std(axis=0)[present]
    assert abs(np.median(shift)) < 0.12


def test_the_prior_of_the_activities_is_drawn_from_its_posterior():
    value_model = ValueModel(Gamma(2.0, 1.0))
    values, excluded = small_world(value_model.element, shape=(60, 30))
    chain = Chain(
        as_data(values, excluded, value_model), at_means(values.shape, 2), np.random.default_rng(0)
    )
    activity = np.random.default_rng(1).gamma(3.0, 1.0 / 1.5, 60)
    chain._activity[Axis.USERS] = activity
    shapes, rates = np.empty((2, 2000))
    for j in range(2000):
        chain._draw_prior(Axis.USERS)
        shapes[j] = chain.priors.user_activity_shape
        rates[j] = shapes[j] / chain.priors.user_activity_mean
    masses = shape_masses(activity)
    assert shapes.mean() == pytest.approx(masses @ SHAPES, rel=0.05)
    spread = np.sqrt(masses @ SHAPES**2 - (masses @ SHAPES) ** 2)
    assert shapes.std() == pytest.approx(spread, rel=0.15)
    assert rates.mean() == pytest.approx(masses @ (60 * SHAPES / activity.sum()), rel=0.05)
    # Too few rows say nothing about their prior.
    chain._activity[Axis.ITEMS] = np.ones(5)
    chain._draw_prior(Axis.ITEMS)
    assert chain.priors.item_activity_shape == PRIORS.item_activity_shape


def test_the_scale_of_the_factors_does_not_depend_on_the_start():
    """Users times c and items by c have the same rates: a prior of their scale has to decide."""
    value_model = ValueModel(Gamma(2.0, 1.0))
    values, excluded = small_world(value_model.element, shape=(60, 40))
    data, means = as_data(values, excluded, value_model), []
    for multiple in (1e-3, 1e3):
        chain = Chain(data, at_means(values.shape, 2), np.random.default_rng(0))
        for axis, factor in ((Axis.USERS, multiple), (Axis.ITEMS, 1.0 / multiple)):
            chain._factors[axis] *= np.float32(factor)
            chain._activity[axis] /= factor
        found = []
        for _ in range(300):
            chain.make_pass()
            assert chain.priors.user_activity_mean == PRIORS.user_activity_mean
            found.append([chain.factors(axis).mean() for axis in Axis])
        means.append(np.log(found[100:]).mean(axis=0))
    np.testing.assert_allclose(means[0], means[1], atol=0.2)


@pytest.mark.parametrize("case", EVERYDAY, ids=lambda case: case.element.name)
def test_the_number_of_elements_follows_its_weights(case):
    """One user with many entries of few values, at a known rate: frequencies of n."""
    element = case.element
    rng = np.random.default_rng(3)
    value = float(element.sample(np.full(1, 3.0), rng)[0])
    n_entries, rate = 20_000, 1.7
    matrix = sparse.csr_array(np.full((1, n_entries), value)) if value else None
    if matrix is None:
        pytest.skip("the drawn value is 0")
    data = GibbsData(ValueModel(element), PRIORS, matrix)
    chain = Chain(data, at_means(matrix.shape, 1), rng)
    chain._factors = {
        Axis.USERS: np.full((1, 1), rate, np.float32),
        Axis.ITEMS: np.ones((n_entries, 1), np.float32),
    }
    counts = chain._draw_elements()[Axis.ITEMS][:, 0]
    series = ValueModel(element).series(element, np.full(1, value), np.full(1, rate))
    spread = float(np.sqrt(max(series.second[0] - series.mean[0] ** 2, 0.0)))
    error = spread / np.sqrt(n_entries) + 1e-9
    assert abs(counts.mean() - series.mean[0]) < 4.5 * error
    assert counts.std() == pytest.approx(spread, rel=0.06, abs=1e-6)


def test_many_elements_of_one_entry_are_divided_by_their_shares():
    matrix = sparse.csr_array(np.full((1, 2000), 40.0))
    element = Poisson(1.0)
    data = GibbsData(ValueModel(element), PRIORS, matrix)
    rng = np.random.default_rng(0)
    chain = Chain(data, at_means(matrix.shape, 3), rng)
    shares = np.array([5.0, 1.0, 14.0], np.float32)
    chain._factors = {Axis.USERS: shares[None], Axis.ITEMS: np.ones((2000, 3), np.float32)}
    sums = chain._draw_elements()
    np.testing.assert_array_equal(sums[Axis.USERS][0], sums[Axis.ITEMS].sum(axis=0))
    counts = sums[Axis.ITEMS].astype(float)
    total = counts.sum(axis=1)
    found = counts.sum(axis=0) / total.sum()
    np.testing.assert_allclose(found, shares / 20.0, atol=0.005)
    expected = np.mean(total) * found * (1.0 - found) + found**2 * np.var(total)
    np.testing.assert_allclose(counts.var(axis=0), expected, rtol=0.15)


def test_the_draws_do_not_depend_on_threads():
    element = Gamma(2.0, 1.0)
    values, excluded = small_world(element, shape=(200, 150))
    data = as_data(values, excluded, ValueModel(element))
    with kernel_threads(1):
        one = draws_of(data, 0, 2, seed=5)
    with kernel_threads(4):
        four = draws_of(data, 0, 2, seed=5)
    np.testing.assert_array_equal(one, four)
