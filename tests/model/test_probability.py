"""The probability that a pair is observed: how it approximates its mean."""

import numpy as np
import pytest

from hcpf import HCPF, simulate
from hcpf.elements import Gamma
from hcpf.model.fitted import FittedModel


@pytest.fixture(scope="module")
def model() -> FittedModel:
    data = simulate(
        80, 60, n_components=4, element=Gamma(2.0, 1.0), density=0.1, random_state=0
    ).interactions
    return HCPF(4, element="gamma", tempering=1.0, random_state=0).fit(data).model_


def test_mean_rate_approximates_the_posterior_mean(model: FittedModel) -> None:
    """The error against Gibbs draws is what docs/inference.md states."""
    twin = -np.expm1(-model.posterior.rate(model.users[:, None], model.items)).mean(axis=0)
    gap = model.predict_proba(model.users[:, None], model.items) - twin
    best = twin > np.quantile(twin, 0.95)
    assert np.abs(gap).mean() < 0.03
    assert 0.0 < gap[best].mean() < 0.06  # of a concave function the mean is lower


def test_table_is_a_product(model: FittedModel) -> None:
    table = model.recommend("all", 3)
    np.testing.assert_allclose(table.expected_value, table.probability * table.value)
    expected = model.predict_expected_value(table.user, table.item)
    np.testing.assert_allclose(table.expected_value, expected)
