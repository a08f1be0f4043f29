"""The prior that ties the rows of a varying theta together."""

import numpy as np
import pytest

from hcpf.core.theta import ThetaPosterior
from hcpf.elements import Gamma


def observed(spread, size=400):
    """What rows observe whose means lie around 2, by ``spread`` apart, and hardly by chance."""
    rng = np.random.default_rng(0)
    nu = np.full(size, 2000.0)
    return nu * 2.0 * np.exp(spread * rng.standard_normal(size)), nu


def settled(groups, chi, nu):
    for _ in range(12):
        groups = groups.with_best_prior(Gamma.conjugate, chi, nu, centred=False)
    return groups


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
    groups, before = ThetaPosterior.at_prior(400, 2.0, 1.0), 1.0
    for _ in range(2):
        groups = groups.with_best_prior(Gamma.conjugate, chi, nu, centred=False)
        assert 2.0 < groups.nu0 / before < np.exp(3.0) * 1.001
        before = groups.nu0
    assert settled(groups, chi, nu).nu0 > 1e5
    weak = ThetaPosterior.at_prior(400, 2e9, 1e9).with_best_prior(
        Gamma.conjugate, *observed(1.0), centred=False
    )
    assert weak.nu0 < 10.0  # at once
