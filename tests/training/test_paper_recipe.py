"""The paper's recipe: its settings, its start, and training on observed entries only."""

import logging

import numpy as np
import pytest

from hcpf import HCPF, Algorithm1, Priors, simulate
from hcpf.elements import ALL, Binomial, Gamma, InverseGaussian, Normal, Poisson, get
from hcpf.errors import ParameterError
from hcpf.training.resolve import OBSERVED_COUNT, choose_value_model

DATA = simulate(80, 60, density=0.1, element=Poisson(3.0), random_state=0).interactions
DIVIDED = {"N", "GA", "IG", "PO", "NB"}


def test_the_settings_are_those_of_the_paper():
    model = HCPF.paper(random_state=3)
    assert model.n_components == 160
    assert model.solver == "algorithm1"
    assert (Algorithm1().tau, Algorithm1().xi) == (10_000, 0.7)
    settings = model.get_params()
    assert settings["priors"] == "paper"
    assert (settings["tempering"], settings["n_fits"], settings["learn_element"]) == (1.0, 1, False)
    assert settings["start"] == "noise"
    with pytest.raises(ParameterError, match="start"):
        HCPF.paper(start="clusters")


@pytest.mark.parametrize("solver", ["cavi", "algorithm1"])
def test_a_fit_keeps_the_element_at_maximum_likelihood_and_the_papers_priors(solver):
    model = HCPF.paper(5, element="poisson", solver=solver, max_iter=4, random_state=0)
    model.fit(DATA, progress=False)
    assert model.element_ == Poisson.estimate(DATA.values)
    density = DATA.n_observed / (DATA.n_users * DATA.n_items)
    assert model.priors_ == Priors.paper(density, 5)
    assert model.tempering_ == 1.0
    assert len(model.posteriors_) == 1


@pytest.mark.parametrize("solver", ["cavi", "algorithm1"])
def test_the_printed_start_stays_rank_one_and_says_so(solver, caplog):
    model = HCPF.paper(
        4, element="poisson", solver=solver, start="symmetric", max_iter=6, random_state=0
    )
    with caplog.at_level(logging.WARNING, "hcpf"):
        model.fit(DATA, progress=False)
    assert "rank one" in caplog.text
    for axis in (model.posterior_.users, model.posterior_.items):
        np.testing.assert_allclose(axis.mean, np.repeat(axis.mean[:, :1], 4, axis=1), rtol=1e-5)
    rates = model.rate(model.users_[:, None], model.items_[None, :])
    singular = np.linalg.svd(rates, compute_uv=False)
    assert singular[1] < 1e-5 * singular[0]
    noisy = HCPF.paper(4, element="poisson", solver=solver, max_iter=6, random_state=0)
    noisy.fit(DATA, progress=False)
    rates = noisy.rate(model.users_[:, None], model.items_[None, :])
    singular = np.linalg.svd(rates, compute_uv=False)
    assert singular[1] > 1e-3 * singular[0]


@pytest.mark.parametrize("element", ALL, ids=lambda kind: kind.name)
def test_kappa_is_divided_with_theta_held_or_a_note_says_why_not(element, caplog):
    values = np.array([1.0, 2.0, 2.0, 3.0, 5.0, 1.0, 4.0])
    whole = element.estimate(values)
    with caplog.at_level(logging.WARNING, "hcpf"):
        chosen = choose_value_model(element(), values, train_on="observed", priors="paper").element
    assert (element.acronym in DIVIDED) == (not element.kappa_note)
    assert bool(element.kappa_note) == (element.kappa_note in caplog.text and caplog.text != "")
    if not element.kappa_note and element is not Poisson:
        assert chosen.kappa == pytest.approx(whole.kappa / OBSERVED_COUNT)
        assert chosen.theta == pytest.approx(whole.theta)
    if element is Poisson:  # kappa = 1 is absorbed by the rate: kappa e^theta is what is divided
        assert chosen.mean == pytest.approx(whole.mean / OBSERVED_COUNT)
    if element is Binomial:
        assert chosen.trials == whole.trials
        assert chosen.mean == pytest.approx(whole.mean / OBSERVED_COUNT)


def test_other_priors_say_nothing_of_kappa(caplog):
    with caplog.at_level(logging.WARNING, "hcpf"):
        choose_value_model("binomial", np.array([1.0, 2.0, 3.0]), train_on="observed")
    assert not caplog.text


@pytest.mark.parametrize("element", [Normal, Gamma, InverseGaussian])
def test_the_papers_expected_count_sets_the_priors_of_observed_entries(element):
    model = HCPF.paper(4, element=element(), train_on="observed", solver="cavi", max_iter=2)
    model.fit(simulate(50, 40, density=0.2, element=Gamma(2.0, 1.0), random_state=0).interactions)
    assert model.priors_.user_shape == pytest.approx(0.1 * np.sqrt(OBSERVED_COUNT / 4))


@pytest.mark.parametrize("probability", [0.3, 0.7])
def test_the_trials_of_sums_are_learned(probability):
    element = Binomial(5, probability)
    data = simulate(300, 150, density=0.1, element=element, random_state=1).interactions
    assert Binomial.estimate(data.values).trials >= 1_000 * 5
    model = HCPF(5, element="binomial", n_fits=1, tempering=1.0, max_iter=35, random_state=0)
    model.fit(data, progress=False)
    assert 4 <= model.element_.trials <= 8
    assert model.element_.mean == pytest.approx(element.mean, rel=0.15)


def test_pooled_trials_do_not_end_at_the_limit():
    data = simulate(400, 200, density=0.05, element=Binomial(5, 0.7), random_state=1).interactions
    assert Binomial.estimate(data.values).trials >= 1_000 * 5
    model = HCPF(
        5, element="binomial", vary_by="item", n_fits=1, tempering=1.0, max_iter=5, random_state=0
    )
    assert model.fit(data, progress=False).element_.trials < 50


def test_given_or_fixed_trials_stay():
    data = simulate(60, 50, density=0.1, element=Binomial(5, 0.5), random_state=1).interactions
    given = HCPF(3, element=Binomial(trials=100), n_fits=1, tempering=1.0, max_iter=2)
    assert given.fit(data, progress=False).element_.trials == 100
    fixed = HCPF.paper(3, element="binomial", solver="cavi", max_iter=4)
    assert fixed.fit(data, progress=False).element_ == Binomial.estimate(data.values)


def test_acronyms_are_those_of_the_paper():
    assert {get(name).acronym for name in DIVIDED} == DIVIDED
