"""Ctrl-C: once ends the fit after the current pass, twice at once."""

import signal
import subprocess
import sys
import time

import pytest

SCRIPT = """
import signal, sys, time
import hcpf
from hcpf import HCPF
from hcpf.inference import fit

data = hcpf.simulate(60, 40, density=0.2, random_state=0).interactions
HCPF(3, max_iter=1, n_threads=1).fit(data)  # compile
original = fit._one_pass

def slow(*arguments):
    original(*arguments)
    print("pass", flush=True)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        time.sleep(0.01)

fit._one_pass = slow
model = HCPF(3, n_fits={n_fits}, max_iter=1000, tol=0.0, n_threads=1, random_state=0)
try:
    model.fit(data)
except KeyboardInterrupt:
    print("raised", flush=True)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    sys.exit(0)
assert model.interrupted_
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
assert model.history_[-1].iteration == model.n_iter_ < 1000
assert len(model.posteriors_) == 1
assert model.rate([0, 1], [2, 3]).min() > 0
print("ended after", model.n_iter_, flush=True)
"""


def start(n_fits=1):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(n_fits=n_fits)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("n_fits", [1, 2])
def test_once_ends_after_the_current_pass_with_a_usable_model(n_fits):
    process = start(n_fits)
    assert [process.stdout.readline() for _ in range(2)] == ["pass\n"] * 2
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.splitlines()[-1] in ("ended after 2", "ended after 3")
    assert "Interrupted after pass" in err


def test_twice_raises_at_once():
    process = start()
    assert process.stdout.readline() == "pass\n"
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.splitlines()[-1] == "raised"
