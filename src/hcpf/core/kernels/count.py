"""E[n] and log Z of one entry: read from the tables, or summed directly; and the tables' nodes."""

import math

from hcpf.core.jit import FAST, inner, kernel
from hcpf.core.kernels.types import DIRECT, GRID, KNOWN, NEGLIGIBLE, SHIFT


@inner()
def mode_of(tables, start, size, g, log_x):
    """The number of the largest term among those of a row, by bisection on the slope."""
    low, high = 0, size - 1
    while low < high:
        middle = (low + high) // 2
        slope = tables.series[start + middle + 1] - tables.series[start + middle] + log_x
        if g != 0.0:
            slope += g * (tables.phi[middle + 1] - tables.phi[middle])
        if slope > 0:
            low = middle + 1
        else:
            high = middle
    return low


@inner()
def series_at(tables, row, g, log_x):
    """E[n] and log of the sum at log_x by direct summation from the mode outward.

    The third value is 1 where the stored weights end before the terms become negligible.
    """
    start = tables.start[row]
    size = tables.start[row + 1] - start
    mode = mode_of(tables, start, size, g, log_x)
    peak = tables.series[start + mode] + (g * tables.phi[mode] if g != 0.0 else 0.0)
    total, offset, cut = 1.0, 0.0, 0
    for direction in (1, -1):
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
    return n_mode + offset / total, peak + n_mode * log_x + math.log(total), cut


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


@inner(forceinline=True, fastmath=FAST)
def piece(table, row, j, t, s, mode):
    """Evaluate one cubic or bicubic piece of a float64 table."""
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
