"""From interactions and a plan to a fitted model."""

from dataclasses import replace

import numpy as np
from scipy import sparse

from hcpf._checks import generator
from hcpf._types import Csr, FloatArray
from hcpf.core.posterior import Posterior
from hcpf.core.value_model import ValueModel
from hcpf.data.interactions import Interactions
from hcpf.elements import Element, get
from hcpf.elements.registry import CHOSEN_BY_DATA
from hcpf.errors import SupportError
from hcpf.model.alignment import union
from hcpf.model.fitted import FittedModel
from hcpf.training.auto import choose_settings
from hcpf.training.checkpoint import make_folder, remembered_seed
from hcpf.training.ensemble import fit_ensemble
from hcpf.training.held_out import split_validation
from hcpf.training.memory import require_memory
from hcpf.training.resolve import resolve_priors, resolve_value_model
from hcpf.training.settings import FitPlan


def fit_model(
    data: Interactions,
    plan: FitPlan,
    *,
    validation: Csr | None = None,
    exclude: Csr | None = None,
    start: FittedModel | None = None,
) -> FittedModel:
    """Fit a model to interactions; ``start`` is one to warm-start from."""
    rng = _generator(plan)
    require_memory(data.matrix, plan)
    matrix = _as_seen(data.matrix, plan.element)
    seen = None if validation is None else _as_seen(validation, plan.element)
    split = split_validation(matrix, seen, exclude, plan.validation_fraction, plan.train_on, rng)
    if plan.tempering == "auto" and start is not None:
        plan = replace(plan, tempering=start.tempering)
    plan, interrupted = choose_settings(split, plan, rng)
    value_model, posteriors = resolve_value_model(plan, split), ()
    if start is not None:
        value_model, posteriors = _warm_start(start, value_model, plan, split.training.data)
    priors = resolve_priors(
        plan.priors, split.training, value_model, split.n_excluded, plan.n_components
    )
    ensemble = fit_ensemble(split, value_model, priors, plan, rng, posteriors)
    return FittedModel(
        value_model=ensemble.value_model,
        priors=priors,
        posteriors=ensemble.posteriors,
        users=data.users,
        items=data.items,
        history=ensemble.history,
        tempering=float(plan.tempering),
        excluded=union(exclude, validation),
        data=data,
        interrupted=ensemble.interrupted or interrupted,
        max_count=plan.solver.max_count,
    )


def _generator(plan: FitPlan) -> np.random.Generator:
    seed = plan.random_state
    if plan.checkpoint is not None:
        make_folder(plan.checkpoint.folder)
        seed = remembered_seed(plan.checkpoint.folder) if seed is None else seed
    return generator(seed)


def _as_seen(matrix: Csr, element: str | Element) -> Csr:
    """Return the matrix with its values as the element sees them."""
    if element in CHOSEN_BY_DATA or not isinstance(element, str | Element):
        return matrix
    kind = get(element) if isinstance(element, str) else element
    values = kind.seen(matrix.data)
    if values is matrix.data:
        return matrix
    return sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def _warm_start(
    start: FittedModel, value_model: ValueModel, plan: FitPlan, values: FloatArray
) -> tuple[ValueModel, tuple[Posterior, ...]]:
    """Return the value model and the posteriors to begin with.

    The element keeps its fitted parameters if they can give these values; theta of another element
    means nothing here.
    """
    if type(start.element) is not type(value_model.element):
        return value_model, tuple(_without_theta(fit) for fit in start.posteriors)
    if plan.learn_element:
        same = value_model.replace(element=start.element)
        try:
            same.require(values)
        except SupportError:
            return value_model, start.posteriors
        value_model = same
    return value_model, start.posteriors


def _without_theta(posterior: Posterior) -> Posterior:
    return Posterior(replace(posterior.users, theta=None), replace(posterior.items, theta=None))
