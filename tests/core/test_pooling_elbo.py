"""Elements whose theta varies: the bound of whole fits, alone and against the dense twin."""

import numpy as np
import pytest

from core import dense
from core.worlds import (
    PRIORS,
    VARYING,
    VARYING_IDS,
    as_matrix,
    draw_model,
    excluded_matrix,
    from_posterior,
    quick,
)

every_way = pytest.mark.parametrize("element", VARYING, ids=VARYING_IDS)
ROUNDING = 1e-6
BY_MODE = 1e-3
"""Zero-truncated Poisson and logarithmic take theta at its mode, and Laplace's normaliser for the
prior: what their updates climb is not quite what the bound adds up."""


def assert_never_falls(history, share):
    bounds = np.array([check.elbo for check in history])
    assert np.all(np.isfinite(bounds))
    assert np.all(np.diff(bounds) >= -share * np.abs(bounds[1:]))


@every_way
@pytest.mark.parametrize("train_on", ["full", "observed"])
@pytest.mark.parametrize("learn_element", [False, True])
def test_the_bound_never_falls(element, train_on, learn_element):
    model = draw_model(element, train_on, excluded=0.15)
    fitted = quick(
        element=element, train_on=train_on, learn_element=learn_element, max_iter=12, check_every=1,
        tempering=1.5,
    ).fit(as_matrix(model), exclude=excluded_matrix(model))  # fmt: skip
    assert_never_falls(fitted.history_, ROUNDING if element.conjugate.exact else BY_MODE)
    assert fitted.history_[-1].elbo > fitted.history_[0].elbo
    assert fitted.element_.per == element.per
    if not learn_element:
        assert fitted.element_ == element


@every_way
def test_the_last_bound_is_the_twins_at_the_posterior(element):
    model = draw_model(element, excluded=0.15)
    fitted = quick(element=element, priors=PRIORS, max_iter=9).fit(
        as_matrix(model), exclude=excluded_matrix(model)
    )
    twin = from_posterior(model, fitted.posterior_, fitted.element_)
    assert fitted.history_[-1].elbo == pytest.approx(dense.bound(twin), rel=1e-6)
