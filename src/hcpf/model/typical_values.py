"""Typical values of users and items, of models with partial pooling."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcpf._types import Csr, FloatArray
from hcpf.core.axis import Axis
from hcpf.core.posterior import Posterior
from hcpf.core.theta import ThetaPosterior, conjugate_of
from hcpf.data.sampling import row_of
from hcpf.elements import Element
from hcpf.elements.conjugate import Conjugate
from hcpf.errors import InputError
from hcpf.model.entry_counts import count_entries, total_entries
from hcpf.model.fitted import FittedModel
from hcpf.model.resolve import fitted_model, trained_matrix

_LEVELS = (0.05, 0.5, 0.95)
_PRIOR_DRAWS, _ROW_DRAWS = 4_001, 400
_MAX_ENTRIES = 1_000_000  # entries that the average number of elements is computed from
_ACTIVE, _EXTREME, _RANDOM = 120, 40, 80  # rows in a table


@dataclass(frozen=True, eq=False)
class TypicalValues:
    """Typical values of the users, or of the items: expected values of observed pairs.

    Where the other axis is pooled too, the pair is one with its median row. The number of elements
    is that of an average observed pair: of the row itself, or of all where it has no entry.

    Attributes
    ----------
    axis : Axis
        Users or items.
    value : ndarray
        The typical value of each row.
    entries, average : ndarray
        Number of entries of the row that were trained on, and their average (NaN without any).
    levels, new : ndarray
        Quantiles at 5%, 50% and 95%: of the estimates in ``value``, of rows with entries; and of
        the typical value of a new row, drawn from the prior. Estimates are pooled toward the
        middle, so they vary less than typical values do: the two cannot be compared.
    """

    axis: Axis
    value: FloatArray
    entries: NDArray[np.int64]
    average: FloatArray
    levels: FloatArray
    new: FloatArray
    _model: FittedModel
    _partner: FloatArray
    _count: FloatArray

    def extremes(self, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return positions of the n rows with the highest, and with the lowest typical values.

        Rows without entries do not take part.

        Examples
        --------
        >>> from hcpf import HCPF, simulate
        >>> data = simulate(30, 20, density=0.3, random_state=0).interactions
        >>> model = HCPF(2, element="gamma", vary_by="item", n_fits=1, max_iter=5, random_state=0)
        >>> found = typical_values(model.fit(data), "items")
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
        """Return 90% intervals of the typical values of rows."""
        element, draws = self._model.element, []
        n_draws = -(-_ROW_DRAWS // len(self._model.posteriors))
        for fit, posterior in enumerate(self._model.posteriors):
            theta = _pooled(posterior, self.axis).at(rows)
            shape = n_draws, len(rows)
            chi, nu = (np.broadcast_to(x, shape).copy() for x in (theta.chi, theta.nu))
            means = conjugate_of(element).sample_mean(chi, nu, rng)
            draws.append(_crossed_mean(element, means, self._partner[fit]))
        low, high = np.quantile(self._count[rows] * np.concatenate(draws), [0.05, 0.95], axis=0)
        return low, high


def pooled_axes(model: Any) -> list[Axis]:
    """Return the axes that are partially pooled.

    Examples
    --------
    >>> from hcpf import HCPF, simulate
    >>> data = simulate(30, 20, density=0.3, random_state=0).interactions
    >>> pooled_axes(HCPF(2, element="gamma", n_fits=1, max_iter=2, random_state=0).fit(data))
    []
    """
    value_model = fitted_model(model).value_model
    return [axis for axis in Axis if value_model.varies(axis)]


def typical_values(model: Any, axis: Axis | str) -> TypicalValues:
    """Return the typical values of the users, or of the items, of a fitted model.

    Parameters
    ----------
    model : HCPF, FittedModel or path
        A fitted model with partial pooling.
    axis : {"items", "users"}
        Whose typical values, which must vary; "item" and "user" mean the same.
    """
    model, axis = fitted_model(model), Axis.parse(axis)
    if not model.value_model.varies(axis):
        raise InputError(
            f"typical_values: this model has no means per {axis.word}. Fit with "
            f"vary_by={axis.word!r} or 'both'."
        )
    element, conjugate = model.element, conjugate_of(model.element)
    matrix, n_fits = trained_matrix(model), len(model.posteriors)
    entries, has_entries = count_entries(matrix, axis), count_entries(matrix, axis.other) > 0
    with np.errstate(invalid="ignore"):
        average = total_entries(matrix, axis) / entries
    count, overall = _element_counts(model, matrix, axis)
    value, new, partners = np.zeros(len(entries)), np.zeros(3), np.zeros(n_fits)
    for fit, posterior in enumerate(model.posteriors):
        own = _pooled(posterior, axis)
        partners[fit] = _median_partner(model, fit, axis.other, has_entries)
        value += _crossed_mean(element, conjugate.mean(own.chi, own.nu), partners[fit])
        new += _crossed_mean(element, _prior_levels(conjugate, own), partners[fit])
    value *= count / n_fits
    new *= overall / n_fits
    levels = np.quantile(value[entries > 0], _LEVELS)
    return TypicalValues(axis, value, entries, average, levels, new, model, partners, count)


def _median_partner(
    model: FittedModel, fit: int, axis: Axis, has_entries: NDArray[np.bool_]
) -> float:
    """Return the median Psi' of rows with entries; without pooling, what changes nothing."""
    conjugate = conjugate_of(model.element)
    theta = model.posteriors[fit].axis(axis).predictive_theta
    if theta is None:
        return 0.0 if conjugate.sharing is not None and conjugate.sharing.additive else 1.0
    return float(np.median(conjugate.mean(theta.chi, theta.nu)[has_entries]))


def _pooled(posterior: Posterior, axis: Axis) -> ThetaPosterior:
    theta = posterior.axis(axis).predictive_theta
    assert theta is not None
    return theta


def _prior_levels(conjugate: Conjugate, theta: ThetaPosterior) -> FloatArray:
    """Return quantiles of Psi' under the prior; the same draws every time."""
    ones = np.ones(_PRIOR_DRAWS)
    rng = np.random.default_rng(0)
    return np.quantile(conjugate.sample_mean(theta.chi0 * ones, theta.nu0 * ones, rng), _LEVELS)


def _crossed_mean(element: Element, mean: FloatArray, partner: float) -> FloatArray:
    """Return the mean of one element from Psi' of both axes."""
    sharing = conjugate_of(element).sharing
    added = sharing is not None and sharing.additive
    return float(element.kappa) * (mean + partner if added else mean * partner)


def _element_counts(model: FittedModel, matrix: Csr, axis: Axis) -> tuple[FloatArray, float]:
    """Return the expected number of elements in a value: of each row on average, and of all."""
    chosen = np.linspace(0, matrix.nnz - 1, min(matrix.nnz, _MAX_ENTRIES)).astype(np.int64)
    users, items = row_of(matrix, chosen), matrix.indices[chosen].astype(np.int64)
    rate = np.maximum(model.combined.rates(users, items), 1e-12)
    count = np.ones_like(rate) if model.value_model.hurdle else rate / -np.expm1(-rate)
    overall = float(np.mean(count))
    rows, size = (users, matrix.shape[0]) if axis is Axis.USERS else (items, matrix.shape[1])
    total, seen = np.bincount(rows, count, size), np.bincount(rows, minlength=size)
    return np.where(seen > 0, total / np.maximum(seen, 1), overall), overall
