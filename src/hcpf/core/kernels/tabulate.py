"""Direct sums over n at the nodes of a table."""

import math

from hcpf.core.jit import kernel
from hcpf.core.kernels.types import NEGLIGIBLE


@kernel()
def tabulate(first, last, series, start, owner, phi, row_g, log_x, mean, log_sum):
    """Fill value, d/dlog x, d/dlog g and the mixed derivative of E[n] and of log sum - log x.

    The terms of row r at x are exp(series[n] + g_r phi[n]) x^n with n = 1, 2, ...; the weights
    ``series`` are those of row ``owner[r]``.
    """
    for row in range(first, last):
        g = row_g[row]
        weights = series[start[owner[row]] : start[owner[row] + 1]]
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
            reference = phi[mode] if g != 0.0 else 0.0
            peak = weights[mode] + g * reference
            s0, s1, s2, p0, p1, p2 = 1.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for direction in (1, -1):
                j = mode + direction
                while 0 <= j < size:
                    d = float(j - mode)
                    f = phi[j] - reference if g != 0.0 else 0.0
                    t = weights[j] - weights[mode] + g * f + d * slope
                    if t < NEGLIGIBLE:
                        break
                    w = math.exp(t)
                    s0 += w
                    s1 += w * d
                    s2 += w * d * d
                    p0 += w * f
                    p1 += w * f * d
                    p2 += w * f * d * d
                    j += direction
            s1, s2, p0, p1, p2 = s1 / s0, s2 / s0, p0 / s0, p1 / s0, p2 / s0
            covariance = p1 - s1 * p0
            mean[0, row, node] = 1.0 + mode + s1
            mean[1, row, node] = s2 - s1 * s1
            mean[2, row, node] = g * covariance
            # The third mixed cumulant of (n, n, phi).
            mean[3, row, node] = g * (p2 - 2.0 * s1 * p1 - p0 * s2 + 2.0 * s1 * s1 * p0)
            log_sum[0, row, node] = peak + mode * slope + math.log(s0)
            log_sum[1, row, node] = mode + s1
            log_sum[2, row, node] = g * (reference + p0)
            log_sum[3, row, node] = g * covariance
