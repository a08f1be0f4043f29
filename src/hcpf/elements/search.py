"""One-dimensional and general numeric searches used by maximum likelihood."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from scipy import optimize

from hcpf._types import FloatArray
from hcpf.elements.domains import POSITIVE, POSITIVE_INTEGER, REAL, UNIT_INTERVAL
from hcpf.errors import EstimationError

if TYPE_CHECKING:
    from hcpf.elements.base import Element

    E = TypeVar("E", bound=Element)


def maximise_over_log(objective: Callable[[float], float], low: float, high: float) -> float:
    """The x in [low, high] with the largest value of a function unimodal in log x."""
    scaled = optimize.minimize_scalar(
        lambda t: -objective(float(np.exp(t))),
        bounds=(np.log(low), np.log(high)),
        method="bounded",
        options={"xatol": 1e-11, "maxiter": 500},
    )
    found = float(np.exp(scaled.x))
    return max((low, found, high), key=objective)


def maximise_over_integers(objective: Callable[[int], float], low: int, high: int) -> int:
    """The whole number in [low, high] with the largest value of a unimodal function."""
    while high - low > 2:
        middle = (low + high) // 2
        if objective(middle) < objective(middle + 1):
            low = middle + 1
        else:
            high = middle
    return max(range(low, high + 1), key=objective)


_TO_DOMAIN: dict[object, Callable[[float], float]] = {
    REAL: float,
    POSITIVE: lambda t: float(np.exp(np.clip(t, -30, 30))),
    UNIT_INTERVAL: lambda t: float(1.0 / (1.0 + np.exp(-np.clip(t, -30, 30)))),
}


def numeric_maximum(element: "E", y: FloatArray) -> "E":
    """Fill the missing parameters by a derivative-free search of the likelihood.

    The default for elements that bring no estimator of their own. Whole-number parameters have
    no such default: give them.
    """
    domains = element._domains()  # pyright: ignore[reportPrivateUsage]
    missing = [name for name in domains if name not in element.parameters]
    for name in missing:
        if domains[name] is POSITIVE_INTEGER or domains[name] not in _TO_DOMAIN:
            raise EstimationError(f"{type(element).__name__} cannot estimate {name}: give it.")
    values, counts = np.unique(y, return_counts=True)

    def at(point: FloatArray) -> "E":
        moved = {k: _TO_DOMAIN[domains[k]](t) for k, t in zip(missing, point, strict=True)}
        return element.replace(**moved)

    def loss(point: FloatArray) -> float:
        density = at(point).log_density_unchecked(values, np.ones_like(values))
        total = float(counts @ np.maximum(density, -1e10))
        return -total / y.size if np.isfinite(total) else 1e300

    starts = [np.full(len(missing), s) for s in (0.0, -2.0, 2.0)]
    tolerances = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 4000, "maxfev": 4000}
    best = min(
        (optimize.minimize(loss, s, method="Nelder-Mead", options=tolerances) for s in starts),
        key=lambda result: result.fun,
    )
    if not np.isfinite(best.fun) or best.fun >= 1e9:
        raise EstimationError(f"{type(element).__name__}: no parameters give these values any mass.")
    return at(best.x)
