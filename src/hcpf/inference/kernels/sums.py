"""Sums over the entries of rows: E[n] spread over the components."""

import math

import numpy as np

from hcpf.inference.jit import FAST, kernel
from hcpf.inference.kernels.count import mean_count, outside
from hcpf.inference.kernels.scalars import log_mean
from hcpf.inference.kernels.types import TINY_DOT
from hcpf.inference.kernels.vector import add_four, dot_four, exp_four

f4 = np.float32
_FLUSH = 256  # entries after which the float32 accumulator is added to the float64 one


@kernel()
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


@kernel()
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


@kernel()
def element_shift(rows, cols, local, u, i):
    """What the element adds to the log rate of a pair."""
    shift = rows.shift[u] + cols.shift[i]
    return shift + local.cross * float(rows.cross[u]) * float(cols.cross[i])


@kernel()
def slow_row(entries, rows, cols, local, u, total, count):
    """The sums of E[n] phi_k over a whole row, each entry summed over n directly.

    For rows that ``accumulate`` cannot finish. Which entries those are may depend on the last
    bit of a dot product, so the whole row is done anew.
    """
    total[:] = 0.0
    count[:] = 0.0
    shares = np.empty(total.shape[0])
    for e in range(entries.start[u], entries.stop[u]):
        i = entries.index[e]
        log_rate = log_rate_of(rows, cols, u, i, shares) + element_shift(rows, cols, local, u, i)
        mean, _, cut = outside(local, log_rate, entries.coordinate[e])
        count[0] += mean
        count[1] += cut
        count[2] += mean * cols.cross[i]
        for k in range(len(shares)):
            total[k] += mean * shares[k]


@kernel(fastmath=FAST)
def accumulate(entries, rows, cols, local, first, last, is_whole, acc, totals, counts, slow):
    """Per row: sum_i E[n_ui] phi_uik, by g_uk sum_i (E[n_ui]/dot_ui) g_ik, four entries at a time.

    Unless the entries are all that the rows have (``is_whole``), what they say is added to what is
    there, without the factor g_uk. ``slow`` marks rows that need ``slow_row`` instead: a
    call from here would slow every entry.
    """
    index, coordinate = entries.index, entries.coordinate
    starts, stops = entries.start, entries.stop
    g, row_scales, row_crosses = rows.g, rows.multiplier, rows.cross
    h, scale, cross = cols.g, cols.multiplier, cols.cross
    mode, code, low, high = local.mode, local.first_code, local.x_low, local.x_high
    segments, table = local.mean_table.shape[1], local.mean_table.reshape(-1)
    cross_factor, is_crossed = f4(local.cross), local.cross != 0.0
    size, end = totals.shape[1], len(index) - 1
    for u in range(first, last):
        row_scale, row_cross = row_scales[u], cross_factor * row_crosses[u]
        e, stop, r = starts[u], stops[u], u - first
        # The next row's entries may lie further on, if only a part of each row's is summed.
        gap = starts[u + 1] - stop if u + 1 < last else 0
        pending, count, cross_count, is_slow = 0, 0.0, 0.0, False
        acc[:] = f4(0.0)
        if is_whole:
            for k in range(size):
                totals[r, k] = 0.0
            counts[r, 0], counts[r, 1], counts[r, 2], slow[r] = 0.0, 0.0, 0.0, False
        while e < stop:
            # A last group of fewer than four repeats its first entry with weight 0.
            left = stop - e
            i0 = np.intp(index[e])
            i1 = np.intp(index[e + 1]) if left > 1 else i0
            i2 = np.intp(index[e + 2]) if left > 2 else i0
            i3 = np.intp(index[e + 3]) if left > 3 else i0
            here = (i0, i1, i2, i3)
            ahead = e + 8 + (gap if left <= 8 else 0)
            after_next = (
                np.intp(index[min(ahead, end)]),
                np.intp(index[min(ahead + 1, end)]),
                np.intp(index[min(ahead + 2, end)]),
                np.intp(index[min(ahead + 3, end)]),
            )
            d0, d1, d2, d3 = dot_four(g, u, h, here, after_next)
            y0 = coordinate[e]
            y1 = coordinate[e + 1] if left > 1 else y0
            y2 = coordinate[e + 2] if left > 2 else y0
            y3 = coordinate[e + 3] if left > 3 else y0
            x0 = d0 * (row_scale * scale[i0])
            x1 = d1 * (row_scale * scale[i1])
            x2 = d2 * (row_scale * scale[i2])
            x3 = d3 * (row_scale * scale[i3])
            if is_crossed:
                # What float32 might not hold is infinite, so that the row is redone slowly.
                c0, c1, c2, c3 = cross[i0], cross[i1], cross[i2], cross[i3]
                t0, t1, t2, t3 = row_cross * c0, row_cross * c1, row_cross * c2, row_cross * c3
                f0, f1, f2, f3 = exp_four((t0, t1, t2, t3))
                x0 = x0 * f0 if t0 < f4(80.0) else f4(np.inf)
                x1 = x1 * f1 if t1 < f4(80.0) else f4(np.inf)
                x2 = x2 * f2 if t2 < f4(80.0) else f4(np.inf)
                x3 = x3 * f3 if t3 < f4(80.0) else f4(np.inf)
            m0 = mean_count(mode, code, low, high, segments, table, x0, y0)
            m1 = mean_count(mode, code, low, high, segments, table, x1, y1)
            m2 = mean_count(mode, code, low, high, segments, table, x2, y2)
            m3 = mean_count(mode, code, low, high, segments, table, x3, y3)
            ok0 = m0 >= f4(0.0) and d0 > TINY_DOT
            ok1 = m1 >= f4(0.0) and d1 > TINY_DOT
            ok2 = m2 >= f4(0.0) and d2 > TINY_DOT
            ok3 = m3 >= f4(0.0) and d3 > TINY_DOT
            is_slow |= not (ok0 and ok1 and ok2 and ok3)
            m0 = m0 if ok0 else f4(0.0)
            m1 = m1 if ok1 and left > 1 else f4(0.0)
            m2 = m2 if ok2 and left > 2 else f4(0.0)
            m3 = m3 if ok3 and left > 3 else f4(0.0)
            w0 = m0 / d0 if ok0 else f4(0.0)
            w1 = m1 / d1 if ok1 else f4(0.0)
            w2 = m2 / d2 if ok2 else f4(0.0)
            w3 = m3 / d3 if ok3 else f4(0.0)
            count += (m0 + m1) + (m2 + m3)
            if is_crossed:
                cross_count += m0 * cross[i0] + m1 * cross[i1] + m2 * cross[i2] + m3 * cross[i3]
            add_four(acc, h, here, (w0, w1, w2, w3))
            e += 4
            pending += 4
            if pending >= _FLUSH:
                for k in range(size):
                    totals[r, k] += acc[k]
                acc[:] = f4(0.0)
                pending = 0
        if is_whole:
            for k in range(size):
                totals[r, k] = g[u, k] * (totals[r, k] + acc[k])
        else:
            for k in range(size):
                totals[r, k] += acc[k]
        counts[r, 0] += count
        counts[r, 2] += cross_count
        slow[r] |= is_slow


@kernel()
def sum_part(first, last, entries, rows, cols, local, blocks, sums):
    """Add to the sums of the rows of some blocks what a part of their entries says."""
    acc = np.empty(rows.g.shape[1], np.float32)
    here, end = blocks[first], blocks[last]
    totals, counts, slow = sums.totals[here:end], sums.counts[here:end], sums.slow[here:end]
    accumulate(entries, rows, cols, local, here, end, False, acc, totals, counts, slow)
