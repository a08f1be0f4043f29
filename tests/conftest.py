"""Settings and fixtures that all tests share."""

import logging
import os
from pathlib import Path

# For the small matrices of tests, the threads of OpenBLAS cost more than they save: with partial
# pooling a fit takes several times as long on a busy machine. To be set before NumPy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

for profile, max_examples in (("quick", 40), ("thorough", 200)):
    settings.register_profile(
        profile,
        derandomize=True,
        deadline=None,
        database=None,
        max_examples=max_examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(autouse=True)
def quiet_logger() -> None:
    """Log warnings only, whatever Ray made of the root logger or a command of ours, before."""
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("hcpf").setLevel(logging.NOTSET)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20160619)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the repository; tests that need it are skipped without."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no shared data beside the repository")
    return folder
