r"""The paper's evaluation protocol: held-out pairs, observed and missing, and how likely they are.

Held-out pairs of both kinds take no part in training; they are not zeros.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from hcpf._types import ArrayLike, Csr, FloatArray
from hcpf.compound import CompoundPoisson
from hcpf.data.interactions import Interactions
from hcpf.elements.base import Element
from hcpf.errors import InputError
from hcpf.inference.sampling import row_of, sample_missing, select


class Model(Protocol):
    """What ``scores`` needs of a model: rates of pairs, and the element behind the values."""

    element_: Element

    def rate(self, users: ArrayLike, items: ArrayLike) -> FloatArray:
        """Poisson rates of the pairs."""
        ...


@dataclass(frozen=True, eq=False)
class HeldOutPairs:
    """Observed pairs with their values, and as many missing ones, by position."""

    users: NDArray[np.int64]
    items: NDArray[np.int64]
    values: FloatArray
    missing_users: NDArray[np.int64]
    missing_items: NDArray[np.int64]
    share: float
    """The share of all observed entries that these are; the missing ones stand for as much."""


@dataclass(frozen=True, eq=False)
class Split:
    """Training data, and two sets of held-out pairs."""

    train: Interactions
    test: HeldOutPairs
    validation: HeldOutPairs
    exclude: Csr
    """A matrix whose stored entries mark every held-out pair; give it to ``fit``."""
    n_missing: int
    """How many pairs of the whole data are missing."""

    @property
    def validation_matrix(self) -> Csr:
        """The observed validation entries as a matrix, for ``fit(validation=...)``."""
        pairs = self.validation
        return sparse.csr_array((pairs.values, (pairs.users, pairs.items)), shape=self.train.shape)


def split(
    data: Interactions,
    *,
    test: float = 0.2,
    validation: float = 0.01,
    random_state: int | np.random.Generator | None = None,
) -> Split:
    """Hold out shares of the observed entries, each with as many missing pairs.

    Parameters
    ----------
    data
        The observed entries.
    test, validation
        Shares of the observed entries (20% and 1% in the paper).
    random_state
        Seed or generator; the same seed gives the same split.
    """
    if not (0 < test < 1 and 0 <= validation < 1 and test + validation < 1):
        raise InputError(f"split: shares test={test!r}, validation={validation!r} do not fit.")
    rng = np.random.default_rng(random_state)
    matrix = data.matrix
    order = rng.permutation(matrix.nnz)
    sizes = round(test * matrix.nnz), round(validation * matrix.nnz)
    if sizes[0] == 0 or sum(sizes) >= matrix.nnz:
        raise InputError(f"split: {matrix.nnz} observed entries are too few for these shares.")
    parts = order[: sizes[0]], order[sizes[0] : sum(sizes)]
    missing = sample_missing(matrix, sum(sizes), rng)
    cut = round(len(missing[0]) * sizes[0] / sum(sizes))
    held: list[HeldOutPairs] = []
    for part, place, share in zip(
        parts, (slice(0, cut), slice(cut, None)), (test, validation), strict=True
    ):
        held.append(
            HeldOutPairs(
                users=row_of(matrix, part),
                items=matrix.indices[part].astype(np.int64),
                values=matrix.data[part].astype(np.float64),
                missing_users=missing[0][place],
                missing_items=missing[1][place],
                share=share,
            )
        )
    kept = np.ones(matrix.nnz, dtype=np.bool_)
    kept[order[: sum(sizes)]] = False
    marks = _marks(matrix.shape, held)
    n_missing = data.n_users * data.n_items - matrix.nnz
    train = Interactions.from_matrix(select(matrix, kept), users=data.users, items=data.items)
    return Split(train, held[0], held[1], marks, n_missing)


def _marks(shape: tuple[int, int], held: list[HeldOutPairs]) -> Csr:
    """A matrix that marks all held-out pairs, observed and missing."""
    rows = np.concatenate([part for pairs in held for part in (pairs.users, pairs.missing_users)])
    cols = np.concatenate([part for pairs in held for part in (pairs.items, pairs.missing_items)])
    return sparse.csr_array((np.ones(len(rows), np.float32), (rows, cols)), shape=shape)


@dataclass(frozen=True)
class Score:
    """A number with the standard error that its pairs give it."""

    value: float
    error: float

    def __float__(self) -> float:
        return self.value


def scores(model: Model, data: Split, on: HeldOutPairs | None = None) -> Mapping[str, Score]:
    r"""The paper's scores of held-out pairs (the test pairs unless ``on`` is given).

    ``missing`` is :math:`\mathcal L_M` and ``nonmissing`` :math:`\mathcal L_{NM}` per pair,
    ``conditional_nonmissing`` is :math:`\mathcal L_{CNM}` per pair, ``log_likelihood`` is
    :math:`1000\,\mathcal L` per entry of the test share of the matrix, with the missing pairs
    weighted to the true sparsity, and ``auc`` that of Pr(observed) for telling the two kinds
    apart. ``rmse`` and ``mae`` are of the expected response given that it is observed.
    """
    pairs = data.test if on is None else on
    users, items = data.train.users, data.train.items
    rate = model.rate(users[pairs.users], items[pairs.items])
    rate_missing = model.rate(users[pairs.missing_users], items[pairs.missing_items])
    predicted = CompoundPoisson(rate, model.element_)
    nonmissing = predicted.log_density(pairs.values)
    conditional = predicted.log_density_observed(pairs.values)
    residual = predicted.mean_observed - pairs.values
    missing_total = pairs.share * data.n_missing
    cells = missing_total + len(rate)
    weights = 1000.0 * missing_total / cells, 1000.0 * len(rate) / cells
    missing_score, nonmissing_score = _mean(-rate_missing), _mean(nonmissing)
    total = weights[0] * missing_score.value + weights[1] * nonmissing_score.value
    error = np.hypot(weights[0] * missing_score.error, weights[1] * nonmissing_score.error)
    squared = _mean(np.square(residual))
    rmse = float(np.sqrt(squared.value))
    return {
        "log_likelihood": Score(total, float(error)),
        "missing": missing_score,
        "nonmissing": nonmissing_score,
        "conditional_nonmissing": _mean(conditional),
        "auc": auc(rate, rate_missing),
        "rmse": Score(rmse, squared.error / (2.0 * max(rmse, 1e-300))),
        "mae": _mean(np.abs(residual)),
    }


def auc(positive: FloatArray, negative: FloatArray) -> Score:
    """Area under the ROC curve with DeLong's standard error; ties count one half."""
    p, n = len(positive), len(negative)
    if p == 0 or n == 0:
        return Score(float("nan"), float("nan"))
    together = stats.rankdata(np.concatenate([positive, negative]))
    above = (together[:p] - stats.rankdata(positive)) / n
    below = 1.0 - (together[p:] - stats.rankdata(negative)) / p
    variance = float(np.var(above)) / p + float(np.var(below)) / n
    return Score(float(np.mean(above)), float(np.sqrt(variance)))


def _mean(x: Any) -> Score:
    values = np.asarray(x, dtype=np.float64)
    if values.size == 0:
        return Score(float("nan"), float("nan"))
    return Score(float(values.mean()), float(values.std() / np.sqrt(values.size)))
