"""From a matrix and a plan to fitted posteriors: elements, priors, held-out pairs, several fits."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import Csr, FloatArray
from hcpf.elements.base import Element
from hcpf.errors import InputError, ParameterError
from hcpf.inference.checkpoint import Checkpoint
from hcpf.inference.combine import Combined
from hcpf.inference.fit import Check, Run, train
from hcpf.inference.heldout import HeldOut
from hcpf.inference.mstep import refit_element
from hcpf.inference.options import FitOptions
from hcpf.inference.problem import Problem, make_problem
from hcpf.inference.recipes import choose_element, choose_priors, element_for_training
from hcpf.inference.sampling import (
    hold_out,
    pair_keys,
    row_of_entries,
    sample_missing,
    select,
)
from hcpf.inference.state import initial_state, rescale, state_from_posterior, to_posterior
from hcpf.inference.threads import kernel_threads
from hcpf.posterior import Posterior
from hcpf.priors import Priors


@dataclass(frozen=True, eq=False)
class FitPlan:
    """Everything that decides a fit, besides the data."""

    n_components: int
    element: str | Element
    train_on: str
    n_fits: int
    combine: str
    priors: str | Priors
    options: FitOptions
    validation_fraction: float = 0.0
    n_truncation: int | None = None
    n_threads: int | None = None
    random_state: int | np.random.Generator | None = None
    progress: bool | None = None
    checkpoint: Path | None = None
    checkpoint_every: int = 10
    checkpoint_seconds: float = 300.0

    def __post_init__(self) -> None:
        for name in ("n_components", "n_fits", "checkpoint_every"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
                raise ParameterError(f"{name} must be a whole number, 1 or more; got {value!r}.")
        for name, allowed in (
            ("train_on", ("full", "observed", "binary")),
            ("combine", ("average", "best")),
        ):
            if getattr(self, name) not in allowed:
                given = getattr(self, name)
                raise ParameterError(f"{name} must be one of {', '.join(allowed)}; got {given!r}.")
        if not 0 <= self.validation_fraction < 1:
            raise ParameterError(
                f"validation_fraction must lie in [0, 1); got {self.validation_fraction!r}."
            )


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit gives back."""

    posteriors: list[Posterior]
    element: Element
    priors: Priors
    history: list[Check]
    interrupted: bool


def fit_all(
    matrix: Csr,
    plan: FitPlan,
    *,
    validation: Csr | None = None,
    exclude: Csr | None = None,
    start: Sequence[Posterior] | None = None,
) -> Fitted:
    """Fit the plan's number of models to a canonical CSR matrix."""
    rng = np.random.default_rng(plan.random_state)
    matrix, held_out, exclude = _set_aside(matrix, plan, validation, exclude, rng)
    if matrix.nnz == 0:
        raise InputError("There are no observed entries to fit.")
    if plan.train_on == "binary":
        matrix = sparse.csr_array(
            (np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape
        )
    element = choose_element(plan.element, matrix.data, plan.train_on)
    element = element_for_training(element, matrix.data, plan.train_on)
    n_excluded = 0 if exclude is None else exclude.nnz
    priors = choose_priors(
        plan.priors, matrix, element, n_excluded, plan.n_components, plan.train_on
    )
    runs: list[Run] = []
    with kernel_threads(plan.n_threads):
        for index, child in enumerate(rng.spawn(plan.n_fits)):
            runs.append(
                _one_fit(matrix, exclude, held_out, plan, element, priors, child, index, start)
            )
            if runs[-1].interrupted:
                break
        return _gather(runs, matrix, plan)


def _one_fit(
    matrix: Csr,
    exclude: Csr | None,
    held_out: HeldOut | None,
    plan: FitPlan,
    element: Element,
    priors: Priors,
    rng: np.random.Generator,
    index: int,
    start: Sequence[Posterior] | None,
) -> Run:
    stochastic = plan.options.solver in ("auto", "svi")
    order = rng.permutation(matrix.shape[0]) if stochastic else None

    def remake(element: Element, octaves: tuple[int, int] | None = None) -> Problem:
        wider = {} if octaves is None else {"octaves": octaves}
        return make_problem(
            matrix, element, train_on=plan.train_on, exclude=exclude, order=order,
            n_truncation=plan.n_truncation, **wider,
        )  # fmt: skip

    problem = remake(element)
    if start is not None and index < len(start):
        state = state_from_posterior(problem, start[index])
    else:
        state = initial_state(problem, priors, plan.n_components, rng)
    run = Run(problem, state, priors, rng)
    checkpoint = None
    if plan.checkpoint is not None:
        checkpoint = Checkpoint(
            plan.checkpoint / f"fit-{index}.safetensors",
            _identity(matrix, exclude, plan, priors, element),
            plan.checkpoint_every,
            plan.checkpoint_seconds,
        )
        header = checkpoint.restore(run)
        if header is not None:
            tabulated = element.replace(**header["tabulated"])
            low, high = header["octaves"]
            run.problem = remake(tabulated, (low, high))
            rescale(run.state, run.problem)
    title = "Fitting" if plan.n_fits == 1 else f"Fit {index + 1} of {plan.n_fits}"
    return train(
        run,
        plan.options,
        remake=remake,
        values=matrix.data if order is None else matrix[order].data,
        validation=held_out,
        checkpoint=checkpoint,
        progress=plan.progress,
        title=title,
    )


def _set_aside(
    matrix: Csr,
    plan: FitPlan,
    validation: Csr | None,
    exclude: Csr | None,
    rng: np.random.Generator,
) -> tuple[Csr, HeldOut | None, Csr | None]:
    """Split off validation pairs and gather everything that takes no part in training."""
    for name, other in (("validation", validation), ("exclude", exclude)):
        if other is not None and other.shape != matrix.shape:
            raise InputError(f"{name} has shape {other.shape}, but the data have {matrix.shape}.")
    if exclude is not None:
        matrix = _without(matrix, exclude)
    if validation is not None:
        matrix = _without(matrix, validation)
    elif plan.validation_fraction > 0:
        matrix, validation = hold_out(matrix, plan.validation_fraction, rng)
    if validation is None:
        return matrix, None, exclude
    missing = sample_missing(matrix, validation.nnz, rng, also=[validation, exclude])
    observed = validation.tocoo()
    cells = float(matrix.shape[0]) * matrix.shape[1]
    absent = cells - matrix.nnz - validation.nnz
    share = validation.nnz / (validation.nnz + matrix.nnz)
    held = HeldOut(
        users=observed.row.astype(np.int64),
        items=observed.col.astype(np.int64),
        values=observed.data.astype(np.float64),
        missing_users=missing[0],
        missing_items=missing[1],
        missing_weight=share * absent / max(len(missing[0]), 1),
    )
    return matrix, held, _union(matrix.shape, [exclude, validation], missing)


def _without(matrix: Csr, other: Csr) -> Csr:
    """Drop the entries whose pair is stored in ``other``."""
    gone = np.isin(pair_keys(matrix), pair_keys(other))
    return select(matrix, ~gone) if np.any(gone) else matrix


def _union(
    shape: tuple[int, int],
    matrices: list[Csr | None],
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> Csr:
    keys = [pair_keys(m) for m in matrices if m is not None]
    key = np.unique(np.concatenate([*keys, pairs[0] * shape[1] + pairs[1]]))
    marks = np.ones(len(key), np.float32)
    return sparse.csr_array((marks, (key // shape[1], key % shape[1])), shape=shape)


def _identity(
    matrix: Csr,
    exclude: Csr | None,
    plan: FitPlan,
    priors: Priors,
    element: Element,
) -> str:
    """A fingerprint of data and settings, for checkpoints."""
    digest = hashlib.blake2b(digest_size=16)
    for array in (matrix.indptr, matrix.indices, matrix.data):
        digest.update(np.ascontiguousarray(array).data)
    if exclude is not None:
        digest.update(np.ascontiguousarray(exclude.indptr).data)
        digest.update(np.ascontiguousarray(exclude.indices).data)
    settings = (
        plan.n_components, plan.train_on, plan.n_truncation, plan.options.describe(), priors,
        type(element).__name__, element.parameters, matrix.shape, str(plan.random_state),
    )  # fmt: skip
    digest.update(repr(settings).encode())
    return digest.hexdigest()


def _gather(runs: list[Run], matrix: Csr, plan: FitPlan) -> Fitted:
    """Keep the best fit, or all of them with the element re-estimated at their average rates."""
    best = max(range(len(runs)), key=lambda j: runs[j].history[-1].elbo)
    runs = [runs[best]] if plan.combine == "best" else runs
    posteriors = [to_posterior(run.state, run.priors, run.problem.order) for run in runs]
    element = runs[0].state.element
    if len(runs) > 1 and plan.options.learn_element:
        rate: FloatArray = Combined(posteriors).rates(
            row_of_entries(matrix), matrix.indices.astype(np.int64)
        )
        element = refit_element(element, matrix.data, rate)
    interrupted = any(run.interrupted for run in runs)
    return Fitted(posteriors, element, runs[0].priors, runs[0].history, interrupted)
