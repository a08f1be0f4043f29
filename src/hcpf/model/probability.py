r"""Recalibration of the probability that a pair is observed.

The model's own probability is :math:`1 - e^{-\Lambda}` at the mean rate over the posterior and the
fits, which is a fast approximation of its posterior mean: the mean of a concave function is lower.
A ``Recalibration``, learned at the end of training, maps it to the share of such pairs that were
found. Both are monotone in the mean rate, so that neither changes an order.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from hcpf._types import FloatArray

if TYPE_CHECKING:
    from hcpf.distributions.pair import PairDistribution


@dataclass(frozen=True, eq=False)
class Recalibration:
    """A monotone map of probabilities, learned on entries that were hidden from a fitted model.

    It adds ``shift`` to the log odds, interpolated linearly between ``log_odds`` and constant
    beyond them. The first shift is 0: below, where nothing was learned, probabilities stay.
    """

    log_odds: FloatArray
    """Ascending."""
    shift: FloatArray

    def apply(self, probability: FloatArray) -> FloatArray:
        """Return the probabilities after recalibration."""
        with np.errstate(divide="ignore"):
            x = special.logit(probability)
        return np.asarray(special.expit(x + np.interp(x, self.log_odds, self.shift)))


def probability_and_value(
    predicted: "PairDistribution", recalibration: Recalibration | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the probability of pairs, their value if observed, and the product of the two."""
    probability, value = predicted.prob_observed, predicted.mean_observed
    if recalibration is None:
        return probability, value, predicted.mean
    probability = recalibration.apply(probability)
    return probability, value, probability * value
