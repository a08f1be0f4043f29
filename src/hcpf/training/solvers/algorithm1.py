"""The paper's Algorithm 1 as a solver: sampled entries, per-row clocks, product-of-means rate."""

from dataclasses import dataclass

import numpy as np

from hcpf._checks import flag, number, settle
from hcpf._types import FloatArray
from hcpf.core.half_step import half_step
from hcpf.core.kernels import Factors, Pattern
from hcpf.core.kernels.entry import entry_steps
from hcpf.core.layout import Problem, Side
from hcpf.core.priors import Priors
from hcpf.core.state import State, learn_theta, rescale, side_prior


@dataclass(frozen=True)
class EntryOptions:
    """Constants of Algorithm 1.

    Parameters
    ----------
    tau, xi
        Draw t of a row moves it by ``(t + tau) ** -xi``, at most 1.
    stratified
        Draw observed and missing entries half and half (or more observed ones, where those are
        the majority), weighted to the full grid; False draws uniformly from the grid, as the
        paper does. Training on observed entries only draws no others.
    """

    tau: float = 10_000.0
    xi: float = 0.7
    stratified: bool = True

    def __post_init__(self) -> None:
        settle(
            self,
            tau=number("tau", self.tau, 1e-9, 1e300, "a number above 0"),
            xi=number("xi", self.xi, 0.5 + 1e-9, 1.0, "above 0.5 and at most 1"),
            stratified=flag("stratified", self.stratified),
        )


def entry_pass(
    state: State,
    problem: Problem,
    priors: Priors,
    options: EntryOptions,
    rng: np.random.Generator,
    *,
    fit_prior: bool = False,
) -> None:
    """Draw as many entries as the data hold, and move the rows of each."""
    size = state.users.a.shape[1]
    memory = state.extras
    if not memory:
        _remember(memory, "user", state.users)
        _remember(memory, "item", state.items)
    share = observed_share(problem, options.stratified)
    users = tuple(memory[f"user_{name}"] for name in ("a", "b", "activity_b"))
    items = tuple(memory[f"item_{name}"] for name in ("a", "b", "activity_b"))
    weights = _weights(problem.users, problem, share), _weights(problem.items, problem, share)
    counts = np.zeros(3)
    owner = problem.users.owner(np.arange(problem.n_observed))
    factors = state.users, state.items
    shifts = *(f.shift for f in factors), *(f.cross.astype(np.float64) for f in factors)
    entry_steps(
        problem.users.entries, _excluded(problem.users), owner, problem.tables,
        shifts, users, items, side_prior(priors, size, True),
        side_prior(priors, size, False), weights, (memory["user_clock"], memory["item_clock"]),
        options.tau, options.xi, share, problem.n_observed, rng, counts,
    )  # fmt: skip
    state.sum_counts = problem.n_observed * float(counts[1]) / max(float(counts[0]), 1.0)
    state.cut_short = bool(counts[2] > 0)
    _recall(memory, "user", state.users)
    _recall(memory, "item", state.items)
    state.user_sums = state.users.mean.sum(axis=0, dtype=np.float64)
    state.item_sums = state.items.mean.sum(axis=0, dtype=np.float64)
    rescale(state)
    if state.varying is not None:
        _learn_theta(state, problem, priors, fit_prior)
        _recall(memory, "user", state.users)
        _recall(memory, "item", state.items)


def _learn_theta(state: State, problem: Problem, priors: Priors, fit_prior: bool) -> None:
    """Update theta from the counts of all entries, the factors held where they are."""
    size = state.users.a.shape[1]
    for users in (True, False):
        rows, cols = (state.users, state.items) if users else (state.items, state.users)
        side = problem.users if users else problem.items
        col_sums = state.item_sums if users else state.user_sums
        half_step(rows, cols, side, problem, side_prior(priors, size, users, step=0.0), col_sums)
        learn_theta(state, problem, users=users, fit_prior=fit_prior)


def observed_share(problem: Problem, stratified: bool) -> float:
    """The chance that a draw is an observed entry."""
    in_grid = problem.n_observed / (problem.n_observed + _missing(problem.users, problem).sum())
    return max(0.5, float(in_grid)) if stratified else float(in_grid)


def _weights(side: Side, problem: Problem, share: float) -> FloatArray:
    r"""What an observed and a missing draw of each row stand for: d/p and (C - d)/(1 - p).

    d is the row's number of observed entries, C that of all pairs that take part, and p the
    chance that a draw of the row is an observed one.
    """
    degree, missing = side.degrees.astype(np.float64), _missing(side, problem)
    observed_draws = share * degree / problem.n_observed
    missing_draws = (1.0 - share) * missing / max(float(missing.sum()), 1.0)
    draws = np.maximum(observed_draws + missing_draws, 1e-300)
    chance = np.stack([observed_draws, missing_draws], axis=1) / draws[:, None]
    return np.stack([degree, missing], axis=1) / np.maximum(chance, 1e-300)


def _missing(side: Side, problem: Problem) -> FloatArray:
    """Per row: the pairs that take part in training without being observed."""
    if problem.train_on == "observed":
        return np.zeros(side.size)
    width = problem.items.size if side is problem.users else problem.users.size
    excluded = _excluded(side)
    return width - side.degrees - (excluded.stop - excluded.start).astype(np.float64)


def _excluded(side: Side) -> Pattern:
    if side.pattern.sign < 0:
        return side.pattern
    return side.pattern._replace(stop=side.pattern.start)


def _remember(memory: dict[str, FloatArray], side: str, factors: Factors) -> None:
    """Keep float64 copies: single draws move a row by less than float32 can hold."""
    memory[f"{side}_a"] = factors.a.astype(np.float64)
    memory[f"{side}_b"] = factors.a / factors.mean.astype(np.float64)
    memory[f"{side}_activity_b"] = factors.activity_b.copy()
    memory[f"{side}_clock"] = np.zeros(len(factors.activity_b))


def _recall(memory: dict[str, FloatArray], side: str, factors: Factors) -> None:
    factors.a[:] = memory[f"{side}_a"]
    factors.mean[:] = memory[f"{side}_a"] / memory[f"{side}_b"]
    factors.activity_b[:] = memory[f"{side}_activity_b"]
