"""The arrays and constants that the kernels share."""

import math
from typing import NamedTuple

import numpy as np

KNOWN, ROWS, SHIFT, GRID, DIRECT = 0, 1, 2, 3, 4
"""The modes of the count tables; see ``hcpf.core.count_tables``."""

LANES = 16
"""float32 values in a vector, and in a cache line of 64 bytes."""

TINY_DOT = np.float32(1e-26)
"""A scaled dot product below this is redone in logarithms: products of float32 below 1e-38 vanish,
and K of them may be missing from it."""

MULTIPLIER, CROSS, WEIGHT = 0, 1, 1
"""Columns of ``Factors.row_terms``: float32 columns 0 and 1, and float64 column 1 of the same 16
bytes, which are the float32 columns 2 and 3."""

COUNT, CUT, CROSS_COUNT, VALUE_SUM = 0, 1, 2, 3
"""Columns of ``Sums.counts``, per row: the sum of E[n]; the number of entries whose series was cut
short; the sum of E[n] x_i (of x_i in a hurdle model); the sum of y_ui weight_i."""

NEGLIGIBLE = -34.0
"""Log of a term of a sum over n, relative to the largest, below which it is dropped: 2e-15."""


class Entries(NamedTuple):
    """Stored entries by row: row r holds positions start[r] to stop[r]."""

    start: np.ndarray
    stop: np.ndarray
    index: np.ndarray
    coordinate: np.ndarray
    value: np.ndarray  # float32, in units of ``Values.unit``; empty where no theta weighs values


class Factors(NamedTuple):
    """The variational parameters of the rows of one axis, in the form the kernels use."""

    a: np.ndarray  # shapes a^s_uk
    mean: np.ndarray  # E[s_uk] = a / b
    g: np.ndarray  # exp(E log s_uk), rows that might underflow scaled to a maximum of 1; padded
    log_scale: np.ndarray  # the log of that scale, float64
    shift: np.ndarray  # what the element adds to the log rate in this row (float64)
    activity_b: np.ndarray  # b^r_u
    exposure: np.ndarray  # e_u: a, mean and g are those of e_u s_uk (float64)
    count: np.ndarray  # sum of E[n] over the row's entries, from the last half-step
    cross_count: np.ndarray  # sum of E[n] x_i, or of x_i, over the row's entries
    value_sum: np.ndarray  # sum of y_ui weight_i over the row's entries, where there are values
    row_terms: np.ndarray  # multiplier, x_u and weight, side by side: see ``kernels/__init__.py``

    @property
    def multiplier(self) -> np.ndarray:
        """exp(log_scale + shift), which a dot product is multiplied with; 0 or inf if too far."""
        return self.row_terms[:, MULTIPLIER]

    @property
    def cross(self) -> np.ndarray:
        """x_u: a pair adds tables.cross x_u x_i to its log rate."""
        return self.row_terms[:, CROSS]

    @property
    def weight(self) -> np.ndarray:
        """What a value is multiplied with in the sums for theta of the other axis."""
        return self.row_terms.view(np.float64)[:, WEIGHT]


class TableArrays(NamedTuple):
    """Where E[n] and log Z come from; see ``hcpf.core.count_tables``."""

    mode: int
    first_code: int  # bits of the first node's float, shifted
    x_low: np.float32
    x_high: np.float32
    mean_table: np.ndarray  # (rows, segments, 4 or 16) cubic coefficients, float32
    log_table: np.ndarray  # the same for log of the sum over x^least, float64
    least: np.ndarray  # per row of weights: the least n
    start: np.ndarray  # per row of weights: where it begins in `series`, and the end of the last
    more: np.ndarray  # per row of weights: whether n goes on beyond it
    series: np.ndarray  # log weights without n log x, for n = least, least + 1, ...
    phi: np.ndarray  # GRID, DIRECT: phi(n) - phi(1) for n = 1, 2, ...
    places: np.ndarray  # GRID: log |g| or log(1 + y) of the rows; DIRECT: g of distinct values
    sign: float  # GRID: sign of g; 0 where the rows are values with separate weights
    cross: float = 0.0  # factor of x_u x_i in the log rate; 0 unless both axes are pooled
    is_hurdle: bool = False  # whether an entry adds x_i to its cross count, not E[n] x_i


class Prior(NamedTuple):
    """Constants of a half-step."""

    shape: float  # eta
    activity_a: float  # rho + K eta
    activity_rate: float  # rho / varrho
    step: float  # 1 for coordinate ascent, else the step of the natural gradient
    scale: float  # how many times the entries count: tempering, times users / batch in SVI


class ListedPairs(NamedTuple):
    """Pairs whose means enter the rates one by one: excluded (-1) or the observed ones (+1)."""

    start: np.ndarray
    stop: np.ndarray
    index: np.ndarray
    sign: float


class Sums(NamedTuple):
    """What the entries of each of some rows add up to, and memory to work in.

    Python allocates it: a kernel that does would count references to all arrays.
    """

    totals: np.ndarray  # sum of E[n] / dot times the other axis' g, float64, as wide as that
    counts: np.ndarray  # columns COUNT, CUT, CROSS_COUNT and VALUE_SUM
    slow: np.ndarray  # whether some entry could not be summed so
    rates: np.ndarray  # b without the activity, float64, as wide as g
    column_sum: np.ndarray  # sum of the rows' means, float32
    acc: np.ndarray  # zeros: ``totals`` of one row, float32
    fours: np.ndarray  # zeros: ``counts`` of one row, per lane
    shares: np.ndarray  # per component, for a row on the slow path
    some: np.ndarray  # four zeros, in place of fewer entries

    @classmethod
    def of(cls, rows: int, size: int) -> "Sums":
        """Return memory for so many rows of ``size`` components."""
        width = padded(size)
        return cls(
            np.zeros((rows, width)), np.empty((rows, 4)), np.ones(rows, np.bool_),
            np.zeros((rows, width)), np.zeros(width, np.float32), np.zeros(width, np.float32),
            np.zeros((4, 4)), np.empty(size), np.zeros(4, np.int32),
        )  # fmt: skip


def padded_rows(rows: int, size: int) -> np.ndarray:
    """Zeros of shape (rows, size up to the next multiple of LANES), on cache-line boundaries."""
    return aligned_zeros(rows, padded(size))


def aligned_zeros(*shape: int) -> np.ndarray:
    """float32 zeros that begin on a cache line."""
    line, size = 4 * LANES, 4 * math.prod(shape)
    memory = np.zeros(size + line, np.uint8)
    begin = -memory.ctypes.data % line
    return memory[begin : begin + size].view(np.float32).reshape(shape)


def padded(size: int) -> int:
    """The next multiple of LANES."""
    return -(-size // LANES) * LANES
