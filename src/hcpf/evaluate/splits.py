"""Splits of data into training entries and held-out pairs, observed and missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcpf._checks import generator, number, whole
from hcpf._types import Csr
from hcpf.data.held_out import HeldOutPairs, Positions, mark_pairs, sample_missing
from hcpf.data.ids import IdIndex
from hcpf.data.interactions import Interactions
from hcpf.data.sampling import locate, row_of
from hcpf.data.words import count
from hcpf.errors import InputError
from hcpf.model.alignment import as_interactions
from hcpf.model.fitted import FittedModel

RandomState = int | np.random.Generator | None


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Training data, and two sets of held-out pairs.

    Fit with ``model.fit(parts.train, exclude=parts.held_out)``. Without ``exclude``, the model
    would be trained on the held-out observed pairs as missing ones.
    """

    train: Interactions
    test: HeldOutPairs
    validation: HeldOutPairs
    held_out: Csr
    """A matrix whose stored entries mark every held-out pair, for ``fit``."""
    n_missing: int
    """Number of missing pairs of all the data."""

    @property
    def validation_matrix(self) -> Csr:
        """The observed validation entries as a matrix, for ``fit(validation=...)``."""
        pairs = self.validation
        return sparse.csr_array((pairs.values, (pairs.users, pairs.items)), shape=self.train.shape)

    def __repr__(self) -> str:
        return (
            f"Split({self.train!r}, {len(self.test)} test and {len(self.validation)} validation "
            f"entries, {self.held_out.nnz} pairs held out in all)"
        )


def split(
    data: Interactions | Any,
    *,
    test: float = 0.2,
    validation: float = 0.01,
    times: Any = None,
    missing: float = 1.0,
    random_state: RandomState = None,
) -> Split:
    """Hold out shares of the observed entries, each with as many missing pairs.

    Parameters
    ----------
    data
        The observed entries, or a matrix of them.
    test, validation
        Shares of the observed entries (20% and 1% in the paper).
    times
        When each entry was made: the latest entries become test pairs, those just before them
        validation pairs. In the order of ``data.values`` (user by user, each user's by item); or
        Interactions of the same pairs whose values are the times. By default entries are held out
        at random.
    missing
        Missing test pairs per observed one. More than one make the likelihood of missing pairs more
        certain; then at most half of all missing pairs are test pairs.
    random_state
        Seed or generator; the same seed gives the same split.

    Examples
    --------
    >>> from hcpf import simulate
    >>> data = simulate(50, 40, density=0.1, random_state=0).interactions
    >>> parts = split(data, random_state=0)
    >>> data.n_observed, parts.train.n_observed, len(parts.test), len(parts.validation)
    (215, 170, 43, 2)
    """
    data = as_interactions(data)
    sizes = _sizes(data, test, validation)
    rng = generator(random_state)
    latest_first = None if times is None else _by_time(data, times, rng)[::-1]
    order = rng.permutation(data.n_observed) if latest_first is None else latest_first
    parts = order[: sizes[0]], order[sizes[0] : sum(sizes)]
    return _hold_out(data, parts, (test, validation), rng, _number_missing(data, sizes, missing))


def _number_missing(data: Interactions, sizes: tuple[int, int], ratio: float) -> tuple[int, int]:
    """Return how many missing pairs go with the entries of test and validation."""
    times = number("missing", ratio, 1.0, np.inf, "1 or more")
    if times == 1.0:
        return sizes
    most = (data.n_users * data.n_items - data.n_observed) // 2
    n_test = min(round(times * sizes[0]), max(most, 1))
    return n_test, min(sizes[1], max(most, 1))


def leave_out(
    data: Interactions | Any,
    n: int = 1,
    *,
    times: Any = None,
    random_state: RandomState = None,
) -> Split:
    """Hold out ``n`` entries of each user who has more than ``n``, and as many missing pairs.

    Parameters
    ----------
    data
        The observed entries, or a matrix of them.
    n
        Number of entries per user.
    times
        Hold out the latest entries instead of random ones, in the form that ``split`` takes.
    random_state
        Seed or generator.

    Examples
    --------
    >>> parts = leave_out([[1, 2, 0], [0, 3, 0], [4, 5, 6]], random_state=0)
    >>> parts.test.users, parts.train.n_observed
    (array([0, 2]), 4)
    """
    data, n = as_interactions(data), whole("n", n)
    rng = generator(random_state)
    pointer = data.matrix.indptr.astype(np.int64)
    users = np.flatnonzero(np.diff(pointer) > n)
    if not len(users):
        raise InputError(f"leave_out: no user has more than {n} observed entries.")
    if times is None:
        places = pointer[users][:, None] + _distinct(np.diff(pointer)[users], n, rng)
    else:
        order = _by_time(data, times, rng)
        # A stable sort by user keeps each user's entries in order of time, where indptr says.
        order = order[np.argsort(row_of(data.matrix, order), kind="stable")]
        places = order[pointer[users + 1][:, None] - 1 - np.arange(n)]
    chosen = places.ravel()
    parts = chosen, np.zeros(0, np.int64)
    return _hold_out(data, parts, (len(chosen) / data.n_observed, 0.0), rng)


def split_by_time(
    before: Interactions,
    after: Interactions,
    *,
    validation: float = 0.01,
    random_state: RandomState = None,
) -> Split:
    """Train on earlier entries and test on pairs that were observed for the first time later.

    Later entries of users or items without earlier ones, and of pairs that have an earlier one,
    take no part.

    Parameters
    ----------
    before, after
        Entries of the earlier and of the later period; ids are matched.
    validation
        Share of the earlier entries to hold out at random for early stopping.
    random_state
        Seed or generator.

    Examples
    --------
    >>> early = Interactions.from_arrays(["ann", "ann", "bob", "bob"], ["tea", "jam", "tea", "rye"])
    >>> late = Interactions.from_arrays(["ann", "bob", "cat"], ["rye", "tea", "tea"])
    >>> parts = split_by_time(early, late, validation=0.0, random_state=0)
    >>> parts.train.n_observed, parts.test.users, parts.test.items
    (4, array([0]), array([1]))
    """
    rng = generator(random_state)
    users = IdIndex("users", before.users).known(after.users)
    items = IdIndex("items", before.items).known(after.items)
    later = after.matrix.tocoo()
    rows, columns = users[later.row], items[later.col]
    is_known = (rows >= 0) & (columns >= 0)
    is_known[is_known] = locate(before.matrix, rows[is_known], columns[is_known]) < 0
    if not is_known.any():
        raise InputError(
            "split_by_time: no pair of the later period is new and has an earlier user and item."
        )
    rows, columns = rows[is_known], columns[is_known]
    new = sparse.csr_array((later.data[is_known], (rows, columns)), shape=before.shape)
    data = Interactions.from_matrix(before.matrix + new, users=before.users, items=before.items)
    test = np.sort(locate(data.matrix, rows, columns))
    earlier = np.setdiff1d(np.arange(data.n_observed), test)
    n_validation = round(number("validation", validation, 0.0, 0.5, "from 0 to 0.5") * len(earlier))
    parts = test, np.sort(rng.choice(earlier, n_validation, replace=False))
    shares = [len(part) / data.n_observed for part in parts]
    return _hold_out(data, parts, shares, rng)


def excluded_split(model: FittedModel) -> Split | None:
    """Return the split of a model whose data hold the entries that training excluded.

    After ``fit(data, exclude=marks)`` the entries that ``marks`` stores are test pairs, and the
    other pairs it stores are missing ones. None unless there are both.
    """
    data = model.data
    if model.excluded is None or data is None:
        return None
    marks = model.excluded.tocoo()
    rows, cols = marks.row.astype(np.int64), marks.col.astype(np.int64)
    entries = locate(data.matrix, rows, cols)
    observed = entries >= 0
    if not observed.any() or observed.all():
        return None
    share = observed.sum() / data.n_observed
    missing = rows[~observed], cols[~observed]
    return _split(data, (np.sort(entries[observed]), entries[:0]), (share, 0.0), missing)


def _sizes(data: Interactions, test: float, validation: float) -> tuple[int, int]:
    """Return how many entries to hold out."""
    if not (0 < test < 1 and 0 <= validation < 1 and test + validation < 1):
        raise InputError(
            f"split: test={test!r} must be above 0, validation={validation!r} 0 or more, and "
            "both together below 1."
        )
    sizes = round(test * data.n_observed), round(validation * data.n_observed)
    if sizes[0] == 0 or sum(sizes) >= data.n_observed:
        raise InputError(
            f"split: test={test:g} of {count(data.n_observed, 'entry')} leaves none for the test "
            "or for training. Use another share or more data."
        )
    return sizes


def _by_time(data: Interactions, times: Any, rng: np.random.Generator) -> Positions:
    """Return the entries in order of time, those of the same time at random."""
    if isinstance(times, Interactions):
        mine, theirs = data.matrix, times.matrix
        same = mine.shape == theirs.shape and np.array_equal(mine.indptr, theirs.indptr)
        if not (same and np.array_equal(mine.indices, theirs.indices)):
            raise InputError("times must be of the same pairs as the data.")
        times = times.values
    moments = np.asarray(times)
    if moments.shape != (data.n_observed,) or moments.dtype.kind not in "iufM":
        raise InputError(
            f"times must be {data.n_observed} numbers or dates, one per observed entry; got "
            f"shape {moments.shape} of {moments.dtype}."
        )
    # NaN and NaT are the only values that differ from themselves.
    if np.any(moments != moments):
        raise InputError("times must not be NaN or NaT.")
    order = rng.permutation(data.n_observed)
    return order[np.argsort(moments[order], kind="stable")]


def _distinct(sizes: NDArray[np.int64], n: int, rng: np.random.Generator) -> Positions:
    """Return ``n`` distinct integers below each of ``sizes``, uniformly drawn."""
    taken = np.empty((len(sizes), 0), np.int64)
    for j in range(n):
        drawn = rng.integers(0, sizes - j)  # a position among those left
        for k in range(j):
            drawn += drawn >= taken[:, k]  # in ascending order: step over those taken
        taken = np.sort(np.column_stack([taken, drawn]), axis=1)
    return taken


def _hold_out(
    data: Interactions,
    parts: Sequence[Positions],
    shares: Sequence[float],
    rng: np.random.Generator,
    n_missing: Sequence[int] | None = None,
) -> Split:
    """Hold out two sets of entries, by default with as many missing pairs."""
    sizes = [len(part) for part in parts] if n_missing is None else n_missing
    missing = sample_missing(data.matrix, sum(sizes), rng)
    return _split(data, parts, shares, missing, sizes)


def _split(
    data: Interactions,
    parts: Sequence[Positions],
    shares: Sequence[float],
    missing: tuple[Positions, Positions],
    sizes: Sequence[int] | None = None,
) -> Split:
    """Return the split; ``sizes`` are the relative numbers of missing pairs of both parts."""
    matrix = data.matrix
    n_missing = data.n_users * data.n_items - matrix.nnz
    sizes = [len(part) for part in parts] if sizes is None else sizes
    cut = round(len(missing[0]) * sizes[0] / sum(sizes))
    held_out = [
        HeldOutPairs.of_entries(
            matrix, entries, (missing[0][chosen], missing[1][chosen]), share * n_missing
        )
        for entries, chosen, share in zip(
            parts, (slice(cut), slice(cut, None)), shares, strict=True
        )
    ]
    train = data.without(np.concatenate(parts))
    exclude = mark_pairs(matrix.shape, held_out)
    return Split(train, held_out[0], held_out[1], exclude, n_missing)
