"""Tabulation of E[n] and log Z by direct summation, and the cubic pieces that read it back."""

import math

import numpy as np
from numba import prange  # pyright: ignore[reportMissingTypeStubs]

from hcpf._types import FloatArray
from hcpf.inference.jit import kernel


@kernel(parallel=True)
def tabulate(weights, phi, row_g, log_x, first, mean, log_sum):
    """Fill value, d/dlog x, d/dlog g and the mixed derivative of E[n] and of log sum - log x.

    The terms of row r at x are exp(weights[n] + g_r phi[n]) x^n with n = first, first + 1, ...
    """
    for row in prange(row_g.shape[0]):
        g = row_g[row]
        size = weights.shape[0]
        mode = 0
        for node in range(log_x.shape[0]):
            slope = log_x[node]
            # The mode only moves up as x grows.
            while mode + 1 < size:
                rise = weights[mode + 1] - weights[mode] + slope
                if g != 0.0:
                    rise += g * (phi[mode + 1] - phi[mode])
                if rise <= 0.0:
                    break
                mode += 1
            peak = weights[mode] + (g * phi[mode] if g != 0.0 else 0.0)
            s0, s1, s2, p0, p1, p2 = 1.0, 0.0, 0.0, 0.0, 0.0, 0.0
            reference = phi[mode] if g != 0.0 else 0.0
            for direction in (1, -1):
                j = mode + direction
                while 0 <= j < size:
                    d = float(j - mode)
                    t = weights[j] - peak + d * slope
                    if g != 0.0:
                        t += g * phi[j]
                    if t < -34.0:
                        break
                    w = math.exp(t)
                    s0 += w
                    s1 += w * d
                    s2 += w * d * d
                    if g != 0.0:
                        f = phi[j] - reference
                        p0 += w * f
                        p1 += w * f * d
                        p2 += w * f * d * d
                    j += direction
            s1, s2, p0, p1, p2 = s1 / s0, s2 / s0, p0 / s0, p1 / s0, p2 / s0
            variance = s2 - s1 * s1
            covariance = p1 - s1 * p0
            # Third mixed cumulant of (n, n, phi).
            third = p2 - 2.0 * s1 * p1 - p0 * s2 + 2.0 * s1 * s1 * p0
            n = first + mode
            mean[0, row, node] = n + s1
            mean[1, row, node] = variance
            mean[2, row, node] = g * covariance
            mean[3, row, node] = g * third
            log_sum[0, row, node] = peak + (n - 1.0) * slope + math.log(s0)
            log_sum[1, row, node] = n + s1 - 1.0
            log_sum[2, row, node] = g * (reference + p0)
            log_sum[3, row, node] = g * covariance


def hermite_coefficients(
    nodes: FloatArray, values: FloatArray, row_step: float | None
) -> FloatArray:
    """Cubic (row_step None) or bicubic coefficients per segment, from values and derivatives.

    ``values`` holds f, df/dlog x, df/dlog g and the mixed derivative at (row, node); the local
    coordinate of a segment runs from 0 to 1 linearly in x, and across rows linearly in log g.
    """
    width = np.diff(nodes)
    left, right = width / nodes[:-1], width / nodes[1:]

    def along(f: FloatArray, slope: FloatArray) -> FloatArray:
        return _cubic(f[:, :-1], f[:, 1:], slope[:, :-1] * left, slope[:, 1:] * right)

    main = along(values[0], values[1])
    if row_step is None:
        return main
    across = along(values[2], values[3]) * row_step
    pieces = _cubic(main[:-1], main[1:], across[:-1], across[1:])
    # (row, segment, power of t, power of s) -> powers of s outermost, as the kernel reads them
    return np.ascontiguousarray(np.swapaxes(pieces, -1, -2)).reshape(*pieces.shape[:2], 16)


def _cubic(f0: FloatArray, f1: FloatArray, d0: FloatArray, d1: FloatArray) -> FloatArray:
    """Coefficients of the cubic on [0, 1] with the given end values and slopes."""
    return np.stack([f0, d0, 3.0 * (f1 - f0) - 2.0 * d0 - d1, 2.0 * (f0 - f1) + d0 + d1], axis=-1)
