"""Several fits from different seeds, each run by a ``Worker``, combined into one predictor."""

import logging
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf.core.axis import Axis
from hcpf.core.collective import LOCAL, Collective, any_worker
from hcpf.core.kernels import Factors
from hcpf.core.layout import UserOrder
from hcpf.core.pooling import Pooling
from hcpf.core.posterior import Check, Posterior
from hcpf.core.priors import Priors
from hcpf.core.shard import Shard, ShardData, ShardSource, mostly_observed
from hcpf.core.threads import kernel_threads
from hcpf.core.value_model import ValueModel
from hcpf.data.held_out import HeldOutPairs
from hcpf.data.shards.matrix import StoredMatrix
from hcpf.elements.base import Element
from hcpf.errors import ParameterError
from hcpf.io import fingerprint
from hcpf.training.checkpoint import Checkpoint, Saved, restore
from hcpf.training.element_update import refit_element
from hcpf.training.loop import UNWATCHED, Fit, Watch, train
from hcpf.training.resolve import MAX_TEMPERING_OF_SEVERAL
from hcpf.training.settings import Algorithm1, Auto, FitPlan
from hcpf.training.start import (
    cluster_items,
    start_from_noise,
    start_from_posterior,
    start_symmetric,
)
from hcpf.training.state import FitState

logger = logging.getLogger("hcpf")


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of one fit, without the layouts of the data."""

    posterior: Posterior
    value_model: ValueModel
    history: tuple[Check, ...]
    converged: bool
    interrupted: bool
    """Whether it was to make more passes."""


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The fits that predictions use, with one value model for all of them."""

    posteriors: tuple[Posterior, ...]
    value_model: ValueModel
    history: tuple[Check, ...]
    """Of the first (or best) fit."""
    converged: bool
    """Whether all of them have."""


@dataclass(frozen=True, eq=False)
class Part:
    """The data of one worker."""

    data: ShardData
    validation: HeldOutPairs | None = None
    """Pairs of the worker's users."""
    start: tuple[Posterior, ...] = ()
    """Posteriors of the worker's users and all items to warm-start from."""


@dataclass(frozen=True, eq=False)
class Job:
    """The settings that all workers share."""

    value_model: ValueModel
    priors: Priors
    plan: FitPlan
    """Its tempering is a number."""
    seeds: NDArray[np.int64]
    """Of each fit, fits x 2."""


def run_fits(part: Part, job: Job, comm: Collective = LOCAL, watch: Watch = UNWATCHED) -> Ensemble:
    """Make the fits of a job as one of its workers, until ``watch`` asks for the end.

    The posteriors are those of the worker's users and all items.
    """
    outcomes: list[Outcome] = []
    with kernel_threads(job.plan.n_threads):
        for index, seed in enumerate(job.seeds):
            rng = np.random.default_rng(seed)
            outcomes.append(Worker(part, job, rng, index, comm, watch).run())
            if any_worker(comm, watch.stop_requested()):
                outcomes = _without_interrupted(outcomes, len(job.seeds))
                break
        return _combine(outcomes, part.data, job.plan, comm)


@dataclass(frozen=True, eq=False)
class Worker:
    """One worker's part in one of the fits of a plan."""

    part: Part
    job: Job
    rng: np.random.Generator
    """In the same state on all workers, which draw the same numbers from it."""
    index: int = 0
    """The number of the fit."""
    comm: Collective = LOCAL
    watch: Watch = UNWATCHED
    """Follows the fit, and can end it early."""

    @property
    def start(self) -> Posterior | None:
        """The posterior to warm-start from."""
        return self.part.start[self.index] if self.index < len(self.part.start) else None

    def run(self) -> Outcome:
        """Train from the start given, from a checkpoint, from noise or from clusters of items."""
        plan, data, start = self.job.plan, self.part.data, self.start
        if isinstance(plan.solver, Algorithm1) and self.comm.size > 1:
            raise ParameterError(
                "Algorithm 1 updates pair by pair and needs one worker, but there are "
                f"{self.comm.size}. Use another solver, or one worker."
            )
        if isinstance(plan.solver, Algorithm1) and isinstance(data.matrix, StoredMatrix):
            raise ParameterError(
                "Algorithm 1 draws single entries at random and requires them in memory, but they "
                "are in shards. Use another solver, or fit shards.to_memory()."
            )
        starts_from_clusters = start is None and self._starts_from_clusters
        if isinstance(plan.solver, Auto) and (starts_from_clusters or start is not None):
            # The first minibatch steps would undo the start.
            plan = replace(plan, solver=replace(plan.solver, svi_passes=0))
        checkpoint = self._checkpoint()
        permutation = None
        if plan.solver.has_batches:
            permutation = self.rng.permutation(data.n_users)
        order = UserOrder.of(data.numbers, data.n_users, permutation)
        source = ShardSource(data, order, self.comm, plan.solver.max_count, float(plan.tempering))
        saved = None if checkpoint is None else checkpoint.load()
        shard = source.lay_out(self.job.value_model)
        state = self._start(shard, starts_from_clusters and saved is None)
        fit = Fit(state, shard, source, plan, self.part.validation)
        del shard
        if saved is not None:
            _resume(fit, saved)
        title = "Fitting" if plan.n_fits == 1 else f"Fit {self.index + 1} of {plan.n_fits}"
        train(fit, checkpoint=checkpoint, title=title, watch=self.watch)
        order = fit.shard.order
        del fit.shard
        return Outcome(
            state.to_posterior(order), state.value_model, tuple(state.history),
            state.converged and not state.interrupted, state.interrupted,
        )  # fmt: skip

    def _start(self, shard: Shard, with_clusters: bool) -> FitState:
        plan, start = self.job.plan, self.start
        arguments = self.job.priors, plan.n_components, self.rng, self.comm
        if start is not None:
            return start_from_posterior(shard, start, *arguments)
        if plan.start == "symmetric":
            logger.warning(
                "start='symmetric' makes all components equal, as the paper prints it: they stay "
                "equal, so the rates have rank one. Use start='noise' to learn components."
            )
            return start_symmetric(shard, *arguments)
        clusters = None
        if with_clusters:
            clusters = cluster_items(self.part.data, plan.n_components, self.rng, self.comm)
        return start_from_noise(shard, *arguments, clusters)

    @property
    def _starts_from_clusters(self) -> bool:
        """Whether this fit begins from clusters of items.

        By default every second one does: an average of both kinds predicts better. But a strong
        tempering holds a fit where it begins, and where most pairs are observed clusters carry
        little information: there noise is better.
        """
        plan, data = self.job.plan, self.part.data
        if plan.start != "auto":
            return plan.start == "clusters"
        if not plan.keeps_start or self.index % 2 == 0:
            return False
        n_excluded = 0 if data.excluded is None else data.excluded.nnz
        sizes = np.array([data.matrix.nnz, n_excluded], dtype=np.float64)
        n_entries, n_excluded = self.comm.sum(sizes).tolist()
        shape = data.n_users, data.matrix.shape[1]
        is_dense = mostly_observed(n_entries, shape, n_excluded)
        return float(plan.tempering) <= MAX_TEMPERING_OF_SEVERAL and not is_dense

    def _checkpoint(self) -> Checkpoint | None:
        wanted = self.job.plan.checkpoint
        if wanted is None:
            return None
        return Checkpoint(
            wanted.folder, f"fit-{self.index}", self._identity(), self.comm,
            every_passes=wanted.every_passes, every_seconds=wanted.every_seconds,
        )  # fmt: skip

    def _identity(self) -> str:
        """Return a fingerprint of data, settings and seed: runs that share it are the same."""
        plan, data, matrix = self.job.plan, self.part.data, self.part.data.matrix
        if isinstance(matrix, StoredMatrix):
            arrays: list[Any] = [matrix.identity, data.numbers]
        else:
            arrays = [matrix.indptr, matrix.indices, matrix.data, data.numbers]
        if data.excluded is not None:
            arrays += [data.excluded.indptr, data.excluded.indices]
        for axis in Axis:
            if (exposure := data.exposure.axis(axis)) is not None:
                arrays += [axis.value, exposure]
        if (held := self.part.validation) is not None:
            arrays += [held.users, held.items, held.values, held.missing_users, held.missing_items]
        if (start := self.start) is not None:
            for found in (start.users, start.items):
                arrays += [found.shape_, found.mean_, found.activity_b]
                if (theta := found.theta) is not None:
                    arrays += [theta.chi, theta.nu, np.array([theta.chi0, theta.nu0])]
        settings = (
            matrix.shape, plan.n_components, plan.tempering, plan.start, plan.solver, plan.max_iter,
            plan.tol, plan.check_every, plan.learn_element, self.job.priors, self.job.value_model,
            self.rng.bit_generator.state, self.comm.rank, self.comm.size, Factors._fields,
        )  # fmt: skip
        return fingerprint(*arrays, repr(settings))


def _resume(fit: Fit, saved: Saved) -> None:
    """Put a checkpoint into a fit, its data laid out as they were then."""
    header, tensors = saved
    tabulated = fit.state.element.replace(**header["tabulated"])
    fit.lay_out(fit.state.value_model.replace(element=tabulated), tensors["max_log2_rate"])
    restore(fit.state, header, tensors)


def _without_interrupted(outcomes: list[Outcome], n_fits: int) -> list[Outcome]:
    """Return the complete fits, or the interrupted one if there is no other.

    A fit of few passes would count as much in the average as the complete ones.
    """
    complete = [one for one in outcomes if not one.interrupted]
    if complete:
        logger.warning("Interrupted: %d of %d fits are complete and kept.", len(complete), n_fits)
        return complete
    n_passes = outcomes[0].history[-1].iteration
    logger.warning("Interrupted after pass %d of the first fit, which is kept.", n_passes)
    return outcomes


def _combine(outcomes: list[Outcome], data: ShardData, plan: FitPlan, comm: Collective) -> Ensemble:
    """Keep the best fit, or all of them with the element estimated at their average rates."""
    best = max(range(len(outcomes)), key=lambda j: outcomes[j].history[-1].elbo)
    outcomes = [outcomes[best]] if plan.combine == "best" else outcomes
    posteriors = tuple(one.posterior for one in outcomes)
    value_model = outcomes[0].value_model
    if value_model.vary_by is not None:
        value_model, posteriors = _with_common_dispersion(outcomes)
    elif len(outcomes) > 1 and plan.learn_element:
        dispersion = value_model.train_on != "observed"
        element = refit_element(value_model, data, posteriors, comm, dispersion=dispersion)
        value_model = value_model.replace(element=element)
    converged = all(one.converged for one in outcomes)
    return Ensemble(posteriors, value_model, outcomes[0].history, converged)


def _with_common_dispersion(
    outcomes: list[Outcome],
) -> tuple[ValueModel, tuple[Posterior, ...]]:
    """Return one dispersion for all fits, between theirs, and every theta brought to it."""
    elements = [one.value_model.element for one in outcomes]
    element, name = elements[0], elements[0].dispersion_parameter
    if name is not None:
        log_values = [np.log(float(one.parameters[name])) for one in elements]
        mean = float(np.mean([float(one.mean) for one in elements]))
        element = element.replace(**{name: float(np.exp(np.mean(log_values)))}).with_mean(mean)
    value_model = outcomes[0].value_model.replace(element=element)
    return value_model, tuple(_at_dispersion(one, element) for one in outcomes)


def _at_dispersion(outcome: Outcome, element: Element) -> Posterior:
    """Return the posterior with theta in terms of another kappa, all means staying the same."""
    pooling, posterior = Pooling.of(outcome.value_model), outcome.posterior
    assert pooling is not None
    ratio = float(element.kappa / outcome.value_model.element.kappa)
    users, items = pooling.rescaled(posterior.users.theta, posterior.items.theta, ratio)
    return posterior.replace(Axis.USERS, theta=users).replace(Axis.ITEMS, theta=items)
