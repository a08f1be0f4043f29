"""Opening files as they were published: plain, packed, in archives or in folders."""

import bz2
import fnmatch
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from hcpf.errors import InputError

PathLike = str | Path
Stream = io.BufferedReader
"""Unpacked content."""

_TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.bz", ".tbz2", ".tar.xz")
_ARCHIVES = (*_TAR, ".zip")
_UNPACK: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_PEEK = 1 << 16

_UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,  # an encrypted or unknown kind of zip
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    tarfile.TarError,
    pa.ArrowException,
)


@dataclass(frozen=True)
class Wanted:
    """What a reader looks for, and how it says so."""

    expected: str
    """The format, in words for messages."""
    files: tuple[str, ...]
    """Names of the files to take from an archive or a folder, with ``*``; capitals do not count."""
    many: bool = False
    """Whether all of them are read, or there must be only one."""


def open_files(path: PathLike, wanted: Wanted) -> Iterator[Stream]:
    """Yield the wanted files behind a path, each open until the next one is asked for.

    A plain or packed file is taken whatever it is called; from archives and folders, only files
    with the names that are wanted.
    """
    place = _existing(path)
    if place.is_file() and not place.name.lower().endswith(_ARCHIVES):
        with place.open("rb") as file:
            yield from (stream for _, stream in _unpacked(place.name, file))
        return
    found: list[str] = []
    for name, stream in _members(place):
        if not _is_wanted(name, wanted.files):
            continue
        found.append(name)
        if len(found) > 1 and not wanted.many:
            raise InputError(f"there is more than one such file ({', '.join(found)}): name one")
        yield stream
    if not found:
        raise InputError(f"there is no {' or '.join(wanted.files)} in it")


def first_line(stream: Stream) -> str:
    """The first line, which is still there to be read."""
    line, newline, _ = stream.peek(_PEEK).partition(b"\n")
    if not line and not newline:
        raise InputError("it is empty")
    return line.decode("latin-1").removeprefix("ï»¿").rstrip("\r")


@contextmanager
def reading(path: PathLike, wanted: Wanted) -> Generator[None, None, None]:
    """Turn every way in which a file can be wrong into an InputError that names it."""
    try:
        yield
    except InputError as error:
        reason = str(error).rstrip(".")
    except _UNREADABLE as error:
        lines = str(error).strip().splitlines()
        reason = f"it cannot be read, {lines[0].rstrip('.') if lines else type(error).__name__}"
    else:
        return
    raise InputError(f"{path}: {reason}. Expected {wanted.expected}.")


def _existing(path: PathLike) -> Path:
    if not isinstance(path, str | Path):
        raise InputError(f"a path is needed, got {type(path).__name__}")
    place = Path(path).expanduser()
    if not place.exists():
        raise InputError("there is no such file or folder")
    return place


def _members(place: Path) -> Iterator[tuple[str, Stream]]:
    if place.is_dir():
        for path in sorted(place.rglob("*")):
            if path.is_file() and not path.name.lower().endswith(_ARCHIVES):
                with path.open("rb") as file:
                    yield from _unpacked(path.name, file)
        return
    with place.open("rb") as file:
        yield from _unpacked(place.name, file)


def _unpacked(name: str, file: Any) -> Iterator[tuple[str, Stream]]:
    """The files in an archive, those in archives within it too; or one file, unpacked."""
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
    elif (ending := Path(lower).suffix) in _UNPACK:
        with _UNPACK[ending](file, "rb") as content:
            yield from _unpacked(name[: -len(ending)], content)
    else:
        with io.BufferedReader(file, _PEEK) as stream:
            yield name, stream


def _is_wanted(name: str, patterns: Sequence[str]) -> bool:
    base = name.replace("\\", "/").rsplit("/", 1)[-1].lower()
    if base.startswith("._"):  # what a Mac leaves in archives
        return False
    return any(fnmatch.fnmatchcase(base, pattern.lower()) for pattern in patterns)
