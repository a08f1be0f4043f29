"""How kernels are compiled: entry points that Python calls, and what only kernels call."""

from collections.abc import Callable
from typing import Any

import numba  # pyright: ignore[reportMissingTypeStubs]
from numba.extending import register_jitable  # pyright: ignore[reportMissingTypeStubs]

from hcpf.core.kernel_cache import KernelCache

FAST = {"contract", "reassoc", "nsz", "arcp"}
"""Floating-point liberties the kernels allow; NaN and infinity keep their meaning."""

# Nobody calls kernels by way of C: each wrapper less is code less to compile.
_ALWAYS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def kernel(**options: Any) -> Decorator:
    """``numba.njit`` for a function that Python calls; its machine code is kept on disk."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        dispatcher: Any = numba.njit(**_ALWAYS, **options)(function)
        dispatcher._cache = KernelCache(function)
        return dispatcher

    return decorate


def inner(**options: Any) -> Decorator:
    """Let kernels call a function, which becomes a part of their machine code.

    It has no wrapper that unpacks Python's arguments and no file of its own. Both would take
    longer to make than the function itself, whose arguments are tuples of many arrays. Called from
    Python, it is plain Python.
    """
    return register_jitable(**_ALWAYS, **options)
