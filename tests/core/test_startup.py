"""Kernels compile late, and where no cache can be written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def run(script, **environment):
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "TMPDIR")
    }
    return subprocess.run(
        [sys.executable, "-c", script], env=kept | environment, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    "environment",
    [
        {"HOME": "/proc/nothing", "NUMBA_CACHE_DIR": "/proc/nothing"},
        {"XDG_CACHE_HOME": "/dev/null", "TMPDIR": "/proc/nothing"},
    ],
    ids=["no home", "a file for a cache"],
)
def test_the_estimator_compiles_nothing_at_import_and_survives_an_unwritable_cache(environment):
    # The smallest kernel of all shows whether one compiles and runs.
    script = """
from numba.core import event

compiled = []

class Listener(event.Listener):
    def on_start(self, e):
        compiled.append(e)
    def on_end(self, e):
        pass

event.register("numba:compile", Listener())
from hcpf import HCPF
HCPF()
assert not compiled
from hcpf.core.kernels.scalars import digamma
assert abs(digamma(1.0) + 0.5772156649015329) < 1e-12
"""
    done = run(script, **environment)
    assert done.returncode == 0, done.stderr


def test_without_any_folder_kernels_are_compiled_in_memory():
    script = """
from pathlib import Path

def refuse(self, *arguments, **options):
    raise PermissionError(13, "Permission denied")

Path.mkdir = refuse
from hcpf.core import jit
assert jit._CACHE_FOLDER == ""
from hcpf.core.kernels.scalars import digamma
assert abs(digamma(1.0) + 0.5772156649015329) < 1e-12
"""
    done = run(script, HOME=str(Path.home()))
    assert done.returncode == 0, done.stderr


def test_a_changed_kernel_has_a_cache_of_its_own(tmp_path):
    script = """
from hcpf.core import jit
print(jit._CACHE_FOLDER)
"""
    done = run(script, NUMBA_CACHE_DIR=str(tmp_path), HOME=str(tmp_path))
    assert done.stdout.startswith(str(tmp_path / "hcpf")), done.stderr
    assert len(list((tmp_path / "hcpf").iterdir())) == 1
