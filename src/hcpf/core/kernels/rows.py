"""The half-step: optimal posteriors of whole rows, the other axis held fixed; and momentum."""

import math

import numpy as np

from hcpf.core.jit import FAST, inner, kernel
from hcpf.core.kernels.posterior import rescale_row, update_row
from hcpf.core.kernels.scalars import log_mean
from hcpf.core.kernels.sums import accumulate, slow_row
from hcpf.core.kernels.types import COUNT, CROSS_COUNT, CUT, MULTIPLIER, VALUE_SUM, Sums

f4 = np.float32
_SPAN = 32
"""Rows done together: their sums stay in the first cache, and float32 still holds the sums of the
means of so few rows."""
# Shapes above _NO_UNDERFLOW have an exp(digamma) that float32 holds: exp(-1/0.0125) is 1e-35. In a
# row with a shape above _DWARFS_UNDERFLOW, what underflows is far below TINY_DOT of the rest.
_NO_UNDERFLOW, _DWARFS_UNDERFLOW = f4(0.0125), f4(0.2)
# Of momentum: the least factor of g, what keeps a division finite, and a g that is not known.
_MIN_FACTOR, _MIN_DIVISOR, _UNKNOWN_G = f4(0.2), f4(1e-30), f4(-1.0)


@inner()
def _multiplier(log_multiplier):
    """What a dot product is multiplied with; 0 or infinity where float32 might not hold it."""
    # exp(80) is 5.5e34. ``AxisState.set_multipliers`` has the same limits.
    if log_multiplier < -80.0:
        return f4(0.0)
    return f4(math.exp(log_multiplier)) if log_multiplier <= 80.0 else f4(np.inf)


@inner()
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
    for u in range(len(rows.a)):
        least = rescale_row(rows.a, rows.mean, rows.g, u)
        rows.log_scale[u] = 0.0 if least > _NO_UNDERFLOW else _scale_small_row(rows, u)
        rows.row_terms[u, MULTIPLIER] = _multiplier(rows.log_scale[u] + rows.shift[u])


@inner(fastmath=FAST)
def add_listed(listed, cols, first, last, base, scale, rates):
    """Per row: the shared part of the rates and the listed's pairs on top."""
    start, stop, index, means = listed.start, listed.stop, listed.index, cols.mean
    for u in range(first, last):
        r = u - first
        for k in range(len(base)):
            rates[r, k] = 0.0
        for e in range(start[u], stop[u]):
            for k in range(len(base)):
                rates[r, k] += means[index[e], k]
        for k in range(len(base)):
            rates[r, k] = scale * max(base[k] + listed.sign * rates[r, k], 0.0)


@inner()
def set_posteriors(rows, first, last, prior, sums):
    """New posteriors of some rows; adds their means to the column sum."""
    a, mean, g, activity_b, exposure = rows.a, rows.mean, rows.g, rows.activity_b, rows.exposure
    log_scales, row_terms, shifts = rows.log_scale, rows.row_terms, rows.shift
    row_count, cross_count, value_sum = rows.count, rows.cross_count, rows.value_sum
    totals, counts, slow = sums.totals, sums.counts, sums.slow
    rates, column_sum = sums.rates, sums.column_sum
    shape, scale, step = prior.shape, prior.scale, prior.step
    for u in range(first, last):
        r = u - first
        # E[r_u] / e_u from before this half-step: first s_u is updated given r_u, then r_u.
        activity = prior.activity_a / activity_b[u] / exposure[u]
        row_sum, least = update_row(
            a, mean, g, u, totals, rates, r, slow[r], shape, scale, activity, step, column_sum
        )
        activity_b[u] = prior.activity_rate + row_sum / exposure[u]
        row_count[u], cross_count[u] = counts[r, COUNT], counts[r, CROSS_COUNT]
        value_sum[u] = counts[r, VALUE_SUM]
        log_scale = 0.0 if least > _NO_UNDERFLOW else _scale_small_row(rows, u)
        if log_scale != log_scales[u]:  # both are 0 as a rule
            log_scales[u] = log_scale
            row_terms[u, MULTIPLIER] = _multiplier(log_scale + shifts[u])


def update_rows(first, last, entries, rows, *arguments):
    """One half-step: the optimal posterior of each row of some blocks, the columns held fixed.

    The arguments are those of ``_update_rows``. ``base`` is the part of the rates that all rows
    share (the column sums of the other axis' means, or 0); ``listed`` adds or takes away single
    pairs. Sums over rows come back per block, added to what is there.
    """
    _update_rows(first, last, Sums.of(_SPAN, rows.a.shape[1]), entries, rows, *arguments)


@kernel()
def _update_rows(
    first, last, span, entries, rows, cols, tables, prior, base, listed, blocks, column_sums, counts
):
    # Arrays are copied in loops: an assignment of slices would compile its error message, too.
    size, column_sum = rows.a.shape[1], span.column_sum
    for r in range(_SPAN):
        for k in range(size):
            span.rates[r, k] = prior.scale * base[k]
    for block in range(first, last):
        for here in range(blocks[block], blocks[block + 1], _SPAN):
            end = min(here + _SPAN, blocks[block + 1])
            accumulate(entries, rows, cols, tables, here, end, span)
            for r in range(end - here):
                if span.slow[r]:
                    slow_row(entries, rows, cols, tables, here + r, span, r)
                counts[block, COUNT] += span.counts[r, COUNT]
                counts[block, CUT] += span.counts[r, CUT]
            if listed.sign != 0.0:
                add_listed(listed, cols, here, end, base, prior.scale, span.rates)
            set_posteriors(rows, here, end, prior, span)
            for k in range(size):
                column_sums[block, k] += column_sum[k]
                column_sum[k] = f4(0.0)


def accumulate_rows(first, last, entries, rows, *arguments):
    """Fill in what the entries and listed pairs of each row of some blocks add up to.

    The first half of ``update_rows``, in a unit that adds up over workers: ``totals`` are sums of
    E[n] phi_k, ``listed_means`` sums of the other axis' means over the listed pairs.
    """
    _accumulate_rows(first, last, Sums.of(_SPAN, rows.a.shape[1]), entries, rows, *arguments)


@kernel()
def _accumulate_rows(
    first, last, span, entries, rows, cols, tables, listed, blocks, totals, listed_means, counts
):
    size = rows.a.shape[1]
    start, stop, index, means = listed.start, listed.stop, listed.index, cols.mean
    for block in range(first, last):
        for here in range(blocks[block], blocks[block + 1], _SPAN):
            end = min(here + _SPAN, blocks[block + 1])
            accumulate(entries, rows, cols, tables, here, end, span)
            for u in range(here, end):
                r = u - here
                if span.slow[r]:
                    slow_row(entries, rows, cols, tables, u, span, r)
                for k in range(size):
                    unit = 1.0 if span.slow[r] else float(rows.g[u, k])
                    totals[u, k] = span.totals[r, k] * unit
                for j in range(4):
                    counts[u, j] = span.counts[r, j]
                for e in range(start[u], stop[u]):
                    for k in range(size):
                        listed_means[u, k] += means[index[e], k]


def apply_rows(first, last, offset, rows, *arguments):
    """Set the posteriors of each row of some blocks from sums over all workers.

    The second half of ``update_rows``. The sums of row u stand in row u - ``offset``.
    """
    _apply_rows(first, last, Sums.of(_SPAN, rows.a.shape[1]), offset, rows, *arguments)


@kernel()
def _apply_rows(
    first, last, span, offset, rows, prior, base, sign, totals, listed_means, counts, blocks,
    column_sums,
):  # fmt: skip
    size, column_sum = rows.a.shape[1], span.column_sum
    for block in range(first, last):
        for here in range(blocks[block], blocks[block + 1], _SPAN):
            end = min(here + _SPAN, blocks[block + 1])
            for u in range(here, end):
                r, j = u - here, u - offset
                for k in range(size):
                    span.totals[r, k] = totals[j, k]
                    shared = max(base[k] + sign * listed_means[j, k], 0.0)
                    span.rates[r, k] = prior.scale * shared
                for column in range(4):
                    span.counts[r, column] = counts[j, column]
            set_posteriors(rows, here, end, prior, span)
            for k in range(size):
                column_sums[block, k] += column_sum[k]
                column_sum[k] = f4(0.0)


@kernel(fastmath=FAST | {"nnan"})
def extrapolate(first, last, g, before, log_scale, share, most):
    """Move log g on by a share of its last move; where it was is left in ``before``.

    No number is multiplied with more than ``most``.

    (g / before)^share is all but ((1 + share) g + (1 - share) before) / ((1 - share) g + (1 +
    share) before). Rows that are scaled, now or before, stay where they are.
    """
    ahead, behind, most = f4(1.0 + share), f4(1.0 - share), f4(most)
    for u in range(first, last):
        if log_scale[u] != 0.0 or before[u, 0] == _UNKNOWN_G:
            for k in range(before.shape[1]):
                before[u, k] = g[u, k]
            if log_scale[u] != 0.0:
                before[u, 0] = _UNKNOWN_G
        else:
            for k in range(before.shape[1]):
                new, old = g[u, k], before[u, k]
                ratio = (ahead * new + behind * old) / max(behind * new + ahead * old, _MIN_DIVISOR)
                before[u, k] = new
                g[u, k] = new * min(max(ratio, _MIN_FACTOR), most)
