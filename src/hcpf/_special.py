"""Special functions that keep their digits where the textbook formulas cancel."""

import numpy as np
from scipy import special

from hcpf._types import ArrayLike, FloatArray

_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


def stirling_error(x: ArrayLike) -> FloatArray:
    r"""log Γ(x + 1) minus Stirling's x log x - x + log(2πx)/2, for x > 0.

    >>> bool(abs(stirling_error(100.0) - 1 / 1200) < 1e-8)
    True
    """
    x = np.asarray(x, dtype=np.float64)
    large = np.maximum(x, 15.0)
    z = 1.0 / (large * large)
    series = (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z / 1188)))) / large
    small = np.minimum(x, 15.0)
    direct = special.gammaln(small + 1.0) - (special.xlogy(small + 0.5, small) - small)
    return np.where(x >= 15.0, series, direct - _HALF_LOG_2PI)


def log1p_minus(x: ArrayLike) -> FloatArray:
    """log(1 + x) - x without cancellation near 0."""
    x = np.asarray(x, dtype=np.float64)
    t = np.where(np.abs(x) < 0.2, x / (2.0 + x), 0.0)
    # log((1+t)/(1-t)) = 2 (t + t^3/3 + ...) and x = 2t/(1-t), so the leading x cancels exactly.
    squared = t * t
    tail = np.zeros_like(t)
    for power in range(23, 1, -2):
        tail = squared * (1.0 / power + tail)
    near = 2.0 * t * tail - t * x
    with np.errstate(divide="ignore"):
        far = np.log1p(x) - x
    return np.where(np.abs(x) < 0.2, near, far)


def log_poisson(n: ArrayLike, rate: ArrayLike) -> FloatArray:
    r"""log of e^-rate rate^n / Γ(n + 1) for n >= 0 (n need not be whole) and rate > 0.

    Written through the deviance (Loader 2000), so that it stays exact to the last digits where
    n log(rate), rate and log Γ are all huge and nearly cancel.

    >>> float(log_poisson(0, 2.5))
    -2.5
    """
    n = np.asarray(n, dtype=np.float64)
    rate = np.asarray(rate, dtype=np.float64)
    safe = np.maximum(n, 1e-300)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        relative = (rate - safe) / safe
        deviance = np.where(
            relative < 1e6, safe * log1p_minus(relative), safe * np.log(rate / safe) - rate + safe
        )
    main = deviance - 0.5 * np.log(safe) - _HALF_LOG_2PI - stirling_error(safe)
    return np.where(n > 0, main, -rate)


def log_rising(a: ArrayLike, y: ArrayLike) -> FloatArray:
    r"""log of Γ(a + y) / Γ(a) for a > 0, y >= 0, exact also where a is much larger than y."""
    a = np.asarray(a, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    large = np.maximum(a, 10.0)
    # Γ(a) = Γ(a + 1) / a turns stirling_error into the error of log Γ(a) itself.
    series = (
        (large + y - 0.5) * np.log1p(y / large)
        + y * (np.log(large) - 1.0)
        + stirling_error(large + y)
        - stirling_error(large)
    )
    small = np.minimum(a, 10.0)
    direct = special.gammaln(small + y) - special.gammaln(small)
    return np.where(a >= 10.0, series, direct)
