"""How many threads the kernels use."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numba  # pyright: ignore[reportMissingTypeStubs]
from numba.core import config as numba_config  # pyright: ignore[reportMissingTypeStubs]

config: Any = numba_config

_WORTH_WAKING = 1e7  # multiply-adds, about two milliseconds of one core


@contextmanager
def kernel_threads(n_threads: int | None) -> Generator[None, None, None]:
    """Run kernels with ``n_threads`` threads (None: all), then restore the caller's number.

    Numba keeps the number per calling thread, so that fits side by side do not disturb each other.
    """
    most = int(config.NUMBA_NUM_THREADS)
    before = numba.get_num_threads()
    numba.set_num_threads(most if n_threads is None else min(n_threads, most))
    try:
        yield
    finally:
        numba.set_num_threads(before)


@contextmanager
def threads_for(work: float) -> Generator[None, None, None]:
    """Use one thread for a launch so short that waking the others would take longer.

    ``work`` counts multiply-adds. On a busy machine a worker may be long in coming; the result
    does not depend on the number of threads.
    """
    before = numba.get_num_threads()
    numba.set_num_threads(1 if work < _WORTH_WAKING else before)
    try:
        yield
    finally:
        numba.set_num_threads(before)
