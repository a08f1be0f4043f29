"""How many threads the kernels use, and that only one launch runs at a time."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numba  # pyright: ignore[reportMissingTypeStubs]
from numba.core import config as numba_config  # pyright: ignore[reportMissingTypeStubs]

from hcpf.errors import ParameterError

config: Any = numba_config

# Numba's fallback threading layer aborts the process on concurrent launches.
_LAUNCH = threading.RLock()


@contextmanager
def kernel_threads(n_threads: int | None) -> Generator[None, None, None]:
    """Run kernels with ``n_threads`` threads (None: all), then restore the caller's number."""
    most = int(config.NUMBA_NUM_THREADS)
    if n_threads is not None and (not isinstance(n_threads, int) or n_threads < 1):
        raise ParameterError(
            f"n_threads must be a whole number, 1 or more, or None; got {n_threads!r}."
        )
    with _LAUNCH:
        before = numba.get_num_threads()
        numba.set_num_threads(most if n_threads is None else min(n_threads, most))
        try:
            yield
        finally:
            numba.set_num_threads(before)
