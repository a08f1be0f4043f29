"""Kernels on several threads.

Plain threads call kernels that release the interpreter's lock. Numba's own parallel loops would
compile a kernel and all that it calls several times over, and its fallback threading layer aborts
the process when two threads launch kernels at once.
"""

import os
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from math import inf
from threading import Lock
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController


def _most_threads() -> int:
    """Return what Numba would: here it is needed without loading Numba."""
    given = os.environ.get("NUMBA_NUM_THREADS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


MOST_THREADS = _most_threads()
"""The cores that the process may use, or the number that the environment sets."""
POSTERIOR_WORK = 100.0
"""Multiply-adds that take as long as one digamma and one exponential."""
_WORTH_WAKING = 1e7  # multiply-adds worth a second thread, about two milliseconds of one core
_MIN_PARTS, _MAX_PARTS = 4, 32
"""Ranges per thread, so that a thread on a busy core can do fewer."""
_PART_WORK = 2e7  # multiply-adds worth a separate range, some milliseconds

_chosen: ContextVar[int] = ContextVar("threads of the kernels", default=MOST_THREADS)


@contextmanager
def kernel_threads(n_threads: int | None) -> Generator[None, None, None]:
    """Run kernels on ``n_threads`` threads meanwhile, in the calling thread alone.

    None changes nothing: the threads are those of the caller, or all.
    """
    before = _chosen.set(_chosen.get() if n_threads is None else min(n_threads, MOST_THREADS))
    try:
        yield
    finally:
        _chosen.reset(before)


def run_in_parallel(
    kernel: Callable[..., None], size: int, *arguments: Any, work: float = inf
) -> None:
    """Call ``kernel(first, last, *arguments)`` on ranges that together make up ``range(size)``.

    ``work`` counts multiply-adds: few are done by the calling thread alone. On a busy machine
    a helper may start late; one that has not started when the work is done is canceled. The result
    does not depend on the number of threads.
    """
    threads = min(_chosen.get(), size) if work >= _WORTH_WAKING else 1
    if threads <= 1:
        kernel(0, size, *arguments)
        return
    parts = min(max(work / _PART_WORK, _MIN_PARTS * threads), _MAX_PARTS * threads, size)
    cuts = np.linspace(0, size, int(parts) + 1).astype(int).tolist()
    ranges = iter(list(pairwise(cuts)))  # a thread that is free takes the next one

    def help_out() -> None:
        for first, last in ranges:
            kernel(first, last, *arguments)

    helpers = [_pool().submit(help_out) for _ in range(threads - 1)]
    try:
        help_out()
    finally:  # none may still write into the arguments when the caller goes on
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)
    for helper in begun:
        helper.result()


@contextmanager
def single_blas_thread() -> Generator[None, None, None]:
    """Run BLAS with one thread meanwhile, in the whole process.

    For searches over a few numbers, where waking BLAS threads for vectors of two costs a
    millisecond, and for threads that each call BLAS. Several threads may be in it at once: the last
    to leave restores the number of threads.
    """
    _BLAS_LIMIT.enter()
    try:
        yield
    finally:
        _BLAS_LIMIT.leave()


class _BlasLimit:
    """A limit of BLAS threads that is set while at least one thread needs it."""

    def __init__(self) -> None:
        self._lock, self._users = Lock(), 0
        self._limit: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limit = _blas().limit(limits=1, user_api="blas")
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limit.restore_original_limits()


_BLAS_LIMIT = _BlasLimit()


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(MOST_THREADS - 1, 1), "hcpf")


if hasattr(os, "register_at_fork"):  # a forked process has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
