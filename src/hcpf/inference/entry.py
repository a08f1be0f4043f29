"""The paper's Algorithm 1 as a solver: sampled entries, per-row clocks, product-of-means rate."""

from dataclasses import dataclass

import numpy as np

from hcpf._types import FloatArray
from hcpf.inference.kernels import Entries, Factors
from hcpf.inference.kernels.entry import entry_steps
from hcpf.inference.problem import Problem
from hcpf.inference.state import State, rescale, side_prior
from hcpf.priors import Priors


@dataclass(frozen=True)
class EntryOptions:
    """Constants of Algorithm 1.

    Parameters
    ----------
    tau, xi
        Draw t of a row moves it by ``(t + tau) ** -xi``.
    stratified
        Draw observed and missing entries half and half, weighted to the full grid; False draws
        uniformly from the grid, as the paper does.
    """

    tau: float = 10_000.0
    xi: float = 0.7
    stratified: bool = True


def entry_pass(
    state: State, problem: Problem, priors: Priors, options: EntryOptions, rng: np.random.Generator
) -> None:
    """Draw as many entries as the data hold, and move the rows of each."""
    size = state.users.a.shape[1]
    memory = state.extras
    if not memory:
        _remember(memory, "user", state.users)
        _remember(memory, "item", state.items)
    entries = problem.users.entries
    owner = np.repeat(np.arange(problem.users.size), entries.stop - entries.start)
    excluded = problem.users.pattern if problem.users.pattern.sign < 0 else _nothing(entries)
    users = tuple(memory[f"user_{name}"] for name in ("a", "b", "activity_b"))
    items = tuple(memory[f"item_{name}"] for name in ("a", "b", "activity_b"))
    counts = np.zeros(3)
    entry_steps(
        entries, excluded, owner, problem.tables, state.slope - problem.local.slope,
        users, items, side_prior(priors, size, True), side_prior(priors, size, False),
        _weights(problem, options.stratified), (memory["user_clock"], memory["item_clock"]),
        options.tau, options.xi, options.stratified, problem.n_observed, rng, counts,
    )  # fmt: skip
    state.sum_counts = problem.n_observed * counts[2] / max(counts[0], 1.0)
    _recall(memory, "user", state.users)
    _recall(memory, "item", state.items)
    state.user_sums = state.users.mean.sum(axis=0, dtype=np.float64)
    state.item_sums = state.items.mean.sum(axis=0, dtype=np.float64)
    rescale(state, problem)


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


def _nothing(entries: Entries) -> Entries:
    return entries._replace(stop=entries.start)


def _weights(problem: Problem, stratified: bool) -> tuple[FloatArray, FloatArray]:
    r"""What an observed and a missing draw of each row stand for: d/p and (C - d)/(1 - p)."""
    out: list[FloatArray] = []
    n_users, n_items = problem.users.size, problem.items.size
    for side, width in ((problem.users, n_items), (problem.items, n_users)):
        degree = (side.entries.stop - side.entries.start).astype(np.float64)
        left_out = np.zeros_like(degree)
        if side.pattern.sign < 0:
            left_out = (side.pattern.stop - side.pattern.start).astype(np.float64)
        missing = np.maximum(width - left_out - degree, 0.0)
        if stratified:
            observed_share = 0.5 * degree / max(problem.n_observed, 1)
            missing_share = 0.5 * missing / max(n_users * n_items - problem.n_observed, 1)
            chance = observed_share / np.maximum(observed_share + missing_share, 1e-300)
        else:
            chance = degree / np.maximum(degree + missing, 1.0)
        observed = degree / np.maximum(chance, 1e-300)
        out.append(np.stack([observed, missing / np.maximum(1.0 - chance, 1e-300)], axis=1))
    return out[0], out[1]
