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
from hcpf.training import loop

data = hcpf.simulate(60, 40, density=0.2, random_state=0).interactions
HCPF(3, element="gamma", max_iter=1).fit(data, n_threads=1)  # compile
original = loop._make_pass

def slow(*arguments):
    original(*arguments)
    print("pass", flush=True)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        time.sleep(0.01)

loop._make_pass = slow
settings = dict(n_fits=2, max_iter=1000, tol=0.0, random_state=0)
model = HCPF(3, element=ELEMENT, **settings)
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


@pytest.mark.parametrize("element", ["gamma", "auto"])
def test_once_ends_after_the_current_pass_with_a_usable_model_and_twice_raises(element):
    script = SCRIPT.replace("ELEMENT", repr(element))  # "auto" begins with short fits
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert [process.stdout.readline() for _ in range(2)] == ["pass\n"] * 2
        process.send_signal(signal.SIGINT)
        # On a busy machine a few more passes may end before the signal arrives.
        lines = iter(process.stdout.readline, "")
        ended = next(line for line in lines if line != "pass\n")
        assert ended.startswith("ended after ")
        assert 1 <= int(ended.split()[-1]) < 100
        assert process.stdout.readline() == "pass\n"
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.1)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out == "raised\n"
    assert "Interrupted after pass" in err
