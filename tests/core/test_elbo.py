"""The ELBO of whole fits: it never falls, and where it has converged the twin stays."""

import numpy as np
import pytest

import hcpf
from core import dense
from core.worlds import HURDLES, as_matrix, at_fit, draw_model, excluded_matrix
from hcpf.core.value_model import ValueModel
from hcpf.elements import Gamma, Poisson
from model.small import PRIORS, TRAINING, VARYING, name_of, quick, settings_of

POOLED = [
    pytest.param(one, marks=() if one.vary_by in ("both", axis) else pytest.mark.slow)
    for axis, models in (("item", VARYING), ("user", [one for one in HURDLES if one.vary_by]))
    for one in models
]
CONVERGING = ("gamma", "inverse_gaussian", "poisson", "presence")
"""Elements with every kind of table: shared by all values, on a grid, a row per value, none."""
ROUNDING = 1e-6
BY_MODE = 1e-3
"""Zero-truncated Poisson and logarithmic take theta at its mode, and Laplace's normalizer for the
prior: what their updates climb is not quite what the ELBO adds up."""


def assert_never_falls(history, share=ROUNDING):
    elbo = np.array([check.elbo for check in history])
    assert np.all(np.isfinite(elbo))
    assert np.all(np.diff(elbo) >= -share * np.abs(elbo[1:]))


def fit_and_check(value_model, held_out, learn_element, **settings):
    """Fit; the ELBO rises from pass to pass, and the last one is the twin's at the posterior."""
    model = draw_model(value_model, excluded=0.15 if held_out == "excluded" else 0.0)
    exclude = excluded_matrix(model) if held_out == "excluded" else None
    fitted = quick(
        **settings_of(value_model), learn_element=learn_element, check_every=1,
        validation=0.2 if held_out == "validation" else 0.0, **settings,
    ).fit(as_matrix(model), exclude=exclude)  # fmt: skip
    by_mode = value_model.vary_by is not None and not value_model.element.conjugate.is_exact
    assert_never_falls(fitted.history_, BY_MODE if by_mode else ROUNDING)
    assert fitted.history_[-1].elbo > fitted.history_[0].elbo
    assert fitted.history_[-1].iteration == fitted.n_iter_ == settings["max_iter"]
    if held_out != "validation":
        assert fitted.history_[-1].elbo == pytest.approx(
            dense.elbo(at_fit(model, fitted)), rel=1e-6
        )
    assert settings_of(fitted.value_model_) == settings_of(value_model) | {
        "element": fitted.element_ if learn_element else value_model.element
    }


@pytest.mark.parametrize("value_model", TRAINING, ids=name_of)
def test_the_elbo_never_falls(value_model):
    fit_and_check(value_model, "excluded", True, max_iter=20)


@pytest.mark.parametrize("value_model", POOLED, ids=name_of)
def test_the_elbo_never_falls_with_partial_pooling(value_model):
    fit_and_check(value_model, "excluded", True, max_iter=8, tempering=1.5)


@pytest.mark.parametrize(
    "value_model",
    [
        ValueModel(element, vary_by=vary_by, train_on=train_on)
        for element in (Gamma(2.0, 0.5), Poisson(0.8))
        for vary_by in (None, "both")
        for train_on in ("full", "observed")
    ],
    ids=name_of,
)
@pytest.mark.parametrize(
    ("held_out", "learn_element"), [("nothing", False), ("excluded", False), ("validation", True)]
)
def test_the_elbo_never_falls_whatever_is_held_out(value_model, held_out, learn_element):
    fit_and_check(value_model, held_out, learn_element, max_iter=12)


@pytest.mark.parametrize(
    "value_model",
    [
        pytest.param(one, marks=() if one.element.name in CONVERGING else pytest.mark.slow)
        for one in TRAINING
    ],
    ids=name_of,
)
def test_where_the_elbo_has_converged_the_twin_stays(value_model):
    model = draw_model(value_model, excluded=0.15)
    fitted = quick(
        2, **settings_of(value_model), priors=PRIORS, max_iter=2500, check_every=500,
        learn_element=False,
    ).fit(as_matrix(model), exclude=excluded_matrix(model))  # fmt: skip
    there = at_fit(model, fitted)
    further = dense.cavi_pass(there)
    for was, now in ((there.users, further.users), (there.items, further.items)):
        np.testing.assert_allclose(now.mean, was.mean, rtol=2e-3, atol=1e-4)
    assert dense.elbo(further) == pytest.approx(dense.elbo(there), rel=1e-7)


def test_the_dispersion_is_learned_and_raises_the_elbo():
    data = hcpf.simulate(
        150, 80, n_components=3, density=0.3, element=Gamma(4.0, 1.0), random_state=3
    ).interactions
    settings = {"element": Gamma(1.0, 0.3), "max_iter": 40, "check_every": 1}
    fixed = quick(learn_element=False, **settings).fit(data)
    learned = quick(**settings).fit(data)
    assert_never_falls(learned.history_)
    assert learned.history_[-1].elbo > fixed.history_[-1].elbo + 100
    assert float(learned.element_.shape) == pytest.approx(4.0, rel=0.15)
    assert float(learned.element_.mean) == pytest.approx(4.0, rel=0.15)


def test_observed_training_keeps_the_dispersion():
    model = draw_model(ValueModel(Gamma(2.0, 0.5), train_on="observed"))
    fitted = quick(element=Gamma(2.0, 0.5), train_on="observed", n_fits=2).fit(as_matrix(model))
    assert fitted.element_.shape == 2.0
