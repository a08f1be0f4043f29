"""Held-out pairs, observed and missing, and their likelihood under the current factors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.compound import CompoundPoisson
from hcpf.inference import kernels
from hcpf.inference.state import State

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

    def log_likelihood(self, state: State, order: NDArray[np.int64] | None) -> float:
        """Log likelihood of one observed pair with its share of the missing ones, on average."""
        position = None if order is None else np.argsort(order)
        some = slice(0, _MOST)
        users = self.users[some] if position is None else position[self.users[some]]
        rate = pair_rates(state.users.mean, state.items.mean, users, self.items[some])
        observed = CompoundPoisson(rate, state.element).log_density(self.values[some])
        total = float(np.mean(observed))
        if len(self.missing_users):
            rows = self.missing_users if position is None else position[self.missing_users]
            missing = pair_rates(state.users.mean, state.items.mean, rows, self.missing_items)
            total -= self.missing_weight * float(np.sum(missing)) / len(self.users)
        return total


def pair_rates(
    user_mean: NDArray[np.float32],
    item_mean: NDArray[np.float32],
    users: NDArray[np.int64],
    items: NDArray[np.int64],
) -> FloatArray:
    """Posterior mean rates of pairs given by position."""
    out = np.empty(len(users), np.float64)
    kernels.pair_rates(user_mean, item_mean, users, items, out)
    return out
