"""The example in R runs, where R and a reticulate that takes this NumPy are installed."""

import os
import shutil
import subprocess
import sys

import pytest

from pages import DOCS, ROOT

_CHECK = "library(reticulate); library(Matrix); stopifnot(py_numpy_available(initialize = TRUE))"


def run_r(*arguments):
    env = {**os.environ, "RETICULATE_PYTHON": sys.executable, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        ["Rscript", *arguments], env=env, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_the_example_in_r_finds_both_groups_of_items():
    if run_r("-e", _CHECK).returncode:
        pytest.skip("reticulate is missing, or too old for this NumPy")
    done = run_r(str(DOCS / "examples" / "from_r.R"))
    assert done.returncode == 0, done.stderr
    low, high = done.stdout.split("by component:")[1].split()[:2]
    assert float(low) < 0.1
    assert float(high) > 0.9
    assert done.stdout.count("user1") >= 3
