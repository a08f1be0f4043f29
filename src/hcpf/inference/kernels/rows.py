"""The half-step: optimal posteriors of whole rows, the other side held fixed."""

import math

import numpy as np
from numba import prange  # pyright: ignore[reportMissingTypeStubs]

from hcpf.inference.jit import FAST, kernel
from hcpf.inference.kernels.count import mean_count, outside
from hcpf.inference.kernels.scalars import exp_digamma, fast_exp, log_mean
from hcpf.inference.kernels.types import TINY_DOT
from hcpf.inference.kernels.vector import add_four, dot_four

f4 = np.float32
_SPAN = 16  # rows whose exponentials are taken together, while they are in the cache
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


@kernel(forceinline=True, fastmath=FAST)
def _crossed(d, cross):
    """A dot product times e^cross; infinite, to be redone slowly, where float32 might overflow."""
    return d * fast_exp(cross) if cross < f4(80.0) else f4(np.inf)


@kernel()
def _slow_row(entries, rows, cols, local, u, extra, counts):
    """The sums of E[n] phi_k over a whole row, each entry summed over n directly.

    For rows that ``_accumulate`` cannot finish. Which entries those are may depend on the last
    bit of a dot product, so the whole row is done anew.
    """
    shares = np.empty(extra.shape[0])
    for e in range(entries.start[u], entries.stop[u]):
        i = entries.index[e]
        log_rate = log_rate_of(rows, cols, u, i, shares) + element_shift(rows, cols, local, u, i)
        mean, _, cut = outside(local, log_rate, entries.coordinate[e])
        counts[0] += mean
        counts[1] += cut
        counts[2] += mean * cols.cross[i]
        for k in range(len(shares)):
            extra[k] += mean * shares[k]


@kernel(fastmath=FAST)
def _accumulate(entries, rows, cols, local, u, acc, total, counts):
    """total_k = sum over the row's entries of (E[n]/dot) g_ik, four entries at a time.

    Returns whether the row needs ``_slow_row`` instead: a call from here would slow every entry.
    """
    index, coordinate = entries.index, entries.coordinate
    g, h, scale = rows.g, cols.g, cols.multiplier
    mode, code, low, high = local.mode, local.first_code, local.x_low, local.x_high
    segments, table = local.mean_table.shape[1], local.mean_table.reshape(-1)
    row_scale = rows.multiplier[u]
    cross, row_cross = cols.cross, f4(local.cross) * rows.cross[u]
    is_crossed = local.cross != 0.0
    e, stop, end = entries.start[u], entries.stop[u], len(index) - 1
    pending, count, cross_count, slow = 0, 0.0, 0.0, False
    acc[:] = f4(0.0)
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
            x0 = _crossed(x0, row_cross * cross[i0])
            x1 = _crossed(x1, row_cross * cross[i1])
            x2 = _crossed(x2, row_cross * cross[i2])
            x3 = _crossed(x3, row_cross * cross[i3])
        m0 = mean_count(mode, code, low, high, segments, table, x0, y0)
        m1 = mean_count(mode, code, low, high, segments, table, x1, y1)
        m2 = mean_count(mode, code, low, high, segments, table, x2, y2)
        m3 = mean_count(mode, code, low, high, segments, table, x3, y3)
        ok0 = m0 >= f4(0.0) and d0 > TINY_DOT
        ok1 = m1 >= f4(0.0) and d1 > TINY_DOT
        ok2 = m2 >= f4(0.0) and d2 > TINY_DOT
        ok3 = m3 >= f4(0.0) and d3 > TINY_DOT
        slow |= not (ok0 and ok1 and ok2 and ok3)
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
            for k in range(len(total)):
                total[k] += acc[k]
            acc[:] = f4(0.0)
            pending = 0
    for k in range(len(total)):
        total[k] += acc[k]
    if not slow:
        counts[0] += count
        counts[2] += cross_count
    return slow


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
def weigh_values(start, stop, index, values, weight, out):
    """Per row: the sum of its values, each times the weight of its column."""
    for u in range(len(start)):
        total = 0.0
        for e in range(start[u], stop[u]):
            total += values[e] * weight[index[e]]
        out[u] = total


@kernel()
def advance(position, stop, index, bound, out):
    """Per row: the first position from ``position`` on whose index is ``bound`` or more."""
    for r in range(position.shape[0]):
        e = position[r]
        while e < stop[r] and index[e] < bound:
            e += 1
        out[r] = e


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
    for j in range(len(a)):
        work[j] = exp_digamma(a[j]) * mean[j] / a[j]
    for u in range(first, last):
        least = rows.a[u, 0]
        for k in range(size):
            rows.g[u, k] = work[(u - first) * size + k]
            least = rows.a[u, k] if rows.a[u, k] < least else least
        log_scale = 0.0 if least > _NO_UNDERFLOW else _scale_small_row(rows, u)
        rows.log_scale[u] = log_scale
        log_multiplier = log_scale + rows.shift[u]
        if log_multiplier < -80.0:
            rows.multiplier[u] = f4(0.0)
        elif log_multiplier > 80.0:
            rows.multiplier[u] = f4(np.inf)
        else:
            rows.multiplier[u] = f4(math.exp(log_multiplier))


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


@kernel(parallel=True)
def scale_rows(rows, blocks):
    """Recompute g, log_scale and multiplier of all rows from a, mean and shift."""
    a, mean = rows.a.reshape(-1), rows.mean.reshape(-1)
    for block in prange(blocks.shape[0] - 1):
        work = np.empty(_SPAN * rows.a.shape[1], np.float32)
        for first in range(blocks[block], blocks[block + 1], _SPAN):
            _scale_span(rows, a, mean, work, first, min(first + _SPAN, blocks[block + 1]))


@kernel(fastmath=FAST)
def _posterior_row(rows, u, prior, base, pattern_sum, sign, total, extra, count, column_sum):
    """New a, mean, activity and counts of one row; adds its means to the column sums."""
    size = total.shape[0]
    activity = prior.activity_a / rows.activity_b[u]
    step, keep = prior.step, 1.0 - prior.step
    row_sum = 0.0
    for k in range(size):
        old_a = float(rows.a[u, k])
        a = prior.shape + prior.scale * (rows.g[u, k] * total[k] + extra[k])
        b = activity + prior.scale * max(base[k] + sign * pattern_sum[k], 0.0)
        if keep > 0.0:
            b = keep * old_a / float(rows.mean[u, k]) + step * b
            a = keep * old_a + step * a
        rows.a[u, k] = f4(a)
        mean = f4(a / b)
        rows.mean[u, k] = mean
        row_sum += mean
        column_sum[k] += mean
    rows.activity_b[u] = prior.activity_rate + row_sum
    rows.count[u], rows.cross_count[u] = count[0], count[2]


@kernel(parallel=True)
def update_rows(entries, rows, cols, local, prior, base, pattern, blocks, column_sums, counts):
    """One half-step: the optimal posterior of each row in ``blocks``, the columns held fixed.

    ``base`` is the part of the rates that all rows share (the column sums of the other side's
    means, or 0); ``pattern`` adds or takes away single pairs. Sums over rows come back per block.
    """
    # Arrays are copied in loops: an assignment of slices would compile its error message, too.
    size = rows.a.shape[1]
    flat_a, flat_mean = rows.a.reshape(-1), rows.mean.reshape(-1)
    for block in prange(blocks.shape[0] - 1):
        acc = np.empty(rows.g.shape[1], np.float32)
        work = np.empty(_SPAN * size, np.float32)
        total = np.empty(size)
        extra = np.empty(size)
        pattern_sum = np.zeros(size)
        column_sum = np.zeros(size)
        count, row_count = np.zeros(2), np.zeros(3)
        waiting = blocks[block]
        for u in range(blocks[block], blocks[block + 1]):
            total[:] = 0.0
            extra[:] = 0.0
            row_count[:] = 0.0
            if _accumulate(entries, rows, cols, local, u, acc, total, row_count):
                total[:] = 0.0
                _slow_row(entries, rows, cols, local, u, extra, row_count)
            count[0] += row_count[0]
            count[1] += row_count[1]
            if pattern.sign != 0.0:
                pattern_sum[:] = 0.0
                for e in range(pattern.start[u], pattern.stop[u]):
                    i = pattern.index[e]
                    for k in range(size):
                        pattern_sum[k] += cols.mean[i, k]
            _posterior_row(
                rows, u, prior, base, pattern_sum, pattern.sign, total, extra, row_count, column_sum
            )
            if u + 1 - waiting == _SPAN or u + 1 == blocks[block + 1]:
                _scale_span(rows, flat_a, flat_mean, work, waiting, u + 1)
                waiting = u + 1
        for k in range(size):
            column_sums[block, k] = column_sum[k]
        counts[block, 0], counts[block, 1] = count[0], count[1]
