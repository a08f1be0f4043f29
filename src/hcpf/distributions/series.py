r"""The sum over n in the density of a compound Poisson distribution.

The terms :math:`\mathrm{Po}(n \mid \Lambda)\, p(y \mid n)` are log-concave in n for all independent
elements of this package, so they rise to one mode and fall on both sides of it. The sum starts at
the mode and stops where further terms are negligible. Most often n is small, so the first terms are
tried before the mode is searched.

Where the mode is so large that the terms cannot be added one by one, their sum is an integral.

Elements that share an uncertain theta may have a second mode near the rate, where theta is unusual
instead of n, behind a valley of negligible terms. Their sum does not stop before the rate.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from hcpf._types import BoolArray, FloatArray, IntArray
from hcpf.elements.base import Element
from hcpf.elements.special import log_poisson

MAX_LOG_TERM = 1e15
"""Nats; of terms that are larger, or smaller, rounding hides the differences."""
_CHUNK = 1 << 10  # entries summed at once
_FIRST_BLOCK, _MAX_BLOCK = 16, 1024  # terms computed at once
_NEGLIGIBLE = 1e-20  # terms this small relative to the largest are dropped
_MAX_RISE = 300.0  # nats above the peak so far, from which the sums are scaled down
_HALVINGS = 4  # of the bracket of the last term
_MAX_VALLEY = 1 << 14  # terms between two modes; of modes further apart only the higher is summed
_MAX_MODE = 2.0**32  # above, about a million terms count, and the sum is integrated instead
_SLOPE_STEP = 2.0**-14  # of so large an n, over which the slope is found: rounding hides less
_MODE_ERROR = 2.0**-50  # of n beyond which adding 1 changes nothing
_LARGEST_COUNT = 1e100  # of which squares are finite
_N_NODES = 400  # of the integral
_CENTER_DROP, _END_DROP = 0.5, 46.0  # nats below the peak: about a standard deviation; negligible
_MAX_LOG_RATE = 34.0  # of n without bound: above, n + 1 is not much different from n


@dataclass(frozen=True)
class SeriesSum:
    """The log of the sum, and the mean and second moment of n under the normalized terms."""

    log_sum: FloatArray
    mean: FloatArray
    second: FloatArray


def sum_over_n(element: Element, y: FloatArray, rate: FloatArray) -> SeriesSum:
    r"""Return the sum of :math:`\mathrm{Po}(n \mid \Lambda)\, p(y \mid n)` over n >= 1."""
    y, rate, *_ = np.broadcast_arrays(y, rate, *element.parameters.values())
    flat = element.broadcast_to(y.shape)
    values, rates = y.ravel(), rate.ravel()
    out = np.empty((3, values.size))
    for part in _alike(flat, values):
        with np.errstate(over="ignore"):  # the density of an extreme value underflows to 0
            out[:, part] = _sum_chunk(_Terms(flat.at(part), values[part], rates[part]))
    log_sum, mean, second = out.reshape(3, *y.shape)
    return SeriesSum(log_sum, mean, second)


def mean_count(element: Element, y: FloatArray, log_rate: FloatArray) -> FloatArray:
    r"""Return the mean of n under the normalized terms, at rates that may overflow.

    With partial pooling the rate of an entry is :math:`e^{E[\log s v] - \kappa E[\Psi(\theta)]}`
    relative to an element; only the weights :math:`\Lambda^n p(y \mid n)/n!` matter for n.
    """
    y, log_rate, *_ = np.broadcast_arrays(y, log_rate, *element.parameters.values())
    flat, values, logs = element.broadcast_to(y.shape), y.ravel(), log_rate.ravel()
    # Where n has no bound, n + 1 must differ from n.
    unbounded = np.isinf(flat.n_range(values)[1])
    logs = np.where(unbounded, np.minimum(logs, _MAX_LOG_RATE), logs)
    out = np.empty(values.size)
    for part in _alike(flat, values):
        with np.errstate(over="ignore"):
            terms = _Weights(flat.at(part), values[part], logs[part])
            out[part] = _sum_chunk(terms)[1]
    return out.reshape(y.shape)


def last_term(element: Element, y: FloatArray, rate: FloatArray, log_share: float) -> FloatArray:
    """Return an n after which each term is below ``exp(log_share)`` times the largest.

    It is at most a sixteenth further from the mode than it has to be.
    """
    terms = _Terms(element.broadcast_to(y.shape), y, rate)
    with np.errstate(over="ignore"):
        mode = _mode(terms)
        least = terms.at(mode) + log_share
        near, far = np.zeros_like(mode), np.full_like(mode, float(_FIRST_BLOCK))
        active = mode + far < terms.high
        while np.any(active):
            active[active] = terms.of(active).at((mode + far)[active]) > least[active]
            near, far = np.where(active, far, near), np.where(active, 2.0 * far, far)
            active &= mode + far < terms.high
        for _ in range(_HALVINGS):
            middle = np.floor(0.5 * (near + far))
            counts = terms.at(np.minimum(mode + middle, terms.high)) > least
            near, far = np.where(counts, middle, near), np.where(counts, far, middle)
    return np.minimum(mode + far, terms.high)


def most_likely_count(element: Element, y: FloatArray, rate: FloatArray) -> FloatArray:
    """Return the n with the largest term, to four digits where it is large."""
    y, rate, *_ = np.broadcast_arrays(y, rate, *element.parameters.values())
    with np.errstate(over="ignore"):
        flat = element.broadcast_to(y.shape)
        return _mode(_Terms(flat, y.ravel(), rate.ravel())).reshape(y.shape)


def single_element(element: Element, y: FloatArray, rate: FloatArray) -> SeriesSum:
    """Return the same sum if the value is a single element: n is Poisson given n >= 1."""
    y, rate, *_ = np.broadcast_arrays(y, rate, *element.parameters.values())
    with np.errstate(over="ignore"):
        density = element.log_density_unchecked(y, np.ones_like(y))
    observed = -np.expm1(-rate)
    return SeriesSum(density + np.log(observed), rate / observed, rate * (1.0 + rate) / observed)


def _alike(element: Element, y: FloatArray) -> Iterator[IntArray]:
    """Yield the positions of entries with about as many terms, so that short sums cost little."""
    low, high = element.n_range(y)
    order = np.argsort(np.minimum(high - low, _FIRST_BLOCK), kind="stable")
    return (order[start : start + _CHUNK] for start in range(0, y.size, _CHUNK))


class _Terms:
    """The terms of several entries, as a function of n."""

    def __init__(self, element: Element, y: FloatArray, rate: FloatArray) -> None:
        self.element, self.y, self.rate = element, y, rate
        self.low, self.high = element.n_range(y)

    def of(self, chosen: BoolArray) -> Self:
        """Return the terms of the chosen entries."""
        return type(self)(self.element.at(chosen), self.y[chosen], self.rate[chosen])

    def at(self, n: FloatArray) -> FloatArray:
        """Return the logs of the terms at n, which has one number or one row per entry."""
        column = (slice(None),) + (None,) * (n.ndim - 1)
        density = self.element.at(column).log_density_unchecked(self.y[column], n)
        return self._log_prior(n, self.rate[column]) + density

    def _log_prior(self, n: FloatArray, rate: FloatArray) -> FloatArray:
        return log_poisson(n, rate)

    def upper_guess(self) -> FloatArray:
        """Return numbers of the size of n, from which a search may start."""
        return self.rate

    def second_mode(self, mode: FloatArray) -> FloatArray:
        """Return n close to which another mode may lie; ``mode`` where there is only that one."""
        if not self.element.shares_theta:
            return mode
        return np.clip(np.floor(self.upper_guess()), self.low, self.high)

    def block(self, n: FloatArray) -> FloatArray:
        """Return the logs of the terms at rows of n, -inf where n is impossible."""
        low, high = self.low[:, None], self.high[:, None]
        return np.where((n >= low) & (n <= high), self.at(np.clip(n, low, high)), -np.inf)


class _Weights(_Terms):
    """The same times e^rate, from the logarithm of the rate, which may be any number."""

    def _log_prior(self, n: FloatArray, rate: FloatArray) -> FloatArray:
        return n * rate - special.gammaln(n + 1.0)

    def upper_guess(self) -> FloatArray:
        return np.exp(np.clip(self.rate, 0.0, _MAX_LOG_RATE))


def _sum_chunk(terms: _Terms) -> FloatArray:
    """Return the log of the sum, and the mean and second moment of n."""
    size = min(float(_FIRST_BLOCK), float(np.max(terms.high - terms.low)) + 1.0)
    step = np.arange(size)
    first = terms.block(terms.low[:, None] + step)
    peak = first.max(axis=1)
    weight = np.exp(first - np.where(np.isfinite(peak), peak, 0.0)[:, None])
    out = _moments(peak, terms.low, weight.sum(axis=1), weight @ step, weight @ (step * step))
    last = terms.low + step[-1]
    longer = (weight[:, -1] > _NEGLIGIBLE) | (terms.second_mode(last) > last)
    longer &= last < terms.high
    if np.any(longer):
        best = np.argmax(first[longer], axis=1)
        out[:, longer] = _outward(terms.of(longer), terms.low[longer] + best, best == step[-1])
    return out


def _outward(terms: _Terms, mode: FloatArray, is_above: BoolArray) -> FloatArray:
    """Return the same, summed from the mode outward; search the mode where it is above."""
    if np.any(is_above):
        mode[is_above] = _mode(terms.of(is_above))
    is_large = _room(terms, mode) > _MAX_MODE
    if np.any(is_large):
        out = np.empty((3, len(mode)))
        out[:, is_large] = _integrated(terms.of(is_large), mode[is_large])
        if not np.all(is_large):
            known = np.zeros(int(np.sum(~is_large)), np.bool_)
            out[:, ~is_large] = _outward(terms.of(~is_large), mode[~is_large], known)
        return out
    mode, other = _higher_first(terms, mode)
    peak = terms.at(mode)
    total, first, second = np.ones_like(mode), np.zeros_like(mode), np.zeros_like(mode)
    for direction in (1.0, -1.0):
        active, reached, size = np.abs(peak) < MAX_LOG_TERM, 0, _FIRST_BLOCK
        while np.any(active):
            step = direction * np.arange(reached + 1, reached + size + 1, dtype=np.float64)
            block = terms.of(active).block(mode[active][:, None] + step)
            highest, before = block.max(axis=1), peak[active]
            peak[active] = np.where(highest > before + _MAX_RISE, highest, before)
            scale = np.exp(before - peak[active])
            weight = np.exp(block - peak[active][:, None])
            total[active] = scale * total[active] + weight.sum(axis=1)
            first[active] = scale * first[active] + weight @ step
            second[active] = scale * second[active] + weight @ (step * step)
            # Beyond both modes all later terms are smaller still.
            is_short = direction * (other[active] - mode[active]) > direction * step[-1]
            active[active] = (weight[:, -1] > _NEGLIGIBLE) | is_short
            reached, size = reached + size, min(2 * size, _MAX_BLOCK)
    return _moments(peak, mode, total, first, second)


def _integrated(terms: _Terms, mode: FloatArray) -> FloatArray:
    """Return the same by the trapezoid rule over u, where n = mode + scale * sinh(u).

    The nodes are dense at the mode and reach far, so that sharp and heavy-tailed terms both fit.
    """
    down, near_down = (_extent(terms, mode, -1.0, drop) for drop in (_END_DROP, _CENTER_DROP))
    up, near_up = (_extent(terms, mode, 1.0, drop) for drop in (_END_DROP, _CENTER_DROP))
    scale = np.maximum(np.minimum(near_down, near_up), 1.0)
    ends = -np.arcsinh(down / scale), np.arcsinh(up / scale)
    width = (ends[1] - ends[0]) / (_N_NODES - 1)
    u = ends[0][:, None] + width[:, None] * np.arange(_N_NODES)
    step = scale[:, None] * np.sinh(u)
    block = terms.block(mode[:, None] + step)
    peak = block.max(axis=1)
    weight = np.exp(block - np.where(np.isfinite(peak), peak, 0.0)[:, None])
    weight *= scale[:, None] * np.cosh(u) * width[:, None]
    weight[:, [0, -1]] *= 0.5
    sums = (np.sum(weight * power, axis=1) for power in (np.ones_like(step), step, step * step))
    return _moments(peak, mode, *sums)


def _extent(terms: _Terms, mode: FloatArray, direction: float, drop: float) -> FloatArray:
    """Return a distance from the mode at which terms are ``drop`` lower, up to twice too far."""
    furthest = mode - terms.low if direction < 0 else terms.high - mode
    distance, peak = np.minimum(1.0, furthest), terms.at(mode)
    active = distance < furthest
    while np.any(active):
        below = peak - terms.at(mode + direction * distance)
        active &= ~(below > drop) & (distance < _LARGEST_COUNT)
        distance = np.where(active, np.minimum(2.0 * distance, furthest), distance)
        active &= distance < furthest
    return distance


def _higher_first(terms: _Terms, mode: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the higher of two modes, and the other; twice the same where that is too far away."""
    other = terms.second_mode(mode)
    if other is mode:
        return mode, mode
    is_higher = terms.at(other) > terms.at(mode)
    mode, other = np.where(is_higher, other, mode), np.where(is_higher, mode, other)
    return mode, np.where(np.abs(other - mode) > _MAX_VALLEY, mode, other)


def _moments(
    peak: FloatArray, start: FloatArray, total: FloatArray, first: FloatArray, second: FloatArray
) -> FloatArray:
    """Return log sum, mean and second moment from sums relative to the peak and to ``start``."""
    total = np.where(total > 0.0, total, 1.0)  # if no term is finite
    first, second = first / total, second / total
    with np.errstate(invalid="ignore"):
        return np.stack(
            [peak + np.log(total), start + first, start * (start + 2.0 * first) + second]
        )


def _mode(terms: _Terms) -> FloatArray:
    """Return the n with the largest term per entry, by bisection on the sign of the slope."""

    def rises(chosen: BoolArray, n: FloatArray) -> BoolArray:
        part = terms.of(chosen)
        return part.at(n + _slope_step(part, n)) > part.at(n)

    low, high = terms.low.copy(), terms.high
    active = low < high
    if np.any(active):
        active[active] = rises(active, low[active])
    high = np.where(active, high, low)
    # If n is unbounded, double it until the terms fall.
    top = np.where(np.isinf(high), np.maximum(2.0 * low, np.ceil(terms.upper_guess())) + 16.0, high)
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
        active = top - low > _MODE_ERROR * top
    return low + np.floor(0.5 * _slope_step(terms, low))


def _room(terms: _Terms, n: FloatArray) -> FloatArray:
    """Return the distance from n to the nearer end of its range."""
    return np.minimum(n - terms.low, terms.high - n)


def _slope_step(terms: _Terms, n: FloatArray) -> FloatArray:
    room = _room(terms, n)
    return np.where(room > _MAX_MODE, np.floor(_SLOPE_STEP * np.minimum(room, n)), 1.0)
