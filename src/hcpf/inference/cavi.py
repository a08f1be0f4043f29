"""Exact block coordinate ascent: users, then items with the new users."""

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.inference import kernels
from hcpf.inference.kernels import Entries, Factors, Local, Pattern, Prior, Sums
from hcpf.inference.problem import Problem, Side
from hcpf.inference.state import State, learn_theta, side_prior
from hcpf.inference.threads import share
from hcpf.priors import Priors

_PART_BYTES = 1 << 24  # of one side's g, that caches hold beside all else
_LEAST_PARTS = 3
_LEAST_ENTRIES = 8  # of a row in each part, on average
_MOST_SUMS = 0.25  # of the bytes of g, that the sums may take


def cavi_step(state: State, problem: Problem, priors: Priors, *, fit_prior: bool = False) -> None:
    """One pass over the data: both half-steps, each followed by its side's theta.

    ``fit_prior`` also estimates the prior of theta anew.
    """
    size = state.users.a.shape[1]
    state.user_sums, user_counts = half_step(
        state.users, state.items, problem.users, problem,
        side_prior(priors, size, users=True, scale=problem.weight), state.item_sums,
    )  # fmt: skip
    learn_theta(state, problem, users=True, fit_prior=fit_prior)
    state.item_sums, item_counts = half_step(
        state.items, state.users, problem.items, problem,
        side_prior(priors, size, users=False, scale=problem.weight), state.user_sums,
    )  # fmt: skip
    learn_theta(state, problem, users=False, fit_prior=fit_prior)
    state.sum_counts = float(item_counts[0])
    state.cut_short = bool(user_counts[1] + item_counts[1] > 0)


def half_step(
    rows: Factors,
    cols: Factors,
    side: Side,
    problem: Problem,
    prior: Prior,
    col_sums: FloatArray,
    *,
    entries: Entries | None = None,
    pattern: Pattern | None = None,
    blocks: NDArray[np.int64] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Update the rows of one side; returns the sums of their means, and the counts.

    The counts are the sum of E[n], and of entries whose series was cut short.

    The one routine for users and for items: the rates' shared part is the other side's sums of
    means when training on the full matrix, and nothing when training on observed entries only.
    """
    blocks = side.blocks if blocks is None else blocks
    size = rows.a.shape[1]
    base = np.zeros(size) if problem.train_on == "observed" else col_sums
    column_sums = np.zeros((len(blocks) - 1, size))
    counts = np.zeros((len(blocks) - 1, 2))
    entries = side.entries if entries is None else entries
    pattern = side.pattern if pattern is None else pattern
    first, last = blocks[0], blocks[-1]
    n_entries = int(np.sum(entries.stop[first:last] - entries.start[first:last]))
    sums = _sum_by_parts(rows, cols, entries, problem.tables, blocks, n_entries)
    share(
        kernels.update_rows, len(blocks) - 1, entries, rows, cols, problem.tables, prior, base,
        pattern, blocks, sums, column_sums, counts,
        work=2.0 * size * (n_entries + 4.0 * (last - first)),
    )  # fmt: skip
    return column_sums.sum(axis=0), counts.sum(axis=0)


def _sum_by_parts(
    rows: Factors,
    cols: Factors,
    entries: Entries,
    tables: Local,
    blocks: NDArray[np.int64],
    n_entries: int,
) -> Sums:
    """Sum the entries part by part, where that pays; otherwise no sums.

    Rows read the other side's g in no order. If it is larger than the caches, all rows therefore
    use one part of it before they come to the next.
    """
    (n_rows, size), parts = rows.g.shape, -(-cols.g.nbytes // _PART_BYTES)
    pays = parts >= _LEAST_PARTS and n_entries >= _LEAST_ENTRIES * parts * n_rows
    if not pays or 8 * rows.g.size > _MOST_SUMS * cols.g.nbytes:
        return Sums(np.empty((0, size)), np.empty((0, 3)), np.empty(0, np.bool_))
    sums = Sums(np.zeros((n_rows, size)), np.zeros((n_rows, 3)), np.zeros(n_rows, np.bool_))
    at = entries.start  # where each row goes on; its entries are in the order of the columns
    for bound in np.linspace(0, len(cols.a), parts + 1).astype(np.int64)[1:].tolist():
        stop = np.empty_like(at)
        share(kernels.advance, len(at), at, entries.stop, entries.index, bound, stop)
        part = entries._replace(start=at, stop=stop)
        share(kernels.sum_part, len(blocks) - 1, part, rows, cols, tables, blocks, sums)
        at = stop
    return sums
