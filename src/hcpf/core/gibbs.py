r"""Gibbs sampling of the factors: draws from the ordinary posterior, begun at a fitted one.

One pass draws, in this order and given everything else,

* the number of elements of every entry, :math:`p(n) \propto p(y \mid n)\,\Lambda^n/n!`;
* the components of these elements, multinomial with shares :math:`s_{uk} v_{ik}`;
* the factors of the users, :math:`s_{uk} \sim \mathrm{Gamma}(\eta + \sum_i z_{uik},\; r_u +
  \sum_i v_{ik})`, and their activities, :math:`r_u \sim \mathrm{Gamma}(\rho + K\eta,\;
  \rho/\varrho + \sum_k s_{uk})`;
* the same for the items;
* the prior of the activities of each axis, :math:`\rho` and :math:`\rho/\varrho`, from the
  activities: where rows have few entries it decides how small their rates can be. The fitted
  numbers are only the start, whether they were estimated or given. Axes of fewer than 20 rows
  keep theirs.

The priors of :math:`\varrho` and :math:`\varpi` are uniform in the logarithm, and multiplying all
user factors and dividing all item factors by the same number changes neither rates nor likelihood.
Where both axes learn their priors, every pass therefore ends with the multiple at which
:math:`\varrho` is the fitted one: the draws are those under a prior that fixes
:math:`\varrho`, and the distribution of the rates is that under any other proper prior of it.

The target is the ordinary posterior even if the fit was tempered. The element stays as it was
fitted; under partial pooling the rates of a pair are shifted as in training, by the expected
log-partition.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from hcpf._types import Csr, FloatArray
from hcpf.core import kernels
from hcpf.core.axis import Axis, AxisState, empty_axis
from hcpf.core.count_tables import CountTables, tabulate_values
from hcpf.core.layout import Layout, lay_out_rows
from hcpf.core.pooling import Pooling
from hcpf.core.posterior import Posterior, scale_rows
from hcpf.core.priors import Priors
from hcpf.core.rates import needed_log2_rate
from hcpf.core.threads import run_in_parallel
from hcpf.core.value_model import ValueModel
from hcpf.data.sampling import as_marks

Draw = NDArray[np.float32]

_MIN_WORK = 300.0  # multiply-adds per entry in addition to those of its components
_MIN_RATE = 1e-30
_MIN_ROWS = 20  # rows needed to learn the prior of the activities of an axis
_PROPOSALS = 5  # proposals per pass of a random walk in log rho
_SHAPE_DECAY = 0.1  # rate of the exponential prior of rho, which is unbounded for equal activities
_SHAPES, _MEANS = (1e-3, 1e3), (1e-11, 1e11)
_MAX_BLOCKS, _MAX_SUMS = 8, 1 << 27  # blocks of users; sums of the items in all blocks, 1 GB


@dataclass(frozen=True, eq=False)
class GibbsData:
    """The data, value model and priors that all chains condition on."""

    value_model: ValueModel
    priors: Priors
    matrix: Csr
    """Users x items; values are as the element sees them."""
    excluded: Csr | None = None
    max_count: int | None = None

    def listed(self) -> tuple[Csr | None, float]:
        """Return the pairs whose means enter the rates one by one, and their sign."""
        if self.value_model.train_on == "observed":
            return as_marks(self.matrix), 1.0
        if self.excluded is not None and self.excluded.nnz:
            return as_marks(self.excluded), -1.0
        return None, 0.0


class Chain:
    """One Markov chain, which begins at a draw from a fitted posterior.

    Parameters
    ----------
    data
        The entries, the value model and the priors.
    fit
        The posterior of both axes.
    rng
        The source of all randomness; it also seeds the compiled loop.
    tempering
        That of the fit: the start is drawn as if it had been 1.
    """

    def __init__(
        self, data: GibbsData, fit: Posterior, rng: np.random.Generator, tempering: float = 1.0
    ) -> None:
        self._rng, self.priors = rng, data.priors
        self._user_mean = data.priors.user_activity_mean
        # Known exposures multiply the factors here, as in training.
        self._exposure = {axis: fit.axis(axis).exposure for axis in Axis}
        self._factors = dict[Axis, Draw]()
        for axis in Axis:
            start = fit.axis(axis).untempered(data.priors.axis(axis)[0], tempering)
            self._factors[axis] = scale_rows(start.sample(1, rng)[0], self._exposure[axis])
        self._activity = {
            axis: fit.axis(axis).activity_a / fit.axis(axis).activity_b for axis in Axis
        }
        self._tables, self._layout, self._terms = _lay_out(data, fit)
        marks, self._sign = data.listed()
        by_item = None if marks is None else sparse.csr_array(marks.T)
        self._listed = {Axis.USERS: marks, Axis.ITEMS: by_item}
        self._lists_only = data.value_model.train_on == "observed"
        self._blocks = _few_blocks(self._layout.blocks, self._factors[Axis.ITEMS].size)

    def factors(self, axis: Axis) -> Draw:
        """Return the current factors of one axis at exposure 1; a pass replaces the array."""
        exposure = self._exposure[axis]
        return scale_rows(self._factors[axis], None if exposure is None else 1.0 / exposure)

    def make_pass(self) -> None:
        """Draw everything once."""
        sums = self._draw_elements()
        for axis in Axis:
            others_sum = self._factors[axis.other].sum(axis=0, dtype=np.float64)
            self._draw_axis(axis, sums[axis], others_sum)
            self._draw_prior(axis)
        self._fix_scale()

    def draw_rows(self, axis: Axis, others: Draw, others_sum: FloatArray, priors: Priors) -> None:
        """Draw one axis once, given the priors and the other axis.

        ``others`` are the factors of the rows that have entries, and ``others_sum`` is the sum over
        all rows of that axis that were measured; both times their exposures.
        """
        self._factors[axis.other], self.priors = others, priors
        self._draw_axis(axis, self._draw_elements()[axis], others_sum)

    def _draw_elements(self) -> dict[Axis, NDArray[np.int64]]:
        """Return the sums of the elements of each row, by component."""
        users, items = self._factors[Axis.USERS], self._factors[Axis.ITEMS]
        n_blocks = len(self._blocks) - 1
        user_sums = np.zeros(users.shape, np.int64)
        item_sums = np.zeros((n_blocks, *items.shape), np.int64)
        seeds = self._rng.integers(1 << 32, size=n_blocks, dtype=np.uint32)
        entries = self._layout.entries
        run_in_parallel(
            kernels.draw_elements, n_blocks, self._blocks, entries, self._tables.arrays, users,
            items, *self._terms, seeds, user_sums, item_sums,
            work=len(entries.index) * (2.0 * users.shape[1] + _MIN_WORK),
        )  # fmt: skip
        return {Axis.USERS: user_sums, Axis.ITEMS: item_sums.sum(axis=0, dtype=np.int64)}

    def _draw_axis(self, axis: Axis, sums: NDArray[np.int64], others_sum: FloatArray) -> None:
        """Draw the factors and activities of one axis, given the elements of its entries."""
        shape, activity_shape, activity_mean = self.priors.axis(axis)
        others, listed = self._factors[axis.other], self._listed[axis]
        exposure = self._exposure[axis]
        activity = self._activity[axis]
        # The factors hold e_u s_uk, whose prior is Gamma(eta, r_u / e_u).
        rate = (activity if exposure is None else activity / exposure)[:, None]
        if not self._lists_only:
            rate = rate + others_sum
        if listed is not None:
            # If nearly all pairs of a row are excluded, rounding can make the difference negative.
            rate = np.maximum(rate + self._sign * (listed @ others), _MIN_RATE)
        drawn = self._rng.standard_gamma(np.float32(shape) + sums, dtype=np.float32)
        self._factors[axis] = (drawn / rate).astype(np.float32)
        row_sums = self.factors(axis).sum(axis=1, dtype=np.float64)
        total = activity_shape / activity_mean + row_sums
        shapes = activity_shape + shape * sums.shape[1]
        drawn = self._rng.standard_gamma(shapes, len(total)) / total
        self._activity[axis] = np.maximum(drawn, _MIN_RATE)

    def _draw_prior(self, axis: Axis) -> None:
        """Draw shape and mean of the activities' prior, under scale-free priors."""
        activity, rng, word = self._activity[axis], self._rng, axis.word
        n, total, logs = len(activity), float(activity.sum()), float(np.log(activity).sum())
        if not self._learns_prior(axis):
            return

        def log_density(log_shape: float) -> float:
            # Of log rho. With r_j ~ Gamma(rho, b) and b flat in its logarithm, b integrates out to
            # Gamma(n rho) (sum r)^(-n rho) Gamma(rho)^-n prod r_j^rho, and then has the
            # distribution Gamma(n rho, sum r).
            shape = np.exp(log_shape)
            normalizer = special.gammaln(n * shape) - n * special.gammaln(shape)
            return float(normalizer + shape * (logs - n * np.log(total)) - _SHAPE_DECAY * shape)

        # The Fisher information of log rho, n rho (rho psi'(rho) - 1), lies between n / 2 and n:
        # the steps of 2 / sqrt(n) are 1.4 to 2 standard deviations.
        position = float(np.log(self.priors.axis(axis)[1]))
        current = log_density(position)
        for _ in range(_PROPOSALS):
            proposed = position + 2.0 / np.sqrt(n) * rng.normal()
            density = log_density(proposed)
            if np.log(rng.random()) < density - current:
                position, current = proposed, density
        shape = float(np.clip(np.exp(position), *_SHAPES))
        mean = total * shape / float(rng.standard_gamma(n * shape))
        means = {f"{word}_activity_mean": float(np.clip(mean, *_MEANS))}
        self.priors = replace(self.priors, **{f"{word}_activity_shape": shape}, **means)

    def _learns_prior(self, axis: Axis) -> bool:
        return len(self._activity[axis]) >= _MIN_ROWS

    def _fix_scale(self) -> None:
        """Give the users' activities the fitted mean, without a change of any rate."""
        if not all(self._learns_prior(axis) for axis in Axis):
            return  # the axis that keeps its prior has a scale
        multiple = self.priors.user_activity_mean / self._user_mean
        # s ~ Gamma(eta, r): factors times a number go with activities divided by it.
        for axis, factor in ((Axis.USERS, multiple), (Axis.ITEMS, 1.0 / multiple)):
            self._factors[axis] *= np.float32(factor)
            self._activity[axis] /= factor
        self.priors = replace(
            self.priors,
            user_activity_mean=self._user_mean,
            item_activity_mean=self.priors.item_activity_mean * multiple,
        )


def _lay_out(
    data: GibbsData, fit: Posterior
) -> tuple[CountTables, Layout, tuple[FloatArray, FloatArray]]:
    """Return the weights of n, the entries by user, and what rows add to their log rates."""
    value_model, values = data.value_model, data.matrix.data
    axes = [_axis_at(fit, axis, value_model) for axis in Axis]

    def tabulate(max_log2_rate: FloatArray | None) -> tuple[CountTables, Layout]:
        tables, coordinate = tabulate_values(
            value_model, values, max_count=data.max_count, max_log2_rate=max_log2_rate,
            weights_only=True,
        )  # fmt: skip
        return tables, lay_out_rows(data.matrix, coordinate, None, None, lists_entries=False)

    tables, layout = tabulate(None)
    # The weights contain the normalizer of the shared element. It is charged to the users, as in
    # ``FitState.shift_rows``; with a shared mean the two cancel.
    if value_model.vary_by is not None:
        axes[0].factors.shift[:] -= tables.log_normalizer
    needed = needed_log2_rate(axes[0], axes[1], layout, tables)
    if np.any(needed > tables.max_log2_rate):
        tables, layout = tabulate(needed)
    users, items = (
        np.column_stack([mine.factors.shift, mine.factors.cross.astype(np.float64)])
        for mine in axes
    )
    return tables, layout, (users, items)


def _few_blocks(blocks: NDArray[np.int64], n_sums: int) -> NDArray[np.int64]:
    """Join blocks of rows until the sums of the items, which each has a copy of, fit in memory."""
    n_blocks = int(np.clip(_MAX_SUMS // max(n_sums, 1), 1, _MAX_BLOCKS))
    chosen = np.linspace(0, len(blocks) - 1, n_blocks + 1).round().astype(np.int64)
    return np.unique(blocks[chosen])


def _axis_at(fit: Posterior, axis: Axis, value_model: ValueModel) -> AxisState:
    """Return an axis at its fitted means, with the shifts that its theta causes."""
    found, pooling = fit.axis(axis), Pooling.of(value_model)
    mine = empty_axis(axis, *found.shape_.shape)
    mine.factors.mean[:] = found.exposed_mean_
    if pooling is not None:
        mine.theta = found.theta
        pooling.set_row_terms(mine, value_model.element)
    return mine
