"""Intervals of many pairs are those that each pair has by itself."""

import numpy as np
import pytest

from hcpf.distributions import CompoundPoisson, Hurdle
from hcpf.distributions.intervals import value_intervals
from hcpf.elements import Gamma, Logarithmic, Normal, Poisson
from hcpf.elements.integrated import Integrated

N = 7_000  # more pairs than the grid has nodes


def pooled(base, rng, center):
    """An element per pair, as partial pooling gives it."""
    nu = np.exp(rng.normal(1.0, 0.5, N)) * float(base.kappa)
    return Integrated(base=base, chi=nu * center, nu=nu)


@pytest.fixture
def rate(rng):
    return rng.gamma(0.3, 0.5, size=N) + 1e-9


def check(rate, element, rng, kind=CompoundPoisson):
    low, high = value_intervals(kind(rate, element))
    some = rng.choice(len(rate), 200)
    exact = kind(rate[some], element.at(some)).observed.interval(0.9)
    width = 1.0 if element.support.discrete else np.maximum(exact[1] - exact[0], 1e-12)
    tolerance = 0.0 if element.support.discrete else 5e-3
    for mine, theirs in zip((low, high), exact, strict=True):
        assert np.max(np.abs(mine[some] - theirs) / width) <= tolerance


@pytest.mark.parametrize("element", [Gamma(2.0, 0.05), Normal(3.0, 4.0), Logarithmic(0.8)])
def test_shared_mean(element, rate, rng):
    check(rate, element, rng)


@pytest.mark.parametrize("kind", [CompoundPoisson, Hurdle])
@pytest.mark.parametrize("base", [Gamma(2.0, 0.05), Normal(3.0, 4.0), Poisson(2.0)], ids=repr)
def test_partial_pooling(base, kind, rate, rng):
    center = rng.normal(1.0, 0.5, N)
    if base.support.lowest >= 0:
        center = np.exp(center)
    check(rate, pooled(base, rng, center), rng, kind)


def test_hurdle_with_a_shared_mean_is_solved_once(rate):
    low, high = value_intervals(Hurdle(rate, Gamma(2.0, 0.05)))
    assert np.ptp(low) == np.ptp(high) == 0.0


def test_few_pairs_and_other_shapes():
    distribution = CompoundPoisson(np.full((2, 3), 0.4), Gamma(2.0, 0.05))
    np.testing.assert_array_equal(
        value_intervals(distribution, 0.5), distribution.observed.interval(0.5)
    )
    many = CompoundPoisson(np.geomspace(1e-3, 2.0, N).reshape(2, -1), Gamma(2.0, 0.05))
    assert value_intervals(many)[0].shape == (2, N // 2)


def test_no_pairs():
    low, high = value_intervals(CompoundPoisson(np.zeros(0), Gamma(2.0, 0.05)))
    assert low.shape == high.shape == (0,)
