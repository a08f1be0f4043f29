"""HCPF as scikit-learn knows it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from hcpf import HCPF, Priors
from hcpf.elements import Gamma, Poisson
from inference.worlds import quick

COUNTS = np.array([[1, 0, 2], [0, 3, 0], [4, 1, 1], [0, 0, 2]])


def test_parameters_are_kept_as_given():
    changes = {
        "n_components": 7, "element": Gamma(2.0, 1.0), "train_on": "observed", "tau": 3.0,
        "priors": Priors(1, 1, 1, 1, 1, 1), "random_state": np.random.default_rng(0),
    }  # fmt: skip
    model = HCPF(**changes)
    for name, value in changes.items():
        assert model.get_params()[name] is value
    assert HCPF().set_params(**changes).get_params() == model.get_params()
    with pytest.raises(ValueError, match="nonsense"):
        model.set_params(nonsense=1)


def test_a_clone_has_the_parameters_and_nothing_fitted():
    model = quick(element=Poisson(1.0)).fit(COUNTS)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "posterior_")
    again = copy.fit(COUNTS)
    np.testing.assert_array_equal(again.posterior_.users.mean_, model.posterior_.users.mean_)


def test_fit_returns_itself_and_leaves_parameters_and_data_alone():
    model = quick(element=Poisson())
    before, data = model.get_params(), COUNTS.astype(float)
    data.flags.writeable = False
    assert model.fit(data) is model
    assert model.get_params() == before
    assert model.n_features_in_ == 3
    check_is_fitted(model)
    assert np.array_equal(data, COUNTS)


def test_its_name_shows_what_differs_from_the_defaults():
    assert repr(HCPF(7, element="gamma")) == "HCPF(element='gamma', n_components=7)"


def test_a_failed_fit_leaves_the_earlier_one():
    model = quick(element=Poisson()).fit(COUNTS)
    before = model.posterior_
    with pytest.raises(ValueError, match="finite"):
        model.fit(np.full((2, 2), np.nan))
    assert model.posterior_ is before
