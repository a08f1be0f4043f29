"""The half-step: optimal posteriors of whole rows, the other side held fixed."""

import math

import numpy as np

from hcpf.inference.jit import FAST, kernel
from hcpf.inference.kernels.count import mean_count, outside
from hcpf.inference.kernels.scalars import geometric_mean, log_mean
from hcpf.inference.kernels.types import TINY_DOT
from hcpf.inference.kernels.vector import add_four, dot_four, exp_four

f4 = np.float32
_SPAN = 32
"""Rows done together. Taking an array out of a tuple counts references, at the price of an
entry; and over several rows the exponentials run as one long vector loop."""
_FLUSH = 256  # entries after which the float32 accumulator is added to the float64 one
# Shapes whose exp(digamma) float32 holds; and such that, beside them, what underflows is far
# below TINY_DOT.
_NO_UNDERFLOW, _DWARFS_UNDERFLOW = f4(0.0125), f4(0.2)


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
def _slow_row(entries, rows, cols, local, u, total, count):
    """The sums of E[n] phi_k over a whole row, each entry summed over n directly.

    For rows that ``_accumulate`` cannot finish. Which entries those are may depend on the last
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
def _accumulate(entries, rows, cols, local, first, last, acc, totals, counts, slow):
    """Per row: sum_i E[n_ui] phi_uik, by g_uk sum_i (E[n_ui]/dot) g_ik, four entries at a time.

    ``slow`` marks rows that need ``_slow_row`` instead: a call from here would slow every entry.
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
        pending, count, cross_count, is_slow = 0, 0.0, 0.0, False
        acc[:] = f4(0.0)
        for k in range(size):
            totals[r, k] = 0.0
        while e < stop:
            # A last group of fewer than four repeats its first entry with weight 0.
            left = stop - e
            i0 = np.intp(index[e])
            i1 = np.intp(index[e + 1]) if left > 1 else i0
            i2 = np.intp(index[e + 2]) if left > 2 else i0
            i3 = np.intp(index[e + 3]) if left > 3 else i0
            here = (i0, i1, i2, i3)
            after_next = (
                np.intp(index[min(e + 8, end)]),
                np.intp(index[min(e + 9, end)]),
                np.intp(index[min(e + 10, end)]),
                np.intp(index[min(e + 11, end)]),
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
        for k in range(size):
            totals[r, k] = g[u, k] * (totals[r, k] + acc[k])
        counts[r, 0], counts[r, 1], counts[r, 2] = count, 0.0, cross_count
        slow[r] = is_slow


@kernel()
def transpose(rows, place, index, coordinate):
    """Put the entries of all rows into those of the columns; ``place`` is where each begins."""
    for u in range(len(rows.start)):
        for e in range(rows.start[u], rows.stop[u]):
            i = rows.index[e]
            index[place[i]] = u
            coordinate[place[i]] = rows.coordinate[e]
            place[i] += 1


@kernel()
def weigh_values(first, last, start, stop, index, values, weight, out):
    """Per row: the sum of its values, each times the weight of its column."""
    for u in range(first, last):
        total = 0.0
        for e in range(start[u], stop[u]):
            total += values[e] * weight[index[e]]
        out[u] = total


@kernel()
def weigh_columns(first, last, blocks, start, stop, index, values, weight, out):
    """Per block of rows and column: the sum of the values, each times the weight of its row."""
    for block in range(first, last):
        for u in range(blocks[block], blocks[block + 1]):
            for e in range(start[u], stop[u]):
                out[block, index[e]] += values[e] * weight[u]


@kernel()
def advance(position, stop, index, bound, out):
    """Per row: the first position from ``position`` on whose index is ``bound`` or more."""
    for r in range(position.shape[0]):
        e = position[r]
        while e < stop[r] and index[e] < bound:
            e += 1
        out[r] = e


@kernel()
def _multiplier(log_multiplier):
    """What a dot product is multiplied with; 0 or infinity where float32 might not hold it."""
    if log_multiplier < -80.0:
        return f4(0.0)
    return f4(math.exp(log_multiplier)) if log_multiplier <= 80.0 else f4(np.inf)


@kernel(fastmath=FAST | {"nnan"})
def _scale_span(rows, a, mean, work, first, last):
    """Set g = exp(E log s), and the multipliers that the rates take besides.

    Rows with a shape so small that float32 might underflow are scaled to a maximum of 1. ``a``
    and ``mean`` are the flat arrays of all rows: over several rows at once the exponentials run
    as one long vector loop.
    """
    size = rows.a.shape[1]
    # Views that start at 0: an index that might be negative, for all the compiler knows, would
    # keep the loops from being vectorised.
    a = a[first * size : last * size]
    mean = mean[first * size : last * size]
    flat = work.reshape(-1)
    for j in range(len(a)):
        flat[j] = geometric_mean(a[j], mean[j])
    shapes, g, log_scales, shifts = rows.a, rows.g, rows.log_scale, rows.shift
    multipliers = rows.multiplier
    log_multiplier, multiplier = 0.0, f4(1.0)
    for u in range(first, last):
        r = u - first
        tiny = 0
        for k in range(size):
            tiny += shapes[u, k] <= _NO_UNDERFLOW
        for k in range(size):
            g[u, k] = work[r, k]
        log_scale = 0.0 if tiny == 0 else _scale_small_row(rows, u)
        log_scales[u] = log_scale
        if log_scale + shifts[u] != log_multiplier:  # most rows share one
            log_multiplier = log_scale + shifts[u]
            multiplier = _multiplier(log_multiplier)
        multipliers[u] = multiplier


@kernel()
def _scale_small_row(rows, u):
    """Scale a row of g with some tiny shapes; returns the log of the scale."""
    size = rows.a.shape[1]
    top, most = f4(0.0), f4(0.0)
    for k in range(size):
        top = max(top, rows.g[u, k])
        most = max(most, rows.a[u, k])
    if most > _DWARFS_UNDERFLOW:
        for k in range(size):
            rows.g[u, k] /= top
        return math.log(top)
    log_scale = -np.inf
    for k in range(size):
        log_scale = max(log_scale, log_mean(float(rows.a[u, k]), float(rows.mean[u, k])))
    for k in range(size):
        here = log_mean(float(rows.a[u, k]), float(rows.mean[u, k]))
        rows.g[u, k] = f4(math.exp(here - log_scale))
    return log_scale


@kernel()
def scale_rows(rows):
    """Recompute g, log_scale and multiplier of all rows from a, mean and shift."""
    a, mean = rows.a.reshape(-1), rows.mean.reshape(-1)
    work = np.empty((_SPAN, rows.a.shape[1]), np.float32)
    for first in range(0, len(rows.a), _SPAN):
        _scale_span(rows, a, mean, work, first, min(first + _SPAN, len(rows.a)))


@kernel(fastmath=FAST)
def _add_pattern(pattern, cols, first, last, base, scale, rates):
    """Per row: the shared part of the rates and the pattern's pairs on top."""
    start, stop, index, means = pattern.start, pattern.stop, pattern.index, cols.mean
    for u in range(first, last):
        r = u - first
        for k in range(len(base)):
            rates[r, k] = 0.0
        for e in range(start[u], stop[u]):
            for k in range(len(base)):
                rates[r, k] += means[index[e], k]
        for k in range(len(base)):
            rates[r, k] = scale * max(base[k] + pattern.sign * rates[r, k], 0.0)


@kernel(fastmath=FAST)
def _posteriors(rows, first, last, prior, totals, rates, counts, column_sum):
    """New a, mean, activity and counts of some rows; adds their means to the column sums.

    Loops over few arrays each: the compiler vectorises only where it can tell these apart.
    """
    size = totals.shape[1]
    shapes, means, activity_b = rows.a, rows.mean, rows.activity_b
    row_count, cross_count = rows.count, rows.cross_count
    shape, scale, step, keep = prior.shape, prior.scale, prior.step, 1.0 - prior.step
    for u in range(first, last):
        r, row_sum = u - first, 0.0
        activity = prior.activity_a / activity_b[u]
        if keep == 0.0:
            for k in range(size):
                a = shape + scale * totals[r, k]
                mean = f4(a / (activity + rates[r, k]))
                shapes[u, k] = f4(a)
                means[u, k] = mean
                row_sum += mean
        else:
            for k in range(size):
                old_a = float(shapes[u, k])
                a = keep * old_a + step * (shape + scale * totals[r, k])
                b = keep * old_a / float(means[u, k]) + step * (activity + rates[r, k])
                shapes[u, k] = f4(a)
                mean = f4(a / b)
                means[u, k] = mean
                row_sum += mean
        for k in range(size):
            column_sum[k] += means[u, k]
        activity_b[u] = prior.activity_rate + row_sum
        row_count[u], cross_count[u] = counts[r, 0], counts[r, 2]


@kernel()
def update_rows(
    first, last, entries, rows, cols, local, prior, base, pattern, blocks, column_sums, counts
):
    """One half-step: the optimal posterior of each row of some blocks, the columns held fixed.

    ``base`` is the part of the rates that all rows share (the column sums of the other side's
    means, or 0); ``pattern`` adds or takes away single pairs. Sums over rows come back per block,
    added to what is there.
    """
    # Arrays are copied in loops: an assignment of slices would compile its error message, too.
    size = rows.a.shape[1]
    flat_a, flat_mean = rows.a.reshape(-1), rows.mean.reshape(-1)
    acc, work = np.empty(rows.g.shape[1], np.float32), np.empty((_SPAN, size), np.float32)
    totals, rates = np.empty((_SPAN, size)), np.empty((_SPAN, size))
    row_counts, slow = np.empty((_SPAN, 3)), np.zeros(_SPAN, np.bool_)
    for r in range(_SPAN):
        for k in range(size):
            rates[r, k] = prior.scale * base[k]
    for block in range(first, last):
        count, column_sum = counts[block], column_sums[block]
        for here in range(blocks[block], blocks[block + 1], _SPAN):
            end = min(here + _SPAN, blocks[block + 1])
            _accumulate(entries, rows, cols, local, here, end, acc, totals, row_counts, slow)
            for r in range(end - here):
                if slow[r]:
                    _slow_row(entries, rows, cols, local, here + r, totals[r], row_counts[r])
                count[0] += row_counts[r, 0]
                count[1] += row_counts[r, 1]
            if pattern.sign != 0.0:
                _add_pattern(pattern, cols, here, end, base, prior.scale, rates)
            _posteriors(rows, here, end, prior, totals, rates, row_counts, column_sum)
            _scale_span(rows, flat_a, flat_mean, work, here, end)
