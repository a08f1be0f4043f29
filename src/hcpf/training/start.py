"""Where a fit begins: from noise, clusters of items, an earlier posterior, or as in the paper.

Items that the same users have are near each other in the leading singular vectors of the pattern of
the data, scaled by the rows' and columns' numbers of entries. Coordinate ascent from clusters of
such items ends in other modes than from noise, often in better ones, and the average of both kinds
predicts better than that of either.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import Csr, FloatArray
from hcpf.core import kernels
from hcpf.core.axis import Axis, AxisState, empty_axis
from hcpf.core.collective import LOCAL, Collective, sum_scalar
from hcpf.core.pooling import start_theta
from hcpf.core.posterior import FactorPosterior, Posterior, axis_prior, scale_rows
from hcpf.core.priors import Priors
from hcpf.core.shard import Shard, ShardData
from hcpf.core.threads import single_blas_thread
from hcpf.data.sampling import sample_by_sizes, sample_rows
from hcpf.training.state import FitState

# With a small shape exp(E log v) is all but 0, relative to the mean 3e-4 at 0.1 and 0.1 at 0.3: the
# component would get no share of any entry, and could not grow.
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
    # All workers draw the same numbers from rng, the users' first: the order is part of the seed.
    users = empty_axis(Axis.USERS, shard.users.n_rows, n_components)
    items = empty_axis(Axis.ITEMS, shard.items.n_rows, n_components)
    for mine in (users, items):
        mine.set_exposure(shard.exposure(mine.axis))
    average = [_average_exposure(mine, shard, comm) for mine in (users, items)]
    expected = np.clip(priors.expected(n_components) * average[0] * average[1], 0.1, 1e4)
    for mine, mean_exposure in zip((users, items), average, strict=True):
        degrees = shard.values.degrees(mine.axis)
        if shard.trains_on_missing:
            # K components of d_u / sqrt(N K) times d_i / sqrt(N K) make a rate of d_u d_i / N.
            # Half an entry for rows with none keeps every start positive.
            scale = np.sqrt(max(shard.totals.n_entries, 1) * n_components)
            level = (degrees.astype(np.float64) + 0.5) / scale
        else:
            level = np.sqrt(expected / n_components) * (mine.factors.exposure / mean_exposure)
        _draw_noise(mine, shard, rng)
        _fill(mine, degrees, level, priors)
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


def _draw_noise(mine: AxisState, shard: Shard, rng: np.random.Generator) -> None:
    """Fill the array of shapes with noise, which thus needs no other memory.

    Every worker draws the same numbers for all rows of all workers and keeps those of its rows, so
    that a user's noise does not depend on the number of workers.
    """
    noise = mine.factors.a
    if mine.axis is Axis.ITEMS or shard.totals.n_users == len(noise):
        rng.random(out=noise, dtype=np.float32)
        return
    position = shard.order.position
    for first in range(0, shard.totals.n_users, _CHUNK):
        last = min(first + _CHUNK, shard.totals.n_users)
        drawn = rng.random((last - first, mine.n_components), dtype=np.float32)
        own = slice(*np.searchsorted(position, [first, last]))
        noise[own] = drawn[position[own] - first]


def _fill(mine: AxisState, degrees: NDArray[Any], level: FloatArray, priors: Priors) -> None:
    """Set means and shapes from the noise in the array of shapes."""
    factors, size = mine.factors, mine.n_components
    prior = axis_prior(priors, mine.axis, size)
    # Uniform on [0.5, 1.5]: the noise has the mean 1, and no component starts near 0.
    shape = factors.a
    shape += np.float32(0.5)
    np.multiply(shape, level[:, None].astype(np.float32), out=factors.mean)
    # The shape that the row's own entries would give, spread over the components.
    shape *= (degrees / size).astype(np.float32)[:, None]
    shape += np.float32(max(prior.shape, 0.1))
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


# -- clusters of items -----------------------------------------------------------------------------

_MAX_ENTRIES = 2_000_000  # entries of the users that clusters are computed from
_SPARE, _POWERS = 10, 3  # extra columns and power iterations of the randomized singular vectors
_MIN_RELATIVE_LENGTH = 1e-3  # shorter columns, relative to the longest, are rounding errors
_ROUNDS = 20  # iterations of k-means
_DAMPING = 5.0  # added to numbers of entries, so that rows with few do not dominate

Array = NDArray[np.float32]


def cluster_items(
    data: ShardData, n_clusters: int, rng: np.random.Generator, comm: Collective = LOCAL
) -> NDArray[np.int64]:
    """Return the cluster of each item, the same on all workers; some clusters may be empty."""
    matrix = _sample_users(data, rng, comm)
    degrees = np.bincount(matrix.indices, minlength=matrix.shape[1])
    with single_blas_thread():  # waking others takes longer than these products
        vectors = _embed(matrix, degrees, n_clusters, rng)
        norm = np.linalg.norm(vectors, axis=1, keepdims=True)
        directions = vectors / np.maximum(norm, np.finfo(np.float32).tiny)
        found = _k_means(directions, degrees.astype(np.float32) + np.float32(0.5), n_clusters, rng)
    lost = norm[:, 0] == 0.0
    found[lost] = rng.integers(n_clusters, size=int(lost.sum()))
    return found


def _sample_users(data: ShardData, rng: np.random.Generator, comm: Collective) -> Csr:
    """Return the entries of randomly chosen users of all workers, in the order of their numbers."""
    if comm.size == 1:
        return data.matrix[sample_rows(data.matrix, _MAX_ENTRIES, rng)]
    degrees = np.zeros(data.n_users, np.int64)
    degrees[comm.gather(data.numbers)] = comm.gather(np.diff(data.matrix.indptr))
    chosen = sample_by_sizes(degrees, _MAX_ENTRIES, rng)
    own = data.matrix[np.flatnonzero(np.isin(data.numbers, chosen))]
    numbers = comm.gather(data.numbers[np.isin(data.numbers, chosen)])
    pointer = np.concatenate([[0], np.cumsum(comm.gather(np.diff(own.indptr)))])
    parts = comm.gather(own.data), comm.gather(own.indices), pointer
    joined: Any = sparse.csr_array(parts, shape=(len(numbers), own.shape[1]))
    return joined[np.argsort(numbers)]


def _embed(matrix: Csr, degrees: NDArray[np.int64], size: int, rng: np.random.Generator) -> Array:
    """Return the items' leading singular vectors, each times its singular value."""
    by_user = 1.0 / np.sqrt(np.diff(matrix.indptr) + _DAMPING)
    by_item = 1.0 / np.sqrt(degrees + _DAMPING)
    weight = np.repeat(by_user, np.diff(matrix.indptr)) * by_item[matrix.indices]
    scaled: Any = sparse.csr_array(
        (weight.astype(np.float32), matrix.indices, matrix.indptr), shape=matrix.shape
    )
    turned = scaled.T.tocsr()
    columns = min(size + _SPARE, *matrix.shape)
    basis: Array = rng.standard_normal((matrix.shape[1], columns), dtype=np.float32)
    for _ in range(_POWERS):
        basis = _orthonormal(turned @ _orthonormal(scaled @ basis))
    values, rotation = _principal_axes(scaled @ basis)
    return (basis @ rotation)[:, :size] * values[:size]


def _orthonormal(basis: Array) -> Array:
    """Return orthonormal columns that span the same space; zeros for what is beyond its rank.

    By the products of the columns: much cheaper than QR, and accurate enough here, where one round
    of powers spreads the lengths of the columns little.
    """
    lengths, rotation = _principal_axes(basis)
    kept = lengths > _MIN_RELATIVE_LENGTH * lengths[0]
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=kept)
    return basis @ (rotation * scale)


def _principal_axes(points: Array) -> tuple[Array, Array]:
    """Return the singular values of points, largest first, and the right singular vectors."""
    squares, vectors = np.linalg.eigh((points.T @ points).astype(np.float64))
    lengths = np.sqrt(np.maximum(squares[::-1], 0.0))
    return lengths.astype(np.float32), vectors[:, ::-1].astype(np.float32)


def _k_means(
    points: Array, weights: Array, n_clusters: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Cluster directions by their cosine, starting as k-means++ does."""
    centers = np.empty((n_clusters, points.shape[1]), np.float32)
    nearest = np.zeros(len(points), np.float32)
    exact = weights.astype(np.float64)  # choice() requires probabilities that add up to 1
    for j in range(n_clusters):
        # The squared distance of unit vectors is 2 (1 - cosine). Never 0 for all: there may be
        # fewer distinct points than clusters.
        chance = np.maximum(1.0 - nearest, 1e-9) * exact
        centers[j] = points[rng.choice(len(points), p=chance / chance.sum())]
        nearest = np.maximum(nearest, points @ centers[j])
    found = np.argmax(points @ centers.T, axis=1)
    for _ in range(_ROUNDS):
        members = sparse.csr_array(
            (weights, (found, np.arange(len(points)))), shape=(n_clusters, len(points))
        )
        sums: Any = members @ points
        centers = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
        found = np.argmax(points @ centers.T, axis=1)
    return found
