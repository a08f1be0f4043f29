"""Numbers that 64-bit floats cannot hold: integers beyond 2**53, and values that become 0."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_EXACT = 2.0**53
"""Floats hold every integer up to this one."""

_CHUNK_BYTES = 1 << 24
_OVERLAP_BYTES = 400
_TINY = re.compile(rb"[eE]-[0-9]{3}|[.,]0{300}")


def hides_small_numbers(stream: Any) -> bool:
    """Return whether text has numbers so small that reading them as floats may have given 0."""
    rest = b""
    while chunk := bytes(stream.read(_CHUNK_BYTES)):
        if _TINY.search(rest + chunk):
            return True
        rest = chunk[-_OVERLAP_BYTES:]
    return False


def inexact_integers(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which integers of an array float64 cannot hold.

    >>> inexact_integers(np.array([3, 2**53, 2**53 + 1, 2**60, 2**63 - 1]))
    array([False, False,  True, False,  True])
    """
    rounded = values.astype(np.float64)
    if values.dtype.itemsize < 8 or np.all(np.abs(rounded) <= MAX_EXACT / 2):
        return np.zeros(values.shape, np.bool_)
    inside = np.abs(rounded) < 2.0 ** (64 if values.dtype == np.uint64 else 63)
    back = np.where(inside, rounded, 0.0).astype(values.dtype)
    return np.where(inside, back != values, values != np.iinfo(values.dtype).min)
