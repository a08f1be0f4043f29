"""Folders of checkpoints: on a mounted disk, or anywhere that fsspec reaches by a URL."""

import os
import secrets
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from hcpf.errors import MissingDependencyError, ParameterError
from hcpf.io import as_path, write_atomically

Location = Path | str
"""A path, or a URL such as s3://bucket/folder."""


class Folder(Protocol):
    """A place for named files; failures are OSErrors. ``str`` of a folder is its location."""

    def make(self) -> None:
        """Create the folder, or raise an error if it cannot be written to."""
        ...

    def write(self, name: str, content: bytes | str) -> None:
        """Write a file completely, or leave it as it was."""
        ...

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        ...

    def opened(self, name: str) -> Any:
        """Return a context with the path of a file on this machine."""
        ...

    def names(self) -> list[str]:
        """Return the names of all files."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file that may not exist."""
        ...


def location_of(name: str, value: Any) -> Location:
    """Return a parameter as a path or URL, or raise an error if it is neither."""
    return value if _is_url(value) else as_path(name, value)


def folder_of(location: Location) -> Folder:
    """Return the folder at a path or URL."""
    return RemoteFolder(str(location)) if _is_url(location) else LocalFolder(Path(location))


def _is_url(value: Any) -> bool:
    return isinstance(value, str) and "://" in value


@dataclass(frozen=True)
class LocalFolder:
    """A folder that is mounted on this machine."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def make(self) -> None:
        """Create the folder, or raise an error if it cannot be written to."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not os.access(self.path, os.W_OK):
            raise PermissionError(13, "Permission denied")

    def write(self, name: str, content: bytes | str) -> None:
        """Write a file completely, or leave it as it was."""
        write_atomically(self.path / name, content)

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return (self.path / name).read_bytes()

    @contextmanager
    def opened(self, name: str) -> Generator[Path]:
        """Yield the path of a file."""
        yield self.path / name

    def names(self) -> list[str]:
        """Return the names of all files."""
        return [path.name for path in self.path.iterdir()]

    def remove(self, name: str) -> None:
        """Remove a file that may not exist."""
        (self.path / name).unlink(missing_ok=True)


@dataclass(frozen=True)
class RemoteFolder:
    """A folder that fsspec reaches: a bucket, HDFS, SFTP."""

    url: str

    def __str__(self) -> str:
        return self.url.rstrip("/")

    @cached_property
    def _place(self) -> tuple[Any, str]:
        """The filesystem, and the path in it."""
        try:
            from fsspec.core import url_to_fs

            system, path = url_to_fs(self.url)
        except ImportError as error:
            raise MissingDependencyError(
                f"checkpoint={self.url!r} requires fsspec and its package for this kind of storage "
                f"({error}). Install them from a clone of hcpf, for example: "
                "pip install '.[ray]' s3fs."
            ) from None
        except ValueError as error:
            raise ParameterError(
                f"checkpoint={self.url!r} is not a URL that fsspec can open ({error})."
            ) from None
        return system, path.rstrip("/")

    def make(self) -> None:
        """Create the folder, and write and remove an empty file to see whether that is allowed."""
        system, path = self._place
        with _os_errors():
            system.makedirs(path, exist_ok=True)
        probe = f".probe-{secrets.token_hex(4)}"
        self.write(probe, b"")
        self.remove(probe)

    def write(self, name: str, content: bytes | str) -> None:
        """Write a file under another name and rename it; object stores replace files as a whole."""
        system, path = self._place
        content = content.encode() if isinstance(content, str) else content
        partial = f"{path}/.{name}.{secrets.token_hex(4)}.part"
        with _os_errors():
            try:
                system.pipe_file(partial, content)
                system.mv(partial, f"{path}/{name}")
            except BaseException:
                with suppress(Exception):
                    system.rm_file(partial)
                raise

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        system, path = self._place
        with _os_errors():
            system.invalidate_cache()
            return system.cat_file(f"{path}/{name}")

    @contextmanager
    def opened(self, name: str) -> Generator[Path]:
        """Yield the path of a temporary copy of a file."""
        system, path = self._place
        with tempfile.TemporaryDirectory(prefix="hcpf-") as folder:
            copy = Path(folder) / name
            with _os_errors():
                system.invalidate_cache()
                system.get_file(f"{path}/{name}", str(copy))
            yield copy

    def names(self) -> list[str]:
        """Return the names of all files."""
        system, path = self._place
        with _os_errors():
            system.invalidate_cache()
            return [found.rstrip("/").rpartition("/")[2] for found in system.ls(path, detail=False)]

    def remove(self, name: str) -> None:
        """Remove a file that may not exist."""
        system, path = self._place
        with _os_errors(), suppress(FileNotFoundError):
            system.rm_file(f"{path}/{name}")


@contextmanager
def _os_errors() -> Generator[None]:
    """Raise any error of a storage service as an OSError."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
