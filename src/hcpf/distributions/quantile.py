"""Quantiles of continuous and of integer distributions from their cdf."""

from collections.abc import Callable

import numpy as np

from hcpf._types import BoolArray, FloatArray, IntArray

Cdf = Callable[[FloatArray, IntArray], FloatArray]
"""Returns the cdf at points, of the entries that an index selects."""

_LOWEST, _HIGHEST = -744.0, 709.0  # logarithms of the positive doubles
_TOLERANCE = 1e-14  # error of the logarithm of a quantile
_ROUNDING = 2.0**-50  # rounding error of a cdf near 1


def invert_cdf(
    cdf: Cdf, q: FloatArray, *, mean: FloatArray, spread: FloatArray, discrete: bool
) -> FloatArray:
    """Return the smallest y with cdf(y) >= q per entry, 0 < q < 1.

    All arrays are flat. The mean and the spread (standard deviation, perhaps infinite) only set
    the start of the search. There may be a point mass at 0; elsewhere the distribution is
    continuous, or on the integers if ``discrete``.
    """
    spread = np.where(np.isfinite(spread), spread, np.abs(mean) + 1.0)
    all_entries = np.arange(q.size)
    out = np.zeros(q.shape)
    # Rounding may keep the cdf of even the largest double below a level close to 1.
    largest = np.full(q.shape, np.finfo(np.float64).max)
    q = np.minimum(q, cdf(largest, all_entries) - _ROUNDING)
    above = cdf(np.zeros(q.shape), all_entries) < q
    below = ~above & (cdf(np.full(q.shape, -5e-324), all_entries) >= q)
    for side, chosen in ((1.0, above), (-1.0, below)):
        index = np.flatnonzero(chosen)
        if index.size:
            start = np.maximum(side * mean[index], 0.0) + spread[index]
            search = _Side(cdf, q[index], index, side, discrete)
            out[index] = side * search.quantile(start)
    return out


class _Side:
    """The search on one side of 0, for the logarithm u of the distance from 0.

    On both sides ``excess`` grows with the distance from below 0 to 0 or more.
    """

    def __init__(
        self, cdf: Cdf, q: FloatArray, index: IntArray, side: float, discrete: bool
    ) -> None:
        self._cdf, self._q, self._index, self._side, self._discrete = cdf, q, index, side, discrete

    def excess(self, distance: FloatArray, entries: IntArray) -> FloatArray:
        """Return cdf - q, negated left of 0, of some of the entries."""
        beyond = self._cdf(self._side * distance, self._index[entries]) - self._q[entries]
        # Left of 0 the smallest y with cdf(y) >= q is the farthest one: equality is not beyond it.
        return beyond if self._side > 0 else np.where(beyond == 0, -5e-324, -beyond)

    def quantile(self, start: FloatArray) -> FloatArray:
        """Return the distances of the quantiles from 0."""
        u = np.log(np.clip(start, 1e-300, 1e300))
        low, high = self._bracket(u, -1.0), self._bracket(u, 1.0)
        if self._discrete:
            return self._integer(np.floor(np.exp(low)), np.floor(np.exp(high)))
        low, high = self._chandrupatla(low, high)
        return np.exp(high if self._side > 0 else low)

    def _bracket(self, start: FloatArray, direction: float) -> FloatArray:
        """Move from the start, in doubling steps, to a point on the wanted side of the root."""
        edge, step = start.copy(), 0.5
        active = np.arange(edge.size)
        while active.size:
            excess = self.excess(np.exp(edge[active]), active)
            short = (excess >= 0) if direction < 0 else (excess < 0)
            short &= (edge[active] > _LOWEST) & (edge[active] < _HIGHEST)
            active = active[short]
            edge[active] = np.clip(edge[active] + direction * step, _LOWEST, _HIGHEST)
            step *= 2.0
        return edge

    def _integer(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the quantile by bisection; ``low`` lies below it and ``high`` does not."""
        active = np.arange(low.size)
        while True:
            middle = np.floor(0.5 * (low[active] + high[active]))
            # Above 2^53 the integers that are doubles are more than 1 apart.
            between = (middle > low[active]) & (middle < high[active])
            active, middle = active[between], middle[between]
            if not active.size:
                return high
            enough = self.excess(middle, active) >= 0
            high[active] = np.where(enough, middle, high[active])
            low[active] = np.where(enough, low[active], middle)

    def _chandrupatla(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Shrink the bracket by inverse quadratic steps where these are safe, else by halves.

        scipy's ``elementwise.find_root`` is similar, but needs scipy 1.15, and its final brackets
        were up to 2e-8 wide.
        """
        active = np.arange(low.size)
        at_low, at_high = self.excess(np.exp(low), active), self.excess(np.exp(high), active)
        # A quantile below the smallest double is that double.
        high = np.where(at_low >= 0, low, high)
        state = np.stack([low, at_low, high, at_high, np.full_like(low, 0.5)])
        for _ in range(200):
            width = np.abs(state[2, active] - state[0, active])
            active = active[width > _TOLERANCE * np.maximum(1.0, np.abs(state[2, active]))]
            if not active.size:
                break
            a, fa, b, fb, t = state[:, active]
            x = a + t * (b - a)
            state[:, active] = _next_state(a, fa, b, fb, x, self.excess(np.exp(x), active))
        return np.minimum(state[0], state[2]), np.maximum(state[0], state[2])


def _next_state(
    a: FloatArray, fa: FloatArray, b: FloatArray, fb: FloatArray, x: FloatArray, fx: FloatArray
) -> FloatArray:
    """Return the new point, the end that brackets the root with it, and the next step.

    The step is the fraction of the way from the first to the second (Chandrupatla 1997).
    """
    same: BoolArray = (fx >= 0) == (fa >= 0)
    c, fc = np.where(same, a, b), np.where(same, fa, fb)
    b, fb = np.where(same, b, a), np.where(same, fb, fa)
    a, fa = x, fx
    with np.errstate(divide="ignore", invalid="ignore"):
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        smooth = (1.0 - np.sqrt(1.0 - xi) < phi) & (phi < np.sqrt(xi))
        step = fa / (fb - fa) * fc / (fb - fc)
        step += (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    # Stay off the ends by less than the tolerance, which makes the far end move as well.
    margin = 0.5 * _TOLERANCE * np.maximum(1.0, np.abs(a)) / np.maximum(np.abs(b - a), 1e-300)
    margin = np.minimum(margin, 0.5)
    t = np.where(smooth & np.isfinite(step), np.clip(step, margin, 1.0 - margin), 0.5)
    return np.stack([a, fa, b, fb, t])
