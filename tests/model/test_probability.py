"""The probability that a pair is observed: how it approximates its mean, and recalibration."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hcpf import HCPF, simulate
from hcpf.elements import Gamma
from hcpf.errors import ModelError
from hcpf.model.fitted import FittedModel
from hcpf.model.probability import Recalibration


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


# -- recalibration --------------------------------------------------------------------------------

_MAP = Recalibration(np.array([-4.0, -2.0, 1.0]), np.array([0.0, 0.5, -0.5]))


def test_recalibration_is_monotone_and_leaves_small_probabilities() -> None:
    p = np.concatenate([[0.0, 1e-300, 1e-9], np.linspace(1e-3, 0.999, 500), [1.0]])
    found = _MAP.apply(p)
    assert np.all(np.diff(found) > 0)
    assert found[0] == 0.0
    assert found[-1] == 1.0
    np.testing.assert_allclose(found[1:3], p[1:3])
    assert _MAP.apply(np.array([1 / (1 + np.exp(2))]))[0] == pytest.approx(1 / (1 + np.exp(1.5)))


def test_recalibration_is_applied_and_saved(model: FittedModel, tmp_path) -> None:
    mapped = replace(model, recalibration=_MAP)
    pair = model.users[2], model.items[4]
    expected = _MAP.apply(model.predict_proba(*pair))
    assert mapped.predict_proba(*pair) == pytest.approx(expected)
    for by in ("consensus", "probability", "expected_value"):
        one, other = (m.recommend("all", 5, by=by) for m in (mapped, model))
        assert list(one.item) == list(other.item)
    product = one.probability * one.value
    np.testing.assert_allclose(one.expected_value, product)
    np.testing.assert_allclose(mapped.predict_expected_value(one.user, one.item), product)
    mapped.save(tmp_path / "m")
    loaded = FittedModel.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.recalibration.log_odds, _MAP.log_odds)
    np.testing.assert_array_equal(loaded.predict_proba(*pair), mapped.predict_proba(*pair))


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({"log_odds": [0.0, 1.0], "shift": [0.0]}, "as many"),
        ({"log_odds": [0.0, 1.0], "shift": [0.0, -3.0]}, "monotone"),
        ({"log_odds": [1.0, 1.0], "shift": [0.0, 0.0]}, "monotone"),
    ],
)
def test_forged_recalibration(stored: dict, message: str) -> None:
    from hcpf.model.persist.model import _recalibration

    with pytest.raises(ModelError, match=message):
        _recalibration(json.loads(json.dumps(stored)))
    assert _recalibration(None) is None
