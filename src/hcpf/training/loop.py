"""The one training loop: passes, checks, stopping, history, checkpoints.

It is the same for one worker and for many: every decision depends on numbers that the collective
has made equal on all workers.
"""

import logging
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hcpf._progress import progress_bar
from hcpf.core.collective import Collective, any_worker
from hcpf.core.count_tables import SPARE_OCTAVES, rate_normalizer
from hcpf.core.pooling import PRIOR_PASSES
from hcpf.core.posterior import Check
from hcpf.core.rates import needed_log2_rate
from hcpf.core.shard import Shard, ShardSource
from hcpf.core.value_model import ValueModel
from hcpf.data.held_out import HeldOutPairs
from hcpf.training.checkpoint import Checkpoint
from hcpf.training.element_update import best_dispersion, has_dispersion, update_element
from hcpf.training.held_out import validation_log_likelihood
from hcpf.training.settings import CAVI, SVI, Algorithm1, FitPlan
from hcpf.training.solvers.algorithm1 import algorithm1_pass
from hcpf.training.solvers.cavi import cavi_pass, forget_theta, moves_theta, push, restart_if_fallen
from hcpf.training.solvers.svi import svi_pass
from hcpf.training.state import FitState

logger = logging.getLogger("hcpf")

_RATE_SAMPLE = 1 << 17  # entries checked for rates outside the tables
_ROUNDING = 1e-6  # relative decrease of the ELBO that counts as rounding
_MAX_DRIFT = 3.0  # largest distance of the log rates from where the tables were made, in nats
_DISPERSION_PASSES = frozenset({3, 10, 30, 60, 100, 200})
"""Passes after which the dispersion is estimated again."""


@dataclass(eq=False)
class Fit:
    """One fit under way on one worker."""

    state: FitState
    shard: Shard
    source: ShardSource
    plan: FitPlan
    validation: HeldOutPairs | None = None

    @property
    def comm(self) -> Collective:
        """The workers."""
        return self.source.comm

    def lay_out(self, value_model: ValueModel, max_log2_rate: np.ndarray) -> None:
        """Lay out the data again for another element or larger rates."""
        del self.shard  # two layouts of the data at once would double the memory
        self.shard = self.source.lay_out(value_model, max_log2_rate)


class Watch(Protocol):
    """An observer of a fit, which can end it early."""

    def passed(self, title: str, iteration: int, note: str) -> None:
        """Take note of the passes made so far."""
        ...

    def stop_requested(self) -> bool:
        """Return whether the fit is to end after the current pass."""
        ...


class _Unwatched:
    """Nobody watches."""

    def passed(self, title: str, iteration: int, note: str) -> None:
        """Do nothing."""

    def stop_requested(self) -> bool:
        """Return that the fit goes on."""
        return False


UNWATCHED = _Unwatched()


class _Terminal:
    """Shows a progress bar per fit."""

    def __init__(
        self,
        progress: bool | None,
        total: int,
        stop_requested: Callable[[], bool],
        bars: ExitStack,
    ) -> None:
        self._progress, self._total, self._bars = progress, total, bars
        self._title, self._shown = "", 0
        self.stop_requested = stop_requested

    def passed(self, title: str, iteration: int, note: str) -> None:
        """Advance the bar of the fit; the first call opens it, and closes the one before."""
        if title != self._title:
            self._bars.close()
            bar = progress_bar(self._progress, title, self._total)
            self._advance = self._bars.enter_context(bar)
            self._title, self._shown = title, 0
        self._advance(iteration - self._shown, note)
        self._shown = iteration


@contextmanager
def watch_on_terminal(
    progress: bool | None, total: int, stop_requested: Callable[[], bool]
) -> Generator[Watch]:
    """Yield a watch that shows progress bars of ``total`` passes."""
    with ExitStack() as bars:
        yield _Terminal(progress, total, stop_requested, bars)


def train(
    fit: Fit,
    *,
    checkpoint: Checkpoint | None = None,
    title: str = "Fitting",
    watch: Watch = UNWATCHED,
) -> None:
    """Make passes until the ELBO (or the validation likelihood) converges, or max_iter."""
    state, plan, comm = fit.state, fit.plan, fit.comm
    seconds = state.history[-1].seconds if state.history else 0.0
    clock = time.perf_counter() - seconds
    watch.passed(title, state.iteration, "")
    while not (state.is_finished(plan.max_iter) or state.interrupted):
        advance_fit(fit)
        stopping = any_worker(comm, watch.stop_requested())
        is_due = state.iteration % plan.check_every == 0 or state.iteration >= plan.max_iter
        if is_due:
            _check(fit, time.perf_counter() - clock)
        is_finished = state.is_finished(plan.max_iter)
        if checkpoint is not None:
            checkpoint.maybe_save(fit.state, fit.shard, force=stopping or is_finished)
        state.interrupted = stopping and not is_finished
        if state.interrupted and not is_due:  # after saving: a resumed fit does not make this check
            _check(fit, time.perf_counter() - clock)
        note = f"ELBO {state.history[-1].elbo:,.0f}" if state.history else ""
        watch.passed(title, state.iteration, note)


def advance_fit(fit: Fit) -> None:
    """Make one pass, after which tables and dispersion follow the factors."""
    state = fit.state
    _make_pass(fit)
    _retabulate(fit)
    # With train_on="observed" the likelihood can grow without bound as the dispersion shrinks, so
    # the dispersion stays as the paper's recipe sets it.
    learns_dispersion = fit.plan.learn_element and fit.shard.trains_on_missing
    learns_dispersion &= has_dispersion(state.value_model)
    if learns_dispersion and state.iteration in _DISPERSION_PASSES:
        _update_dispersion(fit)


def _make_pass(fit: Fit) -> None:
    """Make one pass with the solver of this pass, then update the element's mean."""
    state, shard, plan, comm = fit.state, fit.shard, fit.plan, fit.comm
    totals = shard.totals
    solver = plan.solver.at(state.iteration, totals.n_users, totals.n_entries)
    fit_prior = plan.learn_element and state.iteration in PRIOR_PASSES
    if isinstance(solver, SVI):
        svi_pass(state, shard, solver, comm, fit_prior=fit_prior)
    elif isinstance(solver, Algorithm1):
        algorithm1_pass(state, shard, solver, fit_prior=fit_prior)
    else:
        assert isinstance(solver, CAVI), f"no pass is written for {solver!r}"
        if plan.has_momentum:
            push(state, shard)
        cavi_pass(state, shard, comm, fit_prior=fit_prior)
        if plan.has_momentum and moves_theta(state, shard):
            restart_if_fallen(state, state.elbo(shard, comm))
    state.iteration += 1
    if plan.learn_element:
        update_element(state, shard)


def _retabulate(fit: Fit) -> None:
    """Tabulate again where theta has moved far from the tables, or rates beyond their weights.

    A sum over n that was cut short still gives a lower bound, so nothing done so far is wrong,
    only not optimal.
    """
    state, tables, comm = fit.state, fit.shard.tables, fit.comm
    drift = rate_normalizer(state.value_model) - tables.log_normalizer
    mean_has_drifted = state.pooling is None and abs(drift) >= _MAX_DRIFT
    mean_has_drifted &= not tables.is_summed
    # Row-specific theta shifts the pair's log rate, possibly outside the tabulated range.
    # ``_make_pass`` has counted the pass already.
    prior_was_refit = state.pooling is not None and state.iteration - 1 in PRIOR_PASSES
    if not (state.is_truncated or mean_has_drifted or prior_was_refit):
        return
    # Where nothing was cut short yet, look at a sample, and act only if little room is left.
    spare, step = 0.0, 1
    if not state.is_truncated:
        spare, step = SPARE_OCTAVES, max(1, fit.shard.totals.n_entries // _RATE_SAMPLE)

    def needed(moved: float) -> np.ndarray:
        layout, tables = fit.shard.users, fit.shard.tables
        found = needed_log2_rate(state.users, state.items, layout, tables, moved=moved, step=step)
        return comm.max(found)

    if mean_has_drifted or np.any(needed(0.0) - spare > tables.max_log2_rate):
        fit.lay_out(state.value_model, needed(-drift))
        state.set_shifts(fit.shard)
    state.is_truncated = False


def _update_dispersion(fit: Fit) -> None:
    """Take the new dispersion if, and only if, the ELBO rises with it."""
    state, comm, pooling = fit.state, fit.comm, fit.state.pooling
    before, tabulated = state.value_model, fit.shard.value_model
    max_log2_rate = fit.shard.tables.max_log2_rate
    candidate = best_dispersion(state, fit.shard, comm)
    if candidate == before.element:
        return
    elbo, thetas = state.elbo(fit.shard, comm), (state.users.theta, state.items.theta)
    if pooling is not None:
        ratio = float(candidate.kappa / before.element.kappa)
        state.users.theta, state.items.theta = pooling.rescaled(*thetas, ratio)
    state.set_element(candidate)
    fit.lay_out(state.value_model, max_log2_rate)
    state.set_shifts(fit.shard)
    if state.elbo(fit.shard, comm) >= elbo:
        forget_theta(state)
        return
    state.users.theta, state.items.theta = thetas
    state.value_model = before
    fit.lay_out(tabulated, max_log2_rate)
    state.set_shifts(fit.shard)


def _check(fit: Fit, seconds: float) -> None:
    """Add a line to the history, and decide whether the fit has converged."""
    state, plan, history = fit.state, fit.plan, fit.state.history
    elbo, score = state.elbo(fit.shard, fit.comm), None
    if fit.validation is not None:
        score = validation_log_likelihood(state, fit.shard, fit.validation, fit.comm)
    history.append(Check(state.iteration, seconds, elbo, score, fit.shard.tempering))
    logger.info("pass %d: ELBO %.6g, validation %s", state.iteration, elbo, score)
    state.converged = plan.tol > 0 and _has_converged(history, plan.tol)
    if len(history) > 1 and elbo < history[-2].elbo:
        state.momentum = None  # it has overshot
        # A fall under momentum is an overshoot, not convergence.
        fell = history[-2].elbo - elbo > _ROUNDING * abs(elbo)
        state.converged &= not (fell and plan.has_momentum and score is None)


def _has_converged(history: list[Check], tol: float) -> bool:
    if len(history) < 2:
        return False
    old, new = history[-2], history[-1]
    passes = new.iteration - old.iteration
    if new.validation_log_likelihood is not None and old.validation_log_likelihood is not None:
        before, after = old.validation_log_likelihood, new.validation_log_likelihood
        return after - before < tol * passes * abs(after)
    return abs(new.elbo - old.elbo) < tol * passes * abs(new.elbo)
