"""Posteriors of new rows, the other axis held fixed: half-steps until each row has converged.

The ELBO of a row may have several local maxima. A row is therefore started from several points,
and the one with the highest ELBO is kept. Rows are stacked for that: all rows from the first start,
then all from the second, and so on, so that one call of the kernels does them all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import Csr, FloatArray
from hcpf.core import kernels
from hcpf.core.axis import Axis, AxisState, empty_axis
from hcpf.core.collective import LOCAL
from hcpf.core.count_tables import CountTables, tabulate_values
from hcpf.core.layout import Layout, Values, lay_out_rows
from hcpf.core.posterior import FactorPosterior, axis_prior, posterior_of
from hcpf.core.priors import Priors
from hcpf.core.rates import needed_log2_rate
from hcpf.core.table_cache import TableCache
from hcpf.core.theta import Pooling, ThetaPosterior
from hcpf.core.threads import POSTERIOR_WORK, run_in_parallel
from hcpf.core.value_model import ValueModel
from hcpf.elements.degenerate import Degenerate

TOLERANCE = 1e-6
"""Relative change of every factor below which a row has converged."""
MAX_SWEEPS = 5_000
_TYPICAL_SWEEPS = 20.0
_MIN_GAIN = 1e-5
"""Nats by which another start must be better than the first: less is rounding."""


@dataclass(frozen=True, eq=False)
class FoldInModel:
    """What fold-in needs of a fitted model besides the posterior of the fixed axis."""

    value_model: ValueModel
    priors: Priors
    tempering: float
    max_count: int | None
    tables: TableCache


class NewRows:
    """New rows of an axis, laid out once for all fits, in the place of users.

    ``matrix`` holds the new rows, and the rows of the other axis as its columns; its values are as
    the element sees them. The pairs in ``exclude`` take no part, nor do columns that are not
    ``measured`` (by default all are).
    """

    def __init__(
        self,
        model: FoldInModel,
        axis: Axis,
        matrix: Csr,
        *,
        n_starts: int,
        exclude: Csr | None = None,
        measured: NDArray[np.int64] | None = None,
    ) -> None:
        self.model, self.axis, self.n_rows = model, axis, matrix.shape[0]
        self.value_model, self._measured = model.value_model, measured
        if matrix.nnz == 0:  # there is no value to tabulate any element for
            self.value_model = self.value_model.replace(
                element=Degenerate(), vary_by=None, hurdle=False
            )
        self.columns, matrix, exclude = _compress(matrix, exclude)
        self._matrix = _stacked(matrix, n_starts)
        self._exclude = None if exclude is None else _stacked(exclude, n_starts)
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
        return fixed.mean_[self._measured].sum(axis=0, dtype=np.float64)

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
        sharing = self.value_model.sharing
        weighed = self.values.in_units() if sharing is not None and sharing.weighs else None
        return lay_out_rows(
            self._matrix, coordinate, weighed, self._exclude,
            lists_entries=not self.trains_on_missing,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Start:
    """Shapes and means that all new rows begin from."""

    shape: NDArray[np.float32]
    mean: NDArray[np.float32]


def fold_in_rows(
    new: NewRows,
    fixed: FactorPosterior,
    theta: ThetaPosterior | None,
    starts: Sequence[Start] = (),
) -> FactorPosterior:
    """Return the posterior of new rows in one fit, the other axis held ``fixed``.

    ``theta`` is the fitted axis' theta posterior, whose prior the new rows share; None where the
    rows of that axis have no means. Every row is started with all components alike and from each of
    ``starts``.
    """
    fold = _FoldIn(new, fixed, theta, starts)
    fold.run()
    rows = fold.best_rows() if starts else np.arange(new.n_rows)
    found = posterior_of(fold.mine, fold.prior, rows)
    if theta is not None and found.theta is None:
        found = replace(found, theta=ThetaPosterior.at_prior(new.n_rows, theta.chi0, theta.nu0))
    return found


class _FoldIn:
    """The stacked rows of one fit, beside the columns that they have entries in."""

    def __init__(
        self,
        new: NewRows,
        fixed: FactorPosterior,
        theta: ThetaPosterior | None,
        starts: Sequence[Start],
    ) -> None:
        size = fixed.shape_.shape[1]
        self.new, self.pooling, self.element = new, new.pooling, new.value_model.element
        self.tables, self.layout = new.tables
        self.prior = axis_prior(new.model.priors, new.axis, size, scale=new.model.tempering)
        self.base = new.shared_rate(fixed)
        self.other = self._fixed_axis(fixed.at(new.columns))
        self.mine = self._start(size, starts)
        if self.pooling is not None and theta is not None:
            self.mine.theta = ThetaPosterior.at_prior(self.mine.n_rows, theta.chi0, theta.nu0)
        self._shift()

    def run(self) -> None:
        """Make half-steps until each row has converged, whatever the others do."""
        mine, everyone = self.mine, np.arange(self.mine.n_rows)
        moving, n_sweeps = everyone, MAX_SWEEPS if self.mine.theta is None else 1
        for _ in range(MAX_SWEEPS):
            is_moving, n_cut = np.empty(len(moving), np.bool_), np.empty(len(moving))
            run_in_parallel(
                kernels.converge_rows, len(moving), moving, self.layout.entries, mine.factors,
                self.other.factors, self.tables.arrays, self.prior, self.base, self.layout.listed,
                TOLERANCE, n_sweeps, is_moving, n_cut,
                work=2.0 * _TYPICAL_SWEEPS * mine.n_components * self.layout.work,
            )  # fmt: skip
            if self.pooling is not None and mine.theta is not None:
                self.pooling.update(mine, self.new.values, self.element)
                self._shift()
            moving = moving[is_moving] if n_sweeps == 1 else moving[:0]
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
        other = empty_axis(Axis.ITEMS, *fixed.shape_.shape)
        other.factors.a[:], other.factors.mean[:] = fixed.shape_, fixed.mean_
        if self.pooling is not None:
            other.theta = fixed.theta
            self.pooling.set_row_terms(other, self.element)
        kernels.scale_rows(other.factors)
        return other

    def _start(self, size: int, starts: Sequence[Start]) -> AxisState:
        """Begin with all components alike (the fixed axis breaks the symmetry), and as given."""
        n_rows, entries = self.new.n_rows, self.layout.entries
        mine = empty_axis(Axis.USERS, len(entries.start), size)
        factors, degrees = mine.factors, self.layout.degrees[:n_rows]
        factors.a[:n_rows] = (self.prior.shape + degrees / size)[:, None]
        level = self.base if self.new.trains_on_missing else np.ones(size)
        factors.mean[:n_rows] = factors.a[:n_rows] / (1.0 + level)
        for j, start in enumerate(starts, 1):
            rows = slice(j * n_rows, (j + 1) * n_rows)
            factors.a[rows], factors.mean[rows] = start.shape, start.mean
        row_sums = factors.mean.sum(axis=1, dtype=np.float64)
        factors.activity_b[:] = self.prior.activity_rate + row_sums
        kernels.scale_rows(factors)
        return mine

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
        likelihood = parts[0] - layout.listed.sign * parts[1] - mine.factors.mean @ self.base
        if self.pooling is not None:
            likelihood += self.pooling.row_elbo(mine, other, self.new.values, self.element)
        return self.prior.scale * likelihood + parts[2]


def _compress(matrix: Csr, exclude: Csr | None) -> tuple[NDArray[np.int64], Csr, Csr | None]:
    """Return the columns that have entries or excluded pairs, and both matrices over them."""
    is_used = np.zeros(matrix.shape[1], np.bool_)
    is_used[matrix.indices] = True
    if exclude is not None:
        is_used[exclude.indices] = True
    columns = np.flatnonzero(is_used)
    place = np.empty(matrix.shape[1], np.int32)
    place[columns] = np.arange(len(columns), dtype=np.int32)

    def renumbered(old: Csr) -> Csr:
        parts = old.data, place[old.indices], old.indptr
        return sparse.csr_array(parts, shape=(old.shape[0], len(columns)))

    return columns, renumbered(matrix), None if exclude is None else renumbered(exclude)


def _stacked(matrix: Csr, times: int) -> Csr:
    """Return the rows of a matrix several times, one after the other."""
    if times == 1:
        return matrix
    pointer = np.arange(times)[:, None] * matrix.nnz + matrix.indptr[:-1].astype(np.int64)
    return sparse.csr_array(
        (
            np.tile(matrix.data, times),
            np.tile(matrix.indices, times),
            np.append(pointer.ravel(), times * matrix.nnz),
        ),
        shape=(times * matrix.shape[0], matrix.shape[1]),
    )
