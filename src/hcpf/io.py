"""Atomic writing of files, checks of paths, and checksums.

A file is written under a temporary name in the folder of its target and renamed when it is
complete, so a crash at any moment leaves either the old file or the new one.
"""

import hashlib
import os
import platform
import re
import secrets
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf.errors import HcpfError, ParameterError

_MAX_IDLE_SECONDS = 24 * 3600.0
"""A partial file that was not written to for this long is abandoned, even by a live process."""

# Process ids are valid on their own machine only, and folders may be shared over a network.
_HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]

_open_partials: set[Path] = set()


class PartialFile:
    """A file of a unique name, to be written to and then renamed by `commit`.

    Use `atomic_path` unless the final name depends on the content.
    """

    def __init__(self, folder: Path, name: str) -> None:
        token = f"{_HOST}-{os.getpid()}-{secrets.token_hex(4)}"
        self.path = folder / f".{name}.{token}.part"
        self._mode = 0o666

    def create(self) -> None:
        """Create the empty file, with the permissions that the umask leaves."""
        # O_EXCL follows no symbolic link.
        handle = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, self._mode)
        self._mode = os.fstat(handle).st_mode & 0o777
        os.close(handle)

    def commit(self, target: Path) -> None:
        """Flush the file to disk and rename it to ``target``, replacing what is there."""
        self.path.chmod(self._mode)  # some libraries replace the file, with other permissions
        _flush(self.path, os.O_RDWR)
        self.path.replace(target)
        with suppress(OSError):  # not all systems can flush the names in a folder
            _flush(target.parent, os.O_RDONLY)


@contextmanager
def partial_file(folder: Path, name: str) -> Generator[PartialFile]:
    """Yield a `PartialFile` that is removed on exit unless it was committed.

    Files that killed processes left behind under the same ``name`` are removed first.
    """
    _remove_abandoned(folder, name)
    partial = PartialFile(folder, name)
    _open_partials.add(partial.path)  # before it exists, or another thread may remove it
    try:  # a signal may raise an exception at any line, so the file is created inside
        partial.create()
        yield partial
    finally:
        with suppress(OSError):  # an error of the block must not be hidden
            partial.path.unlink(missing_ok=True)
        _open_partials.discard(partial.path)


@contextmanager
def atomic_path(target: Path) -> Generator[Path]:
    """Yield a temporary path whose file replaces ``target`` if the block succeeds.

    A symbolic link at ``target`` is replaced, not followed. Errors of the system are raised as
    OSError; `os_errors` translates them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder) / "greeting.txt"
    ...     with atomic_path(target) as path:
    ...         _ = path.write_text("hello")
    ...     target.read_text()
    'hello'
    """
    with partial_file(target.parent, target.name) as partial:
        yield partial.path
        partial.commit(target)


def write_atomically(target: Path, content: bytes | str) -> None:
    """Write ``content`` (text as UTF-8) to ``target``, completely or not at all."""
    with atomic_path(target) as path:
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def locked(folder: Path, *, wait: bool = True) -> Generator[None]:
    """Wait until no other process writes to a folder, and keep others waiting meanwhile.

    Without ``wait`` a folder that is locked raises BlockingIOError. The lock ends with the process
    and leaves no file; where the system has no locks (Windows, some network drives), nothing is
    locked.
    """
    handle = None
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if handle is not None:
            os.close(handle)
        raise
    except (ImportError, OSError):
        pass
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


@contextmanager
def os_errors(error_type: type[HcpfError], message: str) -> Generator[None]:
    """Raise an OSError of the block as ``error_type``: the message and the system's reason.

    >>> from hcpf.errors import InputError
    >>> with os_errors(InputError, "/none/a.csv cannot be read"):
    ...     _ = Path("/none/a.csv").read_bytes()
    Traceback (most recent call last):
        ...
    hcpf.errors.InputError: /none/a.csv cannot be read: No such file or directory.
    """
    try:
        yield
    except OSError as error:
        raise error_type(f"{message}: {error.strerror or error}.") from error


def as_path(name: str, value: Any) -> Path:
    """Return ``value`` as a path, or raise a ParameterError."""
    try:
        path = Path(value)
    except TypeError:
        path = None
    if path is None or "\0" in str(path):
        raise ParameterError(f"{name} must be a path; got {value!r}.")
    return path


def as_mounted_path(name: str, value: Any) -> Path:
    """Return ``value`` as a path, or raise a ParameterError if it is a URL."""
    path = as_path(name, value)
    if re.match(r"[A-Za-z][A-Za-z0-9+.]+:/", str(path)):  # a single letter is a drive
        raise ParameterError(
            f"{name} must be a path on a mounted disk, because shards are memory-mapped; got "
            f"{str(value)!r}. Mount the storage, or copy the folder."
        )
    return path


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """Return the checksum of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(
            file, lambda: hashlib.new(algorithm, usedforsecurity=False)
        ).hexdigest()


def fingerprint(*parts: NDArray[Any] | str) -> str:
    """Return a digest of the bytes of arrays and texts, 32 hexadecimal digits.

    Equal for equal content; shapes and types count only where they change the bytes.
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else np.ascontiguousarray(part).data)
    return digest.hexdigest()


def _flush(path: Path, mode: int) -> None:
    handle = os.open(path, mode)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_abandoned(folder: Path, name: str) -> None:
    with suppress(OSError):
        for path in folder.iterdir():
            owner = _owner(path, name)
            if owner is not None and _is_abandoned(path, *owner):
                with suppress(OSError):
                    path.unlink()


def _owner(path: Path, name: str) -> tuple[str, int] | None:
    """Return the host and the process id that a partial file of ``name`` was written by."""
    if not (path.name.startswith(f".{name}.") and path.name.endswith(".part")):
        return None
    host, _, rest = path.name[len(name) + 2 : -len(".part")].partition("-")
    pid, _, token = rest.partition("-")
    return (host, int(pid)) if len(host) == len(token) == 8 and pid.isdecimal() else None


def _is_abandoned(path: Path, host: str, pid: int) -> bool:
    if path in _open_partials:
        return False
    if time.time() - path.lstat().st_mtime > _MAX_IDLE_SECONDS:
        return True
    return host == _HOST and not _is_alive(pid)


def _is_alive(pid: int) -> bool:
    if pid == os.getpid():
        return False  # ours are in _open_partials: an earlier process had the same id
    if os.name != "posix":
        return True  # on Windows signal 0 is Ctrl-C, not a test
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
