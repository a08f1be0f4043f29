r"""The local step: E[n] and log Z of every entry, as tables in the rate.

The optimal q(n) of an entry is proportional to :math:`p(y \mid n)\,\tilde\Lambda^n/n!`. For a fixed
value y both E[n] and log Z are smooth functions of the rate, so they are tabulated once, by direct
summation, on a grid of eight nodes per octave, and read back by cubic Hermite interpolation, which
is as accurate as float32. Five modes cover all elements:

* ``KNOWN``: n follows from y (the degenerate element);
* ``ROWS``: one table row per distinct value (discrete elements, and any with few values);
* ``SHIFT``: phi(n) = n, so g(y) only scales the rate and one row serves all (gamma);
* ``GRID``: rows at some log |g(y)|, interpolated across rows too (normal, inverse Gaussian);
* ``DIRECT``: no table. For elements so concentrated that n is all but known: a small change of y
  moves it from one whole number to the next, and few terms of the sum count.

A rate outside the table is summed directly by the kernel.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hcpf._types import FloatArray
from hcpf.core.kernels import DIRECT, GRID, KNOWN, ROWS, SHIFT, Local, aligned_zeros
from hcpf.core.tabulation import tabulate_grid, tabulate_rows
from hcpf.core.value_model import ValueModel
from hcpf.distributions.series import sum_over_n
from hcpf.elements.base import Element, Separable
from hcpf.errors import ParameterError

logger = logging.getLogger("hcpf")

PER_OCTAVE = 8
OCTAVES = (-40, 8)
"""The rates tabulated, as powers of two; more where the weights reach further."""
_VARYING_LOW = -80  # a theta of its own moves the rates of a pair further down

_WIDEST = 120  # octaves either way that float32 holds
FURTHER = 3.0
"""Octaves to spare when larger rates are served than are now."""
_FURTHEST = 26.0  # octaves at most
_MOST_WEIGHTS = 1 << 24
_FEW_WEIGHTS = 1 << 22  # that all rows may have, so that the table serves the largest rate
_MOST_NUMBERS = 1 << 24  # that float32 tells apart
_NEGLIGIBLE_G = 1e-10  # of g(y) phi(n)
_LARGEST_SHIFT = 60.0  # of log coordinate, beyond which float32 could overflow
_CHUNK = 1 << 18  # values mapped at once
_FEW_VALUES = 64  # distinct ones that a continuous element gets a table row for each of
_MANY_VALUES = 1024  # the same, where the alternative is to sum every entry directly

Mapping = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class LocalStep:
    """The kernels' tables for one element and one set of values."""

    local: Local
    coordinate: np.ndarray  # float32, one per entry
    slope: float  # the element's slope_of that the tables hold; another one shifts the log rates
    constant: float  # sum over the entries of what does not depend on n
    reach: FloatArray  # log2 of the largest rate, in the tables' scale, that the weights serve

    def reach_for(self, log_rate: FloatArray, entry: NDArray[np.int64]) -> FloatArray:
        """The reach that serves some entries at these log rates, with some to spare."""
        row = np.zeros(len(log_rate), dtype=np.int64)
        if self.local.mode == ROWS:
            row = self.coordinate[entry].astype(np.int64)
        needed = np.full_like(self.reach, OCTAVES[1])
        np.maximum.at(needed, row, log_rate / np.log(2.0))
        return np.where(needed > OCTAVES[1], np.minimum(needed + FURTHER, _FURTHEST), needed)


def slope_of(value_model: ValueModel) -> float:
    r"""What the element adds to log q(n) per unit of n, :math:`-\kappa\Psi(\theta)`; or nothing."""
    return 0.0 if value_model.hurdle else log_normaliser(value_model.element)


def log_normaliser(element: Element) -> float:
    r"""What normalises the density of one element, :math:`-\kappa\Psi(\theta)`."""
    return float(-element.kappa * element.log_partition(element.theta))


def local_step(
    value_model: ValueModel,
    values: FloatArray,
    most: int | None = None,
    reach: FloatArray | None = None,
) -> LocalStep:
    """Tabulate E[n] and log Z for the value model over the given values.

    ``most`` truncates n as the paper's N_tr does; by default every n that counts is summed.
    """
    if value_model.hurdle:
        return _hurdle(value_model, values, most, reach)
    element = value_model.element
    form = None if element.support.discrete else element.form
    distinct = _distinct(values, None if form is None else _MANY_VALUES)
    if isinstance(form, Separable) and len(distinct) > _FEW_VALUES:
        found = _separable(value_model, form, values, most, reach)
        if found.local.mode != DIRECT or len(distinct) > _MANY_VALUES:
            return found
    least, greatest = element.n_range(distinct)
    if np.array_equal(least, greatest):
        return _known(value_model, values)
    if most is not None and least.max() > most:
        raise ParameterError(
            f"n_truncation={most} is too small: the value {distinct[least.argmax()]:g} needs at "
            f"least n = {least.max():g}."
        )
    return _rows(value_model, values, distinct, most, reach)


# -- values that n has no part in -----------------------------------------------------------------


def _hurdle(
    value_model: ValueModel, values: FloatArray, most: int | None, reach: FloatArray | None
) -> LocalStep:
    reach = np.full(1, float(OCTAVES[1])) if reach is None else reach
    top = 2.0 ** float(reach[0])
    last = min(float(np.ceil(top + 13.0 * np.sqrt(top) + 24.0)), float(_MOST_WEIGHTS))
    n = np.arange(1.0, (last if most is None else min(last, most)) + 1.0)
    series, start, one = -special.gammaln(n + 1.0), np.array([0, len(n)]), np.ones(1)
    octaves = _octaves(value_model, float(reach[0]))
    tables = tabulate_rows(series, start, one, _nodes(*octaves))
    more = np.array([most is None or last < most])
    local = _pack(ROWS, series, start, one, more, octaves, tables)
    element = value_model.element
    constant = _total(values, lambda y: element.log_density_unchecked(y, np.ones_like(y)))
    return LocalStep(local, np.zeros(len(values), np.float32), 0.0, constant, reach)


# -- few values, or discrete elements -------------------------------------------------------------


def _known(value_model: ValueModel, values: FloatArray) -> LocalStep:
    element = value_model.element

    def constant(y: FloatArray) -> FloatArray:
        n = element.n_range(y)[0]
        return element.log_density_unchecked(y, n) - special.gammaln(n + 1.0)

    local = _pack(KNOWN, np.zeros(1), np.array([0, 1]), np.ones(1), np.zeros(1, np.bool_))
    coordinate = _map(values, lambda y: element.n_range(y)[0])
    total = _total(values, constant)
    return LocalStep(local, coordinate, slope_of(value_model), total, np.zeros(1))


def _rows(
    value_model: ValueModel,
    values: FloatArray,
    distinct: FloatArray,
    truncate: int | None,
    reach: FloatArray | None,
) -> LocalStep:
    element = value_model.element
    reach = np.broadcast_to(float(OCTAVES[1]) if reach is None else reach, distinct.shape).copy()
    top = float(reach.max())
    if top > OCTAVES[1] and len(distinct) * 2.0**top <= _FEW_WEIGHTS:
        reach = np.full(len(distinct), top)
    else:
        top = float(OCTAVES[1])
    least, most = element.n_range(distinct)
    most = most if truncate is None else np.minimum(most, truncate)
    last = np.minimum(_last_count(element, distinct, reach), most)
    allowed = least + _MOST_WEIGHTS // len(distinct)
    if np.any(last > allowed):
        logger.warning("Rates are so large that n is summed up to %d only.", allowed.min())
        last = np.minimum(last, allowed)
    lengths = (last - least + 1.0).astype(np.int64)
    start = np.concatenate([[0], np.cumsum(lengths)])
    n = np.arange(start[-1]) - np.repeat(start[:-1] - least, lengths)
    y = np.repeat(distinct, lengths)
    series = np.empty(len(n))
    for part in _chunks(len(n)):
        density = element.log_density_unchecked(y[part], n[part])
        series[part] = density - special.gammaln(n[part] + 1.0)
    octaves = _octaves(value_model, top)
    tables = tabulate_rows(series, start, least, _nodes(*octaves))
    local = _pack(ROWS, series, start, least, last < most, octaves, tables)
    coordinate = _map(values, lambda y: np.searchsorted(distinct, y).astype(np.float64))
    return LocalStep(local, coordinate, slope_of(value_model), 0.0, reach)


def _last_count(element: Element, y: FloatArray, reach: FloatArray) -> FloatArray:
    """The n beyond which no term counts at the rate 2^reach."""
    top = sum_over_n(element, y, 2.0**reach)
    return np.ceil(top.mean + 13.0 * np.sqrt(np.maximum(top.second - top.mean**2, 0.0)) + 24.0)


# -- continuous elements with many values ---------------------------------------------------------


def _separable(
    value_model: ValueModel,
    form: Separable,
    values: FloatArray,
    truncate: int | None,
    reach: FloatArray | None,
) -> LocalStep:
    element = value_model.element
    reach = np.full(1, float(OCTAVES[1])) if reach is None else reach
    n, more = _counts(element, np.array([values.min(), values.max()]), truncate, float(reach[0]))
    weights = form.f(n) - special.gammaln(n + 1.0)
    # The term of n = 1 goes into the constant, in float64: what g multiplies is then small.
    phi, first = form.phi(n) - form.phi(n[:1]), float(form.phi(n[:1])[0])
    g_range = _range(values, form.g)
    proportional = np.array_equal(phi, n - 1.0)
    octaves = _octaves(value_model, float(reach[0]))
    found = None
    if proportional and np.ptp(g_range) < 2.0 * _LARGEST_SHIFT:
        found = _shift(form, values, n, weights, g_range, octaves)
    elif not proportional and g_range[0] * g_range[1] >= 0.0:
        found = _grid(form, values, weights, phi, float(np.sign(g_range.sum())), octaves)
    local, coordinate = _direct(form, values, weights) if found is None else found
    local = local._replace(phi=phi, more=np.array([more]))
    offset = 0.0 if local.mode == SHIFT else first
    constant = _total(values, lambda y: form.c(y) + offset * form.g(y))
    return LocalStep(local, coordinate, slope_of(value_model), constant, reach)


def _counts(
    element: Element, extremes: FloatArray, truncate: int | None, reach: float
) -> tuple[FloatArray, bool]:
    """N = 1, 2, ... up to where no term counts at the top rate, and whether more could follow."""
    # Two octaves more, because the last node of a shifted table lies up to that far beyond.
    last = float(_last_count(element, extremes, np.full(2, reach + 2.0)).max())
    if last > _MOST_WEIGHTS:
        logger.warning("Rates are so large that n is summed up to %d only.", _MOST_WEIGHTS)
    last = min(last, float(_MOST_WEIGHTS))
    if truncate is not None and truncate <= last:
        return np.arange(1.0, truncate + 1.0), False
    return np.arange(1.0, last + 1.0), True


def _shift(
    form: Separable,
    values: FloatArray,
    n: FloatArray,
    weights: FloatArray,
    g_range: FloatArray,
    octaves: tuple[int, int],
) -> tuple[Local, NDArray[np.float32]]:
    centre = 0.5 * float(g_range.sum())
    margin = int(np.ceil(0.5 * np.ptp(g_range) / np.log(2.0))) + 1
    octaves = octaves[0] - margin, octaves[1] + margin
    series, start, one = weights + n * centre, np.array([0, len(n)]), np.ones(1)
    tables = tabulate_rows(series, start, one, _nodes(*octaves))
    local = _pack(SHIFT, series, start, one, np.ones(1, np.bool_), octaves, tables)
    return local, _map(values, lambda y: np.exp(form.g(y) - centre))


def _grid(
    form: Separable,
    values: FloatArray,
    weights: FloatArray,
    phi: FloatArray,
    sign: float,
    octaves: tuple[int, int],
) -> tuple[Local, NDArray[np.float32]] | None:
    smallest = _NEGLIGIBLE_G / max(float(np.abs(phi).max()), 1.0)

    def log_size(y: FloatArray) -> FloatArray:
        return np.log(np.maximum(np.abs(form.g(y)), smallest))

    low, high = _range(values, log_size)
    found = tabulate_grid(weights, phi, sign, (float(low), float(high)), _nodes(*octaves))
    if found is None:
        return None
    log_g, *tables = found
    rows, start = len(log_g), np.array([0, len(weights)])
    local = _pack(
        GRID, weights, start, np.ones(1), np.ones(1, np.bool_), octaves, (tables[0], tables[1])
    )
    top = np.nextafter(np.float32(rows - 1), np.float32(0))
    coordinate = _map(
        values, lambda y: np.minimum(np.interp(log_size(y), log_g, np.arange(rows)), top)
    )
    return local._replace(places=log_g, sign=sign), coordinate


def _direct(
    form: Separable, values: FloatArray, weights: FloatArray
) -> tuple[Local, NDArray[np.float32]]:
    # Values are known by their number, since g itself may need more digits than float32 has.
    distinct = _distinct(values)
    distinct = distinct[:: -(-len(distinct) // _MOST_NUMBERS)]
    start = np.array([0, len(weights)])
    local = _pack(DIRECT, weights, start, np.ones(1), np.ones(1, np.bool_))
    coordinate = _map(
        values, lambda y: np.searchsorted(distinct, y, side="right").astype(np.float64) - 1.0
    )
    return local._replace(places=form.g(distinct)), coordinate


# -- pieces ---------------------------------------------------------------------------------------


def _chunks(size: int) -> list[slice]:
    return [slice(start, start + _CHUNK) for start in range(0, size, _CHUNK)]


def _distinct(values: FloatArray, most: int | None = None) -> FloatArray:
    """Sorted distinct values, as float64; if there are more than ``most``, only some of them."""
    found = np.zeros(0)
    for part in _chunks(len(values)):
        found = np.union1d(found, values[part])
        if most is not None and len(found) > most:
            break
    return found


def _map(values: FloatArray, function: Mapping) -> NDArray[np.float32]:
    """Apply a function piece by piece, so that no float64 array of all entries is made."""
    out = np.empty(len(values), np.float32)
    for part in _chunks(len(values)):
        out[part] = function(np.asarray(values[part], dtype=np.float64))
    return out


def _total(values: FloatArray, function: Mapping) -> float:
    """Sum a function of the values, piece by piece."""
    parts = (np.asarray(values[part], np.float64) for part in _chunks(len(values)))
    return float(sum(np.sum(function(part)) for part in parts))


def _range(values: FloatArray, function: Mapping) -> FloatArray:
    """The least and the largest value of a function, piece by piece."""
    parts = [function(np.asarray(values[part], np.float64)) for part in _chunks(len(values))]
    return np.array([min(part.min() for part in parts), max(part.max() for part in parts)])


def _octaves(value_model: ValueModel, reach: float) -> tuple[int, int]:
    """The powers of two that the table runs over."""
    low = OCTAVES[0] if value_model.vary_by is None else _VARYING_LOW
    return low, max(OCTAVES[1], int(np.ceil(reach)))


def _nodes(low: int, high: int) -> FloatArray:
    low, high = max(low, -_WIDEST), min(high, _WIDEST)
    mantissa = 1.0 + np.arange(PER_OCTAVE) / PER_OCTAVE
    octaves = 2.0 ** np.arange(low, high)
    return np.append((octaves[:, None] * mantissa).ravel(), 2.0**high)


def _pack(
    mode: int,
    series: FloatArray,
    start: np.ndarray,
    least: FloatArray,
    more: NDArray[np.bool_],
    octaves: tuple[int, int] | None = None,
    tables: tuple[FloatArray, FloatArray] | None = None,
) -> Local:
    """Put together the kernels' arrays; without tables no rate lies inside them."""
    low, high = np.inf, np.inf
    first = 0
    if octaves is not None:
        first = max(octaves[0], -_WIDEST)
        low, high = 2.0**first, 2.0 ** min(octaves[1], _WIDEST)
    means, log_table = tables or (np.zeros((1, 1, 4)), np.zeros((1, 1, 4)))
    mean_table = aligned_zeros(*means.shape)  # so that no piece lies on two cache lines
    mean_table[:] = means
    return Local(
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
