"""Where a fit begins: from noise, clusters of items, an earlier posterior, or as in the paper."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core import kernels
from hcpf.core.axis import Axis, AxisState, empty_axis
from hcpf.core.collective import Collective, sum_scalar
from hcpf.core.layout import Shard
from hcpf.core.posterior import FactorPosterior, Posterior, axis_prior, scale_rows
from hcpf.core.priors import Priors
from hcpf.core.theta import start_theta
from hcpf.errors import InputError
from hcpf.training.state import FitState

_OFF_CLUSTER_SHARE, _MIN_CLUSTER_SHAPE = 0.1, 0.3
"""Of items in clusters: the share of the mean on the other components, and the least shape."""
_CHUNK = 1 << 16  # rows of noise drawn at once


def start_from_noise(
    shard: Shard,
    priors: Priors,
    n_components: int,
    rng: np.random.Generator,
    comm: Collective,
    clusters: NDArray[np.int64] | None = None,
) -> FitState:
    """Begin where the symmetry of the components is broken, at rates near popularity.

    The mean of a row's factors (times its exposure) is proportional to its number of entries (plus
    what the prior adds), times noise, so that the rates start near the rank-one popularity model.
    Where each item has a cluster, most of its mean lies on that component.
    """
    users = empty_axis(Axis.USERS, shard.users.n_rows, n_components)
    items = empty_axis(Axis.ITEMS, shard.items.n_rows, n_components)
    for mine in (users, items):
        mine.set_exposure(shard.exposure(mine.axis))
    average = [_average_exposure(mine, shard, comm) for mine in (users, items)]
    expected = np.clip(priors.expected(n_components) * average[0] * average[1], 0.1, 1e4)
    for mine, mean_exposure in zip((users, items), average, strict=True):
        degrees = shard.values.degrees(mine.axis)
        if shard.trains_on_missing:
            # Half an entry for rows with none keeps every start positive.
            scale = np.sqrt(max(shard.totals.n_entries, 1) * n_components)
            level = (degrees.astype(np.float64) + 0.5) / scale
        else:
            level = np.sqrt(expected / n_components) * (mine.factors.exposure / mean_exposure)
        _fill(mine, _noise(mine, shard, rng), degrees, level, priors)
    if clusters is not None:
        _concentrate(items, clusters)
    start_theta(users, items, shard, comm)
    return _begin(users, items, shard, priors, rng, comm)


def _average_exposure(mine: AxisState, shard: Shard, comm: Collective) -> float:
    """Return the average exposure of the rows of all workers."""
    if mine.exposure is None or mine.axis is Axis.ITEMS:
        return shard.data.exposure.mean(mine.axis)
    return sum_scalar(comm, float(mine.exposure.sum())) / shard.totals.n_users


def start_symmetric(
    shard: Shard, priors: Priors, n_components: int, rng: np.random.Generator, comm: Collective
) -> FitState:
    """Begin as Algorithm 1 is printed: all components of all rows are equal.

    Every update treats the components alike, so they stay equal, and the rates stay of rank one.
    """
    users = empty_axis(Axis.USERS, shard.users.n_rows, n_components)
    items = empty_axis(Axis.ITEMS, shard.items.n_rows, n_components)
    for mine in (users, items):
        shape, _, activity_mean = priors.axis(mine.axis)
        mine.set_exposure(shard.exposure(mine.axis))
        mine.factors.a[:] = shape
        mine.factors.mean[:] = shape / activity_mean * mine.factors.exposure[:, None]
        prior = axis_prior(priors, mine.axis, n_components)
        mine.factors.activity_b[:] = prior.activity_rate
    start_theta(users, items, shard, comm)
    return _begin(users, items, shard, priors, rng, comm)


def start_from_posterior(
    shard: Shard,
    posterior: Posterior,
    priors: Priors,
    n_components: int,
    rng: np.random.Generator,
    comm: Collective,
) -> FitState:
    """Begin at a posterior of the same shape, whose users are those of the shard."""
    order = shard.order.order
    users = _axis_at(posterior.users, Axis.USERS, shard, n_components, order)
    items = _axis_at(posterior.items, Axis.ITEMS, shard, n_components, None)
    start_theta(users, items, shard, comm)
    has_theta = [theta is not None for theta in (posterior.users.theta, posterior.items.theta)]
    if has_theta == [mine.theta is not None for mine in (users, items)]:
        for mine, rows in ((users, order), (items, None)):
            theta = posterior.axis(mine.axis).theta
            mine.theta = theta if theta is None else theta.at(_all_or(rows))
    return _begin(users, items, shard, priors, rng, comm)


def _axis_at(
    found: FactorPosterior,
    axis: Axis,
    shard: Shard,
    n_components: int,
    order: NDArray[np.int64] | None,
) -> AxisState:
    mine = empty_axis(axis, shard.layout(axis).n_rows, n_components)
    mine.set_exposure(shard.exposure(axis))
    factors = mine.factors
    if factors.a.shape != found.shape_.shape:
        raise InputError(
            f"warm_start: {' x '.join(map(str, found.shape_.shape))} factors were fitted, but "
            f"{' x '.join(map(str, factors.a.shape))} are needed. Set warm_start=False."
        )
    rows = _all_or(order)
    factors.a[:] = found.shape_[rows]
    factors.mean[:] = scale_rows(found.mean_[rows], mine.exposure)
    factors.activity_b[:] = found.activity_b[rows]
    return mine


def _all_or(rows: NDArray[np.int64] | None) -> Any:
    return slice(None) if rows is None else rows


def _begin(
    users: AxisState,
    items: AxisState,
    shard: Shard,
    priors: Priors,
    rng: np.random.Generator,
    comm: Collective,
) -> FitState:
    users.mean_sums = comm.sum(users.factors.mean.sum(axis=0, dtype=np.float64))
    items.mean_sums = items.factors.mean.sum(axis=0, dtype=np.float64)
    state = FitState(users, items, shard.value_model, priors, rng)
    state.set_shifts(shard)
    for mine in state.axes:
        kernels.scale_rows(mine.factors)
    return state


def _noise(mine: AxisState, shard: Shard, rng: np.random.Generator) -> NDArray[np.float32]:
    """Draw noise for all rows of all workers, and return that of the own rows.

    Every worker draws the same numbers, so that a user's do not depend on the number of workers.
    """
    shape = mine.factors.a.shape
    if mine.axis is Axis.ITEMS or shard.totals.n_users == shape[0]:
        return rng.random(shape, dtype=np.float32)
    out, position = np.empty(shape, np.float32), shard.order.position
    for first in range(0, shard.totals.n_users, _CHUNK):
        last = min(first + _CHUNK, shard.totals.n_users)
        drawn = rng.random((last - first, shape[1]), dtype=np.float32)
        own = slice(*np.searchsorted(position, [first, last]))
        out[own] = drawn[position[own] - first]
    return out


def _fill(
    mine: AxisState,
    noise: NDArray[np.float32],
    degrees: NDArray[Any],
    level: FloatArray,
    priors: Priors,
) -> None:
    factors, size = mine.factors, mine.n_components
    prior = axis_prior(priors, mine.axis, size)
    noise += np.float32(0.5)
    np.multiply(noise, level[:, None].astype(np.float32), out=factors.mean)
    # The shape that the row's own entries would give, spread over the components.
    share = (degrees / size).astype(np.float32)
    np.multiply(noise, share[:, None], out=factors.a)
    np.add(factors.a, np.float32(max(prior.shape, 0.1)), out=factors.a)
    row_sums = factors.mean.sum(axis=1, dtype=np.float64) / factors.exposure
    factors.activity_b[:] = prior.activity_rate + row_sums


def _concentrate(mine: AxisState, component: NDArray[np.int64]) -> None:
    """Move most of each row's mean and shape to one component; their sums stay."""
    own = np.arange(len(component)), component
    for array in (mine.factors.mean, mine.factors.a):
        total = array.sum(axis=1)
        array *= np.float32(_OFF_CLUSTER_SHARE)
        array[own] += np.float32(1.0 - _OFF_CLUSTER_SHARE) * total
    np.maximum(mine.factors.a, np.float32(_MIN_CLUSTER_SHAPE), out=mine.factors.a)
