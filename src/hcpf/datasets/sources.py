"""Opening files as they were published: plain, packed, in archives or in folders."""

import bz2
import fnmatch
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa

from hcpf._checks import one_of
from hcpf.data.canonical import Duplicates
from hcpf.data.interactions import Interactions
from hcpf.errors import InputError

PathLike = str | Path
Stream = io.BufferedReader
"""Unpacked content of one file."""

_TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.bz", ".tbz2", ".tar.xz")
_ARCHIVES = (*_TAR, ".zip")
_UNPACK: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_PEEK_BYTES = 1 << 16

_UNREADABLE = (
    OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile,
    tarfile.TarError, pa.ArrowException,
    RuntimeError,  # an encrypted or unknown kind of zip
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """The files of a published data set."""

    expected: str
    """Description of the format, for error messages."""
    files: tuple[str, ...]
    """Patterns of the files to take from an archive or a folder; case does not matter."""
    many: bool = False
    """Whether all matching files are read; otherwise there must be only one."""


def read_source(
    path: PathLike,
    source: Source,
    duplicates: Duplicates,
    add: Callable[[Stream], None],
    finish: Callable[[], Callable[[Duplicates], Interactions]],
) -> Interactions:
    """Read every file of ``source`` with ``add``, then merge duplicated pairs as asked.

    ``finish`` checks what was added and returns the function that merges it.
    """
    one_of("duplicates", duplicates, get_args(Duplicates))  # before a long file is read
    with _errors_tell_what_is_expected(path, source):
        for stream in _open_files(path, source):
            add(stream)
        merge = finish()
    try:
        return merge(duplicates)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def first_line(stream: Stream) -> str:
    """Return the first line without consuming it."""
    line, newline, _ = stream.peek(_PEEK_BYTES).partition(b"\n")
    if not line and not newline:
        raise InputError("it is empty")
    return line.decode("latin-1").removeprefix("ï»¿").rstrip("\r")


@contextmanager
def _errors_tell_what_is_expected(path: PathLike, source: Source) -> Generator[None]:
    try:
        yield
    except InputError as error:
        reason = str(error).rstrip(".")
    except _UNREADABLE as error:
        lines = str(error).strip().splitlines()
        reason = f"it cannot be read, {lines[0].rstrip('.') if lines else type(error).__name__}"
    else:
        return
    raise InputError(f"{path}: {reason}. Expected {source.expected}.")


def _open_files(path: PathLike, source: Source) -> Iterator[Stream]:
    """Yield the files of ``source``, each open until the next is asked for.

    A plain or packed file is read whatever its name; archives and folders are searched by name.
    """
    location = _existing(path)
    if location.is_dir():
        paths = [path for path in sorted(location.rglob("*")) if path.is_file()]
        paths = [path for path in paths if not _is_archive(path)]
    else:
        paths = [location]
    by_name = location.is_dir() or _is_archive(location)
    taken: list[str] = []
    for path in paths:
        with path.open("rb") as file:
            for name, stream in _unpacked(path.name, file):
                if by_name and not _matches(name, source):
                    continue
                taken.append(name)
                if len(taken) > 1 and not source.many:
                    names = ", ".join(taken)
                    raise InputError(f"there is more than one such file ({names}): name one")
                yield stream
    if not taken:
        raise InputError(f"there is no {' or '.join(source.files)} in it")


def _existing(path: PathLike) -> Path:
    if not isinstance(path, str | Path):
        raise InputError(f"a path is needed, got {type(path).__name__}")
    location = Path(path).expanduser()
    if not location.exists():
        raise InputError("there is no such file or folder")
    return location


def _is_archive(path: Path) -> bool:
    return path.name.lower().endswith(_ARCHIVES)


def _unpacked(name: str, file: Any) -> Iterator[tuple[str, Stream]]:
    """Yield the files of an archive and of archives in it, or the one file unpacked."""
    lower = name.lower()
    if lower.endswith(_TAR):
        with tarfile.open(fileobj=file, mode="r|*") as archive:
            for member in archive:
                content: Any = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    yield from _unpacked(member.name, content)
    elif lower.endswith(".zip"):
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    with archive.open(entry) as content:
                        yield from _unpacked(entry.filename, content)
    elif (suffix := Path(lower).suffix) in _UNPACK:
        with _UNPACK[suffix](file, "rb") as content:
            yield from _unpacked(name[: -len(suffix)], content)
    else:
        with io.BufferedReader(file, _PEEK_BYTES) as stream:
            yield name, stream


def _matches(name: str, source: Source) -> bool:
    base = name.replace("\\", "/").rsplit("/", 1)[-1].lower()
    # macOS adds files that begin with "._" to archives.
    return not base.startswith("._") and any(
        fnmatch.fnmatchcase(base, pattern.lower()) for pattern in source.files
    )
