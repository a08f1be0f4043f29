"""The evidence lower bound, exact including its constants."""

import numpy as np

from hcpf.core import kernels
from hcpf.core.count_tables import log_normaliser
from hcpf.core.layout import Problem
from hcpf.core.priors import Priors
from hcpf.core.state import State, side_prior
from hcpf.core.threads import share
from hcpf.elements.base import Element


def elbo(state: State, problem: Problem, priors: Priors) -> float:
    r"""The bound at the current state, with the optimal q(n) of every entry.

    :math:`\sum_{obs}\log Z_{ui} - \sum_k (\sum_u E s_{uk})(\sum_i E v_{ik})` plus, for each side,
    :math:`E\log p(s \mid r) + E\log p(r) + H[s] + H[r]`; where theta varies, less its divergence
    from the prior. Where the data count more than once, the first line and that divergence are
    multiplied by their weight: what is tempered is the prior of the factors.
    """
    size = state.users.a.shape[1]
    users, items = problem.users, problem.items
    total = problem.weight * (_sum_log_z(state, problem) - expected_total(state, problem))
    for factors, side, is_users in ((state.users, users, True), (state.items, items, False)):
        shape = priors.user_activity_shape if is_users else priors.item_activity_shape
        parts = np.zeros(len(side.blocks) - 1)
        arguments = factors, side_prior(priors, size, is_users), shape, side.blocks, parts
        share(kernels.side_bound, len(parts), *arguments, work=100.0 * factors.a.size)
        total += float(parts.sum())
    return total


def _sum_log_z(state: State, problem: Problem) -> float:
    """The sum of log Z over the observed entries, less the divergence of a varying theta."""
    users = problem.users
    sums = np.zeros(len(users.blocks) - 1)
    arguments = users.entries, state.users, state.items, problem.tables, users.blocks, sums
    work = state.users.a.shape[1] * problem.n_observed
    share(kernels.sum_log_z, len(sums), *arguments, work=work)
    # The tables are those of problem.element. Where theta has moved on since, log p(y | n) differs
    # by -n kappa Psi(theta), which is in the shifts, and by y theta.
    total = float(sums.sum()) + problem.local.constant - _of_theta(problem.element, problem)
    if state.varying is not None:
        return total + state.varying.bound(problem.values, state.element)
    return total + _of_theta(state.element, problem)


def _of_theta(element: Element, problem: Problem) -> float:
    """What theta adds to the sum of log Z, apart from the shifts."""
    total = problem.sum_of_values * float(element.theta)
    return (
        total + problem.n_observed * log_normaliser(element)
        if problem.value_model.hurdle
        else total
    )


def expected_total(state: State, problem: Problem) -> float:
    """The expected count summed over all pairs that take part in training."""
    pattern = problem.users.pattern
    total = 0.0
    if problem.train_on != "observed":
        total = float(state.user_sums @ state.item_sums)
    if pattern.sign != 0.0:
        parts = np.zeros(len(problem.users.blocks) - 1)
        means = state.users.mean, state.items.mean
        share(kernels.pattern_rate, len(parts), *pattern[:3], *means, problem.users.blocks, parts)
        total += pattern.sign * float(parts.sum())
    return total
