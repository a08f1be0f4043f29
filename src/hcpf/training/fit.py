"""From interactions and a plan to a fitted model, if it is small enough for the machine."""

import logging
from dataclasses import replace

import numpy as np
from scipy import sparse

from hcpf._checks import generator
from hcpf._types import Csr, FloatArray
from hcpf.core.axis import NO_EXPOSURE, Axis, Exposure
from hcpf.core.odd_entries import limit_odd_entries
from hcpf.core.posterior import Posterior
from hcpf.core.value_model import ValueModel
from hcpf.data.canonical import name_pair
from hcpf.data.interactions import Interactions
from hcpf.data.sampling import union
from hcpf.data.shards.folder import Shards
from hcpf.data.shards.matrix import CHUNK_ENTRIES, StoredMatrix
from hcpf.elements import Element, get
from hcpf.elements.registry import CHOSEN_BY_DATA
from hcpf.errors import InputError, SupportError
from hcpf.model.alignment import ids_of
from hcpf.model.fitted import FittedModel
from hcpf.training.auto import choose_settings
from hcpf.training.checkpoint import make_folder, remembered_seed
from hcpf.training.engine import LOCAL_ENGINE, Engine, Parts, ShardParts
from hcpf.training.ensemble import Job
from hcpf.training.held_out import TrainingSplit, split_validation
from hcpf.training.interrupt import interruptible
from hcpf.training.loop import watch_on_terminal
from hcpf.training.memory import require_memory
from hcpf.training.resolve import resolve_priors, resolve_value_model
from hcpf.training.settings import FitPlan

logger = logging.getLogger("hcpf")

_MAX_ODD_ENTRIES = 1 << 24
"""Entries on disk that are read into memory, about 60 bytes each, to find the odd ones."""


def fit_model(
    data: Interactions,
    plan: FitPlan,
    *,
    validation: Csr | None = None,
    exclude: Csr | None = None,
    exposure: Exposure = NO_EXPOSURE,
    start: FittedModel | None = None,
    engine: Engine = LOCAL_ENGINE,
) -> FittedModel:
    """Fit a model to interactions; ``start`` is one to warm-start from.

    The first Ctrl-C asks for the end after the current pass, a second one raises.
    """
    with interruptible() as interrupt:
        engine.check()
        rng = _generator(plan)
        if start is not None:
            _require_same_rows(start, data, plan)
            plan = _with_choices_of(start, plan)
        if engine is LOCAL_ENGINE:  # other engines bring their own
            require_memory(data.matrix, plan)
        seen = None if validation is None else _as_seen(validation, plan)
        split = split_validation(
            _as_seen(data.matrix, plan), seen, exclude, plan.validation_fraction, plan.train_on,
            rng, exposure,
        )  # fmt: skip
        _require_support(plan, split, data)
        plan, is_cut_short = choose_settings(split, plan, rng, interrupt)
        value_model, posteriors = resolve_value_model(plan, split), ()
        if start is not None:
            value_model, posteriors = _warm_start(start, value_model, plan, split.values)
        priors = resolve_priors(plan.priors, split, value_model, plan.n_components)
        seeds = rng.integers(0, 1 << 63, size=(plan.n_fits, 2))
        parts, job = _parts(data, split, plan, posteriors), Job(value_model, priors, plan, seeds)
        with watch_on_terminal(plan.progress, plan.max_iter, interrupt.stop_requested) as watch:
            ensemble = engine.run(parts, job, watch)
        return FittedModel(
            value_model=ensemble.value_model,
            priors=priors,
            posteriors=_with_odd_entries_limited(
                ensemble.posteriors, ensemble.value_model, split.training
            ),
            users=data.users,
            items=data.items,
            history=ensemble.history,
            tempering=float(plan.tempering),
            excluded=union(exclude, validation),
            data=data,
            converged=ensemble.converged,
            max_count=plan.solver.max_count,
            # Last: Ctrl-C may have been pressed while the arguments above were computed.
            interrupted=is_cut_short or interrupt.is_requested,
        )


def _with_odd_entries_limited(
    posteriors: tuple[Posterior, ...], value_model: ValueModel, matrix: Csr
) -> tuple[Posterior, ...]:
    """Limit the influence of one odd entry, which looks at all entries at once."""
    if value_model.vary_by is None:
        return posteriors
    if isinstance(matrix, StoredMatrix):
        if matrix.nnz > _MAX_ODD_ENTRIES:
            logger.warning(
                "The means of users and items are not protected from odd entries, because %d "
                "entries on disk are more than the %d that are compared.",
                matrix.nnz, _MAX_ODD_ENTRIES,
            )  # fmt: skip
            return posteriors
        matrix = matrix[:]
    return limit_odd_entries(posteriors, value_model, matrix)


def _generator(plan: FitPlan) -> np.random.Generator:
    seed = plan.random_state
    if plan.checkpoint is not None:
        make_folder(plan.checkpoint.folder)
        seed = remembered_seed(plan.checkpoint.folder) if seed is None else seed
    return generator(seed)


def _given_kind(plan: FitPlan) -> type[Element] | None:
    """Return the class of the element; None where the data choose it, or where it is not one."""
    element = plan.element
    if isinstance(element, str) and element not in CHOSEN_BY_DATA:
        return get(element)
    return type(element) if isinstance(element, Element) else None


def _require_support(plan: FitPlan, split: TrainingSplit, data: Interactions) -> None:
    """Raise an error that names the first pair whose value the given element cannot have."""
    kind = _given_kind(plan)
    position = None if kind is None else _first_outside(kind, split.training)
    if kind is not None and position is not None:
        pair = name_pair(split.training, position, data.users, data.items)
        raise SupportError(
            f"{pair} has the value {split.training.data[position]:g}, but {kind.__name__} takes "
            f"{kind.support.description}. Choose an element with this value in its support, or "
            "remove or transform the value."
        )


def _first_outside(kind: type[Element], matrix: Csr) -> int | None:
    """Return the position of the first value that an element cannot have; None if there is none."""
    is_stored = isinstance(matrix, StoredMatrix)
    if is_stored and np.all(kind.support.contains(matrix.summary.extremes)):
        return None
    for first in range(0, matrix.nnz, CHUNK_ENTRIES):
        values = matrix.data[first : first + CHUNK_ENTRIES]
        inside = kind.support.contains(values.astype(np.float64, copy=False))
        if not inside.all():
            return first + int(np.argmin(inside))
    return None


def _ignores_values(plan: FitPlan) -> bool:
    """Return whether the element sees only which pairs are observed."""
    kind = _given_kind(plan)
    return kind is not None and float(kind.seen(np.full(1, 2.0))[0]) == 1.0


def _as_seen(matrix: Csr, plan: FitPlan) -> Csr:
    """Return the matrix with its values as the element sees them."""
    if not _ignores_values(plan):
        return matrix
    if isinstance(matrix, StoredMatrix):
        return matrix.with_ones()
    ones = np.ones(matrix.nnz)
    return sparse.csr_array((ones, matrix.indices, matrix.indptr), shape=matrix.shape)


def _parts(
    data: Interactions, split: TrainingSplit, plan: FitPlan, start: tuple[Posterior, ...]
) -> Parts:
    if not isinstance(data, Shards):
        return Parts(split, start)
    return ShardParts(split, start, shards=data, ignores_values=_ignores_values(plan))


def _require_same_rows(start: FittedModel, data: Interactions, plan: FitPlan) -> None:
    """Raise an error if posteriors cannot be taken over row by row."""
    for axis in Axis:
        if not np.array_equal(start.index[axis].ids, ids_of(data, axis)):
            raise InputError(
                f"warm_start: the {axis.value} are not those of the fitted model, in the same "
                "order. Call partial_fit to add data, or set warm_start=False."
            )
    if start.n_components != plan.n_components:
        raise InputError(
            f"n_components={plan.n_components}, but the model to start from has "
            f"{start.n_components}. Set n_components={start.n_components}, or call fit with "
            "warm_start=False."
        )


def _with_choices_of(start: FittedModel, plan: FitPlan) -> FitPlan:
    """Return the plan with what was chosen for an earlier model in place of further choices."""
    if plan.tempering == "auto":
        plan = replace(plan, tempering=start.tempering)
    chosen = start.value_model
    if plan.element not in CHOSEN_BY_DATA or chosen.train_on != plan.train_on:
        return plan
    element = type(chosen.element)()
    if plan.vary_by is not None or plan.hurdle:  # given along with element="quick"
        return replace(plan, element=element)
    return plan.with_value_model(chosen.replace(element=element))


def _warm_start(
    start: FittedModel, value_model: ValueModel, plan: FitPlan, values: FloatArray
) -> tuple[ValueModel, tuple[Posterior, ...]]:
    """Return the value model and the posteriors to begin with.

    The element keeps its fitted parameters if they can give these values; theta of another element
    means nothing here.
    """
    if type(start.element) is not type(value_model.element):
        fits = (fit.replace(Axis.USERS, theta=None) for fit in start.posteriors)
        return value_model, tuple(fit.replace(Axis.ITEMS, theta=None) for fit in fits)
    if plan.learn_element:
        same = value_model.replace(element=start.element)
        try:
            same.require(values)
        except SupportError:
            return value_model, start.posteriors
        value_model = same
    return value_model, start.posteriors
