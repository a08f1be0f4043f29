"""Typical values of users and items, of models with partial pooling."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core.groups import Groups
from hcpf.elements import Element
from hcpf.elements.conjugate import Conjugate
from hcpf.errors import InputError
from hcpf.model.combine import Combined

AxisName = Literal["user", "item"]
_OTHER: dict[AxisName, AxisName] = {"user": "item", "item": "user"}
_LEVELS = (0.05, 0.5, 0.95)
_PRIOR_DRAWS, _ROW_DRAWS = 4_001, 400
_MAX_ENTRIES = 1_000_000  # from which the average numbers of elements are computed
_ACTIVE, _EXTREME, _RANDOM = 120, 40, 80  # rows in a table


@dataclass(frozen=True, eq=False)
class TypicalValues:
    """Typical values of the users, or of the items: expected values of observed pairs.

    Where the other axis is pooled too, the pair is one with its median row. The number of elements
    is that of an average observed pair: of the row itself, or of all where it has no entry.

    Attributes
    ----------
    axis : str
        "user" or "item".
    value : ndarray
        The typical value of each row.
    entries, average : ndarray
        Number of entries of the row in the data, and their average (NaN without any).
    levels, new : ndarray
        Quantiles at 5%, 50% and 95%: of the typical values of rows with entries, and of that of a
        new row under the prior.
    """

    axis: AxisName
    value: FloatArray
    entries: NDArray[np.int64]
    average: FloatArray
    levels: FloatArray
    new: FloatArray
    _model: Any
    _partner: FloatArray
    _count: FloatArray

    def extremes(self, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return positions of the n rows with the highest, and with the lowest typical values.

        Rows without entries do not take part.

        Examples
        --------
        >>> from hcpf import HCPF, simulate
        >>> from hcpf.elements import Gamma
        >>> data = simulate(30, 20, density=0.3, random_state=0).interactions
        >>> model = HCPF(2, element=Gamma(per="item"), n_fits=1, max_iter=5, random_state=0)
        >>> found = typical_values(model.fit(data), "item")
        >>> highest, lowest = found.extremes(3)
        >>> bool(found.value[highest[0]] == found.value.max()), len(lowest)
        (True, 3)
        """
        known = np.flatnonzero(self.entries)
        order = known[np.argsort(-self.value[known], kind="stable")]
        return order[:n], order[::-1][:n]

    def sample_rows(self, rng: np.random.Generator) -> NDArray[np.intp]:
        """Choose rows for a table: those with most entries, the extremes and a random sample."""
        active = np.argsort(-self.entries, kind="stable")[:_ACTIVE]
        drawn = rng.permutation(len(self.entries))[:_RANDOM]
        chosen = np.unique(np.concatenate([active, drawn, *self.extremes(_EXTREME)]))
        return chosen[np.argsort(-self.entries[chosen], kind="stable")]

    def intervals(
        self, rows: NDArray[np.intp], rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return bounds that hold the typical values of rows with 90% probability."""
        element, draws = self._model.element_, []
        n_draws = -(-_ROW_DRAWS // len(self._model.posteriors_))
        for fit, posterior in enumerate(self._model.posteriors_):
            theta = _theta(posterior, self.axis).at(rows)
            shape = n_draws, len(rows)
            chi, nu = (np.broadcast_to(x, shape).copy() for x in (theta.chi, theta.nu))
            means = _conjugate(element).sample_mean(chi, nu, rng)
            draws.append(_crossed_mean(element, means, self._partner[fit]))
        low, high = np.quantile(self._count[rows] * np.concatenate(draws), [0.05, 0.95], axis=0)
        return low, high


def pooled_axes(model: Any) -> list[AxisName]:
    """Return the axes whose rows have means of their own: "user", "item", both or none.

    Examples
    --------
    >>> from hcpf import HCPF, simulate
    >>> data = simulate(30, 20, density=0.3, random_state=0).interactions
    >>> pooled_axes(HCPF(2, element="gamma", n_fits=1, max_iter=2, random_state=0).fit(data))
    []
    """
    return [axis for axis in _OTHER if _theta(model.posteriors_[0], axis) is not None]


def typical_values(model: Any, axis: AxisName) -> TypicalValues:
    """Return the typical values of the users, or of the items, of a fitted model.

    Parameters
    ----------
    model : HCPF
        A fitted model with partial pooling.
    axis : "user" or "item"
        Whose typical values; the means must vary by it.
    """
    if axis not in pooled_axes(model):
        raise InputError(
            f"typical_values requires means that vary by {axis}: fit with vary_by={axis!r} or "
            "vary_by='both'."
        )
    element, conjugate = model.element_, _conjugate(model.element_)
    entries, average = _entries(model, axis)
    count, overall = _element_counts(model, axis)
    n_fits = len(model.posteriors_)
    value, new, partners = np.zeros(len(entries)), np.zeros(3), np.zeros(n_fits)
    for fit, posterior in enumerate(model.posteriors_):
        own, partners[fit] = _theta(posterior, axis), _median_partner(model, fit, _OTHER[axis])
        value += _crossed_mean(element, conjugate.mean(own.chi, own.nu), partners[fit])
        new += _crossed_mean(element, _prior_levels(conjugate, own), partners[fit])
    value *= count / n_fits
    new *= overall / n_fits
    levels = np.quantile(value[entries > 0], _LEVELS)
    return TypicalValues(axis, value, entries, average, levels, new, model, partners, count)


def _entries(model: Any, axis: AxisName) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the number of entries of each row, and their average."""
    matrix = model.interactions_.matrix
    entries = np.diff(matrix.indptr)
    if axis == "item":
        entries = np.bincount(matrix.indices, minlength=matrix.shape[1])
    total = np.asarray(matrix.sum(axis=1 if axis == "user" else 0), dtype=np.float64).ravel()
    with np.errstate(invalid="ignore"):
        return entries.astype(np.int64), total / entries


def _median_partner(model: Any, fit: int, axis: AxisName) -> float:
    """Return Psi' of the median row; what changes nothing where the axis is not pooled."""
    conjugate = _conjugate(model.element_)
    theta = _theta(model.posteriors_[fit], axis)
    if theta is None:
        return 0.0 if conjugate.sharing is not None and conjugate.sharing.additive else 1.0
    known = _entries(model, axis)[0] > 0
    return float(np.median(conjugate.mean(theta.chi[known], theta.nu[known])))


def _conjugate(element: Element) -> Conjugate:
    assert element.conjugate is not None
    return element.conjugate


def _theta(posterior: Any, axis: AxisName) -> Any:
    return (posterior.users if axis == "user" else posterior.items).groups


def _prior_levels(conjugate: Conjugate, theta: Groups) -> FloatArray:
    """Return quantiles of Psi' under the prior; the same draws every time."""
    ones = np.ones(_PRIOR_DRAWS)
    rng = np.random.default_rng(0)
    return np.quantile(conjugate.sample_mean(theta.chi0 * ones, theta.nu0 * ones, rng), _LEVELS)


def _crossed_mean(element: Element, mean: FloatArray, partner: float) -> FloatArray:
    """Return the mean of one element from Psi' of both axes."""
    sharing = _conjugate(element).sharing
    added = sharing is not None and sharing.additive
    return float(element.kappa) * (mean + partner if added else mean * partner)


def _element_counts(model: Any, axis: AxisName) -> tuple[FloatArray, float]:
    """Return the expected number of elements in a value: of each row on average, and of all."""
    matrix = model.interactions_.matrix
    chosen = np.linspace(0, matrix.nnz - 1, min(matrix.nnz, _MAX_ENTRIES)).astype(np.int64)
    users = np.searchsorted(matrix.indptr, chosen, side="right") - 1
    items = matrix.indices[chosen].astype(np.int64)
    rate = np.maximum(Combined(model.posteriors_).rates(users, items), 1e-12)
    count = np.ones_like(rate) if model.element_.once else rate / -np.expm1(-rate)
    overall = float(np.mean(count))
    rows, size = (users, matrix.shape[0]) if axis == "user" else (items, matrix.shape[1])
    total, seen = np.bincount(rows, count, size), np.bincount(rows, minlength=size)
    return np.where(seen > 0, total / np.maximum(seen, 1), overall), overall
