"""The value model: what goes together, and the distribution it gives a pair."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hcpf.core.axis import Axis
from hcpf.core.value_model import VARY_BY, ValueModel, ways_to_vary
from hcpf.distributions import CompoundPoisson, Hurdle
from hcpf.elements import (
    ALL,
    Binomial,
    Degenerate,
    Gamma,
    InverseGaussian,
    NegativeBinomial,
    Normal,
    Poisson,
    Presence,
)
from hcpf.errors import ParameterError, SupportError

CROSSED = (Gamma, InverseGaussian, Normal, Poisson)


@pytest.mark.parametrize("kind", [*ALL, Presence], ids=lambda kind: kind.name)
def test_ways_to_vary(kind):
    expected = VARY_BY if kind in CROSSED else VARY_BY[:2]
    expected = () if kind in (Degenerate, Presence) else expected
    assert ways_to_vary(kind) == expected
    for vary_by in VARY_BY:
        if vary_by in expected:
            assert ValueModel(kind(), vary_by).vary_by == vary_by
        else:
            with pytest.raises(ParameterError, match=f"vary_by='{vary_by}' does not work with"):
                ValueModel(kind(), vary_by)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vary_by": "row"}, "vary_by must be 'user', 'item', 'both' or None; got 'row'"),
        ({"hurdle": "yes"}, "hurdle"),
        ({"train_on": "binary"}, "train_on"),
        ({"hurdle": True, "train_on": "observed"}, "cannot be combined with train_on='observed'"),
    ],
    ids=str,
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(ParameterError, match=message):
        ValueModel(Gamma(), **settings)


@pytest.mark.parametrize(
    ("vary_by", "users", "items"),
    [(None, False, False), ("user", True, False), ("item", False, True), ("both", True, True)],
)
def test_axes_that_vary(vary_by, users, items):
    model = ValueModel(Gamma(2.0, 1.0), vary_by)
    assert model.varies(Axis.USERS) == users
    assert model.varies(Axis.ITEMS) == items
    assert (model.sharing is not None) == (users and items)


def test_names_and_descriptions():
    model = ValueModel(NegativeBinomial(2.0, 0.5))
    assert model.name == model.description == "negative binomial"
    assert model.replace(vary_by="user").description == "negative binomial per user"
    hurdle = ValueModel(Gamma(2.0, 1.0), "both", hurdle=True)
    assert hurdle.name == "gamma hurdle"
    assert hurdle.description == "gamma hurdle per user and item"


def test_equality_copies_and_replacement():
    model = ValueModel(Gamma(2.0, 1.0), "item", hurdle=True)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model.replace()):
        assert twin == model
    assert model.replace(vary_by=None) != model
    with pytest.raises(ParameterError, match="train_on='observed'"):
        model.replace(train_on="observed")


def test_distribution_of_a_pair():
    rate, element = np.array([0.2, 3.0]), Gamma(2.0, 1.0)
    for hurdle, kind in ((False, CompoundPoisson), (True, Hurdle)):
        model = ValueModel(element, hurdle=hurdle)
        found = model.distribution(rate)
        assert type(found) is kind
        assert found.element is element
        assert_array_equal(found.rate, rate)
        assert model.distribution(rate, Gamma(3.0, 1.0)).element == Gamma(3.0, 1.0)


@pytest.mark.parametrize("hurdle", [False, True])
def test_series_agrees_with_the_density(hurdle):
    model = ValueModel(Poisson(1.5), hurdle=hurdle)
    y, rate = np.array([0.0, 1.0, 7.0]), np.array([1e-6, 0.3, 20.0])
    found = model.series(model.element, y, rate)
    np.testing.assert_allclose(found.log_sum, model.distribution(rate).log_density(y), rtol=1e-12)
    if hurdle:  # the value tells nothing about n beyond n >= 1
        np.testing.assert_allclose(found.mean, rate / -np.expm1(-rate), rtol=1e-12)


def test_values_that_a_pair_can_have():
    model = ValueModel(Binomial(5, 0.5))
    model.require(np.array([0.0, 12.0]))
    with pytest.raises(SupportError, match="Binomial"):
        model.require(np.array([1.5]))
    single = model.replace(hurdle=True)
    single.require(np.array([0.0, 5.0]))
    single.require(np.array([]))
    with pytest.raises(SupportError, match=r"of the test: the value 12 takes at least 3 elements"):
        single.require(np.array([5.0, 12.0]), " of the test")
