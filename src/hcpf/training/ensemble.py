"""From a matrix and a plan to fitted posteriors: elements, priors, held-out pairs, several fits."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from hcpf._types import Csr, FloatArray
from hcpf.core.kernels import Factors
from hcpf.core.layout import Problem, make_problem
from hcpf.core.posterior import Posterior
from hcpf.core.priors import Priors
from hcpf.core.state import initial_state, state_from_posterior, to_posterior
from hcpf.core.theta import Varying
from hcpf.core.threads import kernel_threads
from hcpf.core.value_model import ValueModel
from hcpf.data.sampling import row_of_entries
from hcpf.elements import Element, get
from hcpf.errors import ParameterError, SupportError
from hcpf.model.combine import Combined
from hcpf.model.history import Check
from hcpf.training.auto import best_element, best_tempering
from hcpf.training.checkpoint import Checkpoint, make_folder, remembered_seed, restore
from hcpf.training.clusters import cluster_items
from hcpf.training.element_update import refit_element
from hcpf.training.held_out import HeldOut, Parts, set_aside
from hcpf.training.loop import Run, train
from hcpf.training.plan import FitPlan
from hcpf.training.recipes import (
    MOST_TEMPERING_OF_SEVERAL,
    choose_priors,
    choose_value_model,
    is_dense,
)

logger = logging.getLogger("hcpf")


@dataclass(frozen=True, eq=False)
class Start:
    """An earlier fit to go on from."""

    posteriors: Sequence[Posterior]
    value_model: ValueModel
    tempering: float


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit gives back."""

    posteriors: list[Posterior]
    value_model: ValueModel
    priors: Priors
    history: list[Check]
    interrupted: bool
    tempering: float


def fit_all(
    matrix: Csr,
    plan: FitPlan,
    *,
    validation: Csr | None = None,
    exclude: Csr | None = None,
    start: Start | None = None,
) -> Fitted:
    """Fit the plan's number of models to a canonical CSR matrix."""
    rng, stopped = _generator(plan), False
    if start is not None and plan.options.solver == "auto":
        # The first minibatch steps would forget where the items stand.
        plan = replace(plan, options=replace(plan.options, svi_passes=0))
    matrix = _as_seen(matrix, plan.element)
    validation = None if validation is None else _as_seen(validation, plan.element)
    parts = set_aside(matrix, validation, exclude, plan.validation_fraction, plan.train_on, rng)
    matrix = parts.training
    if plan.element == "auto" and plan.train_on == "full":
        chosen, stopped = best_element(fit_all, parts, plan, rng)
        plan = _cut_short(plan.with_value_model(chosen), stopped)
    value_model = choose_value_model(
        plan.element,
        _values_for(plan, parts),
        vary_by=plan.vary_by,
        hurdle=plan.hurdle,
        train_on=plan.train_on,
        priors=plan.priors,
    )
    parts.check_support(value_model)
    same_element = start is not None and type(start.value_model.element) is type(
        value_model.element
    )
    if start is not None and plan.options.learn_element and same_element:
        value_model = _warm_start_element(value_model, start.value_model.element, matrix.data)
    elif start is not None and not same_element:
        start = replace(start, posteriors=[_without_theta(fit) for fit in start.posteriors])
    n_excluded = 0 if parts.excluded is None else parts.excluded.nnz
    priors = choose_priors(plan.priors, matrix, value_model, n_excluded, plan.n_components)
    if plan.tempering == "auto" and start is not None:
        plan = replace(plan, tempering=start.tempering)
    elif plan.tempering == "auto":
        weight, cut = best_tempering(fit_all, parts, plan.with_value_model(value_model), rng)
        plan, stopped = _cut_short(replace(plan, tempering=weight), cut), stopped or cut
    runs: list[_Outcome] = []
    seeds = rng.integers(0, 1 << 63, size=(plan.n_fits, 2))
    with kernel_threads(plan.n_threads):
        for index, seed in enumerate(seeds):
            fit = _Fit(parts, plan, value_model, priors, np.random.default_rng(seed), index)
            runs.append(fit.run(start))
            if runs[-1].interrupted:
                break
        found = _gather(runs, priors, matrix, plan)
    return replace(found, interrupted=found.interrupted or stopped)


def _cut_short(plan: FitPlan, stopped: bool) -> FitPlan:
    """After Ctrl-C: one pass makes a usable model."""
    if not stopped:
        return plan
    return replace(plan, n_fits=1, options=replace(plan.options, max_iter=1))


def _generator(plan: FitPlan) -> np.random.Generator:
    seed: Any = plan.random_state
    if plan.checkpoint is not None:
        make_folder(plan.checkpoint)
        seed = remembered_seed(plan.checkpoint) if seed is None else seed
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"random_state must be an int, a Generator or None; got {seed!r} ({error})."
        ) from None


def _as_seen(matrix: Csr, element: str | Element) -> Csr:
    """Return the matrix with its values as the element sees them."""
    if element == "auto":
        return matrix
    kind = get(element) if isinstance(element, str) else element
    values = kind.seen(matrix.data)
    if values is matrix.data:
        return matrix
    return sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What is kept of a finished fit: the layouts of the data are let go."""

    posterior: Posterior
    value_model: ValueModel
    history: list[Check]
    interrupted: bool


@dataclass(frozen=True, eq=False)
class _Fit:
    """One of the fits of a plan."""

    parts: Parts
    plan: FitPlan
    value_model: ValueModel
    priors: Priors
    rng: np.random.Generator
    index: int

    def run(self, start: Start | None) -> _Outcome:
        """Train from the start given, from a checkpoint, from noise or from clusters of items."""
        plan, matrix, rng = self.plan, self.parts.training, self.rng
        options, posterior = plan.options, None
        if start is not None and self.index < len(start.posteriors):
            posterior = start.posteriors[self.index]
        clustered = posterior is None and self._begins_from_clusters
        if clustered:  # the first minibatch steps would forget where the items stand
            options = replace(options, svi_passes=0)
        checkpoint = self._checkpoint(posterior)
        stochastic = plan.options.solver in ("auto", "svi")
        order = rng.permutation(matrix.shape[0]) if stochastic else None

        def remake(element: Element, reach: FloatArray | None) -> Problem:
            return make_problem(
                matrix, self.value_model.replace(element=element), exclude=self.parts.excluded,
                order=order, n_truncation=plan.n_truncation, reach=reach,
                weight=float(plan.tempering),
            )  # fmt: skip

        saved = None if checkpoint is None else checkpoint.load()
        problem = remake(self.value_model.element, None)
        if posterior is None:
            clusters = None
            if clustered and saved is None:
                clusters = cluster_items(matrix, plan.n_components, rng)
            state = initial_state(problem, self.priors, plan.n_components, rng, clusters)
        else:
            state = state_from_posterior(problem, posterior, plan.n_components)
        run = Run(problem, state, self.priors, rng)
        if saved is not None:
            header, tensors = saved
            run.problem = remake(
                self.value_model.element.replace(**header["tabulated"]), tensors["reach"]
            )
            restore(run, header, tensors)
        del problem, state
        train(
            run,
            options,
            remake=remake,
            values_of=lambda entry: matrix.data[entry],
            validation=self.parts.held_out,
            checkpoint=checkpoint,
            progress=plan.progress,
            title="Fitting" if plan.n_fits == 1 else f"Fit {self.index + 1} of {plan.n_fits}",
        )
        state = run.state
        del run.problem, run.state
        return _Outcome(
            to_posterior(state, self.priors, order),
            self.value_model.replace(element=state.element),
            run.history,
            run.interrupted,
        )

    @property
    def _begins_from_clusters(self) -> bool:
        """Every second fit, if nothing else is asked for: both kinds make the better average.

        But data that count very often hold a fit where it begins, and where most pairs are observed
        clusters say little: there noise is better.
        """
        plan = self.plan
        if plan.init != "auto":
            return plan.init == "clusters"
        free = float(plan.tempering) <= MOST_TEMPERING_OF_SEVERAL
        apart = free and not is_dense(self.parts.training, self.parts.excluded)
        return plan.keeps_its_start and apart and self.index % 2 == 1

    def _checkpoint(self, posterior: Posterior | None) -> Checkpoint | None:
        plan = self.plan
        if plan.checkpoint is None:
            return None
        path = plan.checkpoint / f"fit-{self.index}.safetensors"
        identity = self._identity(posterior)
        return Checkpoint(path, identity, plan.checkpoint_every, plan.checkpoint_seconds)

    def _identity(self, posterior: Posterior | None) -> str:
        """A fingerprint of data, settings and seed: two runs that share it take the same steps."""
        plan, matrix, held = self.plan, self.parts.training, self.parts.held_out
        arrays: list[Any] = [matrix.indptr, matrix.indices, matrix.data]
        if self.parts.excluded is not None:
            arrays += [self.parts.excluded.indptr, self.parts.excluded.indices]
        arrays += [] if held is None else _arrays(held)
        if posterior is not None:
            for side in (posterior.users, posterior.items):
                arrays += [side.shape_, side.mean_, side.activity_b]
                if side.theta is not None:
                    groups = side.theta
                    arrays += [groups.chi, groups.nu, np.array([groups.chi0, groups.nu0])]
        digest = hashlib.blake2b(digest_size=16)
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
        settings = (
            matrix.shape, plan.n_components, plan.train_on, plan.n_truncation, plan.tempering,
            plan.init, plan.options.describe(), self.priors, self.value_model,
            self.rng.bit_generator.state, Factors._fields,
        )  # fmt: skip
        digest.update(repr(settings).encode())
        return digest.hexdigest()


def _arrays(held: HeldOut) -> list[Any]:
    return [held.users, held.items, held.values, held.missing_users, held.missing_items]


def _gather(runs: list[_Outcome], priors: Priors, matrix: Csr, plan: FitPlan) -> Fitted:
    """Keep the best fit, or all of them with the element re-estimated at their average rates."""
    best = max(range(len(runs)), key=lambda j: runs[j].history[-1].elbo)
    interrupted = any(run.interrupted for run in runs)
    runs = [runs[best]] if plan.combine == "best" else runs
    posteriors = [run.posterior for run in runs]
    value_model = runs[0].value_model
    if value_model.vary_by is not None:
        value_model, posteriors = _in_common_terms(runs)
    elif len(runs) > 1 and plan.options.learn_element:
        rate = Combined(posteriors).rates(row_of_entries(matrix), matrix.indices)
        dispersion = plan.train_on != "observed"
        element = refit_element(value_model, matrix.data, rate, dispersion=dispersion)
        value_model = value_model.replace(element=element)
    return Fitted(
        posteriors, value_model, priors, runs[0].history, interrupted, float(plan.tempering)
    )


def _in_common_terms(runs: list[_Outcome]) -> tuple[ValueModel, list[Posterior]]:
    """One dispersion for all fits, between theirs, and every theta brought to it."""
    elements = [run.value_model.element for run in runs]
    element, name = elements[0], elements[0].dispersion_parameter
    if name is not None:
        log_values = [np.log(float(one.parameters[name])) for one in elements]
        mean = float(np.mean([float(one.mean) for one in elements]))
        element = element.replace(**{name: float(np.exp(np.mean(log_values)))}).with_mean(mean)
    posteriors = [_rescaled(run.posterior, run.value_model.element, element) for run in runs]
    return runs[0].value_model.replace(element=element), posteriors


def _values_for(plan: FitPlan, parts: Parts) -> FloatArray:
    """What an element is estimated from: the training values.

    With the ends of those held out, where a value that is one element could be beyond its reach.
    """
    held_out = parts.held_out
    if not plan.hurdle or held_out is None:
        return parts.training.data
    values = held_out.values
    ends = [values.min(), values.max()] if len(values) else []
    return np.append(parts.training.data, ends)


def _warm_start_element(value_model: ValueModel, before: Element, values: FloatArray) -> ValueModel:
    """Return the value model with the parameters it had before, if they can give these values."""
    same = value_model.replace(element=before)
    try:
        same.require(values)
    except SupportError:
        return value_model
    return same


def _without_theta(posterior: Posterior) -> Posterior:
    """The factors alone: theta of another element means nothing here."""
    return Posterior(replace(posterior.users, theta=None), replace(posterior.items, theta=None))


def _rescaled(posterior: Posterior, old: Element, new: Element) -> Posterior:
    """Theta in terms of another kappa, all means staying as they are."""
    conjugate = old.conjugate
    assert conjugate is not None
    varying = Varying(conjugate, posterior.users.theta, posterior.items.theta)
    varying.rescale(float(new.kappa / old.kappa))
    return Posterior(
        replace(posterior.users, theta=varying.users),
        replace(posterior.items, theta=varying.items),
    )
