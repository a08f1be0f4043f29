"""Posteriors of new rows, the other axis held fixed: half-steps until each row has converged."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hcpf._types import Csr
from hcpf.core import kernels
from hcpf.core.axis import Axis, AxisState, empty_axis
from hcpf.core.half_step import half_step
from hcpf.core.kernels import Prior
from hcpf.core.layout import Shard, ShardData, ShardSource, UserOrder
from hcpf.core.posterior import FactorPosterior, axis_prior, posterior_of
from hcpf.core.priors import Priors
from hcpf.core.rates import needed_log2_rate
from hcpf.core.theta import Pooling, ThetaPosterior
from hcpf.core.value_model import ValueModel
from hcpf.elements.degenerate import Degenerate

TOLERANCE = 1e-6
"""Relative change of every factor below which a row has converged."""
MAX_SWEEPS = 5_000


def fold_in_rows(
    matrix: Csr,
    fixed: FactorPosterior,
    value_model: ValueModel,
    priors: Priors,
    *,
    axis: Axis,
    exclude: Csr | None = None,
    max_count: int | None = None,
    tempering: float = 1.0,
    theta: ThetaPosterior | None = None,
) -> FactorPosterior:
    """Return the posterior of new rows of ``axis``, the other axis held fixed.

    ``matrix`` holds the new rows and the rows of the other axis as its columns; its values are as
    the element sees them. ``theta`` is the fitted axis' theta posterior, whose prior the new rows
    share; None where the rows of that axis have no means.
    """
    if matrix.nnz == 0:  # there is no value to tabulate any element for
        value_model = value_model.replace(element=Degenerate(), vary_by=None, hurdle=False)
    data = ShardData.whole(matrix, exclude)
    order = UserOrder.of(data.numbers, data.n_users, None)
    source = ShardSource(data, order, max_count=max_count)
    fold = _FoldIn(source, source.lay_out(value_model), fixed)
    prior = axis_prior(priors, axis, fixed.shape_.shape[1], scale=tempering)
    mine = fold.run(prior, theta)
    found = posterior_of(mine, prior)
    if theta is not None and mine.theta is None:
        at_prior = ThetaPosterior.at_prior(mine.n_rows, theta.chi0, theta.nu0)
        found = replace(found, theta=at_prior)
    return found


@dataclass(eq=False)
class _FoldIn:
    """New rows, in the place of the users whichever axis they belong to, beside fixed items."""

    source: ShardSource
    shard: Shard
    fixed: FactorPosterior

    def run(self, prior: Prior, theta: ThetaPosterior | None) -> AxisState:
        """Return the rows after half-steps until each has converged."""
        pooling = Pooling.of(self.shard.value_model)
        other, mine = self._fixed_axis(pooling), self._start(prior)
        if pooling is not None and theta is not None:
            mine.theta = ThetaPosterior.at_prior(mine.n_rows, theta.chi0, theta.nu0)
        self._shift(mine, pooling)
        moving = everyone = np.arange(mine.n_rows)
        for _ in range(MAX_SWEEPS):
            before = mine.factors.mean[moving]
            part = _select(mine, moving)
            layout, arrays = self.shard.users.select(moving), self.shard.tables.arrays
            info = half_step(part, other, layout, arrays, prior)
            for own, new in zip(mine.factors, part.factors, strict=True):
                own[moving] = new
            if pooling is not None:
                pooling.update(mine, self.shard.values, self.shard.element)
                self._shift(mine, pooling)
            # A row stops when it has converged, whatever the others do.
            change = np.abs(part.factors.mean - before)
            moving = moving[np.any(change > TOLERANCE * before + 1e-30, axis=1)]
            if info.n_truncated > 0 and self._retabulate(mine, other):
                moving = everyone
            if not moving.size:
                break
        return mine

    def _fixed_axis(self, pooling: Pooling | None) -> AxisState:
        fixed = self.fixed
        other = empty_axis(Axis.ITEMS, *fixed.shape_.shape)
        other.factors.a[:], other.factors.mean[:] = fixed.shape_, fixed.mean_
        if pooling is not None:
            other.theta = fixed.theta
            pooling.set_row_terms(other, self.shard.element)
        kernels.scale_rows(other.factors)
        other.mean_sums = fixed.mean_.sum(axis=0, dtype=np.float64)
        return other

    def _start(self, prior: Prior) -> AxisState:
        """Begin with all components alike: the fixed axis breaks the symmetry."""
        size = self.fixed.shape_.shape[1]
        mine = empty_axis(Axis.USERS, self.shard.users.n_rows, size)
        factors = mine.factors
        factors.a[:] = (prior.shape + self.shard.users.degrees / size)[:, None]
        level = np.ones(size)
        if self.shard.trains_on_missing:
            level = self.fixed.mean_.sum(axis=0, dtype=np.float64)
        factors.mean[:] = factors.a / (1.0 + level)
        factors.activity_b[:] = prior.activity_rate + factors.mean.sum(axis=1, dtype=np.float64)
        kernels.scale_rows(factors)
        return mine

    def _shift(self, mine: AxisState, pooling: Pooling | None) -> None:
        """Shift the log rates from where the tables were made to the rows' theta."""
        if pooling is None:
            return
        pooling.set_row_terms(mine, self.shard.element)
        mine.factors.shift[:] -= self.shard.tables.log_normalizer
        mine.set_multipliers()

    def _retabulate(self, mine: AxisState, other: AxisState) -> bool:
        """Lay out the data again if rates are beyond the tables; return whether they were."""
        needed = needed_log2_rate(mine, other, self.shard)
        if not np.any(needed > self.shard.tables.max_log2_rate):
            return False
        self.shard = self.source.lay_out(self.shard.value_model, needed)
        return True


def _select(mine: AxisState, rows: NDArray[np.int64]) -> AxisState:
    part = empty_axis(mine.axis, len(rows), mine.n_components)
    for own, all_rows in zip(part.factors, mine.factors, strict=True):
        own[:] = all_rows[rows]
    return part
