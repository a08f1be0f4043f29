"""Intervals of the value of many pairs: a function of the rate alone, so few need be solved for."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hcpf._types import FloatArray

LEVEL = 0.9
_NODES = 2_048


def intervals(predictive: Any) -> "tuple[FloatArray, FloatArray]":
    """The 90% interval of the value of each pair if it is observed.

    A quantile costs far more than a rate. With more pairs than nodes it is solved for at nodes and
    interpolated; between nodes where a discrete one jumps, the pairs are solved for themselves.
    """
    import numpy as np

    from hcpf.distributions.compound import CompoundPoisson

    rate, element = np.asarray(predictive.rate), predictive.element
    if rate.size <= _NODES:
        return predictive.observed.interval(LEVEL)
    place = np.log(np.maximum(rate, 1e-12))
    nodes = np.linspace(place.min(), place.max(), _NODES)
    solved = CompoundPoisson(np.exp(nodes), element).observed.interval(LEVEL)
    if not element.support.discrete:
        return np.interp(place, nodes, solved[0]), np.interp(place, nodes, solved[1])
    after = np.clip(np.searchsorted(nodes, place), 1, _NODES - 1)
    ends = [bound[after] for bound in solved]
    jumps = (solved[0][after - 1] != ends[0]) | (solved[1][after - 1] != ends[1])
    if jumps.any():
        some, which = np.unique(rate[jumps], return_inverse=True)
        exact = CompoundPoisson(some, element).observed.interval(LEVEL)
        for bound, values in zip(ends, exact, strict=True):
            bound[jumps] = values[which]
    return ends[0], ends[1]
