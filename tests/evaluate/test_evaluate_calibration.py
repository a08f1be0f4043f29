"""Calibration: exact on small cases, and passed by the model that drew the data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.calibration import calibration_curve

from evaluate.oracles import Oracle, world
from hcpf import simulate
from hcpf.elements import (
    Degenerate,
    Gamma,
    Geometric,
    NegativeBinomial,
    Normal,
    ZeroTruncatedPoisson,
)
from hcpf.errors import InputError
from hcpf.evaluate import Popularity, calibration, split
from hcpf.evaluate.reliability import reliability

ELEMENTS = [
    Gamma(2, 0.5),
    Normal(1, 4),
    ZeroTruncatedPoisson(2.5),
    NegativeBinomial(1.5, 0.4),
    Geometric(0.3),
    Degenerate(),
]


def drawn(element, density=0.2, shape=(160, 120), **shares):
    data = simulate(*shape, density=density, element=element, random_state=0)
    parts = split(data.interactions, random_state=0, **shares)
    return Oracle(data.user_factors @ data.item_factors.T, element), parts


def test_a_weighted_curve_by_hand():
    # Bin 1: p 0.2 (missing, weight 3) and 0.4 (observed, weight 1); bin 2: p 0.8, observed.
    found = reliability(
        np.array([0.2, 0.4, 0.8]), [0, 1, 1], np.array([3.0, 1.0, 1.0]), [0.0, 0.5, 1.0]
    )
    assert found.predicted.tolist() == pytest.approx([0.25, 0.8])
    assert found.observed.tolist() == pytest.approx([0.25, 1.0])
    assert found.weight.tolist() == pytest.approx([0.8, 0.2])
    assert found.count.tolist() == [2, 1]
    # Squares of 3 * 0.25 and 1 * 0.75, summed, over 4 pairs.
    assert found.error.tolist() == pytest.approx([(2 * 0.75**2) ** 0.5 / 4, 0.0])
    assert found.expected_error == pytest.approx(0.2 * 0.2)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.booleans())
def test_curves_keep_the_totals(seed, bins, by_edges):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 60))
    p, label, weight = rng.random(size).round(1), rng.random(size) < 0.5, rng.gamma(1.0, 1.0, size)
    edges = np.linspace(0, 1, bins + 1).tolist()
    found = reliability(p, label, weight, edges if by_edges else bins)
    assert found.weight.sum() == pytest.approx(1.0)
    assert found.weight @ found.predicted == pytest.approx(weight @ p / weight.sum())
    assert found.weight @ found.observed == pytest.approx(weight @ label / weight.sum())
    assert found.count.sum() == size
    assert np.all(np.diff(found.predicted) > 0)
    assert len(found.count) <= bins


@given(st.integers(0, 2**32 - 1))
def test_the_curve_agrees_with_sklearn(seed):
    rng = np.random.default_rng(seed)
    p, label = rng.random(80), rng.random(80) < 0.5
    found = reliability(p, label, np.ones(80), np.linspace(0, 1, 6).tolist())
    share, mean = calibration_curve(label, p, n_bins=5)
    assert found.observed.tolist() == pytest.approx(share.tolist())
    assert found.predicted.tolist() == pytest.approx(mean.tolist())


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda e: e.name)
def test_the_model_that_drew_the_data_is_calibrated(element):
    model, parts = drawn(element, test=0.5)
    found = calibration(model, parts)
    curve = found.reliability
    assert np.all(np.abs(curve.predicted - curve.observed) < 4 * curve.error + 1e-4)
    assert stats.kstest(found.pit, "uniform").pvalue > 1e-3
    for level, score in found.pit_coverage.items():
        assert score.value == pytest.approx(level, abs=4 * score.error)
        assert found.coverage[level].value >= score.value - 1e-12
    if not element.support.discrete:
        assert found.coverage == found.pit_coverage


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda e: e.name)
def test_coverage_is_that_of_the_intervals(element):
    model, parts = drawn(element, shape=(40, 30))
    found = calibration(model, parts)
    observed = model.predict_distribution(parts.test.users, parts.test.items).observed
    for level, score in found.coverage.items():
        low, high = observed.interval(level)
        inside = (low <= parts.test.values) & (parts.test.values <= high)
        assert score.value == pytest.approx(np.mean(inside), abs=1.5 / len(inside))


def test_wrong_models_are_found_out():
    model, parts = drawn(Gamma(2, 0.5), test=0.5)
    right = calibration(model, parts)
    low = calibration(Oracle(0.5 * model.rates, model.element_), parts)
    narrow = calibration(Oracle(model.rates, Gamma(20, 5.0)), parts)
    assert low.expected_error > 5 * right.expected_error
    assert narrow.pit_distance > 5 * right.pit_distance
    assert narrow.coverage[0.9].value < 0.8


def test_the_population_that_training_saw_has_the_sparsity_of_training():
    _, parts = drawn(Gamma(2, 0.5), density=0.03, shape=(700, 400), test=0.4)
    fitted = Popularity(Gamma()).fit(parts.train, exclude=parts.held_out)
    whole, training = (
        calibration(fitted, parts, population=name).reliability for name in ("whole", "training")
    )
    assert whole.weight @ whole.observed == pytest.approx(0.03, rel=0.05)
    assert training.weight @ training.observed == pytest.approx(0.59 * 0.03, rel=0.05)
    # Rates, and so probabilities, add up to what was seen.
    assert training.weight @ training.predicted == pytest.approx(0.59 * 0.03, rel=0.05)


def test_the_transform_by_hand():
    # Given n >= 1, a Poisson count of rate 1 is 1 with probability e^-1 / (1 - e^-1).
    parts = world(np.eye(1, 3), [(0, 1, 1)], [(0, 2)], n_missing=10)
    found = calibration(Oracle(np.ones((1, 3)), Degenerate()), parts, random_state=5)
    chance = np.exp(-1) / (1 - np.exp(-1))
    assert found.pit[0] == pytest.approx(chance * np.random.default_rng(5).random())
    assert found.pit_histogram.sum() == pytest.approx(20.0)


def test_the_distance_from_uniform_is_kolmogorovs():
    model, parts = drawn(Gamma(2, 0.5))
    found = calibration(model, parts)
    assert found.pit_distance == pytest.approx(stats.kstest(found.pit, "uniform").statistic)


def test_a_model_of_observed_entries_has_no_curve_but_coverage():
    model, parts = drawn(Gamma(2, 0.5))
    model.train_on = "observed"
    found = calibration(model, parts, levels=(0.5, 0.9), max_values=50)
    assert found.reliability is found.expected_error is None
    assert len(found.pit) == 50
    assert list(found.as_dict()) == [
        "expected_error", "pit_distance", "coverage_50", "coverage_90",
        "pit_coverage_50", "pit_coverage_90",
    ]  # fmt: skip
    assert "90% intervals contain" in repr(found)


def test_text_shows_the_curve():
    model, parts = drawn(Gamma(2, 0.5))
    found = calibration(model, parts, bins=4)
    assert len(repr(found).splitlines()) == 1 + 2 + 4 + 1 + 4


@pytest.mark.parametrize(
    "bad", [{"bins": 0}, {"bins": [0.0, 0.0, 1.0]}, {"bins": [0.9, 1.0]}, {"levels": [1.0]},
            {"population": "all"}, {"max_values": 0}],
)  # fmt: skip
def test_bad_arguments_are_refused(bad):
    model, parts = drawn(Gamma(2, 0.5), shape=(30, 20))
    with pytest.raises(InputError):
        calibration(model, parts, **bad)
    with pytest.raises(InputError, match="held out"):
        calibration(model, parts, on=world(np.eye(2), []).test)
