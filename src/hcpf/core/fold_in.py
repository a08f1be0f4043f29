"""Posteriors of new rows, the other axis held fixed: half-steps until each row has converged.

The ELBO of a row may have several local maxima. A row is therefore started from several points:
with all components alike, from the fitted row among a few that makes its entries most likely, and
from its own fitted row if it has one. The start with the highest ELBO is kept. The rows are stacked
for that, all rows from the first start, then all from the second, so that one call does them all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import Csr, FloatArray
from hcpf.core import kernels
from hcpf.core.axis import Axis, AxisState, empty_axis
from hcpf.core.collective import LOCAL
from hcpf.core.count_tables import CountTables, tabulate_values
from hcpf.core.layout import Layout, lay_out_rows
from hcpf.core.pooling import Pooling
from hcpf.core.posterior import FactorPosterior, Posterior, axis_prior, posterior_of, scale_rows
from hcpf.core.priors import Priors
from hcpf.core.rates import needed_log2_rate
from hcpf.core.shard import Values
from hcpf.core.table_cache import TableCache
from hcpf.core.threads import POSTERIOR_WORK, run_in_parallel
from hcpf.core.value_model import ValueModel
from hcpf.elements.degenerate import Degenerate

TOLERANCE = 1e-6
"""Relative change of every factor below which a row has converged."""
MAX_HALF_STEPS = 5_000
_TYPICAL_HALF_STEPS = 20.0
_MIN_GAIN = 1e-5
"""Nats by which another start must be better than the first: less is rounding."""
_N_CANDIDATES = 64  # fitted rows tried as a start
_MIN_RATE = 1e-30
_MAX_ROWS = 1 << 14  # rows per call of the kernel, which limits the memory


@dataclass(frozen=True, eq=False)
class FoldInModel:
    """The parts of a fitted model that fold-in uses besides the posterior of the fixed axis."""

    value_model: ValueModel
    priors: Priors
    tempering: float
    max_count: int | None
    tables: TableCache


class NewRows(NamedTuple):
    """New rows of an axis as given.

    ``matrix`` holds the new rows, and the rows of the other axis as its columns; its values are as
    the element sees them. The pairs in ``exclude`` take no part, nor do columns that are not
    ``measured`` (by default all are). ``known`` are the positions of the rows among the fitted
    ones, -1 for those that are not. ``exposure`` multiplies the rates of each row.
    """

    matrix: Csr
    exclude: Csr | None = None
    measured: NDArray[np.int64] | None = None
    known: NDArray[np.int64] | None = None
    exposure: FloatArray | None = None

    def part(self, rows: slice) -> "NewRows":
        """Return some of the rows."""
        if rows == slice(0, self.matrix.shape[0]):
            return self
        exclude = None if self.exclude is None else sparse.csr_array(self.exclude[rows])
        known = None if self.known is None else self.known[rows]
        exposure = None if self.exposure is None else self.exposure[rows]
        return NewRows(sparse.csr_array(self.matrix[rows]), exclude, self.measured, known, exposure)


def fold_in_rows(
    model: FoldInModel, axis: Axis, fits: Sequence[Posterior], new: NewRows
) -> tuple[FactorPosterior, ...]:
    """Return the posterior of new rows of an axis in each fit, the other axis held fixed."""
    found: list[list[FactorPosterior]] = []
    n_rows = new.matrix.shape[0]
    for first in range(0, max(n_rows, 1), _MAX_ROWS):
        stacked = _StackedRows(model, axis, new.part(slice(first, min(first + _MAX_ROWS, n_rows))))
        found.append([_fold_in(stacked, fit) for fit in fits])
    return tuple(parts[0].joined(*parts[1:]) for parts in zip(*found, strict=True))


def _fold_in(stacked: "_StackedRows", fit: Posterior) -> FactorPosterior:
    """Return the posterior of the rows in one fit."""
    fitted = fit.axis(stacked.axis)
    fold = _FoldIn(stacked, fitted, fit.axis(stacked.axis.other))
    fold.run()
    found, theta = posterior_of(fold.mine, fold.prior, fold.best_rows()), fitted.theta
    if theta is not None and found.theta is None:
        found = replace(found, theta=theta.without_entries(stacked.n_rows))
    return found


class _StackedRows:
    """New rows once per start, in the place of users; laid out once for all fits."""

    def __init__(self, model: FoldInModel, axis: Axis, new: NewRows) -> None:
        self.model, self.axis, self.n_rows = model, axis, new.matrix.shape[0]
        self.value_model, self._measured = model.value_model, new.measured
        if new.matrix.nnz == 0:  # there is no value to tabulate any element for
            self.value_model = self.value_model.replace(
                element=Degenerate(), vary_by=None, hurdle=False
            )
        self.known = new.known if new.known is not None and np.any(new.known >= 0) else None
        self.columns, place = used_columns(new.matrix, new.exclude)
        n_starts = 2 if self.known is None else 3
        self._matrix = stacked_rows(new.matrix, place, n_starts)
        self._exclude = None if new.exclude is None else stacked_rows(new.exclude, place, n_starts)
        self.exposure = None if new.exposure is None else np.tile(new.exposure, n_starts)
        self.values = Values(self._matrix, None, LOCAL)
        self.pooling = Pooling.of(self.value_model)

    @property
    def trains_on_missing(self) -> bool:
        """Whether missing pairs are data."""
        return self.value_model.train_on == "full"

    def shared_rate(self, fixed: FactorPosterior) -> FloatArray:
        """Return what all rows have in common in the rates of their factors."""
        if not self.trains_on_missing:
            return np.zeros(fixed.shape_.shape[1])
        if self._measured is None:
            return fixed.mean_sums
        measured = self._measured
        exposure = None if fixed.exposure is None else fixed.exposure[measured]
        return scale_rows(fixed.mean_[measured], exposure).sum(axis=0, dtype=np.float64)

    @cached_property
    def tables(self) -> tuple[CountTables, Layout]:
        """Tables for the usual rates, and the layout of the stacked rows."""
        if self.value_model is not self.model.value_model:
            return self.own_tables()
        values = np.asarray(self._matrix.data, dtype=np.float64)
        tables, coordinate = self.model.tables.tables_for(values)
        return tables, self._lay_out(coordinate)

    def own_tables(self, max_log2_rate: FloatArray | None = None) -> tuple[CountTables, Layout]:
        """Return tables for these rows alone, and the layout that goes with them."""
        tables, coordinate = tabulate_values(
            self.value_model, self._matrix.data, LOCAL, self.model.max_count, max_log2_rate
        )
        return tables, self._lay_out(coordinate)

    def _lay_out(self, coordinate: NDArray[np.float32]) -> Layout:
        weighed = self.values.in_units() if self.value_model.weighs_values else None
        return lay_out_rows(
            self._matrix, coordinate, weighed, self._exclude,
            lists_entries=not self.trains_on_missing,
        )  # fmt: skip


class _FoldIn:
    """The stacked rows of one fit, and the columns that they have entries in."""

    def __init__(self, new: _StackedRows, fitted: FactorPosterior, fixed: FactorPosterior) -> None:
        size = fixed.shape_.shape[1]
        self.new, self.pooling, self.element = new, new.pooling, new.value_model.element
        self.tables, self.layout = new.tables
        self.prior = axis_prior(new.model.priors, new.axis, size, scale=new.model.tempering)
        self.base = new.shared_rate(fixed)
        self.other = self._fixed_axis(fixed.at(new.columns))
        self.mine = self._start(fitted)
        self._shift()

    def run(self) -> None:
        """Make half-steps until each row has converged, independently of the others."""
        mine, everyone = self.mine, np.arange(self.mine.n_rows)
        # With theta one half-step at a time, because theta follows the counts of each. Without, one
        # call of the kernel makes all half-steps of a row.
        moving, n_half_steps = everyone, MAX_HALF_STEPS if self.mine.theta is None else 1
        for _ in range(MAX_HALF_STEPS):
            is_moving, n_cut = np.empty(len(moving), np.bool_), np.empty(len(moving))
            run_in_parallel(
                kernels.converge_rows, len(moving), moving, self.layout.entries, mine.factors,
                self.other.factors, self.tables.arrays, self.prior, self.base, self.layout.listed,
                TOLERANCE, n_half_steps, is_moving, n_cut,
                work=2.0 * _TYPICAL_HALF_STEPS * mine.n_components * self.layout.work,
            )  # fmt: skip
            if self.pooling is not None and mine.theta is not None:
                self.pooling.update(mine, self.new.values, self.element)
                self._shift()
            moving = moving[is_moving] if n_half_steps == 1 else moving[:0]
            if n_cut.any() and self._retabulate():
                moving = everyone
            if not moving.size:
                break

    def best_rows(self) -> NDArray[np.int64]:
        """Return, per new row, which of its stacked rows has the highest ELBO."""
        bound = self._row_elbo().reshape(-1, self.new.n_rows)
        bound[1:] -= _MIN_GAIN
        return np.argmax(bound, axis=0) * self.new.n_rows + np.arange(self.new.n_rows)

    def _fixed_axis(self, fixed: FactorPosterior) -> AxisState:
        # New rows stand for users and the fixed ones for items, whichever axis is folded in: the
        # half-step, the ELBO and what axes share of theta are symmetric in the two.
        other = empty_axis(Axis.ITEMS, *fixed.shape_.shape)
        other.factors.a[:], other.factors.mean[:] = fixed.shape_, fixed.exposed_mean_
        if self.pooling is not None:
            other.theta = fixed.predictive_theta
            self.pooling.set_row_terms(other, self.element)
        kernels.scale_rows(other.factors)
        return other

    def _start(self, fitted: FactorPosterior) -> AxisState:
        """Begin with all components alike (the fixed axis breaks the symmetry), and as fitted."""
        n_rows, size = self.new.n_rows, len(self.base)
        mine = empty_axis(Axis.USERS, self.layout.n_rows, size)
        mine.set_exposure(self.new.exposure)
        factors, degrees = mine.factors, self.layout.degrees[:n_rows]
        factors.a[:n_rows] = (self.prior.shape + degrees / size)[:, None]
        # As if every entry were one element, spread evenly, and the expected activity were 1.
        level = self.base if self.new.trains_on_missing else np.ones(size)
        factors.mean[:n_rows] = factors.a[:n_rows] / (1.0 + level)
        begin = fitted.at(self._fitted_starts(fitted, factors.exposure[:n_rows]))
        exposure = None if mine.exposure is None else mine.exposure[n_rows:]
        factors.a[n_rows:], factors.mean[n_rows:] = begin.shape_, scale_rows(begin.mean_, exposure)
        row_sums = factors.mean.sum(axis=1, dtype=np.float64)
        factors.activity_b[:] = self.prior.activity_rate + row_sums / factors.exposure
        kernels.scale_rows(factors)
        if self.pooling is not None and begin.theta is not None:
            mine.theta = begin.theta.without_entries(n_rows).joined(begin.theta)
        return mine

    def _fitted_starts(self, fitted: FactorPosterior, exposure: FloatArray) -> NDArray[np.int64]:
        """Return the fitted rows to begin from: a similar one each, then the rows' own."""
        n_fitted, known = len(fitted.mean_), self.new.known
        # Compared is the log likelihood of the entries with E[n] = 1: the sum of log rates less
        # that of all rates. The latter is the offset, or, if only listed pairs count, in the
        # scores. There the exposure is the average one, because all rows share the scores.
        candidates = _candidates(n_fitted)
        means, entries = fitted.mean_[candidates], self.layout.entries
        rates = np.maximum(self.other.factors.mean @ means.T, np.float32(_MIN_RATE))
        scores = np.log(rates)
        if not self.new.trains_on_missing:
            scores -= np.float32(exposure.mean()) * rates
        similar, n_rows = np.zeros(self.new.n_rows, np.int64), self.new.n_rows
        run_in_parallel(
            kernels.most_similar, n_rows, entries.start, entries.stop, entries.index, scores,
            (-means @ self.base).astype(np.float32), exposure.astype(np.float32), similar,
            work=len(candidates) * len(entries.index),
        )  # fmt: skip
        similar = candidates[similar]
        if known is None:
            return similar
        return np.concatenate([similar, np.where(known >= 0, known, similar)])

    def _shift(self) -> None:
        """Shift the log rates from where the tables were made to the rows' theta."""
        if self.pooling is None:
            return
        self.pooling.set_row_terms(self.mine, self.element)
        self.mine.factors.shift[:] -= self.tables.log_normalizer
        self.mine.set_multipliers()

    def _retabulate(self) -> bool:
        """Make tables for larger rates if there are any beyond them; return whether there were."""
        tables, layout = self.new.own_tables()
        needed = needed_log2_rate(self.mine, self.other, layout, tables)
        if needed.max() <= self.tables.max_log2_rate.max():
            return False
        self.tables, self.layout = self.new.own_tables(needed)
        return True

    def _row_elbo(self) -> FloatArray:
        """Return the part of the ELBO that depends on each row, but for a constant."""
        mine, other, layout = self.mine, self.other, self.layout
        n_rows, priors = mine.n_rows, self.new.model.priors
        each, parts = np.arange(n_rows + 1), np.zeros((3, n_rows))
        arguments = layout.entries, mine.factors, other.factors, self.tables.arrays, each
        work = mine.n_components * len(layout.entries.index)
        run_in_parallel(kernels.sum_log_z, n_rows, *arguments, parts[0], work=work)
        if layout.listed.sign != 0.0:
            means = mine.factors.mean, other.factors.mean
            kernels.listed_rates(0, n_rows, *layout.listed[:3], *means, each, parts[1])
        prior = axis_prior(priors, self.new.axis, mine.n_components)
        arguments = mine.factors, prior, priors.axis(self.new.axis)[1], each
        work = POSTERIOR_WORK * mine.factors.a.size
        run_in_parallel(kernels.axis_bound, n_rows, *arguments, parts[2], work=work)
        # ``base`` contains the excluded pairs (sign -1); it is 0 if only listed ones count (1).
        likelihood = parts[0] - layout.listed.sign * parts[1] - mine.factors.mean @ self.base
        if self.pooling is not None:
            likelihood += self.pooling.row_elbo(mine, other, self.new.values, self.element)
        return self.prior.scale * likelihood + parts[2]


def used_columns(matrix: Csr, exclude: Csr | None) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the columns that have entries or excluded pairs, and the number of each among them."""
    is_used = np.zeros(matrix.shape[1], np.bool_)
    is_used[matrix.indices] = True
    if exclude is not None:
        is_used[exclude.indices] = True
    columns = np.flatnonzero(is_used)
    place = np.empty(matrix.shape[1], np.int32)
    place[columns] = np.arange(len(columns), dtype=np.int32)
    return columns, place


@cache
def _candidates(n_fitted: int) -> NDArray[np.int64]:
    """Return the fitted rows that a new row is compared with."""
    return np.linspace(0, n_fitted - 1, min(_N_CANDIDATES, n_fitted)).astype(np.int64)


def stacked_rows(matrix: Csr, place: NDArray[np.int32], times: int) -> Csr:
    """Return the rows of a matrix several times, one after the other, its columns renumbered."""
    pointer = np.arange(times)[:, None] * matrix.nnz + matrix.indptr[:-1].astype(np.int64)
    return sparse.csr_array(
        (
            np.tile(matrix.data, times),
            np.tile(place[matrix.indices], times),
            np.append(pointer.ravel(), times * matrix.nnz),
        ),
        shape=(times * matrix.shape[0], len(place)),
    )
