"""The same seed gives the same bits, for any number of threads and next to other fits."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import hcpf
from hcpf import SVI
from hcpf.core import threads
from hcpf.elements import Gamma, InverseGaussian, Logarithmic
from hcpf.training import auto
from prepared import prepared

SOLVERS = ["cavi", SVI(batches=5), "auto", "algorithm1"]


@pytest.fixture(scope="module")
def data():
    # Large enough for "auto" to begin with minibatches.
    return hcpf.simulate(
        500, 60, n_components=4, density=0.18, element=Gamma(2.0, 0.5), random_state=5
    ).interactions


def fit(data, **settings):
    defaults = {
        "element": "gamma",
        "n_fits": 2,
        "max_iter": 3,
        "tol": 0.0,
        "random_state": 11,
        "validation": 0.1,
    }
    return prepared(6, **(defaults | settings)).fit(data)


def assert_same_bits(one, other):
    assert len(one.posteriors_) == len(other.posteriors_)
    for left, right in zip(one.posteriors_, other.posteriors_, strict=True):
        for side in ("users", "items"):
            for name in ("shape_", "mean_", "activity_a", "activity_b"):
                a, b = (getattr(getattr(p, side), name) for p in (left, right))
                assert a.tobytes() == b.tobytes()
    assert one.element_ == other.element_
    assert [(c.iteration, c.elbo, c.validation_log_likelihood) for c in one.history_] == [
        (c.iteration, c.elbo, c.validation_log_likelihood) for c in other.history_
    ]


@pytest.fixture(scope="module")
def serial(data):
    """One fit by each solver on one thread."""
    return {solver: fit(data, solver=solver, n_threads=1) for solver in SOLVERS}


@pytest.mark.parametrize("solver", SOLVERS)
def test_threads_and_repetition_do_not_change_a_bit(data, serial, solver, monkeypatch):
    monkeypatch.setattr(threads, "_WORTH_WAKING", 0.0)
    assert_same_bits(serial[solver], fit(data, solver=solver, n_threads=2))


@pytest.mark.parametrize("element", [InverseGaussian(), "geometric"])
def test_other_elements_too(data, element, monkeypatch):
    monkeypatch.setattr(threads, "_WORTH_WAKING", 0.0)
    if element == "geometric":
        data = hcpf.simulate(
            500, 60, density=0.18, element=Logarithmic(0.7), random_state=5
        ).interactions
    one = fit(data, element=element, n_threads=1)
    assert_same_bits(one, fit(data, element=element, n_threads=2))


def test_another_seed_gives_another_fit(data, serial):
    one, other = serial["auto"], fit(data, random_state=2)
    assert not np.array_equal(one.posterior_.users.mean_, other.posterior_.users.mean_)
    assert len({c.elbo for c in one.history_} & {c.elbo for c in other.history_}) == 0


def test_the_first_fit_does_not_depend_on_how_many_follow(data, serial):
    one, two = fit(data, n_fits=1), serial["auto"]
    assert np.array_equal(one.posterior_.items.mean_, two.posterior_.items.mean_)


def test_a_generator_is_advanced_and_an_equal_one_repeats(data):
    rng = np.random.default_rng(3)
    first, second = (fit(data, random_state=rng) for _ in range(2))
    assert not np.array_equal(first.posterior_.users.mean_, second.posterior_.users.mean_)
    assert_same_bits(first, fit(data, random_state=np.random.default_rng(3)))


def test_the_choices_of_auto_repeat(monkeypatch):
    monkeypatch.setattr(auto, "_BASE_PASSES", 2)
    monkeypatch.setattr(auto, "_TEMPERING_PASSES", 2)
    data = hcpf.simulate(40, 25, density=0.3, element=Gamma(2.0, 0.5), random_state=5).interactions
    one, other = (fit(data, element="auto", tempering="auto", max_iter=3) for _ in range(2))
    assert_same_bits(one, other)


def test_fits_and_predictions_side_by_side_equal_serial_ones(data, serial):
    users, items = np.arange(500)[:, None], np.arange(60)
    rate = serial["cavi"].rate(users, items)
    with ThreadPoolExecutor(4) as pool:
        fits = {solver: pool.submit(fit, data, solver=solver) for solver in SOLVERS}
        rates = [pool.submit(serial["cavi"].rate, users, items) for _ in range(20)]
        for solver in SOLVERS:
            assert_same_bits(fits[solver].result(), serial[solver])
        assert all(np.array_equal(found.result(), rate) for found in rates)
