r"""Limits on the influence of one odd entry on the mean of its user or item.

The conjugate posterior of a row's mean is linear in its entries: one entry of a thousand times the
usual value moves the mean of its row without bound, and every prediction for the row with it. An
entry that outweighs the prior and all other entries of its row therefore counts only as much as
these, or ``limit`` times what the prior expects of it if that is more. The limit is the largest
ratio that a second entry of the same row confirms, or a lower one under which the entries of a row
are predicted better by its other entries (leave-one-out). In rows of many entries none outweighs
the others, and heavy tails keep their weight.

Training is not affected: the limit is applied to the theta posteriors of a finished fit.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcpf._types import Csr, FloatArray
from hcpf.core.axis import Axis
from hcpf.core.pooling import Pooling
from hcpf.core.posterior import Posterior
from hcpf.core.theta import ThetaPosterior, conjugate_of
from hcpf.core.value_model import ValueModel
from hcpf.elements.conjugate import Conjugate

_LOWEST_LIMIT = 5.0  # times the expected value of the prior; less is ordinary variation
_STEPS_PER_DECADE = 4  # candidate limits per factor of ten
_MIN_ENTRIES = 1_000  # entries in rows of two or more that are needed to choose a limit
_MAX_ENTRIES = 100_000  # entries that the limit is chosen on


class EntryTerms(NamedTuple):
    """The contribution of each entry to chi and nu of its row."""

    row: NDArray[np.int64]
    chi: FloatArray
    nu: FloatArray

    def select(self, chosen: NDArray[np.bool_]) -> "EntryTerms":
        """Return the entries that a mask marks."""
        return EntryTerms(self.row[chosen], self.chi[chosen], self.nu[chosen])


def limit_odd_entries(
    posteriors: Sequence[Posterior], value_model: ValueModel, matrix: Csr
) -> tuple[Posterior, ...]:
    """Return posteriors whose means no single entry rules.

    Parameters
    ----------
    posteriors : sequence of Posterior
        Of finished fits to the same entries. The limits are chosen on the first.
    value_model : ValueModel
        With the fitted element.
    matrix : csr_array
        The entries that the model was trained on, users by items.
    """
    found = list(posteriors)
    for axis in Axis:
        limit: float | None = None
        for j, posterior in enumerate(posteriors):
            terms = _terms(posterior, axis, value_model, matrix)
            theta = posterior.axis(axis).theta
            if terms is None or theta is None:
                break
            if limit is None:
                limit = choose_limit(theta, terms, conjugate_of(value_model.element))
            theta = limited(replace(theta, limit=limit), terms)
            found[j] = found[j].replace(axis, theta=theta)
    return tuple(found)


def limit_new_rows(
    posterior: Posterior, axis: Axis, value_model: ValueModel, matrix: Csr
) -> Posterior:
    """Return a posterior whose rows of one axis were folded in, with the limit of the fit."""
    theta = posterior.axis(axis).theta
    if theta is None or theta.limit == np.inf:
        return posterior
    terms = _terms(posterior, axis, value_model, matrix)
    return posterior if terms is None else posterior.replace(axis, theta=limited(theta, terms))


def choose_limit(theta: ThetaPosterior, terms: EntryTerms, conjugate: Conjugate) -> float:
    """Return how many times what the prior expects an entry may count; infinity if data are few.

    It is at most the largest ratio that a second entry of the same row confirms. A lower limit is
    chosen if the leave-one-out likelihood says so by more than its standard error.
    """
    # Rows of one entry: nothing confirms it, and nothing but the prior predicts it.
    degrees = np.bincount(terms.row, minlength=len(theta.chi))
    terms = terms.select(degrees[terms.row] > 1)
    if len(terms.row) < _MIN_ENTRIES:
        return np.inf
    ratio = _ratio(theta, terms)
    confirmed = max(_largest_second(terms.row, ratio), _LOWEST_LIMIT)
    affected = np.zeros(len(theta.chi), np.bool_)
    affected[terms.row[ratio > _LOWEST_LIMIT]] = True
    terms = _sample_rows(terms.select(affected[terms.row]))
    n_limits = int(np.ceil(_STEPS_PER_DECADE * np.log10(confirmed / _LOWEST_LIMIT)))
    before = _leave_one_out(replace(theta, limit=confirmed), terms, conjugate)
    best, highest = confirmed, 0.0
    for limit in np.geomspace(_LOWEST_LIMIT, confirmed, n_limits, endpoint=False).tolist():
        # By row, since entries of a row depend on each other. If nothing is gained, the sum of
        # independent gains has the standard error sqrt(sum gain^2).
        gain = _leave_one_out(replace(theta, limit=limit), terms, conjugate) - before
        if gain.sum() > max(highest, float(np.sqrt(np.sum(gain**2)))):
            best, highest = limit, float(gain.sum())
    return best


def _largest_second(rows: NDArray[np.int64], ratio: FloatArray) -> float:
    """Return the largest over all rows of the second largest ratio in a row."""
    order = np.lexsort((ratio, rows))
    is_second = np.zeros(len(order), np.bool_)
    is_second[:-1] = rows[order[1:]] == rows[order[:-1]]  # another one follows that is larger
    return float(ratio[order[is_second]].max())


def limited(theta: ThetaPosterior, terms: EntryTerms) -> ThetaPosterior:
    """Return theta with every entry counted up to the limit."""
    counted, n_rows = _counted(theta, terms), len(theta.chi)
    is_odd = counted < terms.chi
    if not is_odd.any():
        return replace(theta, counted=None)
    # As a share: chi is not exactly the sum of its terms before training has converged.
    full, part = (np.bincount(terms.row, chi, n_rows) for chi in (terms.chi, counted))
    share = np.divide(part, full, out=np.ones(n_rows), where=full > 0)
    return replace(theta, counted=np.minimum(share, 1.0))


def _terms(
    posterior: Posterior, axis: Axis, value_model: ValueModel, matrix: Csr
) -> EntryTerms | None:
    """Return what each entry adds to chi and nu; None where no limit applies.

    An entry's share of nu is that of an average entry of its row, relative to the other axis.
    """
    pooling, theta = Pooling.of(value_model), posterior.axis(axis).theta
    if pooling is None or theta is None or not _has_tail(pooling):
        return None
    users = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
    row, column = (users, matrix.indices) if axis is Axis.USERS else (matrix.indices, users)
    row = row.astype(np.int64, copy=False)
    chi = matrix.data.astype(np.float64)
    share = np.ones(len(chi))
    other = posterior.axis(axis.other).theta
    if other is not None:
        part = pooling.part(other.chi, other.nu)
        if part.weight is not None:
            chi = chi * part.weight[column]
        if part.cross is not None:
            share = part.cross[column]
    total = np.bincount(row, share, len(theta.nu))
    return EntryTerms(row, chi, ((theta.nu - theta.nu0) / np.maximum(total, 1e-300))[row] * share)


def _has_tail(pooling: Pooling) -> bool:
    """Return whether means have no upper limit and are relative to each other."""
    conjugate = pooling.conjugate
    return conjugate.max_center == np.inf and conjugate.min_center >= 0.0


def _ratio(theta: ThetaPosterior, terms: EntryTerms) -> FloatArray:
    """Return how many times what the prior expects each entry is."""
    return terms.chi / np.maximum(terms.nu * (theta.chi0 / theta.nu0), 1e-300)


def _counted(theta: ThetaPosterior, terms: EntryTerms) -> FloatArray:
    """Return what each entry counts: up to the limit, or as much as the rest of its row."""
    rest = theta.chi0 + np.bincount(terms.row, terms.chi)[terms.row] - terms.chi
    limit = theta.limit * (theta.chi0 / theta.nu0) * terms.nu
    return np.minimum(terms.chi, np.maximum(limit, rest))


def _leave_one_out(theta: ThetaPosterior, terms: EntryTerms, conjugate: Conjugate) -> FloatArray:
    """Return the log-likelihood of the entries of each row, each entry given the others."""
    counted, n_rows = _counted(theta, terms), len(theta.chi)
    chi = theta.chi0 + np.bincount(terms.row, counted, n_rows)
    nu = theta.nu0 + np.bincount(terms.row, terms.nu, n_rows)
    rest = chi[terms.row] - counted, nu[terms.row] - terms.nu
    by_entry = conjugate.log_predictive(terms.chi, terms.nu, *rest)
    return np.bincount(terms.row, by_entry, n_rows).astype(np.float64)


def _sample_rows(terms: EntryTerms) -> EntryTerms:
    """Return the entries of so many rows, evenly spaced, that there are not too many."""
    step = -(-len(terms.row) // _MAX_ENTRIES)
    if step <= 1:
        return terms
    rank = np.unique(terms.row, return_inverse=True)[1]
    return terms.select(rank % step == 0)
