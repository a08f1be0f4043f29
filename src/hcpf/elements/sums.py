"""Sums of elements without a closed form: masses, draws, and averages over a Poisson number."""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hcpf._types import ArrayLike, ComplexArray, FloatArray
from hcpf.elements.special import log_poisson
from hcpf.errors import InputError

if TYPE_CHECKING:
    from hcpf.elements.base import Element

_MIN_LOG_MASS = -50.0  # smaller masses do not change a probability in double precision
_MAX_TABLE = 1 << 25  # masses of a table (256 MB)
_MAX_CACHED_TABLE = 1 << 12  # masses of a table that is kept
_CHUNK_DRAWS = 1 << 22  # held at once
_MIN_BLOCK, _MAX_BLOCK = 8, 256  # terms of a Poisson mixture computed at once


# -- masses and cdf -------------------------------------------------------------------------------


def summed_cdf(element: "Element", y: FloatArray, n: FloatArray) -> FloatArray:
    """Return Pr(sum of n elements <= y), with one table of masses per distinct n and parameters."""
    names = list(element.parameters)
    columns = np.broadcast_arrays(y, n, *(element.parameters[name] for name in names))
    flat = np.stack([column.ravel() for column in columns[1:]])
    keys, group = np.unique(flat, axis=1, return_inverse=True)
    values, group = columns[0].ravel(), group.ravel()
    order = np.argsort(group, kind="stable")
    edges = np.searchsorted(group[order], np.arange(keys.shape[1] + 1))
    out = np.empty(values.shape)
    for index in range(keys.shape[1]):
        member = order[edges[index] : edges[index + 1]]
        single = element.replace(**dict(zip(names, map(float, keys[1:, index]), strict=True)))
        first, cumulative = _cumulative(single, float(keys[0, index]))
        position = np.floor(np.minimum(values[member], 2.0**53)) - first
        inside = np.clip(position, 0, len(cumulative) - 1).astype(np.intp)
        out[member] = np.where(position < 0, 0.0, cumulative[inside])
    return out.reshape(columns[0].shape)


def _cumulative(element: "Element", n: float) -> tuple[float, FloatArray]:
    """Return the first value that has a mass, and the running sum of masses from it on."""
    first, last = _range(element, n)
    make = _cached_table if last - first < _MAX_CACHED_TABLE else _table
    return first, make(element, n, first, last)


@lru_cache(maxsize=4096)
def _range(element: "Element", n: float) -> tuple[float, float]:
    """Return the values outside which the masses of the sum of n elements are negligible."""
    mean, spread = float(n * element.mean), float(np.sqrt(n * element.variance))
    lowest = element.support.lowest
    width = 10.0 * spread + 50.0
    while True:
        first = max(lowest, float(np.floor(mean - width)))
        last = float(np.ceil(mean + width))
        ends = element.log_density_unchecked(np.array([first, last]), np.full(2, n))
        if (first == lowest or ends[0] < _MIN_LOG_MASS) and ends[1] < _MIN_LOG_MASS:
            return first, last
        width *= 2.0


def _table(element: "Element", n: float, first: float, last: float) -> FloatArray:
    if last - first > _MAX_TABLE:
        raise InputError(
            f"The cdf of a sum of {n:g} {element!r} needs a table of {last - first:,.0f} values; "
            f"the limit is {_MAX_TABLE:,}."
        )
    cumulative = np.cumsum(element.masses(np.arange(first, last + 1.0), n))
    return cumulative / cumulative[-1]


_cached_table = lru_cache(maxsize=4096)(_table)


def masses_from_characteristic(
    log_characteristic: ComplexArray, values: FloatArray, n: float
) -> FloatArray:
    r"""Return the masses of a sum of n elements on 1, 2, ... at consecutive ``values``.

    ``log_characteristic`` is the logarithm of :math:`E[e^{it(X-1)}]` at ``circle(values)``. The
    values must contain all of the mass: a discrete Fourier transform of the n-th power of the
    characteristic function then gives the masses without aliasing.
    """
    exponent = n * log_characteristic - 1j * circle(values) * (values[0] - n)
    return np.maximum(np.fft.irfft(np.conj(np.exp(exponent)), len(values)), 0.0)


def circle(values: FloatArray) -> FloatArray:
    """Return the angles from 0 to π at which ``masses_from_characteristic`` needs its function."""
    return 2.0 * np.pi / len(values) * np.arange(len(values) // 2 + 1, dtype=np.float64)


# -- draws ----------------------------------------------------------------------------------------


def truncated_poisson(rate: ArrayLike, rng: np.random.Generator) -> FloatArray:
    """Draw from a Poisson given that it is at least 1, exact for rates down to 1e-300.

    The first arrival of a unit-rate process, given that it comes before ``rate``, is drawn by
    inversion; the number of arrivals after it is Poisson.
    """
    rate = np.asarray(rate, dtype=np.float64)
    first = -np.log1p(rng.random(rate.shape) * np.expm1(-rate))
    return rng.poisson(np.maximum(rate - first, 0.0)).astype(np.float64) + 1.0


def sum_of_draws(
    n: FloatArray, parameter: ArrayLike, draw: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Sum n draws per entry of ``n``; ``draw`` maps an array of parameters to draws."""
    counts = n.ravel().astype(np.int64)
    parameters = np.broadcast_to(np.asarray(parameter, dtype=np.float64), n.shape).ravel()
    out = np.zeros(counts.shape)
    ends = np.cumsum(counts)
    start = 0
    while start < len(counts):
        offset = ends[start] - counts[start]
        stop = max(start + 1, int(np.searchsorted(ends, offset + _CHUNK_DRAWS, side="right")))
        owner = np.repeat(np.arange(stop - start), counts[start:stop])
        draws = draw(parameters[start:stop][owner])
        out[start:stop] = np.bincount(owner, weights=draws, minlength=stop - start)
        start = stop
    return out.reshape(n.shape)


# -- a Poisson number of elements -----------------------------------------------------------------


def poisson_mixture(
    rate: FloatArray, part: Callable[[Any, FloatArray], FloatArray], smoothness: ArrayLike = 0.0
) -> FloatArray:
    r"""Return the sum of :math:`\mathrm{Po}(n \mid \Lambda)` part(n) over n >= 1 per rate.

    Parameters
    ----------
    rate
        The rates, a flat array.
    part
        ``part(index, n)`` returns a number from 0 to 1 per element of the matrix ``n``, whose rows
        belong to the rates that ``index``, of shape (rows, 1), selects.
    smoothness
        The squared ratio of the range of n over which a part changes to the spread of n, at most
        1. Smooth sums of many terms are computed from a part of the terms.
    """
    total = np.zeros(rate.shape)
    spread = np.sqrt(rate)
    first = np.maximum(1.0, np.floor(rate - 9.0 * spread - 20.0))
    # Both ends of such a sum are negligible, and the trapezoid rule converges exponentially.
    stride = np.floor(0.25 * spread * np.minimum(smoothness, 1.0))
    stride = np.where(first > 1.0, np.maximum(stride, 1.0), 1.0)
    min_weight = 1e-18 * np.minimum(rate, 1.0)
    active, reached, block = np.arange(rate.size), 0, _MIN_BLOCK
    while active.size:
        index = active[:, None]
        steps = np.arange(reached, reached + block, dtype=np.float64)
        n = first[index] + stride[index] * steps
        is_dense = bool(np.all(stride[active] == 1))
        weight = stride[index] * _poisson_masses(n, rate[index], is_dense)
        total[active] += np.sum(weight * part(index, n), axis=1)
        active = active[(weight[:, -1] > min_weight[active]) | (n[:, -1] < rate[active])]
        reached += block
        block = min(reached, _MAX_BLOCK)
    return total


def _poisson_masses(n: FloatArray, rate: FloatArray, is_dense: bool) -> FloatArray:
    """Return Poisson masses along rows of n; for consecutive n by recurrence from the first."""
    if not is_dense:
        return np.exp(log_poisson(n, rate))
    ratio, start = rate / n, n[:, :1]
    # The mass at 1 is computed without a logarithm, which would lose digits of a tiny rate.
    ratio[:, :1] = np.where(start == 1, rate * np.exp(-rate), np.exp(log_poisson(start, rate)))
    return np.cumprod(ratio, axis=1, dtype=np.float64)
