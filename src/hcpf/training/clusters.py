"""Clusters of items, for a start that is not mere noise.

Items that the same users have are near each other in the leading singular vectors of the pattern of
the data, scaled by the rows' and columns' numbers of entries. Coordinate ascent from clusters of
such items ends in other modes than from noise, often in better ones, and the average of both kinds
predicts better than that of either.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import Csr
from hcpf.core.collective import LOCAL, Collective
from hcpf.core.layout import ShardData
from hcpf.data.sampling import sample_by_sizes, sample_rows

_MAX_ENTRIES = 2_000_000  # of the users from whom clusters are learned
_SPARE, _POWERS = 10, 3  # columns and rounds of the randomized singular vectors
_ROUNDS = 20  # of k-means
_DAMPING = 5.0  # added to numbers of entries, so that rows with few do not dominate

Array = NDArray[np.float32]


def cluster_items(
    data: ShardData, n_clusters: int, rng: np.random.Generator, comm: Collective = LOCAL
) -> NDArray[np.int64]:
    """Return the cluster of each item, the same on all workers; some clusters may be empty."""
    matrix = _sample_users(data, rng, comm)
    degrees = np.bincount(matrix.indices, minlength=matrix.shape[1])
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
        basis = np.linalg.qr(turned @ np.linalg.qr(scaled @ basis)[0])[0]
    _, values, rotation = np.linalg.svd(scaled @ basis, full_matrices=False)
    return (basis @ rotation.T)[:, :size] * values[:size]


def _k_means(
    points: Array, weights: Array, n_clusters: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Cluster directions by their cosine, starting as k-means++ does."""
    centers = np.empty((n_clusters, points.shape[1]), np.float32)
    nearest = np.zeros(len(points), np.float32)
    exact = weights.astype(np.float64)  # chances have to add up to 1
    for j in range(n_clusters):
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
