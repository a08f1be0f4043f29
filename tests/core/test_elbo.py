"""The bound of whole fits: it never falls, and where it settles the twin stays."""

import numpy as np
import pytest

import hcpf
from hcpf.elements import Degenerate, Gamma
from core import dense
from core.worlds import (
    PRIORS,
    TRAINING,
    TRAINING_IDS,
    as_matrix,
    draw_model,
    excluded_matrix,
    from_posterior,
    quick,
)

every_training = pytest.mark.parametrize(("element", "train_on"), TRAINING, ids=TRAINING_IDS)
ROUNDING = 1e-6


def assert_never_falls(history):
    bounds = np.array([check.elbo for check in history])
    assert np.all(np.isfinite(bounds))
    assert np.all(np.diff(bounds) >= -ROUNDING * np.abs(bounds[1:]))


def element_argument(element, train_on):
    return "auto" if train_on == "binary" else element


@every_training
@pytest.mark.parametrize("learn_element", [False, True])
@pytest.mark.parametrize("set_aside", ["nothing", "excluded", "validation"])
def test_the_bound_never_falls(element, train_on, learn_element, set_aside):
    model = draw_model(element, train_on, excluded=0.15 if set_aside == "excluded" else 0.0)
    fitted = quick(
        element=element_argument(element, train_on),
        train_on=train_on,
        learn_element=learn_element,
        max_iter=20,
        check_every=1,
        validation_fraction=0.2 if set_aside == "validation" else 0.0,
    ).fit(as_matrix(model), exclude=excluded_matrix(model) if set_aside == "excluded" else None)
    assert_never_falls(fitted.history_)
    if not learn_element:
        assert fitted.element_ == (Degenerate() if train_on == "binary" else element)


@every_training
def test_the_last_bound_is_the_twins_at_the_posterior(element, train_on):
    model = draw_model(element, train_on, excluded=0.15)
    fitted = quick(
        element=element_argument(element, train_on), train_on=train_on, priors=PRIORS, max_iter=9
    ).fit(as_matrix(model), exclude=excluded_matrix(model))
    twin = from_posterior(model, fitted.posterior_, fitted.element_)
    assert fitted.history_[-1].iteration == fitted.n_iter_ == 9
    assert fitted.history_[-1].elbo == pytest.approx(dense.bound(twin), rel=1e-6)


@every_training
def test_where_the_bound_has_settled_the_twin_stays(element, train_on):
    model = draw_model(element, train_on, excluded=0.15)
    fitted = quick(
        2, element=element_argument(element, train_on), train_on=train_on, priors=PRIORS,
        max_iter=2500, check_every=500, learn_element=False,
    ).fit(as_matrix(model), exclude=excluded_matrix(model))  # fmt: skip
    there = from_posterior(model, fitted.posterior_, fitted.element_)
    further = dense.cavi_step(there)
    for side in ("users", "items"):
        was, now = getattr(there, side), getattr(further, side)
        np.testing.assert_allclose(now.mean, was.mean, rtol=2e-3, atol=1e-4)
    assert dense.bound(further) == pytest.approx(dense.bound(there), rel=1e-7)


def test_the_dispersion_is_learned_and_raises_the_bound():
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
    model = draw_model(Gamma(2.0, 0.5), "observed")
    fitted = quick(element=Gamma(2.0, 0.5), train_on="observed", n_fits=2).fit(as_matrix(model))
    assert fitted.element_.shape == 2.0
