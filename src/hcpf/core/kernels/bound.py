"""Sums over entries and rows that make up the ELBO, and rates of pairs."""

import math

import numpy as np

from hcpf.core.jit import FAST, inner, kernel
from hcpf.core.kernels.count import entry_sum, piece
from hcpf.core.kernels.gamma_bound import gamma_row_bound
from hcpf.core.kernels.scalars import log_gamma_digamma
from hcpf.core.kernels.sums import LATER, SOON, element_shift, four_ahead, four_from, log_rate_of
from hcpf.core.kernels.types import CROSS, KNOWN, MULTIPLIER, ROWS, SHIFT, TINY_DOT, Sums
from hcpf.core.kernels.vector import dot_four, fetch_four, take_four

f4 = np.float32


@inner(fastmath=FAST)
def _entry_log_z(rows, cols, tables, u, i, y, dot):
    """Log Z of one entry at its dot product, and whether the tables did not hold it."""
    if not dot > TINY_DOT:
        return 0.0, True
    table, mode = tables.log_table, tables.mode
    x = dot * (rows.row_terms[u, MULTIPLIER] * cols.row_terms[i, MULTIPLIER])
    log_rate = rows.log_scale[u] + rows.shift[u] + cols.log_scale[i] + cols.shift[i] + math.log(dot)
    cross = tables.cross * rows.row_terms[u, CROSS] * cols.row_terms[i, CROSS]
    if cross != 0.0:
        x *= f4(math.exp(min(cross, 80.0)))
        log_rate += cross
    if mode == KNOWN:
        return y * log_rate, False
    row = 0
    if mode == SHIFT:
        x = x * y
    else:
        row = int(y)
    if not (x >= tables.x_low and x < tables.x_high):
        return 0.0, True
    bits = np.float32(x).view(np.int32)
    j = (bits >> 20) - tables.first_code
    t = float(bits & 0xFFFFF) * 2.0**-20
    # What is tabulated is the log of the sum over x^least, with x the rate that the row is read at.
    log_z = piece(table, row, j, t, float(y) - row, mode)
    if mode == ROWS:
        return log_z + tables.least[row] * log_rate, False
    if mode == SHIFT:
        return log_z + log_rate + math.log(y), False
    return log_z + log_rate, False


@inner(fastmath=FAST)
def _row_log_z(entries, rows, cols, tables, u, some):
    """Sum of log Z over the row's entries, and whether the tables did not hold some of them."""
    index, coordinate = entries.index, entries.coordinate
    ahead = index if len(index) >= 4 else some
    end, e, stop, total = len(ahead), entries.start[u], entries.stop[u], 0.0
    while e < stop:
        here = take_four(index, four_from(e, stop - 1))
        soon = take_four(ahead, four_ahead(e + SOON, end))
        later = take_four(ahead, four_ahead(e + LATER, end))
        fetch_four(cols.row_terms, later)
        dots = dot_four(rows.g, u, cols.g, here, soon, later)
        for j in range(min(4, stop - e)):
            log_z, slow = _entry_log_z(rows, cols, tables, u, here[j], coordinate[e + j], dots[j])
            if slow:
                return total, True
            total += log_z
        e += 4
    return total, False


@inner()
def _slow_log_z(entries, rows, cols, tables, u, shares):
    """A row's sum of log Z, entry by entry in float64."""
    total = 0.0
    for e in range(entries.start[u], entries.stop[u]):
        i = entries.index[e]
        log_rate = log_rate_of(rows, cols, u, i, shares) + element_shift(rows, cols, tables, u, i)
        total += entry_sum(tables, log_rate, entries.coordinate[e])[1]
    return total


def sum_log_z(first, last, entries, rows, *arguments):
    """Per block of rows: the sum of log Z over the entries (without the part constant in n)."""
    space = Sums.of(1, rows.a.shape[1])
    _sum_log_z(first, last, space.shares, space.some, entries, rows, *arguments)


@kernel()
def _sum_log_z(first, last, shares, some, entries, rows, cols, tables, blocks, sums):
    for block in range(first, last):
        total = 0.0
        for u in range(blocks[block], blocks[block + 1]):
            part, slow = _row_log_z(entries, rows, cols, tables, u, some)
            if slow:
                part = _slow_log_z(entries, rows, cols, tables, u, shares)
            total += part
        sums[block] = total


@kernel()
def axis_bound(first, last, rows, prior, activity_shape, blocks, sums):
    """Per block: E log p(s|r) + E log p(r) + H[s] + H[r] summed over the rows."""
    size = rows.a.shape[1]
    a_r = prior.activity_a
    log_gamma_r, digamma_r = log_gamma_digamma(a_r)
    log_gamma_prior = log_gamma_digamma(activity_shape)[0]
    log_gamma_shape = log_gamma_digamma(prior.shape)[0]
    rate = prior.activity_rate
    for block in range(first, last):
        total = 0.0
        for u in range(blocks[block], blocks[block + 1]):
            b_r = rows.activity_b[u]
            log_r = digamma_r - math.log(b_r)
            mean_r = a_r / b_r
            exposure = rows.exposure[u]
            bound, sum_of_means = gamma_row_bound(rows.a, rows.mean, u, prior.shape)
            total += bound - mean_r / exposure * sum_of_means
            log_rate = log_r - math.log(exposure)
            total += size * (prior.shape * log_rate - log_gamma_shape)
            total += activity_shape * math.log(rate) - log_gamma_prior
            total += (activity_shape - 1.0) * log_r - rate * mean_r
            total += a_r - math.log(b_r) + log_gamma_r + (1.0 - a_r) * digamma_r
        sums[block] = total


@kernel(fastmath=FAST)
def listed_rates(first, last, start, stop, index, row_mean, col_mean, blocks, sums):
    """Per block: the sum of E[s_u] . E[v_i] over the pairs of a listed."""
    size = row_mean.shape[1]
    for block in range(first, last):
        total = 0.0
        for u in range(blocks[block], blocks[block + 1]):
            for e in range(start[u], stop[u]):
                i = index[e]
                dot = f4(0.0)
                for k in range(size):
                    dot += row_mean[u, k] * col_mean[i, k]
                total += dot
        sums[block] = total


@kernel(fastmath=FAST)
def pair_rates(first, last, row_mean, col_mean, row, col, out):
    """E[s_u] . E[v_i] for each pair (row[j], col[j])."""
    size = row_mean.shape[1]
    for j in range(first, last):
        dot = f4(0.0)
        for k in range(size):
            dot += row_mean[row[j], k] * col_mean[col[j], k]
        out[j] = dot
