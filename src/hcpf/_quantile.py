"""Quantiles of a distribution on the line, or on the whole numbers, from its cdf."""

from collections.abc import Callable

import numpy as np

from hcpf._types import FloatArray
from hcpf.elements.domains import Support


def invert_cdf(
    cdf: Callable[[FloatArray], FloatArray],
    q: FloatArray,
    *,
    mean: FloatArray,
    spread: FloatArray,
    support: Support,
    mass_at_zero: FloatArray,
) -> FloatArray:
    """The smallest y with cdf(y) >= q, by bracketing and bisection, for each entry.

    ``mass_at_zero`` is a point mass at 0 besides the support (that of a missing entry).
    """
    lowest = min(support.lowest, 0.0) if np.any(mass_at_zero > 0) else support.lowest
    inner = np.clip(q, 1e-300, np.nextafter(1.0, 0.0))
    high = _bracket(cdf, inner, mean, spread + np.abs(mean) * 1e-9 + 1e-300, upward=True)
    if support.discrete:
        found = _bisect_integers(cdf, inner, lowest, np.ceil(np.maximum(high, lowest)))
    elif np.isinf(lowest):
        low = _bracket(cdf, inner, mean, spread, upward=False)
        found = _bisect_reals(cdf, inner, low, high)
    else:
        found = _bisect_reals(cdf, inner, np.full_like(mean, lowest), np.maximum(high, lowest))
    if np.any(mass_at_zero > 0):
        at_zero = cdf(np.zeros_like(q))
        found = np.where((inner <= at_zero) & (inner > at_zero - mass_at_zero), 0.0, found)
    found = np.where(q <= 0, lowest, found)
    return np.where(q >= 1, np.inf, found)


def _bracket(
    cdf: Callable[[FloatArray], FloatArray],
    q: FloatArray,
    mean: FloatArray,
    spread: FloatArray,
    *,
    upward: bool,
) -> FloatArray:
    reach = np.maximum(spread, np.finfo(np.float64).tiny)
    sign = 1.0 if upward else -1.0
    while True:
        edge = mean + sign * reach
        short = (cdf(edge) < q) if upward else (cdf(edge) >= q)
        # Next to 1 rounding may leave the cdf just below q for ever.
        short &= reach < 1e3 * np.sqrt(np.finfo(np.float64).max)
        if not np.any(short) or not np.any(np.isfinite(edge)):
            return edge
        reach = np.where(short, 2.0 * reach, reach)


def _bisect_integers(
    cdf: Callable[[FloatArray], FloatArray], q: FloatArray, lowest: float, high: FloatArray
) -> FloatArray:
    low = np.full_like(high, lowest)
    while np.any(low < high):
        middle = np.floor(0.5 * (low + high))
        enough = cdf(middle) >= q
        high = np.where(enough, middle, high)
        low = np.where(enough, low, np.minimum(middle + 1.0, high))
    return high


def _bisect_reals(
    cdf: Callable[[FloatArray], FloatArray], q: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    for _ in range(1200):
        positive = (low >= 0) & (high > 4.0 * low)
        # Halving the logarithm finds quantiles of any size in the same few steps.
        root = np.sqrt(np.maximum(low, 1e-300)) * np.sqrt(np.maximum(high, 0.0))
        middle = np.where(positive, root, 0.5 * (low + high))
        done = (middle <= low) | (middle >= high) | (high - low <= 4e-16 * np.abs(high))
        if np.all(done):
            break
        enough = cdf(middle) >= q
        high = np.where(enough & ~done, middle, high)
        low = np.where(~enough & ~done, middle, low)
    return high
