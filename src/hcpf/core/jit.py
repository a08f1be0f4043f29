"""How kernels are compiled, and their machine code on disk: a file per signature and processor.

Numba's own cache looks only at the file a function stands in, so a changed callee in another file
would go unnoticed; it keeps an index per function, which processes that compile at once overwrite
for each other; and it trusts whatever it reads. Here the folder is named after the content of all
files that kernels are made of, a file after all that its content depends on, and a checksum is
checked before anything is loaded. What is missing or damaged is compiled again.
"""

import hashlib
import logging
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba  # pyright: ignore[reportMissingTypeStubs]
from numba.core import config as numba_config  # pyright: ignore[reportMissingTypeStubs]
from numba.core.compiler import CompileResult  # pyright: ignore[reportMissingTypeStubs]
from numba.core.serialize import dumps  # pyright: ignore[reportMissingTypeStubs]
from numba.extending import register_jitable  # pyright: ignore[reportMissingTypeStubs]

from hcpf._progress import announce
from hcpf._version import __version__
from hcpf.io import write_atomically

_logger = logging.getLogger("hcpf")
_DIGEST_BYTES = hashlib.sha256().digest_size
_WRITABLE_BY_OTHERS = 0o022


class KernelCache:
    """The compiled versions of one kernel, in the form of a cache that numba's dispatcher uses."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"

    @property
    def cache_path(self) -> str | None:
        """The folder, or None where no folder can be written."""
        folder = cache_folder()
        return None if folder is None else str(folder)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the compiled version for a signature; None makes numba compile it."""
        target_context.refresh()
        path = self._path(signature, target_context.codegen())
        found = None if path is None else _read(path, target_context)
        if found is None:
            _announce_compiling()
        return found

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Store a compiled version; a full disk, say, only means to compile again next time."""
        path = self._path(signature, compiled.codegen)
        if path is not None:
            content = dumps(compiled._reduce())
            with suppress(OSError):
                write_atomically(path, hashlib.sha256(content).digest() + content)

    def flush(self) -> None:
        """Remove nothing: files of other processes may be in use."""

    def _path(self, signature: Any, codegen: Any) -> Path | None:
        folder = cache_folder()
        if folder is None:
            return None
        versions = sys.implementation.cache_tag, numba.__version__
        key = repr((signature, codegen.magic_tuple(), *versions))
        return folder / f"{self._name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def _read(path: Path, target_context: Any) -> Any:
    """Return the compiled version in a file; None if it is missing or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, content = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if hashlib.sha256(content).digest() != digest:
        return None
    return CompileResult._rebuild(target_context, *pickle.loads(content))  # pyright: ignore


def _announce_compiling() -> None:
    often = "once per machine" if cache_folder() else "in every process: no folder for a cache"
    text = f"Compiling kernels ({often})."
    announce(text)
    _log_once(text)


@cache
def _log_once(text: str) -> None:
    _logger.info(text)


@cache
def cache_folder() -> Path | None:
    """Return the folder of the machine code, which depends on the source of all kernels."""
    digest = hashlib.sha256()
    here = Path(__file__)
    sources = [here, here.with_name("jit.py"), *here.with_name("kernels").glob("*.py")]
    for path in sorted(sources):
        digest.update(path.read_bytes())
    leaf = f"{__version__}-{digest.hexdigest()[:16]}"
    for base in _candidates():
        with suppress(OSError):
            folder = base / leaf
            base.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.mkdir(exist_ok=True, mode=0o700)
            if _is_private(base) and _is_private(folder):
                with tempfile.TemporaryFile(dir=folder):
                    return folder
    return None


def _candidates() -> Iterator[Path]:
    """Yield folders to try in turn."""
    for base in (vars(numba_config)["CACHE_DIR"], os.environ.get("XDG_CACHE_HOME")):
        if base:
            yield Path(base) / "hcpf"
    with suppress(RuntimeError):  # no home at all
        yield Path.home() / ".cache" / "hcpf"
    with suppress(OSError, AttributeError):  # no temporary folder; no such ids on Windows
        yield Path(tempfile.gettempdir()) / f"hcpf-{os.getuid()}"


def _is_private(folder: Path) -> bool:
    """Return whether nobody else can put files into a folder: what it holds is executed."""
    if os.name == "nt":
        return True  # folders of a user are the user's own there
    status = folder.lstat()
    return status.st_uid == os.getuid() and not status.st_mode & _WRITABLE_BY_OTHERS


# -- decorators ------------------------------------------------------------------------------------

FAST = {"contract", "reassoc", "nsz", "arcp"}
"""Floating-point liberties the kernels allow; NaN and infinity keep their meaning."""

# Nobody calls kernels by way of C: each wrapper less is code less to compile. References to arrays
# are not counted (_nrt): the caller holds them, and each array taken out of a tuple would be
# counted by an atomic instruction, in the loops over rows, too.
_ALWAYS: dict[str, Any] = {
    "error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True, "_nrt": False,
}  # fmt: skip

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def kernel(*, allocates: bool = False, **options: Any) -> Decorator:
    """``numba.njit`` for a function that Python calls; its machine code is kept on disk.

    A kernel that ``allocates`` makes arrays, which needs counted references.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        given: dict[str, Any] = {**_ALWAYS, "_nrt": allocates, **options}
        dispatcher: Any = numba.njit(**given)(function)
        dispatcher._cache = KernelCache(function)
        return dispatcher

    return decorate


def inner(**options: Any) -> Decorator:
    """Let kernels call a function, which becomes a part of their machine code.

    It has no wrapper that unpacks Python's arguments and no file on disk. Both would take
    longer to make than the function itself, whose arguments are tuples of many arrays. Called from
    Python, it is plain Python.
    """
    return register_jitable(**_ALWAYS, **options)
