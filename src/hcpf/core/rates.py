"""Rates of single pairs, and the largest rates that the tables must serve."""

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core import kernels
from hcpf.core.axis import AxisState
from hcpf.core.count_tables import CountTables
from hcpf.core.layout import Layout
from hcpf.core.threads import run_in_parallel

_CHUNK = 1 << 22  # entries whose rates are computed at once


def pair_rates(
    user_mean: NDArray[np.float32],
    item_mean: NDArray[np.float32],
    users: NDArray[np.int64],
    items: NDArray[np.int64],
) -> FloatArray:
    """Return the posterior mean rates of pairs given by position."""
    out = np.empty(len(users), np.float64)
    pairs = users.astype(np.int64), items.astype(np.int64)
    work = user_mean.shape[1] * len(out)
    run_in_parallel(kernels.pair_rates, len(out), user_mean, item_mean, *pairs, out, work=work)
    return out


def needed_log2_rate(
    users: AxisState,
    items: AxisState,
    layout: Layout,
    tables: CountTables,
    *,
    moved: float = 0.0,
    step: int = 1,
) -> FloatArray:
    """Return the largest log2 rates that the tables must serve for the current factors.

    ``layout`` has the entries by user. ``moved`` is what another element to tabulate would add to
    the log rates; only one entry in ``step`` is considered.
    """
    mine, other = users.factors, items.factors
    needed = np.full_like(tables.max_log2_rate, -np.inf)
    n_entries = len(layout.entries.index)
    for first in range(0, n_entries, _CHUNK * step):
        entry = np.arange(first, min(first + _CHUNK * step, n_entries), step)
        # Product-of-means rates: what Algorithm 1 sums at, and no less than the geometric ones.
        u, i = layout.owner(entry), layout.entries.index[entry]
        log_rate = np.log(np.maximum(pair_rates(mine.mean, other.mean, u, i), 1e-300)) + moved
        log_rate += mine.shift[u] + other.shift[i]
        log_rate += tables.arrays.cross * mine.cross[u] * other.cross[i]
        coordinate = layout.entries.coordinate[entry]
        needed = np.maximum(needed, tables.needed_log2_rate(log_rate, coordinate))
    return needed
