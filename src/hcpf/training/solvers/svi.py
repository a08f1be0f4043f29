"""Stochastic variational inference over minibatches of users.

Users are laid out in random order, so that a batch is a range of rows, and within every item the
entries of a batch are a range, too: one pointer per item walks through them as the pass proceeds.
Each worker takes its share of one common batch.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hcpf.core import kernels
from hcpf.core.axis import Axis
from hcpf.core.collective import LOCAL, Collective
from hcpf.core.half_step import update_axis
from hcpf.core.kernels import Entries, ListedPairs
from hcpf.core.layout import Layout
from hcpf.core.posterior import axis_prior
from hcpf.core.shard import Shard
from hcpf.core.threads import run_in_parallel
from hcpf.training.settings import SVI
from hcpf.training.state import FitState


def svi_pass(
    state: FitState,
    shard: Shard,
    solver: SVI,
    comm: Collective = LOCAL,
    *,
    fit_prior: bool = False,
) -> None:
    """Make one pass over all users in minibatches, the items moving after each.

    Theta of the users moves with each batch, theta of the items when the pass is over.
    """
    users, items, size = state.users, state.items, state.users.n_components
    n_users, position = shard.totals.n_users, shard.order.position
    edges = np.linspace(0, n_users, min(solver.batches, n_users) + 1).astype(np.int64)
    walk, arrays = _Walk(shard.items), shard.tables.arrays
    user_prior = axis_prior(state.priors, Axis.USERS, size, scale=shard.tempering)
    user_sums, sum_counts, truncated = np.zeros(size), 0.0, 0.0
    counts = items.factors.count, items.factors.cross_count, items.factors.value_sum
    item_counts = np.zeros((len(counts), items.n_rows))
    # Half-steps of a window set users.mean_sums, and the counts of the items, to those of the
    # batch. The item step multiplies the former by ``scale``; those of the pass are added up here.
    for first, last in pairwise(edges.tolist()):
        start, stop = np.searchsorted(position, [first, last]).tolist()
        batch = shard.users.window(start, stop)
        for _ in range(solver.local_passes):
            info = update_axis(users, items, batch, arrays, user_prior, comm)
            state.update_theta(Axis.USERS, shard, comm, rows=slice(start, stop))
            truncated += info.n_truncated
        step = min((state.svi_step + solver.tau) ** -solver.xi, 1.0)
        scale = shard.tempering * n_users / (last - first)
        prior = axis_prior(state.priors, Axis.ITEMS, size, step=step, scale=scale)
        info = update_axis(items, users, walk.to(stop), arrays, prior, comm)
        state.svi_step += 1
        item_counts += counts
        user_sums += users.mean_sums
        sum_counts += info.sum_counts
        truncated += info.n_truncated
    users.mean_sums, state.sum_counts, state.is_truncated = user_sums, sum_counts, truncated > 0
    for mine, total in zip(counts, item_counts, strict=True):
        mine[:] = total
    for axis in Axis:
        state.update_theta(axis, shard, comm, fit_prior=fit_prior)


class _Walk:
    """Pointers into every item's entries and listed pairs that move from batch to batch."""

    def __init__(self, items: Layout) -> None:
        self._items = items
        self._entry = items.entries.start.copy()
        self._listed = items.listed.start.copy()

    def to(self, row: int) -> Layout:
        """Return the items' entries of users between the last call's row and this one's."""
        items, entry, listed = self._items, self._entry, self._listed
        self._entry = _advance(entry, items.entries, row)
        self._listed = _advance(listed, items.listed, row)
        return Layout(
            items.entries._replace(start=entry, stop=self._entry),
            items.listed._replace(start=listed, stop=self._listed),
            items.blocks,
        )


def _advance(
    position: NDArray[np.int64], rows: Entries | ListedPairs, bound: int
) -> NDArray[np.int64]:
    out = np.empty_like(position)
    arguments = position, rows.stop, rows.index, bound, out
    run_in_parallel(kernels.advance, len(position), *arguments, work=len(position))
    return out
