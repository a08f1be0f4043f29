"""What all count tables are built from: the values of all workers, the nodes, and the arrays."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core.collective import Collective, sum_scalar
from hcpf.core.kernels import TableArrays, aligned_zeros
from hcpf.core.value_model import ValueModel
from hcpf.distributions.series import sum_over_n
from hcpf.elements.base import Element

PER_OCTAVE = 8
OCTAVES = (-40, 8)
"""The rates tabulated, as powers of two; more where the weights reach further."""
MAX_WEIGHTS = 1 << 24
"""Log weights of n that are kept, of all rows together."""

_POOLED_LOW = -80  # row-specific theta moves the rates of a pair further down
_WIDEST = 120  # octaves either way that float32 holds
_CHUNK = 1 << 18  # values mapped at once

Mapping = Callable[[FloatArray], FloatArray]


class Tabulated(NamedTuple):
    """Tables in the making; see ``CountTables``."""

    arrays: TableArrays
    locate: Mapping
    constant: float
    max_log2_rate: FloatArray
    row_coordinates: NDArray[np.float32] | None = None


class Values:
    """The values of all workers, of which each has its own at hand."""

    def __init__(self, own: FloatArray, comm: Collective) -> None:
        self._own, self._comm = own, comm
        self.n_all = sum_scalar(comm, float(len(own)))

    def map(self, function: Mapping) -> NDArray[np.float32]:
        """Apply a function chunk by chunk, so that no float64 array of all entries is made."""
        out = np.empty(len(self._own), np.float32)
        for part in chunks(len(self._own)):
            out[part] = function(np.asarray(self._own[part], dtype=np.float64))
        return out

    def total(self, function: Mapping) -> float:
        """Return the sum of a function over the worker's own values."""
        return float(sum(np.sum(function(part)) for part in self._parts()))

    def range(self, function: Mapping) -> FloatArray:
        """Return the least and the largest value of a function over all values."""
        low, high = np.inf, -np.inf
        for part in self._parts():
            mapped = function(part)
            low, high = min(low, mapped.min()), max(high, mapped.max())
        low, high = self._comm.max(np.array([-low, high]))
        return np.array([-low, high])

    def distinct(self, max_values: int | None = None) -> FloatArray:
        """Return the sorted distinct values; only some if there are more than ``max_values``."""
        found = np.zeros(0)
        for part in chunks(len(self._own)):
            found = np.union1d(found, self._own[part])
            if max_values is not None and len(found) > max_values:
                break
        return np.unique(self._comm.gather(found))

    def _parts(self) -> Iterator[FloatArray]:
        return (np.asarray(self._own[part], np.float64) for part in chunks(len(self._own)))


def number_values(distinct: FloatArray, y: FloatArray) -> FloatArray:
    """Return the positions of values among the distinct ones; NaN for others."""
    position = np.minimum(np.searchsorted(distinct, y), len(distinct) - 1)
    return np.where(distinct[position] == y, position, np.nan)


def last_count(element: Element, y: FloatArray, log2_rate: FloatArray) -> FloatArray:
    """Return the n beyond which no term counts at a rate."""
    top = sum_over_n(element, y, 2.0**log2_rate)
    return np.ceil(top.mean + 13.0 * np.sqrt(np.maximum(top.second - top.mean**2, 0.0)) + 24.0)


def chunks(size: int) -> list[slice]:
    """Return slices of arrays of a size, so that no large temporary arrays are made."""
    return [slice(start, start + _CHUNK) for start in range(0, size, _CHUNK)]


def octaves_of(value_model: ValueModel, log2_rate: float) -> tuple[int, int]:
    """The powers of two that the table runs over."""
    low = OCTAVES[0] if value_model.vary_by is None else _POOLED_LOW
    return low, max(OCTAVES[1], int(np.ceil(log2_rate)))


def nodes_of(low: int, high: int) -> FloatArray:
    """Return the rates that are tabulated between two powers of two."""
    low, high = max(low, -_WIDEST), min(high, _WIDEST)
    mantissa = 1.0 + np.arange(PER_OCTAVE) / PER_OCTAVE
    octaves = 2.0 ** np.arange(low, high)
    return np.append((octaves[:, None] * mantissa).ravel(), 2.0**high)


def pack(
    mode: int,
    series: FloatArray,
    start: np.ndarray,
    least: FloatArray,
    more: NDArray[np.bool_],
    octaves: tuple[int, int] | None = None,
    tables: tuple[FloatArray, FloatArray] | None = None,
) -> TableArrays:
    """Put together the kernels' arrays; without tables no rate lies inside them."""
    low, high = np.inf, np.inf
    first = 0
    if octaves is not None:
        first = max(octaves[0], -_WIDEST)
        low, high = 2.0**first, 2.0 ** min(octaves[1], _WIDEST)
    means, log_table = tables or (np.zeros((1, 1, 4)), np.zeros((1, 1, 4)))
    mean_table = aligned_zeros(*means.shape)  # so that no piece lies on two cache lines
    mean_table[:] = means
    return TableArrays(
        mode=mode,
        first_code=(first + 127) * PER_OCTAVE,
        x_low=np.float32(low),
        x_high=np.float32(high),
        mean_table=mean_table,
        log_table=log_table,
        least=np.asarray(least, dtype=np.float64),
        start=start,
        more=np.asarray(more, dtype=np.bool_),
        series=series,
        phi=np.zeros(1),
        places=np.zeros(1),
        sign=0.0,
    )
