"""Sums over the entries of rows: E[n] spread over the components."""

import math

import numpy as np

from hcpf.core.jit import FAST, inner
from hcpf.core.kernels.count import entry_sum
from hcpf.core.kernels.scalars import LOG2_E, log_mean
from hcpf.core.kernels.types import (
    COUNT,
    CROSS,
    CROSS_COUNT,
    CUT,
    KNOWN,
    MULTIPLIER,
    TINY_DOT,
    VALUE_SUM,
    WEIGHT,
)
from hcpf.core.kernels.vector import (
    add_four,
    add_products,
    add_weighed,
    dot_four,
    fetch_four,
    mean_four,
    move_row,
    take_four,
    weigh_four,
)

f4 = np.float32
_ONES = (f4(1.0), f4(1.0), f4(1.0), f4(1.0))
SOON, LATER = 8, 32
"""Entries ahead whose rows are prefetched into the first cache, and into the second. The second has
room for more misses under way, which is what counts where the rows come from memory."""
_FLUSH = 256
"""Entries after which the float32 accumulator is added to the float64 one: 233,000 additions in
float32 alone lost four digits."""


@inner()
def log_shares(rows, cols, u, i, shares):
    """Log rate of a pair in float64, and log of what each component adds to it.

    For pairs whose scaled dot product underflows: log sum_k exp(E log s_uk + E log v_ik).
    """
    peak = -np.inf
    for k in range(len(shares)):
        shares[k] = log_mean(float(rows.a[u, k]), float(rows.mean[u, k]))
        shares[k] += log_mean(float(cols.a[i, k]), float(cols.mean[i, k]))
        peak = max(peak, shares[k])
    total = 0.0
    for k in range(len(shares)):
        total += math.exp(shares[k] - peak)
    return peak + math.log(total)


@inner(fastmath=FAST)
def log_rate_of(rows, cols, u, i, shares):
    """Log of the geometric rate of a pair; fills in the share of each component."""
    total = 0.0
    for k in range(len(shares)):
        shares[k] = float(rows.g[u, k]) * float(cols.g[i, k])
        total += shares[k]
    if total > TINY_DOT:
        for k in range(len(shares)):
            shares[k] /= total
        return rows.log_scale[u] + cols.log_scale[i] + math.log(total)
    log_rate = log_shares(rows, cols, u, i, shares)
    for k in range(len(shares)):
        shares[k] = math.exp(shares[k] - log_rate)
    return log_rate


@inner()
def element_shift(rows, cols, tables, u, i):
    """What the element adds to the log rate of a pair."""
    shift = rows.shift[u] + cols.shift[i]
    return shift + tables.cross * float(rows.row_terms[u, CROSS]) * float(cols.row_terms[i, CROSS])


@inner()
def slow_row(entries, rows, cols, tables, u, sums, r):
    """The sums of E[n] phi_k over a whole row u, entry by entry in float64, in row r.

    For rows that ``accumulate`` cannot finish. Which entries those are may depend on the last
    bit of a dot product, so the whole row is done again.
    """
    total, count, shares = sums.totals[r], sums.counts[r], sums.shares
    for k in range(len(shares)):
        total[k] = 0.0
    for column in range(4):
        count[column] = 0.0
    for e in range(entries.start[u], entries.stop[u]):
        i = entries.index[e]
        log_rate = log_rate_of(rows, cols, u, i, shares) + element_shift(rows, cols, tables, u, i)
        mean, _, cut = entry_sum(tables, log_rate, entries.coordinate[e])
        count[COUNT] += mean
        count[CUT] += cut
        count[CROSS_COUNT] += (1.0 if tables.is_hurdle else mean) * cols.row_terms[i, CROSS]
        if len(entries.value):
            count[VALUE_SUM] += entries.value[e] * cols.row_terms.view(np.float64)[i, WEIGHT]
        for k in range(len(shares)):
            total[k] += mean * shares[k]


@inner(forceinline=True)
def _take_sum(sums, row):
    """The sum of four sums, which are then 0."""
    total = (sums[row, 0] + sums[row, 1]) + (sums[row, 2] + sums[row, 3])
    sums[row, 0], sums[row, 1], sums[row, 2], sums[row, 3] = 0.0, 0.0, 0.0, 0.0
    return total


@inner(forceinline=True)
def _ones_before(left):
    """1 for the first ``left`` of four, otherwise 0."""
    return f4(left > 0), f4(left > 1), f4(left > 2), f4(left > 3)


@inner()
def four_from(e, last):
    """The positions from e on, as far as there are any."""
    return min(e, last), min(e + 1, last), min(e + 2, last), min(e + 3, last)


@inner()
def four_ahead(e, end):
    """The positions from e on, or the last four before the end."""
    e = min(e, end - 4)
    return e, e + 1, e + 2, e + 3


@inner(fastmath=FAST)
def accumulate(entries, rows, cols, tables, first, last, sums):
    """Per row: sum_i (E[n_ui] / dot_ui) g_ik, four entries at a time.

    That times g_uk is sum_i E[n_ui] phi_uik. ``sums.slow`` marks rows that need ``slow_row``
    instead: a call from here would slow every entry.
    """
    index, coordinate = entries.index, entries.coordinate
    starts, stops = entries.start, entries.stop
    g, h, own_terms, row_terms = rows.g, cols.g, rows.row_terms, cols.row_terms
    mode, code, low, high = tables.mode, tables.first_code, tables.x_low, tables.x_high
    segments, table = tables.mean_table.shape[1], tables.mean_table.reshape(-1)
    cross_factor, is_hurdle = f4(LOG2_E * tables.cross), tables.is_hurdle
    is_crossed = is_hurdle or tables.cross != 0.0
    value, value_weights = entries.value, row_terms.view(np.float64)
    is_weighed = len(value) > 0
    totals, counts, slow, acc, fours = sums.totals, sums.counts, sums.slow, sums.acc, sums.fours
    ahead = index if len(index) >= 4 else sums.some
    end = len(ahead)
    for u in range(first, last):
        row_scale, row_cross = own_terms[u, MULTIPLIER], cross_factor * own_terms[u, CROSS]
        e, stop, r = starts[u], stops[u], u - first
        pending, is_fast, is_first = 0, True, True
        while e < stop:
            # A group of fewer than four repeats the last entry, with weight 0.
            places = four_from(e, stop - 1)
            here = take_four(index, places)
            soon = take_four(ahead, four_ahead(e + SOON, end))
            later = take_four(ahead, four_ahead(e + LATER, end))
            if mode != KNOWN:
                fetch_four(row_terms, later)
            dots = dot_four(g, u, h, here, soon, later)
            means, crosses = mean_four(
                mode, code, low, high, segments, table, take_four(coordinate, places),
                here, dots, row_scale, row_cross, row_terms,
            )  # fmt: skip
            means, weights, holds = weigh_four(means, dots, stop - e)
            is_fast &= holds
            add_products(fours, COUNT, means, _ONES)
            if is_crossed:
                theta_counts = _ones_before(stop - e) if is_hurdle else means
                add_products(fours, CROSS_COUNT, theta_counts, crosses)
            if is_weighed:
                add_weighed(fours, VALUE_SUM, value, e, stop - e, value_weights, here)
            add_four(acc, h, here, weights)
            e += 4
            pending += 4
            if pending >= _FLUSH:
                move_row(acc, totals, r, is_first)
                pending, is_first = 0, False
        move_row(acc, totals, r, is_first)
        for column in (COUNT, CUT, CROSS_COUNT, VALUE_SUM):
            counts[r, column] = _take_sum(fours, column)
        slow[r] = not is_fast
