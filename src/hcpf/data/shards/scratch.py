"""Temporary arrays on disk: written in order, then memory-mapped."""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf.errors import ShardError
from hcpf.io import os_errors


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


def free_disk_bytes(folder: Path) -> int | None:
    """Return the bytes that are free on the disk of a folder that may not exist yet."""
    for existing in (folder, *folder.parents):
        try:
            status = os.statvfs(existing)
        except (OSError, AttributeError):
            continue
        return status.f_bavail * status.f_frsize
    return None
