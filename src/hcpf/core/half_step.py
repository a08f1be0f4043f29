"""Exact block coordinate ascent: users, then items with the new users."""

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core import kernels
from hcpf.core.kernels import Entries, Factors, Pattern, Prior
from hcpf.core.layout import Problem, Side
from hcpf.core.priors import Priors
from hcpf.core.state import State, learn_theta, side_prior
from hcpf.core.threads import share


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
    share(
        kernels.update_rows, len(blocks) - 1, entries, rows, cols, problem.tables, prior, base,
        pattern, blocks, column_sums, counts,
        work=2.0 * size * (n_entries + 4.0 * (last - first)),
    )  # fmt: skip
    return column_sums.sum(axis=0), counts.sum(axis=0)
