"""How kernels are compiled and where their machine code is kept."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba  # pyright: ignore[reportMissingTypeStubs]
from numba.core import config as numba_config  # pyright: ignore[reportMissingTypeStubs]

from hcpf._version import __version__

config: Any = numba_config

FAST = {"contract", "reassoc", "nsz", "arcp"}
"""Floating-point liberties the kernels allow; NaN and infinity keep their meaning."""


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``numba.njit`` with an on-disk cache that a change in any kernel file invalidates.

    Numba looks only at the file a function stands in, so a changed callee in another file would
    go unnoticed: the cache folder is named after the content of all of them. Where no folder can
    be written, kernels are compiled in every process.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        previous = config.CACHE_DIR
        try:
            config.CACHE_DIR = _CACHE_FOLDER
            return numba.njit(cache=bool(_CACHE_FOLDER), error_model="numpy", **options)(function)
        except RuntimeError:
            return numba.njit(error_model="numpy", **options)(function)
        finally:
            config.CACHE_DIR = previous

    return decorate


def _cache_folder() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    leaf = f"{__version__}-{digest.hexdigest()[:16]}"
    candidates = [config.CACHE_DIR, os.environ.get("XDG_CACHE_HOME"), Path.home() / ".cache"]
    for base in (*candidates, tempfile.gettempdir()):
        if not base:
            continue
        folder = Path(base) / "hcpf" / leaf
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return str(folder)
        except OSError:
            continue
    return ""


_CACHE_FOLDER = _cache_folder()
