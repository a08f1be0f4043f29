r"""Logarithms of Stirling numbers: by recurrence if y is small, by contour integrals otherwise.

Up to ``MAX_TRIANGLE`` the triangular recurrence runs on (mantissa, exponent) pairs. All terms are
positive, so the relative error stays below 1e-12. Above, both kinds are coefficients of a
generating function G, and hence masses of an integer variable whose characteristic function is
:math:`G(r e^{i\varphi}) / G(r)`. The trapezoid rule on the circle through the saddle point r
converges exponentially.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy import special

from hcpf._types import ComplexArray, FloatArray, IntArray
from hcpf.elements.special import (
    log1p_minus,
    log_characteristic_logarithmic,
    log_characteristic_truncated_poisson,
    log_expm1,
    log_rising,
    truncated_poisson_moments,
)

MAX_TRIANGLE = 1000
"""Largest y of the triangle (about 8 MB per kind, computed on first use)."""

_N_SDS = 9.0  # distance from the mean at which a Gaussian density falls below 1e-17
_CHUNK = 1 << 12  # numbers whose circles are held at once
_DECAYED = 14.0  # times 1 / spread: the angle beyond which the integrand is below 1e-17
_ALL_FILLED = 40.0  # objects per box, plus the log of their number, that leave none empty
_LOG_2 = float(np.log(2.0))
_ZERO_EXPONENT = -(2**40)  # represents the exponent of 0


def log_stirling2(y: FloatArray, n: float | FloatArray) -> FloatArray:
    """Return log of the number of partitions of y objects into n nonempty sets, 1 <= n <= y."""
    return _combine(y, n, _triangle_second, _contour_second)


def log_stirling1(y: FloatArray, n: float | FloatArray) -> FloatArray:
    """Return log of the number of permutations of y objects with n cycles, 1 <= n <= y."""
    return _combine(y, n, _triangle_first, _contour_first)


def _combine(
    y: FloatArray,
    n: float | FloatArray,
    triangle: Callable[[int], FloatArray],
    contour: Callable[[FloatArray, FloatArray], FloatArray],
) -> FloatArray:
    shape = np.broadcast_shapes(np.shape(y), np.shape(n))
    y, n = np.broadcast_to(y, shape).ravel(), np.broadcast_to(n, shape).ravel()
    out = np.full(y.shape, -np.inf)
    possible = (n >= 1) & (n <= y)
    small = possible & (y <= MAX_TRIANGLE)
    if np.any(small):
        rows = y[small].astype(np.intp)
        table = triangle(next(size for size in (64, MAX_TRIANGLE) if rows.max() <= size))
        out[small] = table[rows, n[small].astype(np.intp)]
    large = np.flatnonzero(possible & (y > MAX_TRIANGLE))
    large = large[np.argsort(n[large], kind="stable")]  # like with like: as wide, about
    for start in range(0, len(large), _CHUNK):
        chunk = large[start : start + _CHUNK]
        out[chunk] = contour(y[chunk], n[chunk])
    return out.reshape(shape)


def _triangle(size: int, multiplier: Callable[[int, FloatArray], FloatArray]) -> FloatArray:
    """Return the logarithms of T(y, n) = m(y, n) T(y-1, n) + T(y-1, n-1) for y = 0..size."""
    columns = np.arange(size + 1, dtype=np.float64)
    table = np.full((size + 1, size + 1), -np.inf)
    mantissa = np.zeros(size + 1)
    exponent = np.zeros(size + 1, dtype=np.int64)
    mantissa[0] = 1.0
    table[0, 0] = 0.0
    for y in range(1, size + 1):
        stay, stay_exponent = mantissa * multiplier(y, columns), exponent
        shift, shift_exponent = np.roll(mantissa, 1), np.roll(exponent, 1)
        shift[0] = 0.0
        common = np.maximum(
            np.where(stay > 0, stay_exponent, _ZERO_EXPONENT),
            np.where(shift > 0, shift_exponent, _ZERO_EXPONENT),
        )
        total = _scaled(stay, stay_exponent - common) + _scaled(shift, shift_exponent - common)
        mantissa, extra = np.frexp(total)
        exponent = np.where(mantissa > 0, common + extra, 0)
        with np.errstate(divide="ignore"):
            table[y] = np.log(mantissa) + exponent * _LOG_2
    table.flags.writeable = False
    return table


def _scaled(mantissa: FloatArray, exponent: IntArray) -> FloatArray:
    return np.ldexp(mantissa, np.maximum(exponent, -2000).astype(np.int32))


@cache
def _triangle_second(size: int) -> FloatArray:
    return _triangle(size, lambda y, n: n)


@cache
def _triangle_first(size: int) -> FloatArray:
    return _triangle(size, lambda y, n: np.full_like(n, y - 1.0))


def _log_coefficient(
    log_ratio: Callable[[FloatArray], ComplexArray], spread: FloatArray
) -> FloatArray:
    r"""Return log of :math:`\frac{1}{2\pi}\int e^{\ell(\varphi)} d\varphi` over the circle.

    ``log_ratio`` is ℓ, the log of G(r e^iφ) e^{-i order φ} / G(r), 0 at φ = 0. ``spread`` is the
    standard deviation of the integer variable whose characteristic function it is.
    """
    # A step of 2π/M aliases the wanted mass with those at a distance of M: M spans the variable's
    # range. An odd integer M divides the circle evenly, exact also if the ratio does not decay.
    half = np.ceil(_N_SDS * spread + 25.0)
    step = 2.0 * np.pi / (2.0 * half + 1.0)
    # The modulus of the ratio is at most exp(-2 (spread φ)^2 / π^2) for a sum of coin flips.
    decayed = np.ceil(_DECAYED / np.maximum(spread, 1.0) / step)
    kept = float(np.max(np.minimum(half, decayed), initial=0.0))
    index = np.arange(kept + 1.0).reshape((-1,) + (1,) * spread.ndim)
    real = np.real(np.exp(log_ratio(np.minimum(index, half) * step)))
    weights = np.where(index == 0, 1.0, 2.0) * (index <= half)
    return np.log(np.sum(weights * real, axis=0) * step / (2.0 * np.pi))


def _contour_second(y: FloatArray, n: FloatArray) -> FloatArray:
    """S2(y, n) n! is the number of ways to put y objects into n boxes, none of them empty."""
    out = y * np.log(n) - special.gammaln(n + 1.0)
    # All n^y ways but a share of less than n e^(-y/n) fill all boxes.
    few = y / n < _ALL_FILLED + np.log(n)
    out[few] = _sets_from_size(y[few], n[few])
    return out


def _sets_from_size(y: FloatArray, n: FloatArray) -> FloatArray:
    """S2(y, n) = y!/n! [z^y] (e^z - 1)^n, a mass of the sum of n zero-truncated Poissons."""
    ratio = y / n
    r = ratio + special.lambertw(-ratio * np.exp(-ratio)).real
    r = np.where(ratio - 1.0 < 1e-4, 2.0 * (ratio - 1.0), r)
    # At y = n the mass is 1 and every small radius gives it.
    r = np.maximum(r, 1e-12)
    _, variance = truncated_poisson_moments(r)
    log_at_saddle = n * log_expm1(r) - y * np.log(r)

    def log_ratio(angle: FloatArray) -> ComplexArray:
        return n * log_characteristic_truncated_poisson(r, angle) - 1j * (y - n) * angle

    mass = _log_coefficient(log_ratio, np.sqrt(n * variance))
    return special.gammaln(y + 1.0) - special.gammaln(n + 1.0) + log_at_saddle + mass


def _contour_first(y: FloatArray, n: FloatArray) -> FloatArray:
    out = special.gammaln(y)  # one cycle has (y - 1)! orders; hurdle models need only these
    # Above n = y log 2 the saddle point of the polynomial lies outside its roots.
    many = n > _LOG_2 * y
    few = ~many & (n > 1)
    out[many] = _cycles_from_size(y[many], n[many])
    out[few] = _cycles_from_number(y[few], n[few])
    return out


def _cycles_from_number(y: FloatArray, n: FloatArray) -> FloatArray:
    """|s(y, n)| = [x^n] x (x+1) ... (x+y-1), a mass of a sum of independent coin flips."""
    x = _bisect(lambda x: x * (special.psi(x + y) - special.psi(x)) - n, 1e-9 + 0 * y, 2.0 * y)
    variance = x * (special.psi(x + y) - special.psi(x)) + x * x * (
        special.polygamma(1, x + y) - special.polygamma(1, x)
    )
    at_saddle = special.gammaln(x + y) - special.gammaln(x + 1.0)

    def log_ratio(angle: FloatArray) -> ComplexArray:
        z = x * np.exp(1j * angle)
        rest = special.loggamma(z + y) - special.loggamma(z + 1.0)
        return rest - at_saddle - 1j * (n - 1.0) * angle

    mass = _log_coefficient(log_ratio, np.sqrt(np.maximum(variance, 0.0)))
    return log_rising(x + 1.0, y - 1.0) - (n - 1.0) * np.log(x) + mass


def _cycles_from_size(y: FloatArray, n: FloatArray) -> FloatArray:
    """|s(y, n)| = y!/n! [z^y] (-log(1-z))^n, a mass of the sum of n logarithmic variables."""
    r = _bisect(lambda r: r / ((1.0 - r) * -np.log1p(-r)) - y / n, 1e-12 + 0 * y, 0.9 + 0 * y)
    log = np.log1p(-r)
    variance = n * -r * log1p_minus(-r) / ((1.0 - r) * log) ** 2

    def log_ratio(angle: FloatArray) -> ComplexArray:
        return n * log_characteristic_logarithmic(r, angle) - 1j * (y - n) * angle

    mass = _log_coefficient(log_ratio, np.sqrt(variance))
    at_saddle = n * np.log(-log) - y * np.log(r)
    return special.gammaln(y + 1.0) - special.gammaln(n + 1.0) + at_saddle + mass


def _bisect(
    increasing: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the root between positive bounds, accurate enough for a saddle point."""
    for _ in range(24):
        middle = np.sqrt(low * high)
        below = increasing(middle) < 0
        low = np.where(below, middle, low)
        high = np.where(below, high, middle)
    return np.sqrt(low * high)
