"""Posteriors of new rows, the other side held fixed: the training half-step until it settles."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hcpf._types import Csr, FloatArray
from hcpf.core import kernels
from hcpf.core.axis import Axis
from hcpf.core.half_step import half_step
from hcpf.core.layout import Problem, Side, make_problem, row_blocks
from hcpf.core.posterior import FactorPosterior
from hcpf.core.priors import Priors
from hcpf.core.rates import pair_rates
from hcpf.core.state import empty_factors, set_multipliers, side_posterior, side_prior
from hcpf.core.theta import ThetaPosterior, Varying
from hcpf.core.value_model import ValueModel
from hcpf.elements.degenerate import Degenerate

TOLERANCE = 1e-6
"""Relative change of every factor below which a row has settled."""
MOST_SWEEPS = 5_000


def fold_in_rows(
    matrix: Csr,
    fixed: FactorPosterior,
    value_model: ValueModel,
    priors: Priors,
    *,
    axis: Axis,
    exclude: Csr | None = None,
    n_truncation: int | None = None,
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
    element = value_model.element

    def remake(reach: FloatArray | None) -> Problem:
        return make_problem(
            matrix, value_model, exclude=exclude, n_truncation=n_truncation, reach=reach
        )  # fmt: skip

    problem = remake(None)
    size = fixed.shape_.shape[1]
    cols = empty_factors(len(fixed.shape_), size)
    cols.a[:], cols.mean[:] = fixed.shape_, fixed.mean_
    varying = _varying(value_model, theta, fixed.theta, matrix.shape[0])
    if varying is not None:
        varying.set_shifts(cols, element, users=False)
    kernels.scale_rows(cols)
    col_sums = fixed.mean_.sum(axis=0, dtype=np.float64)
    prior = side_prior(priors, size, axis is Axis.USERS, scale=tempering)
    rows = empty_factors(problem.users.size, size)
    _even_start(rows, problem, prior, col_sums)
    _shift_rows(rows, varying, problem)
    moving = everyone = np.arange(problem.users.size)
    for _ in range(MOST_SWEEPS):
        part = _at(rows, moving)
        side = _side_at(problem.users, moving)
        _, counts = half_step(part, cols, side, problem, prior, col_sums)
        before = rows.mean[moving]
        for mine, new in zip(rows, part, strict=True):
            mine[moving] = new
        if varying is not None:
            varying.learn(rows, problem.values, element, users=True)
            _shift_rows(rows, varying, problem)
        # A row stops when it has settled, whatever the others do: each is on its own.
        moving = moving[np.any(np.abs(part.mean - before) > TOLERANCE * before + 1e-30, axis=1)]
        if counts[1] > 0 and np.any((reach := _reach(rows, cols, problem)) > problem.local.reach):
            problem, moving = remake(reach), everyone
        if not moving.size:
            break
    found = side_posterior(rows, priors, axis is Axis.USERS, None)
    if theta is None:
        return found
    fallback = ThetaPosterior.at_prior(matrix.shape[0], theta.chi0, theta.nu0)
    return replace(found, theta=fallback if varying is None else varying.users)


def _varying(
    value_model: ValueModel, prior: ThetaPosterior | None, fixed: ThetaPosterior | None, rows: int
) -> Varying | None:
    """Theta of the rows, which begins at its prior, beside that of the columns."""
    conjugate = value_model.element.conjugate
    if value_model.vary_by is None or conjugate is None:
        return None
    mine = None if prior is None else ThetaPosterior.at_prior(rows, prior.chi0, prior.nu0)
    return Varying(conjugate, mine, fixed, value_model.hurdle)


def _shift_rows(rows: kernels.Factors, varying: Varying | None, problem: Problem) -> None:
    if varying is None:
        return
    varying.set_shifts(rows, problem.element, users=True)
    rows.shift[:] -= problem.local.slope
    set_multipliers(rows)


def _reach(rows: kernels.Factors, cols: kernels.Factors, problem: Problem) -> FloatArray:
    """How far the weights must reach: some series over n was cut short."""
    entry = np.arange(problem.n_observed)
    side = problem.users
    mine, other = side.owner(entry), side.entries.index
    log_rate = np.log(np.maximum(pair_rates(rows.mean, cols.mean, mine, other), 1e-300))
    log_rate += rows.shift[mine] + cols.shift[other]
    log_rate += problem.tables.cross * rows.cross[mine] * cols.cross[other]
    return problem.local.reach_for(log_rate, entry)


def _at(rows: kernels.Factors, chosen: NDArray[np.int64]) -> kernels.Factors:
    part = empty_factors(len(chosen), rows.a.shape[1])
    for mine, all_rows in zip(part, rows, strict=True):
        mine[:] = all_rows[chosen]
    return part


def _side_at(side: Side, chosen: NDArray[np.int64]) -> Side:
    entries, pattern = side.entries, side.pattern
    entries = entries._replace(start=entries.start[chosen], stop=entries.stop[chosen])
    pattern = pattern._replace(start=pattern.start[chosen], stop=pattern.stop[chosen])
    return Side(entries, pattern, row_blocks(entries))


def _even_start(
    rows: kernels.Factors, problem: Problem, prior: kernels.Prior, col_sums: NDArray[np.float64]
) -> None:
    """Every component alike: the columns, which differ, break the symmetry."""
    size = rows.a.shape[1]
    rows.a[:] = (prior.shape + problem.users.degrees / size)[:, None]
    level = col_sums if problem.train_on != "observed" else np.ones(size)
    rows.mean[:] = rows.a / (1.0 + level)
    rows.activity_b[:] = prior.activity_rate + rows.mean.sum(axis=1, dtype=np.float64)
    kernels.scale_rows(rows)
