"""Fold-in: the half-steps of single rows, repeated until each row has converged."""

import numpy as np

from hcpf.core.jit import kernel
from hcpf.core.kernels.rows import add_listed, set_posteriors
from hcpf.core.kernels.sums import accumulate, slow_row
from hcpf.core.kernels.types import CUT, Sums

f4 = np.float32
_TINY = f4(1e-30)  # what a mean of 0 may change by


def converge_rows(first, last, chosen, entries, rows, *arguments):
    """Repeat the half-steps of some of the ``chosen`` rows, each until it has converged.

    That is when no mean of the row changes by more than a share of it, the ``tolerance``.
    ``is_moving`` tells whether a row stopped before that, after ``max_half_steps``; ``n_cut``
    counts the entries of its last half-step whose sum over n was cut short. The other arguments are
    those of ``update_rows``.
    """
    size = rows.a.shape[1]
    memory = Sums.of(1, size), np.empty(size, np.float32)
    _converge_rows(first, last, *memory, chosen, entries, rows, *arguments)


@kernel()
def _converge_rows(
    first, last, sums, before, chosen, entries, rows, cols, tables, prior, base, listed, tolerance,
    max_half_steps, is_moving, n_cut,
):  # fmt: skip
    size, mean, tolerance = len(before), rows.mean, f4(tolerance)
    for k in range(size):
        sums.rates[0, k] = prior.scale * base[k]
    for j in range(first, last):
        u = chosen[j]
        if listed.sign != 0.0:
            add_listed(listed, cols, u, u + 1, base, prior.scale, sums.rates)
        moves = True
        for _ in range(max_half_steps):
            for k in range(size):
                before[k] = mean[u, k]
            accumulate(entries, rows, cols, tables, u, u + 1, sums)
            if sums.slow[0]:
                slow_row(entries, rows, cols, tables, u, sums, 0)
            set_posteriors(rows, u, u + 1, prior, sums)
            moves = False
            for k in range(size):
                moves |= abs(mean[u, k] - before[k]) > tolerance * before[k] + _TINY
            if not moves:
                break
        is_moving[j], n_cut[j] = moves, sums.counts[0, CUT]


@kernel(allocates=True)
def most_similar(first, last, start, stop, index, scores, offsets, exposure, out):
    """Per row: the candidate with the largest sum of scores over the row's entries.

    ``scores`` has a row per column of the matrix and a column per candidate; a candidate's sum
    begins with its offset times the row's exposure.
    """
    totals = np.empty(len(offsets), np.float32)
    for u in range(first, last):
        for j in range(len(totals)):
            totals[j] = exposure[u] * offsets[j]
        for e in range(start[u], stop[u]):
            for j in range(len(totals)):
                totals[j] += scores[index[e], j]
        out[u] = np.argmax(totals)
