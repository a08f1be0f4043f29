r"""The sum over n that defines every compound Poisson density, from its mode outward.

The terms :math:`\mathrm{Po}(n \mid \Lambda)\, p(y \mid n)` are log-concave in n for every element
of an additive exponential dispersion model used here, so they rise to one mode and fall on
either side: the sum starts there and stops where a further term cannot change it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hcpf._special import log_poisson
from hcpf._types import BoolArray, FloatArray
from hcpf.elements.base import Element

_CHUNK = 1 << 10  # entries summed at once
_FIRST_BLOCK, _LARGEST_BLOCK = 16, 1024
_NEGLIGIBLE = 1e-20

Terms = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class SeriesSum:
    """log of the sum, and the mean and second moment of n under the normalised terms."""

    log_sum: FloatArray
    mean: FloatArray
    second: FloatArray


def sum_over_n(element: Element, y: FloatArray, rate: FloatArray) -> SeriesSum:
    r"""Sum :math:`\mathrm{Po}(n \mid \Lambda)\, p(y \mid n)` over n >= 1 for each (y, rate)."""
    y, rate, *_ = np.broadcast_arrays(y, rate, *element.parameters.values())
    flat = element.broadcast_to(y.shape)
    values, rates = y.ravel(), rate.ravel()
    out = np.empty((3, values.size))
    for start in range(0, values.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        with np.errstate(over="ignore"):  # a value too far out has density 0
            out[:, part] = _sum_chunk(flat.at(part), values[part], rates[part])
    log_sum, mean, second = out.reshape(3, *y.shape)
    return SeriesSum(log_sum, mean, second)


def _sum_chunk(element: Element, y: FloatArray, rate: FloatArray) -> FloatArray:
    low, high = element.n_range(y)

    def terms(chosen: BoolArray, n: FloatArray) -> FloatArray:
        column = (slice(None),) + (None,) * (n.ndim - 1)
        density = element.at(chosen).at(column).log_density_unchecked(y[chosen][column], n)
        return log_poisson(n, rate[chosen][column]) + density

    mode = _mode(terms, low, high, rate)
    everyone = np.ones(y.shape, dtype=np.bool_)
    peak = terms(everyone, mode)
    total, first, second = np.ones_like(y), np.zeros_like(y), np.zeros_like(y)
    for direction in (1.0, -1.0):
        active, reached, size = np.isfinite(peak), 0, _FIRST_BLOCK
        while np.any(active):
            step = direction * np.arange(reached + 1, reached + size + 1, dtype=np.float64)
            n = mode[active][:, None] + step
            possible = (n >= low[active][:, None]) & (n <= high[active][:, None])
            held = np.clip(n, low[active][:, None], high[active][:, None])
            weight = np.exp(terms(active, held) - peak[active][:, None]) * possible
            total[active] += weight.sum(axis=1)
            first[active] += weight @ step
            second[active] += weight @ (step * step)
            # A log-concave sequence that has fallen this far leaves nothing behind that counts.
            active[active] = (weight[:, -1] > _NEGLIGIBLE) & possible[:, -1]
            reached, size = reached + size, min(2 * size, _LARGEST_BLOCK)
    first, second = first / total, second / total
    mean = mode + first
    with np.errstate(invalid="ignore"):
        return np.stack([peak + np.log(total), mean, mode * (mode + 2.0 * first) + second])


def _mode(
    terms: Callable[[BoolArray, FloatArray], FloatArray],
    low: FloatArray,
    high: FloatArray,
    rate: FloatArray,
) -> FloatArray:
    """Find the n with the largest term of each entry, by bisection on the sign of the slope."""

    def rises(chosen: BoolArray, n: FloatArray) -> BoolArray:
        return terms(chosen, n + 1.0) > terms(chosen, n)

    low = low.copy()
    active = low < high
    if np.any(active):
        active[active] = rises(active, low[active])
    high = np.where(active, high, low)
    # Where n is unbounded, double until the terms fall.
    top = np.where(np.isinf(high), np.maximum(2.0 * low, np.ceil(rate)) + 16.0, high)
    climbing = active & np.isinf(high)
    while np.any(climbing):
        climbing[climbing] = rises(climbing, top[climbing])
        top = np.where(climbing, 2.0 * top, top)
    while np.any(active):
        middle = np.floor(0.5 * (low + top))
        up = np.zeros_like(active)
        up[active] = rises(active, middle[active])
        low = np.where(active & up, middle + 1.0, low)
        top = np.where(active & ~up, middle, top)
        active = low < top
    return low
