"""Special functions that keep their digits where the textbook formulas cancel."""

from typing import Any

import numpy as np
from scipy import special

from hcpf._types import ArrayLike, ComplexArray, FloatArray

_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)
_LOG_2 = float(np.log(2.0))
_DIGAMMA_SERIES_FROM = 16.0  # where what five terms leave out is below the last bit


def stirling_error(x: ArrayLike) -> FloatArray:
    r"""Return log Γ(x + 1) minus Stirling's x log x - x + log(2πx)/2, for x > 0.

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


def digamma(x: ArrayLike) -> FloatArray:
    """Return the digamma function for x > 0, quickly where x is large.

    >>> bool(abs(digamma(1.0) + 0.5772156649015329) < 1e-15)
    True
    """
    x = np.asarray(x, dtype=np.float64)
    large = np.maximum(x, _DIGAMMA_SERIES_FROM)
    r = 1.0 / large
    z = r * r
    series = z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z * (1 / 132)))))
    found = np.asarray(np.log(large) - (0.5 * r + series))
    small = x < _DIGAMMA_SERIES_FROM
    if np.any(small):
        found[small] = special.psi(x[small])
    return found


def log1p_minus(x: ArrayLike) -> FloatArray:
    """Return log(1 + x) - x without cancellation near 0.

    >>> round(float(log1p_minus(1e-9)) * 1e18, 6)
    -0.5
    """
    x = np.asarray(x, dtype=np.float64)
    t = np.where(np.abs(x) < 0.2, x / (2.0 + np.maximum(x, -0.2)), 0.0)
    # log((1+t)/(1-t)) = 2 (t + t^3/3 + ...) and x = 2t/(1-t), so the leading x cancels exactly.
    squared = t * t
    tail = np.zeros_like(t)
    for power in range(23, 1, -2):
        tail = squared * (1.0 / power + tail)
    near = 2.0 * t * tail - t * x
    with np.errstate(divide="ignore"):
        far = np.log1p(x) - x
    return np.where(np.abs(x) < 0.2, near, far)


def log_expm1(x: ArrayLike) -> FloatArray:
    """Return log(e^x - 1) for x > 0, where e^x may overflow."""
    x = np.asarray(x, dtype=np.float64)
    return x + np.log(-np.expm1(-x))


def log1mexp(x: ArrayLike) -> FloatArray:
    """Return log(1 - e^x) for x < 0, next to 0 as exact as far below it."""
    x = np.asarray(x, dtype=np.float64)
    near, far = np.maximum(x, -_LOG_2), np.minimum(x, -_LOG_2)
    return np.where(x > -_LOG_2, np.log(-np.expm1(near)), np.log1p(-np.exp(far)))


def log_poisson(n: ArrayLike, rate: ArrayLike) -> FloatArray:
    r"""Return log of e^-rate rate^n / Γ(n + 1) for n >= 0 (n need not be whole) and rate > 0.

    Written through the deviance (Loader 2000), so that it stays exact to the last digits where
    n log(rate), rate and log Γ are all huge and nearly cancel.

    >>> float(log_poisson(0, 2.5))
    -2.5
    """
    n = np.asarray(n, dtype=np.float64)
    rate = np.asarray(rate, dtype=np.float64)
    safe = np.maximum(n, 1e-300)
    with np.errstate(over="ignore"):
        relative = (rate - safe) / safe
    # Far from n the difference holds no digit of the smaller of the two; nothing cancels there.
    near = np.abs(relative) < 0.5
    close = safe * log1p_minus(np.where(near, relative, 0.0))
    apart = safe * (np.log(rate) - np.log(safe)) - rate + safe
    deviance = np.where(near, close, apart)
    main = deviance - 0.5 * np.log(safe) - _HALF_LOG_2PI - stirling_error(safe)
    return np.where(n > 0, main, -rate)


def log_binomial(x: ArrayLike, total: ArrayLike, p: ArrayLike) -> FloatArray:
    r"""Return log of C(total, x) p^x (1-p)^(total-x) for 0 <= x <= total, neither need be whole.

    Two Poissons given their sum are binomial, hence this keeps its digits as ``log_poisson`` does.

    >>> round(float(log_binomial(3, 8, 0.5)) - float(np.log(56 / 256)), 12)
    0.0
    """
    x, total, p = (np.asarray(value, dtype=np.float64) for value in (x, total, p))
    parts = log_poisson(x, total * p) + log_poisson(total - x, total * (1.0 - p))
    return parts - log_poisson(total, total)


def log_rising(a: ArrayLike, y: ArrayLike) -> FloatArray:
    r"""Return log of Γ(a + y) / Γ(a) for a > 0, y >= 0, exact also where a far exceeds y."""
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


def truncated_poisson_moments(rate: ArrayLike) -> tuple[Any, Any]:
    r"""Return mean and variance of a Poisson given that it is not 0.

    The mean is :math:`\Lambda/(1 - e^{-\Lambda})` and the variance mean times
    :math:`1 - \Lambda/(e^\Lambda - 1)`, which goes to :math:`\Lambda/2` with the rate.
    """
    rate = np.asarray(rate, dtype=np.float64)
    mean = rate / -np.expm1(-rate)
    small = np.minimum(rate, 0.1)
    squared = small * small
    near = small * (0.5 - small * (1 / 12 - squared * (1 / 720 - squared / 30240)))
    far = 1.0 + rate - mean
    return mean, mean * np.where(rate < 0.1, near, far)


def log_characteristic_truncated_poisson(rate: ArrayLike, angle: FloatArray) -> ComplexArray:
    r"""Return log of E[e^{iφ(X-1)}] = (e^z - 1)/z · r/(e^r - 1), z = r e^{iφ}, for X >= 1."""
    rate = np.asarray(rate, dtype=np.float64)
    log_turn: ComplexArray = np.asarray(1j * angle, dtype=np.complex128)
    turn = np.exp(log_turn)
    # e^z - 1 as such does not cancel at small rates; at large ones, where it overflows, the 1
    # is too small to count.
    small = np.minimum(rate, 40.0)
    near = np.log(np.expm1(small * turn) / np.expm1(small))
    return np.where(rate < 40.0, near, rate * (turn - 1.0)) - log_turn


def log_characteristic_logarithmic(p: ArrayLike, angle: FloatArray) -> ComplexArray:
    r"""Return log of E[e^{iφ(X-1)}] = log(1 - z)/z · p/log(1 - p), z = p e^{iφ}, for X >= 1."""
    p = np.asarray(p, dtype=np.float64)
    z = p * np.exp(1j * angle)
    # NumPy's complex log1p loses digits near 0, where the series of -log(1-z)/z is short.
    series = np.zeros_like(z)
    for power in range(14, -1, -1):
        series = 1.0 / (power + 1.0) + z * series
    inner = np.where(p < 0.05, series, -np.log1p(-z) / z)
    return np.log(inner * (-p / np.log1p(-p)))
