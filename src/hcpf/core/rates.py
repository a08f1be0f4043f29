"""Rates of single pairs."""

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core import kernels
from hcpf.core.threads import share


def pair_rates(
    user_mean: NDArray[np.float32],
    item_mean: NDArray[np.float32],
    users: NDArray[np.int64],
    items: NDArray[np.int64],
) -> FloatArray:
    """Posterior mean rates of pairs given by position."""
    out = np.empty(len(users), np.float64)
    pairs = users.astype(np.int64), items.astype(np.int64)
    work = user_mean.shape[1] * len(out)
    share(kernels.pair_rates, len(out), user_mean, item_mean, *pairs, out, work=work)
    return out
