"""Stochastic variational inference over minibatches of users.

Rows of the problem are in random order, so a batch is a range of rows, and within every item the
entries of a batch are a range too: one pointer per item walks through them as the pass goes on.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hcpf._checks import number, settle, whole
from hcpf.core import kernels
from hcpf.core.half_step import half_step
from hcpf.core.kernels import Entries, Pattern
from hcpf.core.layout import Problem, row_blocks
from hcpf.core.priors import Priors
from hcpf.core.state import State, learn_theta, side_prior
from hcpf.core.threads import share


@dataclass(frozen=True)
class SviOptions:
    """Constants of the minibatch solver.

    Parameters
    ----------
    batches
        Minibatches of users in one pass over the data.
    local_sweeps
        Updates of a batch's users before the items take a step.
    tau, xi
        Step t of the items has size ``(t + tau) ** -xi``, at most 1.
    """

    batches: int = 40
    local_sweeps: int = 4
    tau: float = 1.0
    xi: float = 0.6

    def __post_init__(self) -> None:
        settle(
            self,
            batches=whole("batches", self.batches),
            local_sweeps=whole("local_sweeps", self.local_sweeps),
            tau=number("tau", self.tau, 1e-9, 1e300, "a number above 0"),
            xi=number("xi", self.xi, 0.5 + 1e-9, 1.0, "above 0.5 and at most 1"),
        )


def svi_pass(
    state: State,
    problem: Problem,
    priors: Priors,
    options: SviOptions,
    *,
    fit_prior: bool = False,
) -> None:
    """One pass over all users in minibatches, the items moving after each.

    A theta of the users moves with each batch, one of the items when the pass is over.
    """
    n_users, size = state.users.a.shape
    edges = np.linspace(0, n_users, min(options.batches, n_users) + 1).astype(np.int64)
    walk = _Walk(problem)
    user_prior = side_prior(priors, size, users=True, scale=problem.weight)
    user_sums, batch_sums = np.zeros(size), np.zeros(size)
    sum_counts, cut = 0.0, 0.0
    sums = state.items.count, state.items.cross_count, state.items.value_sum
    item_sums = np.zeros((len(sums), len(state.items.count)))
    for first, last in pairwise(edges.tolist()):
        blocks = row_blocks(problem.users.entries, first, last)
        for _ in range(options.local_sweeps):
            batch_sums, user_counts = half_step(
                state.users, state.items, problem.users, problem, user_prior, state.item_sums,
                blocks=blocks,
            )  # fmt: skip
            learn_theta(state, problem, users=True, rows=slice(first, last))
            cut += user_counts[1]
        step = min((state.steps + options.tau) ** -options.xi, 1.0)
        scale = problem.weight * n_users / (last - first)
        entries, pattern = walk.to(last)
        state.item_sums, item_counts = half_step(
            state.items, state.users, problem.items, problem,
            side_prior(priors, size, users=False, step=step, scale=scale), batch_sums,
            entries=entries, pattern=pattern,
        )  # fmt: skip
        state.steps += 1
        item_sums += sums
        user_sums += batch_sums
        sum_counts += item_counts[0]
        cut += item_counts[1]
    state.user_sums, state.sum_counts, state.cut_short = user_sums, sum_counts, cut > 0
    for mine, total in zip(sums, item_sums, strict=True):
        mine[:] = total
    learn_theta(state, problem, users=True, fit_prior=fit_prior)
    learn_theta(state, problem, users=False, fit_prior=fit_prior)


class _Walk:
    """Pointers into every item's entries (and pattern) that move from batch to batch."""

    def __init__(self, problem: Problem) -> None:
        self._entries, self._pattern = problem.items.entries, problem.items.pattern
        self._at = self._entries.start.copy()
        self._pattern_at = self._pattern.start.copy()

    def to(self, bound: int) -> tuple[Entries, Pattern]:
        """The items' entries and pattern of users before ``bound`` and after the last bound."""
        here, self._at = self._at, self._advance(self._at, self._entries, bound)
        there, self._pattern_at = (
            self._pattern_at,
            self._advance(self._pattern_at, self._pattern, bound),
        )
        return (
            self._entries._replace(start=here, stop=self._at),
            self._pattern._replace(start=there, stop=self._pattern_at),
        )

    def _advance(
        self, at: NDArray[np.int64], rows: Entries | Pattern, bound: int
    ) -> NDArray[np.int64]:
        out = np.empty_like(at)
        share(kernels.advance, len(at), at, rows.stop, rows.index, bound, out, work=len(at))
        return out
