"""Ctrl-C: once ends the fit after the current pass, twice at once."""

import itertools
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import hcpf
from hcpf import HCPF
from hcpf.training import ensemble, fit, loop, short_fits

SCRIPT = """
import signal, time
import hcpf
from hcpf import HCPF
from hcpf.training import loop

data = hcpf.simulate(60, 40, density=0.2, random_state=0).interactions
HCPF(3, element="gamma", max_iter=1).fit(data, n_threads=1)  # compile
original = loop.advance_fit

def slow(*arguments):
    original(*arguments)
    print("pass", flush=True)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        time.sleep(0.01)

loop.advance_fit = slow
model = HCPF(3, element="gamma", n_fits=2, max_iter=1000, tol=0.0, random_state=0)
model.fit(data, n_threads=1)
assert model.interrupted_
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
assert model.history_[-1].iteration == model.n_iter_ < 1000
assert len(model.posteriors_) == 1
assert model.rate([0, 1], [2, 3]).min() > 0
print("ended after", model.n_iter_, flush=True)
try:
    model.fit(data)
except KeyboardInterrupt:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    print("raised", flush=True)
"""


def read_passes(process, n_passes):
    assert [process.stdout.readline() for _ in range(n_passes)] == ["pass\n"] * n_passes


def read_ending(process):
    # On a busy machine a few more passes may end before the signal arrives.
    return next(line for line in iter(process.stdout.readline, "") if line != "pass\n")


def test_once_ends_after_the_current_pass_with_a_usable_model_and_twice_raises():
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        read_passes(process, 2)
        process.send_signal(signal.SIGINT)
        ended = read_ending(process)
        assert ended.startswith("ended after ")
        assert 1 <= int(ended.split()[2]) < 100
        read_passes(process, 1)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.1)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out == "raised\n"
    assert "Interrupted after pass" in err


@pytest.fixture
def ctrl_c_at(monkeypatch):
    """Press Ctrl-C when a function is called for the n-th time."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def press(module, name, call=1):
        original, calls = getattr(module, name), itertools.count(1)

        def function(*arguments, **options):
            if next(calls) == call:
                signal.raise_signal(signal.SIGINT)
            return original(*arguments, **options)

        monkeypatch.setattr(module, name, function)

    yield press
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def sales():
    return hcpf.simulate(40, 30, density=0.2, random_state=0).interactions


def estimator(**settings):
    given = {"element": "gamma", "n_fits": 3, "max_iter": 6, "tol": 0.0, "tempering": 1.0}
    return HCPF(3, **{**given, "random_state": 0, **settings})


def test_an_interrupted_fit_is_dropped_where_others_are_complete(ctrl_c_at, sales, caplog):
    whole = estimator().fit(sales).posteriors_
    ctrl_c_at(loop, "advance_fit", 13)  # the first pass of the third fit
    model = estimator().fit(sales)
    assert model.interrupted_
    assert [record.message for record in caplog.records] == [
        "Interrupted: 2 of 3 fits are complete and kept."
    ]
    assert len(model.posteriors_) == 2
    for mine, theirs in zip(model.posteriors_, whole, strict=False):
        np.testing.assert_array_equal(mine.users.mean_, theirs.users.mean_)


@pytest.mark.parametrize(
    ("module", "name", "call", "n_fits", "n_passes"),
    [
        (fit, "split_validation", 1, 1, 1),
        (fit, "choose_settings", 1, 1, 1),
        (ensemble, "start_from_noise", 1, 1, 1),
        (ensemble, "cluster_items", 1, 1, 6),  # of the second fit
        (ensemble, "_combine", 1, 3, 6),
        (fit, "limit_odd_entries", 1, 3, 6),
    ],
)
def test_at_any_moment_something_is_kept(
    ctrl_c_at, sales, module, name, call, n_fits, n_passes
):  # fmt: skip
    ctrl_c_at(module, name, call)
    model = estimator(vary_by="item").fit(sales)
    assert model.interrupted_
    assert (len(model.posteriors_), model.n_iter_) == (n_fits, n_passes)
    assert np.all(model.rate(0, np.arange(30)) > 0)


def test_a_second_ctrl_c_raises_outside_a_pass_too(ctrl_c_at, sales):
    ctrl_c_at(loop, "advance_fit", 18)
    ctrl_c_at(ensemble, "refit_element")
    with pytest.raises(KeyboardInterrupt):
        estimator().fit(sales)


def test_during_the_short_fits_nothing_is_kept_before_there_is_a_leader(ctrl_c_at, sales, caplog):
    ctrl_c_at(short_fits, "advance_fit")
    model = estimator(element="auto")
    with pytest.raises(KeyboardInterrupt, match="before any element was tried: nothing is kept"):
        model.fit(sales)
    assert not hasattr(model, "model_")
    assert not caplog.records


@pytest.mark.parametrize("again", [False, True])
def test_during_the_short_fits_the_leader_is_kept_and_fitted_for_a_few_passes(
    ctrl_c_at, sales, again
):
    ctrl_c_at(short_fits, "advance_fit", 25)  # the first fit has 12 passes, then some have 4 each
    if again:
        ctrl_c_at(loop, "advance_fit", 2)
    model = estimator(element="auto", max_iter=20).fit(sales)
    assert model.interrupted_
    assert model.n_iter_ == (2 if again else 10)
    assert model.value_model_.hurdle  # hurdle models come first
