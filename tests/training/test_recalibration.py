"""The recalibration of probabilities that is learned at the end of training."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from hcpf import HCPF, Interactions, simulate
from hcpf.elements import Gamma
from hcpf.evaluate import list_calibration, split
from hcpf.training import recalibration
from hcpf.training.recalibration import fit_recalibration


def test_a_known_shift_is_recovered() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(-1.0, 1.5, 60_000)
    truth = 0.6 + 0.3 * x  # the shift of the log odds
    found = rng.random(len(x)) < special.expit(x + truth + np.log(0.25))
    learned = fit_recalibration(x, found, 0.25)
    assert learned is not None
    at = np.array([-2.0, -1.0, 0.0, 1.0])
    np.testing.assert_allclose(
        np.interp(at, learned.log_odds, learned.shift), 0.6 + 0.3 * at, atol=0.2
    )
    assert np.all(np.diff(learned.log_odds + learned.shift) >= 0)
    assert learned.shift[0] == 0.0


def test_shifts_that_would_reverse_the_order_are_pooled() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([np.full(2000, -2.0), np.full(2000, 0.0)]) + rng.normal(0, 0.01, 4000)
    found = rng.random(4000) < np.repeat([0.4, 0.1], 2000)
    learned = fit_recalibration(x, found, 1.0)
    assert learned is not None
    assert np.all(np.diff(learned.log_odds + learned.shift) >= -1e-12)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_probabilities_next_to_0_or_1_take_a_far_shift(sign: float) -> None:
    x = np.full(4000, 27.0 * sign)
    learned = fit_recalibration(x, np.arange(4000) % 5 == 0, 1.0)
    assert learned is not None
    expected = special.expit(learned.log_odds[-1] + learned.shift[-1])
    # A bin of 500 pairs has 100 found ones. The prior draws by one pair per unit of the shift.
    assert abs(expected - 0.2) < 30 / 500


def test_too_few_found_pairs_teach_nothing() -> None:
    x, found = np.zeros(1000), np.arange(1000) < 10
    assert fit_recalibration(x, found, 0.25) is None


def test_about_as_many_found_as_expected_change_nothing() -> None:
    x = np.zeros(1000)  # half of them with odds 1, a fifth with odds 1/4
    assert fit_recalibration(x, np.arange(1000) < 220, 0.25) is None
    assert fit_recalibration(x, np.arange(1000) < 260, 0.25) is not None


def test_small_data_are_not_recalibrated() -> None:
    data = simulate(40, 30, density=0.2, random_state=0).interactions
    assert HCPF(3, element="gamma", n_fits=1, random_state=0).fit(data).model_.recalibration is None


def test_lists_of_real_data_are_better_calibrated(shared_data) -> None:
    path = shared_data / "echonest_43k" / "echonest_43k.parquet"
    data = Interactions.read(path, user="user", item="item", value="value", progress=False)
    parts = split(data, random_state=0)
    model = HCPF(50, element="gamma", tempering=1.0, random_state=0)
    fitted = model.fit(parts.train, exclude=parts.held_out).model_
    assert fitted.recalibration is not None
    before = list_calibration(replace(fitted, recalibration=None), parts).ratio
    after = list_calibration(fitted, parts).ratio
    assert before.value > 1.2
    assert abs(after.value - 1.0) < 0.12


def test_little_is_lost_where_the_model_is_true(monkeypatch) -> None:
    """Item factors remember hidden entries, so that too many are found: docs state by how much."""
    monkeypatch.setattr(recalibration, "_MIN_ENTRIES", 1_000)
    data = simulate(
        600, 300, n_components=6, element=Gamma(2.0, 1.0), density=0.05, random_state=1
    ).interactions
    parts = split(data, random_state=0)
    model = HCPF(6, element="gamma", n_fits=2, tempering=1.0, random_state=0)
    after = list_calibration(model.fit(parts.train, exclude=parts.held_out), parts).ratio
    assert abs(after.value - 1.0) < 0.2


def test_the_same_data_give_the_same_map(monkeypatch) -> None:
    monkeypatch.setattr(recalibration, "_MIN_ENTRIES", 1_000)
    monkeypatch.setattr(recalibration, "_MAX_RATIO_ERROR", 0.0)
    data = simulate(300, 200, n_components=4, density=0.05, random_state=2).interactions
    first, second = (
        HCPF(5, element="gamma", n_fits=1, random_state=0).fit(data, n_threads=t).model_
        for t in (1, 2)
    )
    assert first.recalibration is not None
    assert second.recalibration is not None
    np.testing.assert_array_equal(first.recalibration.shift, second.recalibration.shift)
