"""The element that says only which pairs were observed."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hcpf import elements
from hcpf.elements import Degenerate, Gamma, Presence
from hcpf.errors import SupportError

STORED = np.array([1.0, 0.0, -2.5, 3.0, 1e9])


def test_known_by_name_but_not_an_element_of_values():
    assert Presence not in elements.ALL
    for name in ("presence", "Presence", "B", " PRESENCE "):
        assert elements.get(name) is Presence
    assert Presence() == Presence()
    assert Presence() != Degenerate()
    assert repr(Presence()) == "Presence()"


def test_every_stored_value_counts_as_one():
    assert_array_equal(Presence.seen(STORED), np.ones(5))
    assert_array_equal(Gamma.seen(STORED), STORED)
    low, high = Presence().n_range(STORED)
    assert_array_equal(low, np.ones(5))
    assert_array_equal(high, np.ones(5))


def test_takes_any_finite_value():
    Presence().require(STORED)
    for bad in (np.nan, np.inf):
        with pytest.raises(SupportError, match="Presence takes finite numbers"):
            Presence().require(np.array([1.0, bad]))


def test_density_does_not_depend_on_the_stored_value():
    assert_array_equal(Presence().log_density(STORED), np.zeros(5))
    assert_array_equal(Presence().log_density(STORED, 2), np.full(5, -np.inf))


def test_it_is_the_constant_one(rng):
    element = Presence()
    assert (element.mean, element.variance, element.highest) == (1.0, 0.0, 1.0)
    assert_array_equal(element.sample(np.ones(5), rng), np.ones(5))
    assert_array_equal(element.cdf([0.0, 0.99, 1.0]), [0.0, 0.0, 1.0])
    assert element.log_prob_zero == -np.inf
    assert element.conjugate is None
    assert Presence.estimate(STORED) == element
