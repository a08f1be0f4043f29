"""Several fits as one predictor: their rates averaged."""

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.inference.heldout import pair_rates
from hcpf.posterior import Posterior


class Combined:
    """The average of the fits' rates; the same as factors side by side, scaled."""

    def __init__(self, posteriors: list[Posterior]) -> None:
        self.posteriors = posteriors

    def rates(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> FloatArray:
        """Average posterior mean rates of pairs given by position."""
        total = np.zeros(len(users))
        for posterior in self.posteriors:
            total += pair_rates(posterior.users.mean_, posterior.items.mean_, users, items)
        return total / len(self.posteriors)
