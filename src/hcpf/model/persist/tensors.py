"""The safetensors format, memory-mapped: nothing is read before it is used."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from hcpf.errors import ModelError

_TYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64}
_LONGEST_HEADER = 1 << 24


def write_tensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """Write a file of named arrays."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    try:
        save_file({name: np.ascontiguousarray(array) for name, array in tensors.items()}, path)
    except SafetensorError as error:
        raise OSError(str(error)) from None  # a full disk, for one


def map_tensors(path: Path) -> dict[str, np.ndarray]:
    """Map a file of named arrays; a ModelError says what is wrong with it."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST_HEADER):
            raise ModelError(f"{path.name} is cut short or no tensor file.")
        header = _parse(path, file.read(length))
    begin = 8 + length
    tensors: dict[str, np.ndarray] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype, shape, first, last = _checked(path, name, entry)
        if begin + last > size:
            raise ModelError(f"{path.name} is cut short: {name} reaches beyond its end.")
        # Copy on write: nothing changes the file, and kernels need no second compilation.
        tensors[name] = (
            np.asarray(np.memmap(path, dtype, "c", begin + first, shape))
            if last > first
            else np.zeros(shape, dtype)
        )
    return tensors


def _parse(path: Path, text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise ModelError(f"{path.name} has no readable header.")
    return header


def _checked(path: Path, name: str, entry: Any) -> tuple[Any, tuple[int, ...], int, int]:
    """The type, shape and place of one tensor, if they agree."""
    try:
        dtype = np.dtype(_TYPES[entry["dtype"]])
        shape, (first, last) = tuple(entry["shape"]), entry["data_offsets"]
        whole = all(type(n) is int and n >= 0 for n in (*shape, first, last))
    except (KeyError, TypeError, ValueError):
        raise ModelError(f"{path.name}: the entry of {name} is not readable.") from None
    count = 1
    for n in shape if whole else ():
        count *= n
    if not whole or last - first != count * dtype.itemsize:
        raise ModelError(f"{path.name}: the entry of {name} contradicts itself.")
    return dtype, shape, first, last
