"""Held-out pairs: setting them aside, and their likelihood under the current factors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._types import Csr, FloatArray
from hcpf.core.rates import pair_rates
from hcpf.core.state import State
from hcpf.core.value_model import ValueModel
from hcpf.data.held_out import hold_out, sample_missing
from hcpf.data.sampling import locate, pair_keys, select
from hcpf.errors import InputError

_MOST = 50_000  # observed pairs looked at in one evaluation


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Validation pairs by position, with the weight that brings the missing ones to scale."""

    users: NDArray[np.int64]
    items: NDArray[np.int64]
    values: FloatArray
    missing_users: NDArray[np.int64]
    missing_items: NDArray[np.int64]
    missing_weight: float

    def log_likelihood(
        self, state: State, value_model: ValueModel, order: NDArray[np.int64] | None
    ) -> float:
        """Log likelihood of one observed pair with its share of the missing ones, on average."""
        rows = np.arange(len(state.users.mean)) if order is None else np.argsort(order)
        some = _evenly(len(self.users), _MOST)
        users, items = rows[self.users[some]], self.items[some]
        rate = pair_rates(state.users.mean, state.items.mean, users, items)
        element = state.element
        if state.varying is not None:
            element = state.varying.element_at(element, users, items)
        observed = value_model.distribution(rate, element).log_density(self.values[some])
        missing = pair_rates(
            state.users.mean, state.items.mean, rows[self.missing_users], self.missing_items
        )
        share = self.missing_weight * float(np.sum(missing)) / len(self.users)
        return float(np.mean(observed)) - share


def _evenly(size: int, most: int) -> NDArray[np.int64]:
    """At most ``most`` positions spread evenly over ``size``: the pairs are sorted by user."""
    return np.linspace(0, size - 1, min(size, most)).round().astype(np.int64)


@dataclass(frozen=True, eq=False)
class Parts:
    """What is trained on, what is held out, and all pairs that take no part in training."""

    training: Csr
    held_out: HeldOut | None
    excluded: Csr | None

    def check_support(self, value_model: ValueModel) -> None:
        """Raise an error if the value model cannot give a held-out value."""
        if self.held_out is not None:
            value_model.require(self.held_out.values, " (in validation)")


def set_aside(
    matrix: Csr,
    validation: Csr | None,
    exclude: Csr | None,
    validation_fraction: float,
    train_on: str,
    rng: np.random.Generator,
) -> Parts:
    """Split off validation pairs and gather everything that takes no part in training.

    As many missing pairs as observed ones are held out, except when training on observed entries
    only: there missing pairs are no data.
    """
    for name, other in (("validation", validation), ("exclude", exclude)):
        if other is not None and other.shape != matrix.shape:
            raise InputError(f"{name} has shape {other.shape}, but the data have {matrix.shape}.")
    if validation is not None and validation.nnz == 0:
        raise InputError("validation holds no entries: leave it out, or give some.")
    if matrix.nnz == 0:
        raise InputError("There are no observed entries to fit.")
    if exclude is not None:
        matrix = _without(matrix, exclude)
    if validation is not None:
        matrix = _without(matrix, validation)
    elif validation_fraction > 0:
        matrix, validation = hold_out(matrix, validation_fraction, rng)
    if matrix.nnz == 0:
        raise InputError("No observed entries are left to fit: all are excluded or held out.")
    if validation is None:
        return Parts(matrix, None, exclude)
    wanted = 0 if train_on == "observed" else validation.nnz
    missing = sample_missing(matrix, wanted, rng, also=[validation, exclude])
    observed = validation.tocoo()
    share = validation.nnz / (validation.nnz + matrix.nnz)
    free = matrix.shape[0] * matrix.shape[1] - matrix.nnz - len(_keys(validation, exclude))
    held = HeldOut(
        users=observed.row.astype(np.int64),
        items=observed.col.astype(np.int64),
        values=observed.data.astype(np.float64),
        missing_users=missing[0],
        missing_items=missing[1],
        missing_weight=share * free / max(len(missing[0]), 1),
    )
    return Parts(matrix, held, _union(validation, exclude, missing))


def _without(matrix: Csr, other: Csr) -> Csr:
    """Drop the entries whose pair is stored in ``other``."""
    pairs = other.tocoo()
    place = locate(matrix, pairs.row, pairs.col)
    kept = np.ones(matrix.nnz, dtype=np.bool_)
    kept[place[place >= 0]] = False
    return matrix if kept.all() else select(matrix, kept)


def _keys(matrix: Csr, other: Csr | None) -> NDArray[np.int64]:
    """One number for each pair that either matrix stores."""
    mine = pair_keys(matrix)
    return mine if other is None else np.union1d(mine, pair_keys(other))


def _union(
    matrix: Csr, other: Csr | None, pairs: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> Csr:
    """A matrix that marks the pairs stored in two others, and some more."""
    width = matrix.shape[1]
    key = np.union1d(_keys(matrix, other), pairs[0] * width + pairs[1])
    marks = np.ones(len(key), np.float32)
    return sparse.csr_array((marks, (key // width, key % width)), shape=matrix.shape)
