"""E[n] and log Z of one entry: read from the tables, or summed directly; and the tables' nodes."""

import math

import numpy as np

from hcpf.core.jit import FAST, inner, kernel
from hcpf.core.kernels.types import DIRECT, GRID, KNOWN, NEGLIGIBLE, ROWS, SHIFT

_MAX_LOG_X = 87.0  # of a rate that float32 holds

_STRIDE, _LEAST_DEVIATION = 0.65, 4.0
"""Of a wide sum every h-th term is taken, h being this share of the standard deviation of n. Times
h their sum has a relative error of about exp(-2 pi^2 (deviation / h)^2) for a normal shape and of
exp(-deviation^2 (1 - cos(2 pi / h))) for a Poisson shape, below 1e-13 from this deviation on."""
_LARGEST_CURVATURE = _LEAST_DEVIATION**-2
_REACH = 10.0
"""Standard deviations on both sides of the mode that must be there: a bell that is cut off is not
smooth."""
_ROUNDING = 1e-11
"""Of a log weight; noise in the curvature would make the deviation too large."""


@inner()
def _rises(tables, start, j, g, log_x):
    """Whether the term after the j-th of a row is larger."""
    slope = tables.series[start + j + 1] - tables.series[start + j] + log_x
    if g != 0.0:
        slope += g * (tables.phi[j + 1] - tables.phi[j])
    return slope > 0


@inner()
def mode_of(tables, start, size, g, log_x):
    """The number of the largest term among those of a row, by bisection on the slope.

    The bracket doubles from the first term on: most modes are there, and so are these terms in the
    first cache.
    """
    low, high = 0, 1
    while high < size - 1 and _rises(tables, start, high, g, log_x):
        low, high = high + 1, 2 * high
    high = min(high, size - 1)
    while low < high:
        middle = (low + high) // 2
        if _rises(tables, start, middle, g, log_x):
            low = middle + 1
        else:
            high = middle
    return low


@inner()
def stride_of(series, phi, start, size, g, mode):
    """The step between the terms to sum: 1, or more where n is so wide that a part serves for all.

    The standard deviation of n follows from the curvature of the log terms at the mode.
    """
    if mode < 1 or mode + 1 >= size:
        return 1
    here = series[start + mode]
    curvature = 2.0 * here - series[start + mode - 1] - series[start + mode + 1]
    if g != 0.0:
        curvature += g * (2.0 * phi[mode] - phi[mode - 1] - phi[mode + 1])
    if not _ROUNDING * (1.0 + abs(here)) < curvature < _LARGEST_CURVATURE:
        return 1
    deviation = 1.0 / math.sqrt(curvature)
    if min(mode, size - 1 - mode) < _REACH * deviation:
        return 1
    return int(_STRIDE * deviation)


@inner()
def series_at(tables, row, g, log_x):
    """E[n] and log of the sum at log_x by direct summation from the mode outward.

    The third value is 1 where the stored weights end before the terms become negligible.
    """
    start = tables.start[row]
    size = tables.start[row + 1] - start
    mode = mode_of(tables, start, size, g, log_x)
    stride = stride_of(tables.series, tables.phi, start, size, g, mode)
    peak = tables.series[start + mode] + (g * tables.phi[mode] if g != 0.0 else 0.0)
    total, offset, cut = 1.0, 0.0, 0
    for direction in (stride, -stride):
        j = mode + direction
        while 0 <= j < size:
            distance = float(j - mode)
            t = tables.series[start + j] - peak + distance * log_x
            if g != 0.0:
                t += g * tables.phi[j]
            if t < NEGLIGIBLE:
                break
            weight = math.exp(t)
            total += weight
            offset += weight * distance
            j += direction
        if j >= size and tables.more[row]:
            cut = 1
    n_mode = tables.least[row] + mode
    log_sum = peak + n_mode * log_x + math.log(stride * total)
    return n_mode + offset / total, log_sum, cut


@inner()
def between_rows(tables, log_x, coordinate):
    """The same for a value between rows, by the cubic through the four next to it."""
    row, places = int(coordinate), tables.places
    if coordinate == row:
        return series_at(tables, row, 0.0, log_x)
    place = places[row] + (coordinate - row) * (places[row + 1] - places[row])
    first = min(max(row - 1, 0), len(places) - 4)
    mean, log_sum, cut = 0.0, 0.0, 0
    for j in range(first, first + 4):
        weight = 1.0
        for k in range(first, first + 4):
            if k != j:
                weight *= (place - places[k]) / (places[j] - places[k])
        row_mean, row_log_sum, row_cut = series_at(tables, j, 0.0, log_x)
        mean += weight * row_mean
        log_sum += weight * row_log_sum
        cut = max(cut, row_cut)
    return mean, log_sum, cut


@inner()
def weights_of(tables, log_rate, coordinate):
    """Which row of weights serves an entry, with g and the log rate in the scale of that row.

    The term of n is exp(series[n] + g phi[n]) x^n. For a value between rows it is the row below.
    """
    y = float(coordinate)
    row, g, log_x = 0, 0.0, log_rate
    if tables.mode == SHIFT:
        log_x = log_rate + math.log(y)
    elif tables.mode == GRID and tables.sign != 0.0:
        place = int(y)
        step = tables.places[place + 1] - tables.places[place]
        g = tables.sign * math.exp(tables.places[place] + (y - place) * step)
    elif tables.mode == DIRECT:
        g = tables.places[int(y)]
    else:
        row = int(y)
    return row, g, log_x


@inner()
def outside(tables, log_rate, coordinate):
    """E[n], log of the sum and the edge flag for an entry whose rate the table does not hold."""
    y = float(coordinate)
    if tables.mode == KNOWN:
        return y, y * log_rate, 0
    if tables.mode == GRID and tables.sign == 0.0:
        return between_rows(tables, log_rate, y)
    row, g, log_x = weights_of(tables, log_rate, coordinate)
    return series_at(tables, row, g, log_x)


@inner()
def entry_sum(tables, log_rate, coordinate):
    """E[n], log of the sum and the edge flag of any entry, from the tables where they hold it."""
    y, mode = float(coordinate), tables.mode
    row, log_x = (0, log_rate + math.log(y)) if mode == SHIFT else (int(y), log_rate)
    if not abs(log_x) < _MAX_LOG_X:
        return outside(tables, log_rate, coordinate)
    x = np.float32(math.exp(log_x))
    if not (x >= tables.x_low and x < tables.x_high):  # always so where nothing is tabulated
        return outside(tables, log_rate, coordinate)
    bits = x.view(np.int32)
    j, t = (bits >> 20) - tables.first_code, float(bits & 0xFFFFF) * 2.0**-20
    least = tables.least[row] if mode == ROWS else 1.0
    mean = float(piece(tables.mean_table, row, j, t, y - row, mode))
    return mean, piece(tables.log_table, row, j, t, y - row, mode) + least * log_x, 0


@inner(forceinline=True, fastmath=FAST)
def piece(table, row, j, t, s, mode):
    """Evaluate one cubic or bicubic piece of a table."""
    value = table[row, j, 0] + t * (
        table[row, j, 1] + t * (table[row, j, 2] + t * table[row, j, 3])
    )
    if mode == GRID:
        power = s
        for q in (4, 8, 12):
            value += power * (
                table[row, j, q]
                + t * (table[row, j, q + 1] + t * (table[row, j, q + 2] + t * table[row, j, q + 3]))
            )
            power *= s
    return value


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
            stride = stride_of(weights, phi, 0, size, g, mode)
            s0, s1, s2, p0, p1, p2 = 1.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for direction in (stride, -stride):
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
            log_sum[0, row, node] = peak + mode * slope + math.log(stride * s0)
            log_sum[1, row, node] = mode + s1
            log_sum[2, row, node] = g * (reference + p0)
            log_sum[3, row, node] = g * covariance
