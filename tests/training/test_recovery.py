"""Data drawn from the model give its rates back, and the right element predicts best."""

import numpy as np
import pytest
from scipy import stats

import hcpf
from hcpf import HCPF, SVI, Algorithm1, CompoundPoisson, Priors
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
from hcpf.training.resolve import most_likely_element
from prepared import prepared

SHAPE = (200, 90)
CHOICES = [
    Normal(1.0, 4.0), Gamma(3.0, 0.5), InverseGaussian(3.0, 1.5), Binomial(10, 0.4),
    NegativeBinomial(2.0, 0.6), ZeroTruncatedPoisson(2.0), Logarithmic(0.8), Geometric(0.7),
    Degenerate(),
]  # fmt: skip
USERS, ITEMS = np.arange(SHAPE[0])[:, None], np.arange(SHAPE[1])


def simulate(element, seed=0, density=0.3):
    return hcpf.simulate(
        *SHAPE, n_components=3, density=density, element=element, random_state=seed
    )


def fit(data, **settings):
    defaults = {"n_components": 3, "max_iter": 50, "tol": 1e-4, "random_state": 0, "n_threads": 1}
    defaults |= {"n_fits": 1, "tempering": 1.0}
    return prepared(**(defaults | settings)).fit(data.interactions)


def held_out_likelihood(fitted, data, seed=99):
    """Of a second draw from the same rates, pair by pair, given that it is observed."""
    rng = np.random.default_rng(seed)
    rate = data.rate(USERS, ITEMS)
    counts = rng.poisson(rate)
    values = data.element.sample(counts, rng)
    seen = counts > 0
    model = CompoundPoisson(fitted.rate(USERS, ITEMS)[seen], fitted.element_)
    return float(np.mean(model.log_density_observed(values[seen])))


@pytest.mark.parametrize(
    "element", [Gamma(2.0, 0.5), Poisson(3.0), NegativeBinomial(2.0, 0.4)], ids=repr
)
def test_rates_come_back(element):
    data = simulate(element)
    fitted = fit(data, element=type(element)())
    true, found = data.rate(USERS, ITEMS), fitted.rate(USERS, ITEMS)
    # The share of the variation that a fit explains, on the scale where noise is even.
    error = np.mean((np.sqrt(found) - np.sqrt(true)) ** 2)
    assert error < 0.12 * np.var(np.sqrt(true))
    assert stats.spearmanr(found.ravel(), true.ravel()).statistic > 0.9
    assert np.sum(found) == pytest.approx(np.sum(true), rel=0.05)
    for name, value in element.parameters.items():
        assert float(getattr(fitted.element_, name)) == pytest.approx(float(value), rel=0.3)


@pytest.mark.parametrize(
    ("true", "wrong"),
    [
        (Gamma(3.0, 0.5), [InverseGaussian(), Normal()]),
        pytest.param(InverseGaussian(3.0, 1.5), [Gamma(), Normal()], marks=pytest.mark.slow),
        pytest.param(
            Logarithmic(0.9), [ZeroTruncatedPoisson(), Geometric()], marks=pytest.mark.slow
        ),
    ],
    ids=lambda e: type(e).__name__,
)
def test_the_right_element_predicts_held_out_values_best(true, wrong):
    data = simulate(true)
    best = held_out_likelihood(fit(data, element=type(true)()), data)
    for element in wrong:
        assert best > held_out_likelihood(fit(data, element=element), data) + 0.003


@pytest.mark.parametrize("element", CHOICES, ids=repr)
def test_auto_takes_the_element_that_the_values_look_like(element):
    values = element.sample(np.ones(4_000), np.random.default_rng(0))
    assert type(most_likely_element(values)) is type(element)


def test_an_average_of_fits_is_no_worse_and_its_element_is_estimated_anew():
    data = simulate(Gamma(2.0, 0.5), density=0.1)
    one = fit(data, element=Gamma(), n_components=8)
    three = fit(data, element=Gamma(), n_components=8, n_fits=3)
    true = np.sqrt(data.rate(USERS, ITEMS))

    def error(fitted):
        return np.mean((np.sqrt(fitted.rate(USERS, ITEMS)) - true) ** 2)

    assert error(three) < error(one)
    assert three.element_ != one.element_
    assert float(three.element_.mean) == pytest.approx(4.0, rel=0.1)
    fixed = fit(data, element=Gamma(2.0, 0.5), n_fits=2, learn_element=False, max_iter=5)
    assert fixed.element_ == Gamma(2.0, 0.5)


@pytest.mark.parametrize(
    ("solver", "passes"),
    [(SVI(batches=8), 12), (Algorithm1(tau=500.0), 120)],
    ids=["svi", "algorithm1"],
)
def test_the_stochastic_solvers_find_the_rates_too(solver, passes):
    data = simulate(Gamma(2.0, 0.5))
    fitted = fit(data, element=Gamma(2.0, 0.5), solver=solver, tol=0.0, max_iter=passes)
    found, true = fitted.rate(USERS, ITEMS), data.rate(USERS, ITEMS)
    assert stats.spearmanr(found.ravel(), true.ravel()).statistic > 0.8


def test_observed_training_recovers_values_where_rates_are_large():
    rng = np.random.default_rng(0)
    users, items = rng.gamma(5.0, 0.5, (80, 2)), rng.gamma(5.0, 0.5, (50, 2))
    rate = users @ items.T
    values = Gamma(4.0, 2.0).sample(rng.poisson(rate), rng)
    seen = (rng.random(rate.shape) < 0.5) & (values > 0)
    fitted = HCPF(
        2, element=Gamma(4.0, 2.0), train_on="observed", learn_element=False, max_iter=80,
        priors=Priors(5.0, 5.0, 2.0, 5.0, 5.0, 2.0), random_state=0,
    ).fit(np.where(seen, values, 0.0))  # fmt: skip
    expected = fitted.predict(np.arange(80)[:, None], np.arange(50))
    unseen = ~seen & (values > 0)
    assert np.corrcoef(expected[unseen], (2.0 * rate)[unseen])[0, 1] > 0.8
