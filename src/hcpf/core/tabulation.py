"""What all count tables are built from: values, nodes, direct sums, and cubic pieces of them."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core import kernels
from hcpf.core.collective import Collective, sum_scalar
from hcpf.core.kernels import TableArrays, aligned_zeros
from hcpf.core.threads import run_in_parallel
from hcpf.core.value_model import ValueModel
from hcpf.distributions.series import MAX_LOG_TERM, last_term, most_likely_count
from hcpf.elements.base import Element
from hcpf.errors import SupportError

# The kernels number a piece by the exponent and the first three bits of the mantissa of a float32
# rate (bits >> 20): another number needs another shift in kernels/vector.py, bound.py and count.py.
PER_OCTAVE = 8
OCTAVES = (-40, 8)
"""The rates tabulated, as powers of two; more where the weights reach further."""
MAX_WEIGHTS = 1 << 24
"""Log weights of n that are kept, of all rows together."""

_POOLED_LOW = -80  # row-specific theta moves the rates of a pair further down
_WIDEST = 120  # octaves in each direction that float32 can represent
_CHUNK = 1 << 18  # values mapped at once
_LEAST_TERM, _MORE_TERMS = -85.0, 24.0
"""Log of the last stored term at the largest rate, relative to the mode (a sum stops at -34), and
how many are stored beyond it."""

ValueFunction = Callable[[FloatArray], FloatArray]


class Tabulated(NamedTuple):
    """Tables in the making; see ``CountTables``."""

    arrays: TableArrays
    locate: ValueFunction
    constant: float
    max_log2_rate: FloatArray
    row_coordinates: NDArray[np.float32] | None = None


class AllValues:
    """The values of all workers, of which each has its own at hand."""

    def __init__(self, own: FloatArray, comm: Collective) -> None:
        self._own, self._comm = own, comm
        self.n_all = sum_scalar(comm, float(len(own)))

    def map(self, function: ValueFunction) -> NDArray[np.float32]:
        """Apply a function chunk by chunk, so that no float64 array of all entries is made."""
        out = np.empty(len(self._own), np.float32)
        for part in chunks(len(self._own)):
            out[part] = function(np.asarray(self._own[part], dtype=np.float64))
        return out

    def total(self, function: ValueFunction, *, discrete: bool = False) -> float:
        """Return the sum of a function over the worker's own values.

        Of discrete values those that are equal are evaluated once per chunk.
        """
        if not discrete:
            return float(sum(np.sum(function(part)) for part in self._parts()))
        counted = (np.unique(part, return_counts=True) for part in self._parts())
        return float(sum(np.sum(function(values) * counts) for values, counts in counted))

    def range(self, function: ValueFunction) -> FloatArray:
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
    """Return the n beyond which no term counts at a rate, or at somewhat larger ones.

    Raise a SupportError for values so improbable that rounding hides how n explains them.
    """
    if not element.support.discrete:
        _require_explained(element, y)
    return last_term(element, y, 2.0**log2_rate, _LEAST_TERM) + _MORE_TERMS


def _require_explained(element: Element, y: FloatArray) -> None:
    count = most_likely_count(element, y, np.full_like(y, 2.0**_POOLED_LOW))
    is_beyond = element.log_density_unchecked(y, count) <= -MAX_LOG_TERM
    if np.any(is_beyond):
        raise SupportError(
            f"{element!r} cannot explain a value of {y[np.argmax(is_beyond)]:g}, which is too many "
            f"times its mean, {float(element.mean):g}. Rescale the values, or choose an element "
            "whose mean is of their size."
        )


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
        first_code=(first + 127) * PER_OCTAVE,  # 127 is the bias of a float32 exponent
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


_TOLERANCE, _LARGE_SHARE = 2e-6, 0.01
"""Error of E[n] (relative) and of log Z between two rows of a grid. That of a log Z above 100 is
relative, too: one of a million would need a row for every tenth of a percent of y."""
_MOST_ROWS = 512  # rows of a grid
_ROWS_AT_ONCE = 16  # rows whose pieces are computed together


def tabulate_rows(
    series: FloatArray, start: np.ndarray, least: FloatArray, nodes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Cubic pieces of E[n] and of log(sum / x^least), for each row of weights."""
    both = sum_rows(series, start, least, nodes)
    return cubic_pieces(nodes, both[0]), cubic_pieces(nodes, both[1])


def sum_rows(
    series: FloatArray, start: np.ndarray, least: FloatArray, nodes: FloatArray
) -> FloatArray:
    """E[n] and log(sum / x^least) with their slopes in log x, shape (2, 4, rows, nodes).

    The last two of four, derivatives across the rows of a grid, are 0.
    """
    rows = len(least)
    both = np.empty((2, 4, rows, nodes.size))
    nothing = np.zeros(1)
    owner = np.arange(rows)
    arguments = series, start, owner, nothing, np.zeros(rows), np.log(nodes)
    run_in_parallel(kernels.tabulate, rows, *arguments, *both)
    both[0, 0] += least[:, None] - 1.0  # the kernel counts n from 1
    return both


def tabulate_grid(
    series: FloatArray, phi: FloatArray, sign: float, ends: tuple[float, float], nodes: FloatArray
) -> tuple[FloatArray, NDArray[Any], FloatArray] | None:
    """Rows of log |g|, and the bicubic pieces of E[n] and of log(sum / x) between them.

    An interval between two rows is halved until the cubic across it meets the direct sum in its
    middle at all nodes. None where that takes too many rows: where a small change of g moves n
    from one integer to the next, a table does not pay.
    """
    log_x, start = np.log(nodes), np.array([0, len(series)])

    def rows_at(log_g: FloatArray) -> FloatArray:
        both = np.empty((2, 4, len(log_g), nodes.size))
        owner = np.zeros(len(log_g), dtype=np.int64)
        arguments = series, start, owner, phi, sign * np.exp(log_g), log_x
        run_in_parallel(kernels.tabulate, len(log_g), *arguments, *both)
        return both

    low, high = ends
    # At least one interval, even where all g are equal: a coordinate lies between two rows.
    log_g = np.linspace(low, max(high, low + 0.5), max(int(2 * (high - low)), 1) + 1)
    values, rough = rows_at(log_g), np.arange(len(log_g) - 1)
    while len(rough):
        if len(log_g) + len(rough) > _MOST_ROWS:
            return None
        middle = 0.5 * (log_g[rough] + log_g[rough + 1])
        found = rows_at(middle)
        bad = _misses(values, rough, np.diff(log_g)[rough], found)
        rough, place = rough[bad], rough[bad] + 1
        log_g = np.insert(log_g, place, middle[bad])
        values = np.insert(values, place, found[:, :, bad], axis=2)
        left = rough + np.arange(len(rough))  # where the halved intervals are now
        rough = np.sort(np.concatenate([left, left + 1]))
    steps = np.diff(log_g)
    means = bicubic_pieces(nodes, values[0], steps, np.float32)
    return log_g, means, bicubic_pieces(nodes, values[1], steps)


def _misses(
    values: FloatArray, left: np.ndarray, step: FloatArray, found: FloatArray
) -> np.ndarray:
    """Whether the cubics across some intervals miss what was found in their middle."""
    f0, f1 = values[:, 0, left], values[:, 0, left + 1]
    d0, d1 = values[:, 2, left], values[:, 2, left + 1]
    # In its middle a Hermite cubic is (f0 + f1) / 2 + step (d0 - d1) / 8.
    error = np.abs(0.5 * (f0 + f1) + 0.125 * step[:, None] * (d0 - d1) - found[:, 0])
    error[0] /= found[0, 0]
    error[1] /= 1.0 + _LARGE_SHARE * np.abs(found[1, 0])
    return np.any(error > _TOLERANCE, axis=(0, 2))


def cubic_pieces(nodes: FloatArray, values: FloatArray) -> FloatArray:
    """Return cubic coefficients per row and segment, from values and slopes.

    ``values`` holds f and df/dlog x at (row, node); the local coordinate of a segment runs from 0
    to 1 linearly in x.
    """
    width = np.diff(nodes)
    # df/dt = df/dlog x * width / x, at both ends of a segment.
    left, right = width / nodes[:-1], width / nodes[1:]
    f, slope = values[0], values[1]
    return _cubic(f[:, :-1], f[:, 1:], slope[:, :-1] * left, slope[:, 1:] * right)


def bicubic_pieces(
    nodes: FloatArray, values: FloatArray, row_steps: FloatArray, kind: type = np.float64
) -> NDArray[Any]:
    """Return bicubic coefficients per segment between two rows, as numbers of some kind.

    ``values`` holds f, df/dlog x, df/dlog g and the mixed derivative at (row, node); the local
    coordinate across rows is linear in log g.
    """
    out = np.empty((len(row_steps), len(nodes) - 1, 16), kind)
    for first in range(0, len(row_steps), _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        rows = values[:, part.start : part.stop + 1]
        main, across = cubic_pieces(nodes, rows[:2]), cubic_pieces(nodes, rows[2:])
        across_steps = row_steps[part, None, None]
        # (row, segment, power of s, power of t), as the kernel reads them
        pieces = _cubic(
            main[:-1], main[1:], across[:-1] * across_steps, across[1:] * across_steps, axis=-2
        )
        out[part] = pieces.reshape(*pieces.shape[:2], 16)
    return out


def _cubic(
    f0: FloatArray, f1: FloatArray, d0: FloatArray, d1: FloatArray, axis: int = -1
) -> FloatArray:
    """Coefficients of the cubic on [0, 1] with the given end values and slopes, along an axis."""
    coefficients = f0, d0, 3.0 * (f1 - f0) - 2.0 * d0 - d1, 2.0 * (f0 - f1) + d0 + d1
    return np.stack(coefficients, axis=axis)
