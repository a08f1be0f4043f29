"""How kernels are compiled, and where their machine code is kept."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba  # pyright: ignore[reportMissingTypeStubs]
from numba.core import config as numba_config  # pyright: ignore[reportMissingTypeStubs]

from hcpf._version import __version__

config: Any = numba_config

FAST = {"contract", "reassoc", "nsz", "arcp"}
"""Floating-point liberties the kernels allow; NaN and infinity keep their meaning."""
_ALWAYS: dict[str, Any] = {"error_model": "numpy", "nogil": True}


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``numba.njit`` with an on-disk cache that a change in any kernel file invalidates.

    Numba looks only at the file a function stands in, so a changed callee in another file would
    go unnoticed: the cache folder is named after the content of all of them, which stand in
    ``hcpf.core.kernels``. Where no folder can be written, every process compiles again.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        previous = config.CACHE_DIR
        try:
            config.CACHE_DIR = _CACHE_FOLDER
            return numba.njit(cache=bool(_CACHE_FOLDER), **_ALWAYS, **options)(function)
        except RuntimeError:
            return numba.njit(**_ALWAYS, **options)(function)
        finally:
            config.CACHE_DIR = previous

    return decorate


def _cache_folder() -> str:
    digest = hashlib.sha256()
    here = Path(__file__)
    for path in sorted([here, *(here.parent / "kernels").glob("*.py")]):
        digest.update(path.read_bytes())
    leaf = f"{__version__}-{digest.hexdigest()[:16]}"
    for folder in _candidates():
        try:
            (folder / leaf).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder / leaf):
                return str(folder / leaf)
        except OSError:
            continue
    return ""


def _candidates() -> Iterator[Path]:
    """Folders to try in turn; cached code is trusted, so that in /tmp must be the user's own."""
    for base in (config.CACHE_DIR, os.environ.get("XDG_CACHE_HOME")):
        if base:
            yield Path(base) / "hcpf"
    with suppress(RuntimeError):  # no home at all
        yield Path.home() / ".cache" / "hcpf"
    with suppress(OSError, AttributeError):  # no temporary folder; no such ids on Windows
        folder, me = Path(tempfile.gettempdir()) / f"hcpf-{os.getuid()}", os.getuid()
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.lstat().st_uid == me:
            yield folder


_CACHE_FOLDER = _cache_folder()
