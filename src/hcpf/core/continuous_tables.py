"""Count tables of continuous elements with many values: one row for all of them, or a grid.

They are separable: log p(y | n) = f(n) + g(y) phi(n) + c(y).
"""

import logging

import numpy as np
from scipy import special

from hcpf._types import FloatArray
from hcpf.core.kernels import DIRECT, GRID, SHIFT, TableArrays
from hcpf.core.tabulation import (
    MAX_WEIGHTS,
    OCTAVES,
    AllValues,
    Tabulated,
    ValueFunction,
    last_count,
    nodes_of,
    number_values,
    octaves_of,
    pack,
    tabulate_grid,
    tabulate_rows,
)
from hcpf.core.value_model import ValueModel
from hcpf.elements.base import Element, Separable

logger = logging.getLogger("hcpf")

_MOST_NUMBERS = 1 << 24  # integers that float32 can tell apart
_NEGLIGIBLE_G = 1e-10  # largest |g(y) phi(n)| that is treated as 0
_LARGEST_SHIFT = 60.0  # largest |log coordinate|; float32 could overflow above it


def tabulate_separable(
    value_model: ValueModel,
    form: Separable,
    values: AllValues,
    max_count: int | None,
    max_log2_rate: FloatArray | None,
) -> Tabulated:
    """Tabulate one row for all values, or a grid of rows; or nothing where n is all but known."""
    element = value_model.element
    largest = np.full(1, float(OCTAVES[1])) if max_log2_rate is None else max_log2_rate
    extremes = values.range(lambda y: y)
    n, more = _counts(element, extremes, max_count, float(largest[0]))
    weights = form.f(n) - special.gammaln(n + 1.0)
    # The term of n = 1 goes into the constant, in float64: what g multiplies is then small.
    phi, first = form.phi(n) - form.phi(n[:1]), float(form.phi(n[:1])[0])
    g_range = values.range(form.g)
    proportional = np.array_equal(phi, n - 1.0)
    octaves = octaves_of(value_model, float(largest[0]))
    found = None
    # phi(n) = n makes exp(g) a factor of the rate. A grid over log |g| needs a g of one sign.
    if proportional and np.ptp(g_range) < 2.0 * _LARGEST_SHIFT:
        found = _shift(form, n, weights, g_range, octaves)
    elif not proportional and g_range[0] * g_range[1] >= 0.0:
        found = _grid(form, values, weights, phi, float(np.sign(g_range.sum())), octaves)
    arrays, locate = _direct(form, values, weights) if found is None else found
    arrays = arrays._replace(phi=phi, more=np.array([more]))
    # The coordinate of SHIFT holds n g(y) with the term of n = 1, so it is not in the constant.
    offset = 0.0 if arrays.mode == SHIFT else first
    constant = values.total(lambda y: form.c(y) + offset * form.g(y))
    return Tabulated(arrays, locate, constant, largest)


def _counts(
    element: Element, extremes: FloatArray, max_count: int | None, log2_rate: float
) -> tuple[FloatArray, bool]:
    """N = 1, 2, ... up to where no term counts at the top rate, and whether more could follow."""
    # Two octaves more, because the last node of a shifted table lies up to that far beyond.
    last = float(last_count(element, extremes, np.full(2, log2_rate + 2.0)).max())
    if last > MAX_WEIGHTS:
        logger.warning("Rates are so large that n is summed up to %d only.", MAX_WEIGHTS)
    last = min(last, float(MAX_WEIGHTS))
    if max_count is not None and max_count <= last:
        return np.arange(1.0, max_count + 1.0), False
    return np.arange(1.0, last + 1.0), True


def _shift(
    form: Separable,
    n: FloatArray,
    weights: FloatArray,
    g_range: FloatArray,
    octaves: tuple[int, int],
) -> tuple[TableArrays, ValueFunction]:
    center = 0.5 * float(g_range.sum())
    # The row is read at x exp(g - center): half the range of g further in both directions.
    margin = int(np.ceil(0.5 * np.ptp(g_range) / np.log(2.0))) + 1
    octaves = octaves[0] - margin, octaves[1] + margin
    series, start, one = weights + n * center, np.array([0, len(n)]), np.ones(1)
    tables = tabulate_rows(series, start, one, nodes_of(*octaves))
    arrays = pack(SHIFT, series, start, one, np.ones(1, np.bool_), octaves, tables)

    def locate(y: FloatArray) -> FloatArray:
        return np.exp(_inside(form.g(y), g_range) - center)

    return arrays, locate


def _grid(
    form: Separable,
    values: AllValues,
    weights: FloatArray,
    phi: FloatArray,
    sign: float,
    octaves: tuple[int, int],
) -> tuple[TableArrays, ValueFunction] | None:
    smallest = _NEGLIGIBLE_G / max(float(np.abs(phi).max()), 1.0)

    def log_size(y: FloatArray) -> FloatArray:
        return np.log(np.maximum(np.abs(form.g(y)), smallest))

    ends = values.range(log_size)
    found = tabulate_grid(weights, phi, sign, (float(ends[0]), float(ends[1])), nodes_of(*octaves))
    if found is None:
        return None
    log_g, *tables = found
    rows, start = len(log_g), np.array([0, len(weights)])
    arrays = pack(
        GRID, weights, start, np.ones(1), np.ones(1, np.bool_), octaves, (tables[0], tables[1])
    )
    # The largest coordinate: its integer part numbers one of the rows - 1 intervals.
    top = np.nextafter(np.float32(rows - 1), np.float32(0))

    def locate(y: FloatArray) -> FloatArray:
        size = np.where(sign * form.g(y) >= 0.0, _inside(log_size(y), ends), np.nan)
        return np.minimum(np.interp(size, log_g, np.arange(rows)), top)

    return arrays._replace(places=log_g, sign=sign), locate


def _direct(
    form: Separable, values: AllValues, weights: FloatArray
) -> tuple[TableArrays, ValueFunction]:
    # Values are known by their number, since g itself may need more digits than float32 has.
    distinct = values.distinct()
    step = -(-len(distinct) // _MOST_NUMBERS)
    distinct = distinct[::step]
    start = np.array([0, len(weights)])
    arrays = pack(DIRECT, weights, start, np.ones(1), np.ones(1, np.bool_))

    def locate(y: FloatArray) -> FloatArray:
        if step == 1:
            return number_values(distinct, y)
        return np.searchsorted(distinct, y, side="right").astype(np.float64) - 1.0

    return arrays._replace(places=form.g(distinct)), locate


def _inside(numbers: FloatArray, ends: FloatArray) -> FloatArray:
    """Return numbers, NaN for those that lie beyond the ends by more than rounding."""
    spare = 1e-9 * (1.0 + np.abs(ends).max())
    is_inside = (numbers >= ends[0] - spare) & (numbers <= ends[1] + spare)
    return np.where(is_inside, numbers, np.nan)
