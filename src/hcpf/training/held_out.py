"""Validation pairs: holding them out, and their likelihood under the current factors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcpf._types import Csr, FloatArray
from hcpf.core.axis import NO_EXPOSURE, Exposure
from hcpf.core.collective import LOCAL, Collective
from hcpf.core.rates import pair_rates
from hcpf.core.shard import Shard, mostly_observed
from hcpf.core.theta import pair_element
from hcpf.data.held_out import HeldOutPairs, hold_out, mark_pairs, sample_missing
from hcpf.data.sampling import sample_values, union, without
from hcpf.errors import InputError
from hcpf.training.selection import PairLikelihoods
from hcpf.training.state import FitState

MAX_ESTIMATION_VALUES = 1 << 18
"""Values that an element is estimated from: more would take memory and change little."""
_MAX_SCORED = 50_000  # observed pairs scored in one evaluation


def validation_log_likelihood(
    state: FitState, shard: Shard, held_out: HeldOutPairs, comm: Collective = LOCAL
) -> float:
    """Return the log-likelihood per observed pair, each with its share of the missing ones.

    ``held_out`` are the pairs of the worker's own users, by their position in the shard.
    """
    observed, missing_rate = _score_pairs(state, shard, held_out, _MAX_SCORED)
    sums = np.array([observed.sum(), len(observed), missing_rate.sum(), len(held_out)])
    log_density, n_scored, total_rate, n_pairs = comm.sum(sums)
    return float(log_density / n_scored - held_out.missing_weight * total_rate / n_pairs)


def pair_likelihoods(
    state: FitState, shard: Shard, held_out: HeldOutPairs, max_scored: int
) -> PairLikelihoods:
    """Return the log-likelihoods of single pairs, of at most ``max_scored`` observed ones."""
    observed, missing_rate = _score_pairs(state, shard, held_out, max_scored)
    missing_per_entry = held_out.missing_weight * held_out.n_missing / len(held_out)
    return PairLikelihoods(observed, -missing_rate, missing_per_entry)


def _score_pairs(
    state: FitState, shard: Shard, held_out: HeldOutPairs, max_scored: int
) -> tuple[FloatArray, FloatArray]:
    """Return the log densities of observed pairs, and the rates of missing ones."""
    rows = shard.order.rows_of_users()
    some = _evenly(len(held_out), max_scored)
    u, i = rows[held_out.users[some]], held_out.items[some]
    means = state.users.factors.mean, state.items.factors.mean
    element = state.element
    if state.pooling is not None:
        element = pair_element(element, [(state.users.theta, state.items.theta)], u, i)
    distribution = state.value_model.distribution(pair_rates(*means, u, i), element)
    observed = distribution.log_density(held_out.values[some])
    missing_rate = pair_rates(*means, rows[held_out.missing_users], held_out.missing_items)
    return observed, missing_rate


def _evenly(size: int, max_size: int) -> NDArray[np.int64]:
    """Return at most ``max_size`` positions spread evenly: the pairs are sorted by user."""
    return np.linspace(0, size - 1, min(size, max_size)).round().astype(np.int64)


@dataclass(frozen=True, eq=False)
class TrainingSplit:
    """The entries trained on, the validation pairs, and all pairs that training ignores."""

    training: Csr
    validation: HeldOutPairs | None
    excluded: Csr | None
    exposure: Exposure = NO_EXPOSURE

    @property
    def values(self) -> FloatArray:
        """The values trained on, of entries on disk a sample with the extremes of all."""
        return sample_values(self.training, MAX_ESTIMATION_VALUES)

    @property
    def n_excluded(self) -> int:
        """The number of pairs that training ignores."""
        return 0 if self.excluded is None else self.excluded.nnz

    @property
    def is_dense(self) -> bool:
        """Whether most pairs are observed, of those that are not excluded."""
        return mostly_observed(self.training.nnz, self.training.shape, self.n_excluded)


def split_validation(
    matrix: Csr,
    validation: Csr | None,
    exclude: Csr | None,
    validation_fraction: float,
    train_on: str,
    rng: np.random.Generator,
    exposure: Exposure = NO_EXPOSURE,
) -> TrainingSplit:
    """Split off validation pairs and join all pairs that training ignores.

    As many missing pairs as observed ones are held out, except when training on observed entries
    only: there missing pairs are not data.
    """
    for name, other in (("validation", validation), ("exclude", exclude)):
        if other is not None and other.shape != matrix.shape:
            raise InputError(f"{name} has shape {other.shape}, but the data have {matrix.shape}.")
    if validation is not None and validation.nnz == 0:
        raise InputError("validation holds no entries. Add some, or remove validation.")
    if matrix.nnz == 0:
        raise InputError("There are no observed entries to fit.")
    matrix = without(without(matrix, exclude), validation)
    if validation is None and validation_fraction > 0:
        matrix, validation = hold_out(matrix, validation_fraction, rng)
    if matrix.nnz == 0:
        raise InputError("No observed entries are left to fit: all are excluded or held out.")
    if validation is None:
        return TrainingSplit(matrix, None, exclude, exposure)
    n_missing = 0 if train_on == "observed" else validation.nnz
    missing = sample_missing(matrix, n_missing, rng, also=[validation, exclude])
    observed = validation.tocoo()
    share = validation.nnz / (validation.nnz + matrix.nnz)
    marks = union(validation, exclude)
    assert marks is not None
    free = matrix.shape[0] * matrix.shape[1] - matrix.nnz - marks.nnz
    held_out = HeldOutPairs(
        users=observed.row.astype(np.int64),
        items=observed.col.astype(np.int64),
        values=observed.data.astype(np.float64),
        missing_users=missing[0],
        missing_items=missing[1],
        missing_weight=share * free / max(len(missing[0]), 1),
    )
    excluded = union(mark_pairs(matrix.shape, [held_out]), marks)
    return TrainingSplit(matrix, held_out, excluded, exposure)
