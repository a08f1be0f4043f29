"""The paper's Algorithm 1 as a solver: sampled entries, per-row clocks, product-of-means rate."""

import numpy as np

from hcpf._types import FloatArray
from hcpf.core import kernels
from hcpf.core.axis import Axis
from hcpf.core.collective import LOCAL
from hcpf.core.half_step import half_step
from hcpf.core.kernels import ListedPairs
from hcpf.core.posterior import axis_prior
from hcpf.core.shard import Shard
from hcpf.training.settings import Algorithm1
from hcpf.training.state import DrawMemory, FitState, RowMemory


def algorithm1_pass(
    state: FitState, shard: Shard, solver: Algorithm1, *, fit_prior: bool = False
) -> None:
    """Draw as many entries as the data hold, and move the rows of each."""
    if state.draws is None:
        state.draws = DrawMemory(RowMemory.of(state.users), RowMemory.of(state.items))
    memory, n_entries = state.draws, shard.totals.n_entries
    users, items = memory.users, memory.items
    # Within the pass only these float64 copies move: the factors follow at its end (``_recall``).
    share = observed_share(shard, solver.stratified)
    counts = np.zeros(3)
    factors = state.users.factors, state.items.factors
    shifts = *(f.shift for f in factors), *(f.cross.astype(np.float64) for f in factors)
    priors = [axis_prior(state.priors, axis, state.users.n_components) for axis in Axis]
    kernels.entry_steps(
        shard.users.entries, excluded_pairs(shard, Axis.USERS),
        shard.users.owner(np.arange(n_entries)), shard.tables.arrays, shifts,
        (users.a, users.b, users.activity_b), (items.a, items.b, items.activity_b),
        tuple(f.exposure for f in factors), *priors,
        (_weights(shard, Axis.USERS, share), _weights(shard, Axis.ITEMS, share)),
        (users.clock, items.clock),
        solver.tau, solver.xi, share, n_entries, state.rng, counts,
    )  # fmt: skip
    state.sum_counts = n_entries * float(counts[1]) / max(float(counts[0]), 1.0)
    state.is_truncated = bool(counts[2] > 0)
    _recall(state, memory)
    for mine in state.axes:
        mine.mean_sums = mine.factors.mean.sum(axis=0, dtype=np.float64)
        kernels.scale_rows(mine.factors)
    if state.pooling is not None:
        _update_theta(state, shard, fit_prior)
        _recall(state, memory)


def _recall(state: FitState, memory: DrawMemory) -> None:
    memory.users.write_to(state.users)
    memory.items.write_to(state.items)


def _update_theta(state: FitState, shard: Shard, fit_prior: bool) -> None:
    """Update theta from the counts of all entries, the factors held where they are."""
    for axis in Axis:
        mine, other = state.axis(axis), state.axis(axis.other)
        hold = axis_prior(state.priors, axis, mine.n_components, step=0.0)
        # A step of 0 counts E[n] and leaves the factors; ``_recall`` undoes its activity_b.
        sums = mine.mean_sums
        half_step(mine, other, shard.layout(axis), shard.tables.arrays, hold)
        mine.mean_sums = sums
        state.update_theta(axis, shard, LOCAL, fit_prior=fit_prior)


def observed_share(shard: Shard, stratified: bool) -> float:
    """Return the probability that a draw is an observed entry."""
    n_entries = shard.totals.n_entries
    in_grid = n_entries / (n_entries + _missing(shard, Axis.USERS).sum())
    return max(0.5, float(in_grid)) if stratified else float(in_grid)


def _weights(shard: Shard, axis: Axis, share: float) -> FloatArray:
    r"""Return the weights of an observed and a missing draw of each row: d/p and (C - d)/(1 - p).

    d is the row's number of observed entries, C that of all pairs trained on, and p the
    chance that a draw of the row is an observed one.
    """
    degree, missing = shard.layout(axis).degrees.astype(np.float64), _missing(shard, axis)
    observed_draws = share * degree / shard.totals.n_entries
    missing_draws = (1.0 - share) * missing / max(float(missing.sum()), 1.0)
    draws = np.maximum(observed_draws + missing_draws, 1e-300)
    chance = np.stack([observed_draws, missing_draws], axis=1) / draws[:, None]
    return np.stack([degree, missing], axis=1) / np.maximum(chance, 1e-300)


def _missing(shard: Shard, axis: Axis) -> FloatArray:
    """Return the number of missing pairs of each row that training uses."""
    layout = shard.layout(axis)
    if not shard.trains_on_missing:
        return np.zeros(layout.n_rows)
    excluded = excluded_pairs(shard, axis)
    n_excluded = (excluded.stop - excluded.start).astype(np.float64)
    return shard.layout(axis.other).n_rows - layout.degrees - n_excluded


def excluded_pairs(shard: Shard, axis: Axis) -> ListedPairs:
    """Return the excluded pairs, of which there are none when training on observed entries."""
    listed = shard.layout(axis).listed
    return listed if listed.sign < 0 else listed._replace(stop=listed.start)
