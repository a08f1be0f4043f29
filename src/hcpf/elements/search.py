"""Numeric searches for maximum likelihood: roots, unimodal sequences, several parameters."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from hcpf._types import FloatArray
from hcpf.elements.domains import POSITIVE, REAL, UNIT_INTERVAL, Domain
from hcpf.errors import EstimationError

if TYPE_CHECKING:
    from hcpf.elements.base import Element

    E = TypeVar("E", bound=Element)


def root(monotone: Callable[[float], float], low: float, high: float) -> float:
    """Return the root between two bounds, or the bound that is closer to one if there is none."""
    from scipy import optimize  # slow to load, and not needed to predict

    at_low, at_high = monotone(low), monotone(high)
    if at_low * at_high >= 0:
        return low if abs(at_low) < abs(at_high) else high
    tolerances: dict[str, Any] = {"xtol": 1e-300, "rtol": 1e-14, "maxiter": 1000}
    return float(cast("float", optimize.brentq(monotone, low, high, **tolerances)))


def last_rise(rises: Callable[[int], bool], low: int, high: int) -> int:
    """Return the index in [low, high] of the maximum of a unimodal sequence.

    ``rises(n)`` tells whether it is larger at n + 1 than at n.
    """
    while low < high:
        middle = (low + high) // 2
        if rises(middle):
            low = middle + 1
        else:
            high = middle
    return low


def _positive(t: float) -> float:
    return float(np.exp(np.clip(t, -30.0, 30.0)))


def _in_unit_interval(t: float) -> float:
    return float(1.0 / (1.0 + np.exp(-np.clip(t, -30.0, 30.0))))


_TO_DOMAIN: dict[Domain, Callable[[float], float]] = {
    REAL: float,
    POSITIVE: _positive,
    UNIT_INTERVAL: _in_unit_interval,
}


def numeric_maximum(element: "E", y: FloatArray) -> "E":
    """Return the element with missing parameters that maximize the likelihood, without derivatives.

    The default for elements that do not define ``maximize_likelihood``. Integer parameters cannot
    be estimated this way.
    """
    domains = element.domains()
    missing = [name for name in domains if name not in element.parameters]
    for name in missing:
        if domains[name] not in _TO_DOMAIN:
            raise EstimationError(f"{type(element).__name__} cannot estimate {name}. Pass {name}=.")
    values, counts = np.unique(y, return_counts=True)

    def element_at(point: FloatArray) -> "E":
        moved = {k: _TO_DOMAIN[domains[k]](t) for k, t in zip(missing, point, strict=True)}
        return element.replace(**moved)

    def loss(point: FloatArray) -> float:
        density = element_at(point).log_density_unchecked(values, np.ones_like(values))
        total = float(counts @ np.maximum(density, -1e10))
        return -total / y.size if np.isfinite(total) else 1e300

    starts = (np.full(len(missing), start) for start in (0.0, -2.0, 2.0))
    best, min_loss = min((_nelder_mead(loss, start) for start in starts), key=lambda end: end[1])
    if min_loss >= 1e9:
        raise EstimationError(
            f"{type(element).__name__} cannot be estimated: no parameters give all values a mass."
        )
    return element_at(best)


def _nelder_mead(
    loss: Callable[[FloatArray], float], start: FloatArray
) -> tuple[FloatArray, float]:
    from scipy import optimize

    tolerances = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 4000, "maxfev": 4000}
    # The default simplex has almost no extent if the start is 0.
    simplex = np.vstack([start, start + np.eye(len(start))])
    result: Any = optimize.minimize(
        loss, start, method="Nelder-Mead", options={**tolerances, "initial_simplex": simplex}
    )
    return np.asarray(result.x, dtype=np.float64), float(result.fun)
