"""E[n] and log Z of one entry: read from the tables, or summed directly."""

import math

from hcpf.core.jit import FAST, kernel
from hcpf.core.kernels.types import DIRECT, GRID, KNOWN, NEGLIGIBLE, SHIFT


@kernel()
def series_at(tables, row, g, log_x):
    """E[n] and log of the sum at log_x by direct summation from the mode outward.

    The third value is 1 where the stored weights end before the terms become negligible.
    """
    start = tables.start[row]
    size = tables.start[row + 1] - start
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
    mode = low
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


@kernel()
def outside(tables, log_rate, coordinate):
    """E[n], log of the sum and the edge flag for an entry whose rate the table does not hold."""
    y = float(coordinate)
    if tables.mode == KNOWN:
        return y, y * log_rate, 0
    row, g, log_x = 0, 0.0, log_rate
    if tables.mode == SHIFT:
        log_x = log_rate + math.log(y)
    elif tables.mode == GRID:
        place = int(y)
        step = tables.places[place + 1] - tables.places[place]
        g = tables.sign * math.exp(tables.places[place] + (y - place) * step)
    elif tables.mode == DIRECT:
        g = tables.places[int(y)]
    else:
        row = int(y)
    return series_at(tables, row, g, log_x)


@kernel(forceinline=True, fastmath=FAST)
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
