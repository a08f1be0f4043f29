"""Ctrl-C: once ends the fit after the current pass, twice at once."""

import signal
import subprocess
import sys
import time

import pytest

SCRIPT = """
import signal, time
import hcpf
from hcpf import HCPF
from hcpf.training import loop, short_fits

data = hcpf.simulate(60, 40, density=0.2, random_state=0).interactions
HCPF(3, element="gamma", max_iter=1).fit(data, n_threads=1)  # compile
original = loop.advance_fit

def slow(*arguments):
    original(*arguments)
    print("pass", flush=True)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(0.01)

loop.advance_fit = short_fits.advance_fit = slow
settings = dict(n_fits=2, max_iter=1000, tol=0.0, random_state=0)
model = HCPF(3, element=ELEMENT, **settings)
try:
    model.fit(data, n_threads=1)
except KeyboardInterrupt:
    assert not hasattr(model, "model_")
    print("nothing", flush=True)
    raise SystemExit
assert model.interrupted_
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
assert model.history_[-1].iteration == model.n_iter_ < 1000
assert len(model.posteriors_) == 1
assert model.rate([0, 1], [2, 3]).min() > 0
print("ended after", model.n_iter_, model.value_model_.description, flush=True)
try:
    model.fit(data)
except KeyboardInterrupt:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    print("raised", flush=True)
"""


def start(element, seconds):
    script = SCRIPT.replace("ELEMENT", repr(element)).replace("SECONDS", str(seconds))
    return subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def read_passes(process, n_passes):
    assert [process.stdout.readline() for _ in range(n_passes)] == ["pass\n"] * n_passes


def read_ending(process):
    # On a busy machine a few more passes may end before the signal arrives.
    return next(line for line in iter(process.stdout.readline, "") if line != "pass\n")


def test_once_ends_after_the_current_pass_with_a_usable_model_and_twice_raises():
    with start("gamma", seconds=0.5) as process:
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


def test_during_the_short_fits_nothing_is_kept_before_there_is_a_leader():
    with start("auto", seconds=0.5) as process:
        read_passes(process, 1)
        process.send_signal(signal.SIGINT)
        assert read_ending(process) == "nothing\n"
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "nothing is kept" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("again", [False, True])
def test_during_the_short_fits_the_leader_is_kept_and_fitted_for_a_few_passes(again):
    with start("auto", seconds=0.1) as process:
        read_passes(process, 25)  # the first fit of 12 passes, then some of 4 each
        process.send_signal(signal.SIGINT)
        if again:
            assert "fitting" in process.stderr.readline()
            read_passes(process, 2)
            process.send_signal(signal.SIGINT)
        ended = read_ending(process)
        process.kill()  # the second fit of the script
    _, _, n_passes, element = ended.split(maxsplit=3)
    assert int(n_passes) < 10 if again else int(n_passes) == 10
    assert "hurdle" in element  # hurdle models come first
