"""Posteriors of new rows, the other side held fixed: the training half-step until it settles."""

import numpy as np
from numpy.typing import NDArray

from hcpf._types import Csr
from hcpf.elements.base import Element
from hcpf.inference import kernels
from hcpf.inference.cavi import half_step
from hcpf.inference.problem import Problem, make_problem, row_blocks
from hcpf.inference.state import empty_factors, side_posterior, side_prior
from hcpf.posterior import FactorPosterior
from hcpf.priors import Priors

TOLERANCE = 1e-6
"""Relative change of every factor below which a row has settled."""
MOST_SWEEPS = 500


def fold_in(
    matrix: Csr,
    fixed: FactorPosterior,
    element: Element,
    priors: Priors,
    *,
    users: bool,
    train_on: str,
    exclude: Csr | None = None,
    n_truncation: int | None = None,
) -> FactorPosterior:
    """The posterior of the rows of a canonical matrix whose columns are the fixed side.

    ``users`` tells which side the rows are: new users beside fixed items, or new items (their
    matrix transposed) beside fixed users.
    """
    problem = make_problem(
        matrix, element, train_on=train_on, exclude=exclude, n_truncation=n_truncation
    )
    size = fixed.shape_.shape[1]
    cols = empty_factors(len(fixed.shape_), size)
    cols.a[:], cols.mean[:] = fixed.shape_, fixed.mean_
    kernels.scale_rows(cols, problem.items.blocks)
    col_sums = fixed.mean_.sum(axis=0, dtype=np.float64)
    prior = side_prior(priors, size, users)
    rows = empty_factors(problem.users.size, size)
    _even_start(rows, problem, prior, col_sums)
    for _ in range(MOST_SWEEPS):
        before = rows.mean.copy()
        half_step(rows, cols, problem.users, problem, prior, col_sums)
        if not np.any(np.abs(rows.mean - before) > TOLERANCE * before + 1e-30):
            break
    return side_posterior(rows, priors, users, None)


def _even_start(
    rows: kernels.Factors, problem: Problem, prior: kernels.Prior, col_sums: NDArray[np.float64]
) -> None:
    """Every component alike: the columns, which differ, break the symmetry."""
    size = rows.a.shape[1]
    rows.a[:] = (prior.shape + problem.users.degrees / size)[:, None]
    level = col_sums if problem.train_on != "observed" else np.ones(size)
    rows.mean[:] = rows.a / (1.0 + level)
    rows.activity_b[:] = prior.activity_rate + rows.mean.sum(axis=1, dtype=np.float64)
    kernels.scale_rows(rows, row_blocks(problem.users.entries))
