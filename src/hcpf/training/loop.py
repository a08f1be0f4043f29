"""The one training loop: passes, checks, stopping, history, checkpoints, interruption."""

import logging
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from hcpf._progress import progress_bar
from hcpf._types import FloatArray
from hcpf.core.count_tables import FURTHER
from hcpf.core.elbo import elbo
from hcpf.core.half_step import cavi_step
from hcpf.core.layout import Problem
from hcpf.core.priors import Priors
from hcpf.core.rates import pair_rates
from hcpf.core.state import State, set_shifts
from hcpf.core.theta import PRIOR_AT
from hcpf.elements.base import Element
from hcpf.model.history import Check
from hcpf.training.checkpoint import Checkpoint
from hcpf.training.element_update import ValuesOf, best_dispersion, update_theta
from hcpf.training.held_out import HeldOut
from hcpf.training.options import FitOptions
from hcpf.training.solvers.algorithm1 import entry_pass
from hcpf.training.solvers.momentum import (
    forget_theta,
    moves_theta,
    push,
    restart,
    restart_if_fallen,
)
from hcpf.training.solvers.svi import svi_pass

logger = logging.getLogger("hcpf")

Remake = Callable[[Element, FloatArray | None], Problem]
"""Lays the data out anew for another element, or with weights that reach larger rates."""

_LOOKED_AT = 1 << 22  # entries at once
_SAMPLE = 1 << 17  # entries that tell whether rates have left the table
_ROUNDING = 1e-6  # of the bound, by which it may fall where it has settled
_LARGEST_DRIFT = 3.0  # of the log rates from where the tables were made
_DISPERSION_AT = frozenset({3, 10, 30, 60, 100, 200})  # passes after which it is estimated anew


@dataclass(eq=False)
class Run:
    """One fit under way or finished."""

    problem: Problem
    state: State
    priors: Priors
    rng: np.random.Generator
    history: list[Check] = field(default_factory=list)
    converged: bool = False
    interrupted: bool = False


def train(
    run: Run,
    options: FitOptions,
    *,
    remake: Remake,
    values_of: ValuesOf,
    validation: HeldOut | None = None,
    checkpoint: Checkpoint | None = None,
    progress: bool | None = None,
    title: str = "Fitting",
) -> Run:
    """Make passes until the bound (or the validation likelihood) settles or max_iter is reached."""
    seconds = run.history[-1].seconds if run.history else 0.0
    clock = time.perf_counter() - seconds
    # On observed entries alone nothing holds the dispersion: with a whole number of elements for
    # each distinct value it can shrink without end. The paper's recipe keeps it.
    free = options.learn_element and run.problem.train_on != "observed"
    free &= run.state.element.dispersion_parameter is not None
    with (
        _interruptible() as interrupted,
        progress_bar(progress, title, options.max_iter) as advance,
    ):
        advance(run.state.iteration, "")
        while run.state.iteration < options.max_iter and not run.converged:
            _one_pass(run, options)
            _retabulate(run, remake)
            if free and run.state.iteration in _DISPERSION_AT:
                _update_dispersion(run, remake, values_of)
            last = run.state.iteration >= options.max_iter or interrupted()
            if last or run.state.iteration % options.check_every == 0:
                _check(run, options, validation, time.perf_counter() - clock)
            if checkpoint is not None:
                checkpoint.maybe_save(run, force=last or run.converged)
            advance(1, f"bound {run.history[-1].elbo:,.0f}" if run.history else "")
            if interrupted():
                run.interrupted = True
                logger.warning(
                    "Interrupted after pass %d; the model is usable.", run.state.iteration
                )
                break
    return run


def _one_pass(run: Run, options: FitOptions) -> None:
    state, problem, priors = run.state, run.problem, run.priors
    solver = options.solver_at(state.iteration, problem.users.size, problem.n_observed)
    fit_prior = options.learn_element and state.iteration in PRIOR_AT
    if solver == "svi":
        svi_pass(state, problem, priors, options.svi, fit_prior=fit_prior)
    elif solver == "entry":
        entry_pass(state, problem, priors, options.entry, run.rng, fit_prior=fit_prior)
    else:
        if options.solver == "auto":
            push(state, problem)
        cavi_step(state, problem, priors, fit_prior=fit_prior)
        if options.solver == "auto" and moves_theta(state, problem):
            restart_if_fallen(state, elbo(state, problem, priors))
    state.iteration += 1
    if options.learn_element:
        update_theta(state, problem)


def _retabulate(run: Run, remake: Remake) -> None:
    """Tabulate anew where theta has moved far from the tables, or rates beyond their weights.

    A sum over n cut short still gives a lower bound, so nothing done so far is wrong, only not
    optimal.
    """
    state, problem = run.state, run.problem
    shift = state.slope - problem.local.slope
    drifted = state.varying is None and abs(shift) >= _LARGEST_DRIFT
    # A theta of its own moves a pair's rate, perhaps to where there is no table.
    moved = state.varying is not None and state.iteration - 1 in PRIOR_AT
    if not (state.cut_short or drifted or moved):
        return
    spare, step = (0.0, 1) if state.cut_short else (FURTHER, max(1, problem.n_observed // _SAMPLE))
    if drifted or np.any(_reach(run, 0.0, step) - spare > problem.local.reach):
        reach = _reach(run, -shift, step)
        del problem, run.problem  # two layouts of the data at once would double the memory
        run.problem = remake(state.element, reach)
        state.slope = run.problem.local.slope
        set_shifts(state, run.problem)
    state.cut_short = False


def _reach(run: Run, moved: float, step: int = 1) -> FloatArray:
    """How far the weights must reach for the current rates, looked at a few entries at a time.

    ``moved`` is what another element to tabulate would add to the log rates; one entry in
    ``step`` is looked at.
    """
    state, side, local = run.state, run.problem.users, run.problem.local
    reach = np.full_like(local.reach, -np.inf)
    for first in range(0, run.problem.n_observed, _LOOKED_AT * step):
        entry = np.arange(first, min(first + _LOOKED_AT * step, run.problem.n_observed), step)
        # Product-of-means rates: what Algorithm 1 sums at, and no less than the geometric ones.
        users, items = side.owner(entry), side.entries.index[entry]
        rate = pair_rates(state.users.mean, state.items.mean, users, items)
        log_rate = np.log(np.maximum(rate, 1e-300)) + moved
        log_rate += state.users.shift[users] + state.items.shift[items]
        log_rate += local.local.cross * state.users.cross[users] * state.items.cross[items]
        reach = np.maximum(reach, local.reach_for(log_rate, entry))
    return reach


def _update_dispersion(run: Run, remake: Remake, values_of: ValuesOf) -> None:
    """Take the new dispersion if, and only if, the bound rises with it."""
    state = run.state
    element, slope, tabulated = state.element, state.slope, run.problem.element
    reach = run.problem.local.reach
    candidate = best_dispersion(state, run.problem, values_of)
    if candidate == element:
        return
    before = elbo(state, run.problem, run.priors)
    varying = copy(state.varying)
    if state.varying is not None:
        state.varying.rescale(float(candidate.kappa / element.kappa))
    del run.problem  # two layouts of the data at once would double the memory
    run.problem = remake(candidate, reach)
    state.element, state.slope = candidate, run.problem.local.slope
    set_shifts(state, run.problem)
    if not elbo(state, run.problem, run.priors) >= before:
        del run.problem
        run.problem = remake(tabulated, reach)
        state.element, state.slope, state.varying = element, slope, varying
        set_shifts(state, run.problem)
        return
    forget_theta(state)


def _check(run: Run, options: FitOptions, validation: HeldOut | None, seconds: float) -> None:
    bound = elbo(run.state, run.problem, run.priors)
    score = (
        None
        if validation is None
        else validation.log_likelihood(run.state, run.problem.value_model, run.problem.order)
    )
    run.history.append(Check(run.state.iteration, seconds, bound, score))
    logger.info("pass %d: bound %.6g, validation %s", run.state.iteration, bound, score)
    run.converged = options.tol > 0 and _settled(run.history, options.tol)
    if len(run.history) > 1 and bound < run.history[-2].elbo:
        restart(run.state)  # momentum has overshot
        fell = run.history[-2].elbo - bound > _ROUNDING * abs(bound)
        run.converged &= not (fell and options.solver == "auto" and score is None)


def _settled(history: list[Check], tol: float) -> bool:
    if len(history) < 2:
        return False
    old, new = history[-2], history[-1]
    passes = new.iteration - old.iteration
    if new.validation_log_likelihood is not None and old.validation_log_likelihood is not None:
        before, after = old.validation_log_likelihood, new.validation_log_likelihood
        return after - before < tol * passes * abs(after)
    return abs(new.elbo - old.elbo) < tol * passes * abs(new.elbo)


@contextmanager
def _interruptible() -> Generator[Callable[[], bool], None, None]:
    """Turn the first Ctrl-C into a request to stop after the current pass; a second one raises."""
    requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield requested.is_set
        return
    previous = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: object) -> None:
        if requested.is_set():
            raise KeyboardInterrupt
        requested.set()

    if previous is not signal.default_int_handler:
        yield requested.is_set  # somebody else handles Ctrl-C: leave it to them
        return
    signal.signal(signal.SIGINT, ask)
    try:
        yield requested.is_set
    finally:
        signal.signal(signal.SIGINT, previous)
