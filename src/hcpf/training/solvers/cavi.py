"""Exact block coordinate ascent: users, then items with the new users."""

from hcpf.core.axis import Axis
from hcpf.core.collective import LOCAL, Collective
from hcpf.core.half_step import update_axis
from hcpf.core.layout import Shard
from hcpf.core.posterior import axis_prior
from hcpf.training.state import FitState


def cavi_pass(
    state: FitState, shard: Shard, comm: Collective = LOCAL, *, fit_prior: bool = False
) -> None:
    """Make one pass: a half-step of each axis, followed by its theta.

    ``fit_prior`` also estimates the prior of theta again.
    """
    truncated = 0.0
    for axis in Axis:
        mine, other = state.axis(axis), state.axis(axis.other)
        prior = axis_prior(state.priors, axis, mine.n_components, scale=shard.tempering)
        info = update_axis(mine, other, shard.layout(axis), shard.tables.arrays, prior, comm)
        state.update_theta(axis, shard, comm, fit_prior=fit_prior)
        state.sum_counts = info.sum_counts
        truncated += info.n_truncated
    state.is_truncated = truncated > 0
