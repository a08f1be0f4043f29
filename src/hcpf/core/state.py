"""The variational state: what a solver changes, a checkpoint stores and a posterior shows."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core import kernels
from hcpf.core.kernels import Factors, Prior, padded_rows
from hcpf.core.layout import Problem, Side
from hcpf.core.posterior import FactorPosterior, Posterior
from hcpf.core.priors import Priors
from hcpf.core.theta import Varying, first_varying
from hcpf.elements.base import Element
from hcpf.errors import InputError

_SCATTERED, _LEAST_SHAPE = 0.1, 0.3
"""Of items in clusters: the part of the mean on the other components, and the least shape."""


@dataclass(eq=False)
class State:
    """Factors of both sides, the sums of their means, and where the solver stands."""

    users: Factors
    items: Factors
    user_sums: FloatArray
    item_sums: FloatArray
    element: Element
    slope: float
    varying: Varying | None = None
    """Theta of each user or item; None where all share the element's."""
    iteration: int = 0
    steps: int = 0
    sum_counts: float = 0.0
    cut_short: bool = False
    """Whether some entry's sum over n met the end of the stored weights."""
    extras: dict[str, FloatArray] = field(default_factory=dict)


def side_prior(
    priors: Priors, n_components: int, users: bool, step: float = 1.0, scale: float = 1.0
) -> Prior:
    """The kernels' constants of one side."""
    if users:
        shape, activity, mean = (
            priors.user_shape,
            priors.user_activity_shape,
            priors.user_activity_mean,
        )
    else:
        shape, activity, mean = (
            priors.item_shape,
            priors.item_activity_shape,
            priors.item_activity_mean,
        )
    return Prior(shape, activity + n_components * shape, activity / mean, step, scale)


def empty_factors(rows: int, n_components: int) -> Factors:
    """Allocate one side."""
    return Factors(
        a=np.empty((rows, n_components), np.float32),
        mean=np.empty((rows, n_components), np.float32),
        g=padded_rows(rows, n_components),
        log_scale=np.zeros(rows),
        shift=np.zeros(rows),
        activity_b=np.ones(rows),
        count=np.zeros(rows),
        cross_count=np.zeros(rows),
        value_sum=np.zeros(rows),
        tilt=np.tile(np.array([1.0, 0.0, 0.0, 0.0], np.float32), (rows, 1)),
    )


def initial_state(
    problem: Problem,
    priors: Priors,
    n_components: int,
    rng: np.random.Generator,
    clusters: NDArray[np.int64] | None = None,
) -> State:
    """A start that breaks the symmetry of the components, scaled to rows' and columns' activity.

    A user's factors begin at a mean proportional to the number of entries (plus what the prior
    adds), times noise, so that the rates start near the rank-one popularity model. Where each item
    has a cluster, most of its mean lies on that component.
    """
    users = empty_factors(problem.users.size, n_components)
    items = empty_factors(problem.items.size, n_components)
    total = max(problem.n_observed, 1)
    if problem.train_on == "observed":
        level = np.sqrt(np.clip(priors.expected(n_components), 0.1, 1e4) / n_components)
        _fill(users, problem.users, np.full(problem.users.size, level), priors, True, rng)
        _fill(items, problem.items, np.full(problem.items.size, level), priors, False, rng)
    else:
        scale = np.sqrt(total * n_components)
        _fill(users, problem.users, _degrees(problem.users) / scale, priors, True, rng)
        _fill(items, problem.items, _degrees(problem.items) / scale, priors, False, rng)
    if clusters is not None:
        _concentrate(items, clusters)
    return _begin(users, items, problem, first_varying(problem, users, items))


def state_from_posterior(problem: Problem, posterior: Posterior, n_components: int) -> State:
    """Begin from a posterior of the same shape."""
    users = empty_factors(problem.users.size, n_components)
    items = empty_factors(problem.items.size, n_components)
    rows = slice(None) if problem.order is None else problem.order
    for factors, side, chosen in (
        (users, posterior.users, rows),
        (items, posterior.items, slice(None)),
    ):
        if factors.a.shape != side.shape_.shape:
            raise InputError(
                f"warm_start: {' x '.join(map(str, side.shape_.shape))} factors were fitted, but "
                f"{' x '.join(map(str, factors.a.shape))} are asked for. Set warm_start=False."
            )
        factors.a[:] = side.shape_[chosen]
        factors.mean[:] = side.mean_[chosen]
        factors.activity_b[:] = side.activity_b[chosen]
    varying = first_varying(problem, users, items)
    if varying is not None:
        _take_theta(varying, posterior, rows)
    return _begin(users, items, problem, varying)


def _take_theta(varying: Varying, posterior: Posterior, rows: Any) -> None:
    """Go on with the posterior's theta, if it has one of the same sides."""
    users, items = posterior.users.theta, posterior.items.theta
    found = None if users is None else users.at(rows), items
    if [side is None for side in found] == [varying.side(side) is None for side in (True, False)]:
        varying.users, varying.items = found


def _begin(users: Factors, items: Factors, problem: Problem, varying: Varying | None) -> State:
    state = State(
        users,
        items,
        users.mean.sum(axis=0, dtype=np.float64),
        items.mean.sum(axis=0, dtype=np.float64),
        problem.element,
        problem.local.slope,
        varying,
    )
    set_shifts(state, problem)
    rescale(state)
    return state


def _degrees(side: Side) -> FloatArray:
    # Half an entry for rows with none keeps every start positive.
    return side.degrees.astype(np.float64) + 0.5


def _fill(
    factors: Factors,
    side: Side,
    level: FloatArray,
    priors: Priors,
    users: bool,
    rng: np.random.Generator,
) -> None:
    rows, size = factors.a.shape
    prior = side_prior(priors, size, users)
    noise = rng.random((rows, size), dtype=np.float32)
    noise += np.float32(0.5)
    np.multiply(noise, level[:, None].astype(np.float32), out=factors.mean)
    # The shape that the row's own entries would give, spread over the components.
    share = (side.degrees / size).astype(np.float32)
    np.multiply(noise, share[:, None], out=factors.a)
    np.add(factors.a, np.float32(max(prior.shape, 0.1)), out=factors.a)
    factors.activity_b[:] = prior.activity_rate + factors.mean.sum(axis=1, dtype=np.float64)


def _concentrate(factors: Factors, component: NDArray[np.int64]) -> None:
    """Move most of each row's mean and shape to one component; their sums stay."""
    own = np.arange(len(component)), component
    for array in (factors.mean, factors.a):
        total = array.sum(axis=1)
        array *= np.float32(_SCATTERED)
        array[own] += np.float32(1.0 - _SCATTERED) * total
    np.maximum(factors.a, np.float32(_LEAST_SHAPE), out=factors.a)


def rescale(state: State) -> None:
    """Recompute what the kernels derive from shapes, means and shifts."""
    kernels.scale_rows(state.users)
    kernels.scale_rows(state.items)


def set_shifts(state: State, problem: Problem) -> None:
    """Let the element shift the log rates from where the tables were made."""
    shift_side(state, problem, users=True)
    if state.varying is not None:
        shift_side(state, problem, users=False)


def shift_side(state: State, problem: Problem, *, users: bool, rows: slice = slice(None)) -> None:
    """Let the element shift the log rates of one side's rows, through their multipliers."""
    factors = state.users if users else state.items
    tabulated = problem.local.slope if users else 0.0
    if state.varying is None:
        factors.shift[rows] = (state.slope if users else 0.0) - tabulated
    else:
        state.varying.set_shifts(factors, state.element, users, rows)
        factors.shift[rows] -= tabulated
    set_multipliers(factors, rows)


def set_multipliers(factors: Factors, rows: slice = slice(None)) -> None:
    """Follow a new shift: what a dot product is multiplied with."""
    exponent = factors.log_scale[rows] + factors.shift[rows]
    multiplier = np.exp(np.clip(exponent, -81.0, 81.0))
    if exponent.size and (exponent.min() < -80.0 or exponent.max() > 80.0):
        # As in the kernel: what float32 cannot hold becomes 0 or infinity and takes the slow path.
        multiplier[exponent < -80.0] = 0.0
        multiplier[exponent > 80.0] = np.inf
    factors.multiplier[rows] = multiplier


def learn_theta(
    state: State,
    problem: Problem,
    *,
    users: bool,
    rows: slice = slice(None),
    fit_prior: bool = False,
) -> None:
    """Update one side's theta from the counts of its last half-step; nothing if it has none."""
    varying = state.varying
    if varying is None or varying.side(users) is None:
        return
    factors = state.users if users else state.items
    varying.learn(factors, problem.values, state.element, users, rows=rows, fit_prior=fit_prior)
    shift_side(state, problem, users=users, rows=rows)


def to_posterior(state: State, priors: Priors, order: NDArray[np.int64] | None) -> Posterior:
    """Turn a state that is no longer needed into a posterior, users back in the data's order."""
    state.extras.clear()
    nothing = np.empty((0, 0), np.float32)
    state.users, state.items = (side._replace(g=nothing) for side in (state.users, state.items))
    users = side_posterior(state.users, priors, True, order)
    items = side_posterior(state.items, priors, False, None)
    if state.varying is not None:
        groups = state.varying.users
        if groups is not None and order is not None:
            groups = groups.at(np.argsort(order))
        users, items = replace(users, theta=groups), replace(items, theta=state.varying.items)
    return Posterior(users, items)


def side_posterior(
    factors: Factors, priors: Priors, users: bool, order: NDArray[np.int64] | None
) -> FactorPosterior:
    """The posterior of one side, rows back in the data's order."""
    prior = side_prior(priors, factors.a.shape[1], users)
    rows = slice(None) if order is None else np.argsort(order)
    activity_b = factors.activity_b[rows]
    return FactorPosterior(
        shape_=factors.a[rows],
        mean_=factors.mean[rows],
        activity_a=np.full(activity_b.shape, prior.activity_a),
        activity_b=activity_b,
    )
