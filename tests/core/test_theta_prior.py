"""The prior that ties the means of rows together."""

import numpy as np
import pytest

from hcpf.core.theta import ThetaPosterior
from hcpf.elements import Gamma


def observed(spread, size=400):
    """What rows observe whose means lie around 2, by ``spread`` apart, and hardly by chance."""
    rng = np.random.default_rng(0)
    nu = np.full(size, 2000.0)
    return nu * 2.0 * np.exp(spread * rng.standard_normal(size)), nu


def settled(theta, chi, nu):
    for _ in range(12):
        theta = theta.with_best_prior(Gamma.conjugate, chi, nu, centered=False)
    return theta


@pytest.mark.parametrize("first", [1e-2, 1.0, 1e4])
def test_the_prior_follows_how_far_rows_are_apart(first):
    strengths = [
        settled(ThetaPosterior.at_prior(400, 2.0 * first, first), *observed(spread)).nu0
        for spread in (1.0, 0.5, 0.2)
    ]
    assert strengths[0] < strengths[1] < strengths[2]
    # the log of a gamma with shape nu0 has a variance of about 1 / nu0
    assert strengths[2] == pytest.approx(1 / 0.2**2, rel=0.5)


def test_a_prior_grows_stronger_by_a_limited_factor_at_a_time():
    chi, nu = observed(0.0)
    theta, before = ThetaPosterior.at_prior(400, 2.0, 1.0), 1.0
    for _ in range(2):
        theta = theta.with_best_prior(Gamma.conjugate, chi, nu, centered=False)
        assert 2.0 < theta.nu0 / before < np.exp(3.0) * 1.001
        before = theta.nu0
    assert settled(theta, chi, nu).nu0 > 1e5
    weak = ThetaPosterior.at_prior(400, 2e9, 1e9).with_best_prior(
        Gamma.conjugate, *observed(1.0), centered=False
    )
    assert weak.nu0 < 10.0  # at once
