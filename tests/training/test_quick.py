"""A first look: the element by the values alone, without short fits."""

import numpy as np
import pytest

from hcpf import HCPF, simulate
from hcpf.elements import Gamma
from hcpf.errors import ParameterError
from hcpf.training import auto
from hcpf.training.resolve import most_likely_element


def test_quick_takes_the_most_likely_element_and_makes_no_short_fits(monkeypatch):
    monkeypatch.delattr(auto, "Sample")  # short fits would fail
    data = simulate(200, 100, density=0.1, element=Gamma(2.0, 1.0), random_state=0).interactions
    settings = {"tempering": "formula", "n_fits": 1, "max_iter": 30, "random_state": 0}
    model = HCPF(3, element="quick", **settings).fit(data)
    element = most_likely_element(data.values)
    assert type(model.element_) is type(element)
    assert model.value_model_.vary_by is None
    assert model.tempering_ == pytest.approx(data.n_observed / 200 / 8.0)
    same = HCPF(3, element=type(element)(), **settings).fit(data)
    np.testing.assert_array_equal(same.posterior_.users.mean_, model.posterior_.users.mean_)
    pooled = HCPF(3, element="quick", vary_by="user", **settings).fit(data)
    assert pooled.value_model_.vary_by == "user"
    with pytest.raises(ParameterError, match="tempering"):
        HCPF(3, element="quick", tempering="quick").fit(data)
