"""What is usual for a user or an item, where theta varies between them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core.groups import Groups
from hcpf.elements import Element
from hcpf.elements.conjugate import Conjugate
from hcpf.errors import InputError
from hcpf.estimator import HCPF
from hcpf.model.combine import Combined

Side = Literal["users", "items"]
SIDES: tuple[Side, Side] = ("users", "items")
_OTHER: dict[Side, Side] = {"users": "items", "items": "users"}
_LEVELS = (0.05, 0.5, 0.95)
_PRIOR_DRAWS, _ROW_DRAWS = 4_001, 400
_ENTRIES = 1_000_000  # from which the usual numbers of elements are taken
_ACTIVE, _EXTREME, _RANDOM = 120, 40, 80  # rows in a table


@dataclass(frozen=True, eq=False)
class Usual:
    """The usual values of one side: of a pair with a usual partner, if it is observed.

    A usual partner is the median of the other side, where that varies too. The number of elements
    is that of an average observed pair: of the row itself, or of all where it has no entry.

    Attributes
    ----------
    value : ndarray
        Of each row.
    entries, average : ndarray
        How many entries the row has in the data, and their average (NaN without any).
    levels, new : ndarray
        The value that 5%, 50% and 95% stay below: of the rows with entries, and of what the prior
        expects of a row that nothing is known of.
    """

    side: Side
    value: FloatArray
    entries: NDArray[np.int64]
    average: FloatArray
    levels: FloatArray
    new: FloatArray
    _model: HCPF
    _partner: FloatArray
    _count: FloatArray

    def extremes(self, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions of the n rows with the highest, and with the lowest values that have entries.

        >>> from hcpf import HCPF, simulate
        >>> from hcpf.elements import Gamma
        >>> data = simulate(30, 20, density=0.3, random_state=0).interactions
        >>> model = HCPF(2, element=Gamma(per="item"), n_fits=1, max_iter=5, random_state=0)
        >>> found = usual(model.fit(data), "items")
        >>> highest, lowest = found.extremes(3)
        >>> bool(found.value[highest[0]] == found.value.max()), len(lowest)
        (True, 3)
        """
        known = np.flatnonzero(self.entries)
        order = known[np.argsort(-self.value[known], kind="stable")]
        return order[:n], order[::-1][:n]

    def shown(self, rng: np.random.Generator) -> NDArray[np.intp]:
        """Positions of rows for a table: the busiest, the extremes and a random sample."""
        busiest = np.argsort(-self.entries, kind="stable")[:_ACTIVE]
        some = rng.permutation(len(self.entries))[:_RANDOM]
        chosen = np.unique(np.concatenate([busiest, some, *self.extremes(_EXTREME)]))
        return chosen[np.argsort(-self.entries[chosen], kind="stable")]

    def between(
        self, rows: NDArray[np.intp], rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds between which the usual value of some rows lies with 90% probability."""
        element, draws = self._model.element_, []
        share = -(-_ROW_DRAWS // len(self._model.posteriors_))
        for fit, posterior in enumerate(self._model.posteriors_):
            groups = _groups(posterior, self.side).at(rows)
            shape = share, len(rows)
            chi, nu = (np.broadcast_to(x, shape).copy() for x in (groups.chi, groups.nu))
            means = _conjugate(element).sample_mean(chi, nu, rng)
            draws.append(_joined(element, means, self._partner[fit]))
        low, high = np.quantile(self._count[rows] * np.concatenate(draws), [0.05, 0.95], axis=0)
        return low, high


def varying_sides(model: HCPF) -> list[Side]:
    """The sides that have a theta of their own.

    >>> from hcpf import HCPF, simulate
    >>> data = simulate(30, 20, density=0.3, random_state=0).interactions
    >>> varying_sides(HCPF(2, element="gamma", n_fits=1, max_iter=2, random_state=0).fit(data))
    []
    """
    return [side for side in SIDES if getattr(model.posterior_, side).groups is not None]


def usual(model: HCPF, side: Side) -> Usual:
    """What is usual for the users, or for the items, of a fitted model."""
    if side not in varying_sides(model):
        raise InputError(f"{model.element_!r} does not vary by {side}.")
    element, conjugate = model.element_, _conjugate(model.element_)
    entries, average = _data(model, side)
    count, overall = _counts(model, side)
    value, new, partners = np.zeros(len(entries)), np.zeros(3), np.zeros(len(model.posteriors_))
    for fit, posterior in enumerate(model.posteriors_):
        own, partners[fit] = _groups(posterior, side), _partner(model, fit, _OTHER[side])
        value += _joined(element, conjugate.mean(own.chi, own.nu), partners[fit])
        new += _joined(element, _prior_levels(conjugate, own), partners[fit])
    value *= count / len(partners)
    new *= overall / len(partners)
    levels = np.quantile(value[entries > 0], _LEVELS)
    return Usual(side, value, entries, average, levels, new, model, partners, count)


def _data(model: HCPF, side: Side) -> tuple[NDArray[np.int64], FloatArray]:
    """How many entries each row has, and their average."""
    matrix = model.interactions_.matrix
    entries = np.diff(matrix.indptr)
    if side == "items":
        entries = np.bincount(matrix.indices, minlength=matrix.shape[1])
    total = np.asarray(matrix.sum(axis=1 if side == "users" else 0), dtype=np.float64).ravel()
    with np.errstate(invalid="ignore"):
        return entries.astype(np.int64), total / entries


def _partner(model: HCPF, fit: int, side: Side) -> float:
    """Psi' of the median row of the other side; what changes nothing where that does not vary."""
    conjugate = _conjugate(model.element_)
    groups = getattr(model.posteriors_[fit], side).groups
    if groups is None:
        return 0.0 if conjugate.sharing is not None and conjugate.sharing.additive else 1.0
    known = _data(model, side)[0] > 0
    return float(np.median(conjugate.mean(groups.chi[known], groups.nu[known])))


def _conjugate(element: Element) -> Conjugate:
    assert element.conjugate is not None
    return element.conjugate


def _groups(posterior: object, side: Side) -> Groups:
    return getattr(posterior, side).groups


def _prior_levels(conjugate: Conjugate, groups: Groups) -> FloatArray:
    """Quantiles of Psi' under the prior; the same draws every time."""
    size = np.full(_PRIOR_DRAWS, 1.0)
    rng = np.random.default_rng(0)
    drawn = conjugate.sample_mean(groups.chi0 * size, groups.nu0 * size, rng)
    return np.quantile(drawn, _LEVELS)


def _joined(element: Element, mean: FloatArray, partner: float) -> FloatArray:
    """The mean of one element from what the two sides say of Psi'."""
    sharing = _conjugate(element).sharing
    added = sharing is not None and sharing.additive
    return float(element.kappa) * (mean + partner if added else mean * partner)


def _counts(model: HCPF, side: Side) -> tuple[FloatArray, float]:
    """The expected number of elements in a value: of each row on average, and of all."""
    matrix = model.interactions_.matrix
    some = np.linspace(0, matrix.nnz - 1, min(matrix.nnz, _ENTRIES)).astype(np.int64)
    users = np.searchsorted(matrix.indptr, some, side="right") - 1
    items = matrix.indices[some].astype(np.int64)
    rate = np.maximum(Combined(model.posteriors_).rates(users, items), 1e-12)
    count = np.ones_like(rate) if model.element_.once else rate / -np.expm1(-rate)
    overall = float(np.mean(count))
    rows, size = (users, matrix.shape[0]) if side == "users" else (items, matrix.shape[1])
    total, seen = np.bincount(rows, count, size), np.bincount(rows, minlength=size)
    return np.where(seen > 0, total / np.maximum(seen, 1), overall), overall
