"""Arrays on disk, memory-mapped as they are: .npy files with checksums, and temporary ones."""

import os
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hcpf.errors import ShardError
from hcpf.io import file_digest, os_errors

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER_BYTES = 128  # of a .npy file of one dimension, padded so that its length can be set last


@dataclass(frozen=True)
class FileRecord:
    """The size of a file and its SHA-256 in hexadecimal."""

    bytes: int
    sha256: str

    def check_size(self, path: Path) -> None:
        """Raise a ShardError if the file is missing or has another size."""
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise ShardError(
                f"{path} is missing, but the folder's manifest lists it. Restore the file, or "
                "write the shards again."
            ) from None
        except OSError as error:
            raise ShardError(f"{path} cannot be read: {error.strerror}.") from None
        if size != self.bytes:
            raise ShardError(
                f"{path} has {size:,} bytes, but {self.bytes:,} were written: it was truncated or "
                "changed. Restore the file, or write the shards again."
            )

    def check_content(self, path: Path) -> None:
        """Raise a ShardError if the content of the file is not what was written."""
        self.check_size(path)
        with os_errors(ShardError, f"{path} cannot be read"):
            digest = file_digest(path)
        if digest != self.sha256:
            raise ShardError(
                f"{path} does not match its checksum: it was changed, or it belongs to other "
                "shards. Restore the file, or write the shards again."
            )


class ArrayFile:
    """A one-dimensional .npy file under construction, whose length is not known before its end."""

    def __init__(self, path: Path, dtype: Any) -> None:
        self.path, self.dtype, self.size = path, np.dtype(dtype), 0
        self._file = path.open("xb")
        self._file.write(bytes(_HEADER_BYTES))

    def append(self, values: NDArray[Any]) -> None:
        """Write the next values."""
        self._file.write(np.ascontiguousarray(values, self.dtype).data)
        self.size += len(values)

    def finish(self) -> FileRecord:
        """Write the header, flush the file to disk, and return its size and checksum."""
        self._file.seek(0)
        self._file.write(_header(self.dtype, self.size))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return record_of(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def _header(dtype: np.dtype[Any], size: int) -> bytes:
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': ({size},), }}"
    room = _HEADER_BYTES - len(_MAGIC) - 2
    return _MAGIC + room.to_bytes(2, "little") + text.ljust(room - 1).encode() + b"\n"


def record_of(path: Path) -> FileRecord:
    """Return the size and the checksum of a file that is complete."""
    return FileRecord(path.stat().st_size, file_digest(path))


def check_contents(files: Iterable[tuple[Path, FileRecord]]) -> None:
    """Compare files with their checksums, several at a time; the first difference is an error."""

    def check(file: tuple[Path, FileRecord]) -> None:
        file[1].check_content(file[0])

    with ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as pool:
        for _ in pool.map(check, files):
            pass


def map_array(path: Path, dtype: Any, size: int) -> NDArray[Any]:
    """Map an array of the type and length that its manifest gives.

    The mapping is private: the array can be written to, as the kernels want it, and the file never
    changes.
    """
    try:
        array: Any = np.load(path, mmap_mode="c")
    except (OSError, ValueError) as error:
        raise ShardError(f"{path} cannot be read: {error}.") from None
    if array.dtype != np.dtype(dtype) or array.shape != (size,):
        raise ShardError(
            f"{path} holds {array.dtype} of shape {array.shape} instead of {np.dtype(dtype)} of "
            f"shape ({size},). Restore the file, or write the shards again."
        )
    return array.view(np.ndarray)


# -- temporary arrays ------------------------------------------------------------------------------


class ScratchArray:
    """An array in a file without a name, which is gone when nobody uses it any more.

    It is written with plain writes, so that a full disk is an error; writing to mapped memory would
    end the process.
    """

    def __init__(self, folder: Path, dtype: Any) -> None:
        self._folder, self._dtype, self._size = folder, np.dtype(dtype), 0
        with self._errors():
            folder.mkdir(parents=True, exist_ok=True)
            self._file: Any = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115

    def append(self, values: NDArray[Any]) -> None:
        """Write the next values."""
        with self._errors():
            self._file.write(np.ascontiguousarray(values, self._dtype).data)
        self._size += len(values)

    def map(self) -> NDArray[Any]:
        """Return what was written as an array; nothing can be appended afterwards."""
        with self._errors(), self._file as file:
            file.flush()
            if not self._size:
                return np.zeros(0, self._dtype)
            mapped = np.memmap(file, self._dtype, "c", shape=(self._size,))
        return mapped.view(np.ndarray)

    def _errors(self) -> Any:
        return os_errors(
            ShardError,
            f"Temporary files cannot be written to {self._folder}; free some space or open the "
            f"shards with another scratch folder",
        )
