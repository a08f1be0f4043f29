"""The factors of a model as labeled tables, and their columns by name."""

from typing import TYPE_CHECKING, Any

import numpy as np

from hcpf._checks import one_of, whole
from hcpf._types import FloatArray
from hcpf.core.axis import Axis
from hcpf.core.posterior import FactorPosterior, Posterior
from hcpf.errors import ParameterError
from hcpf.model.combine import Combined
from hcpf.model.tables import Table

if TYPE_CHECKING:
    from hcpf.model.fitted import FittedModel

KINDS = ("mean", "scaled", "share")
RELEVANCE_WEIGHT = 0.4
"""Weight of an item's share against its lift: lambda of LDAvis."""
_TINY = 1e-300


class FactorTable(Table):
    """The factors of users or items: a column of ids (``user`` or ``item``), then the components.

    Columns of components are named as ``HCPF.get_feature_names_out`` names them: hcpf0, hcpf1, ...
    """

    @property
    def ids(self) -> Any:
        """The ids of the rows."""
        return next(iter(self.columns().values()))

    @property
    def values(self) -> FloatArray:
        """The factors, rows x components."""
        return np.column_stack(list(self.columns().values())[1:])

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame of pandas (whose index has the ids), polars or pyarrow."""
        frame = super().to_frame(backend)
        return frame.set_index(next(iter(self.columns()))) if backend == "pandas" else frame


def factor_table(
    model: "FittedModel", axis: str | Axis, kind: str = "mean", fit: int | None = None
) -> FactorTable:
    """Return the factors of one axis with their ids."""
    which = Axis.parse(axis)
    values = factor_values(model, which, kind, fit)
    columns = dict(zip(column_names(model, fit), values.T, strict=True))
    return FactorTable(**{which.word: model.index[which].ids}, **columns)


def factor_values(
    model: "FittedModel", axis: Axis, kind: str = "mean", fit: int | None = None
) -> FloatArray:
    """Return the factors of one axis, rows x components; all fits side by side, or one fit."""
    one_of("kind", kind, KINDS)
    posteriors = model.posteriors if fit is None else (fit_at(model, fit),)
    if kind == "scaled":
        return np.hstack([scaled(posterior.axis(axis)) for posterior in posteriors])
    combined = Combined(posteriors)
    mean = combined.factors(axis).astype(np.float64)
    if kind == "mean":
        return mean
    if axis is Axis.USERS:  # whose own exposure cancels
        return shares((mean * combined.rate_sums(Axis.ITEMS)).T).T
    exposure = posteriors[0].items.exposure
    return shares(mean if exposure is None else mean * exposure[:, None])


def scaled(rows: FactorPosterior) -> FloatArray:
    """Return the factors times the activity parameter of their row, which cancels its level."""
    return rows.mean * (rows.activity_a / rows.activity_b)[:, None]


def shares(factors: FloatArray) -> FloatArray:
    """Return each column divided by its sum."""
    return factors / np.maximum(factors.sum(axis=0), _TINY)


def fit_at(model: "FittedModel", fit: int) -> Posterior:
    """Return the posterior of one fit, or raise a ParameterError."""
    position, n_fits = whole("fit", fit, least=0), len(model.posteriors)
    if position >= n_fits:
        raise ParameterError(f"fit must be less than {n_fits}, the number of fits; got {fit!r}.")
    return model.posteriors[position]


def column_names(model: "FittedModel", fit: int | None = None) -> list[str]:
    """Return the names of the columns of factors: hcpf0, hcpf1, ...; of all fits, or of one."""
    size = model.n_components
    if fit is None:
        return [f"hcpf{k}" for k in range(size * len(model.posteriors))]
    fit_at(model, fit)
    return [f"hcpf{fit * size + k}" for k in range(size)]
