"""The half-step: optimal posteriors of whole rows, the other side held fixed."""

import math

import numpy as np

from hcpf.inference.jit import FAST, kernel
from hcpf.inference.kernels.scalars import geometric_mean, log_mean
from hcpf.inference.kernels.sums import accumulate, slow_row

f4 = np.float32
_SPAN = 32
"""Rows done together. Taking an array out of a tuple counts references, at the price of an
entry; and over several rows the exponentials run as one long vector loop."""
# Shapes whose exp(digamma) float32 holds; and such that, beside them, what underflows is far
# below TINY_DOT.
_NO_UNDERFLOW, _DWARFS_UNDERFLOW = f4(0.0125), f4(0.2)


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
def _take(sums, first, last, g, totals, counts, slow):
    """Read what was summed part by part, times g, as ``accumulate`` gives it for whole rows."""
    for u in range(first, last):
        r = u - first
        for k in range(totals.shape[1]):
            totals[r, k] = g[u, k] * sums.totals[u, k]
        for j in range(counts.shape[1]):
            counts[r, j] = sums.counts[u, j]
        slow[r] = sums.slow[u]


@kernel()
def update_rows(
    first, last, entries, rows, cols, local, prior, base, pattern, blocks, sums, column_sums, counts
):
    """One half-step: the optimal posterior of each row of some blocks, the columns held fixed.

    ``base`` is the part of the rates that all rows share (the column sums of the other side's
    means, or 0); ``pattern`` adds or takes away single pairs. Sums over rows come back per block,
    added to what is there.
    """
    # Arrays are copied in loops: an assignment of slices would compile its error message, too.
    size = rows.a.shape[1]
    flat_a, flat_mean = rows.a.reshape(-1), rows.mean.reshape(-1)
    g, is_summed = rows.g, len(sums.totals) > 0
    acc, work = np.empty(g.shape[1], np.float32), np.empty((_SPAN, size), np.float32)
    totals, rates = np.empty((_SPAN, size)), np.empty((_SPAN, size))
    row_counts, slow = np.empty((_SPAN, 3)), np.empty(_SPAN, np.bool_)
    for r in range(_SPAN):
        for k in range(size):
            rates[r, k] = prior.scale * base[k]
    for block in range(first, last):
        count, column_sum = counts[block], column_sums[block]
        for here in range(blocks[block], blocks[block + 1], _SPAN):
            end = min(here + _SPAN, blocks[block + 1])
            if is_summed:
                _take(sums, here, end, g, totals, row_counts, slow)
            else:
                accumulate(
                    entries, rows, cols, local, here, end, True, acc, totals, row_counts, slow
                )
            for r in range(end - here):
                if slow[r]:
                    slow_row(entries, rows, cols, local, here + r, totals[r], row_counts[r])
                count[0] += row_counts[r, 0]
                count[1] += row_counts[r, 1]
            if pattern.sign != 0.0:
                _add_pattern(pattern, cols, here, end, base, prior.scale, rates)
            _posteriors(rows, here, end, prior, totals, rates, row_counts, column_sum)
            _scale_span(rows, flat_a, flat_mean, work, here, end)
