"""The fitted variational posterior (independent gammas for factors and activities), and history."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hcpf._types import FloatArray
from hcpf.core.axis import Axis, AxisState
from hcpf.core.kernels import Prior
from hcpf.core.priors import Priors
from hcpf.core.theta import ThetaPosterior


@dataclass(frozen=True, eq=False)
class FactorPosterior:
    r"""One axis: :math:`q(s_{uk}) = \mathrm{Gamma}(a_{uk}, b_{uk})`, activities likewise.

    Arrays are stored as they were trained (float32 factors) and read as float64.
    """

    shape_: NDArray[np.float32]
    mean_: NDArray[np.float32]
    activity_a: FloatArray
    activity_b: FloatArray
    theta: ThetaPosterior | None = None
    """The theta posterior of each row, where this axis is partially pooled."""
    exposure: FloatArray | None = None
    """The known multiplier of the rates of each row; None is 1 for all."""

    @property
    def predictive_theta(self) -> ThetaPosterior | None:
        """The theta posterior of each row with odd entries limited, as predictions use it."""
        return None if self.theta is None else self.theta.for_predictions

    @property
    def a(self) -> FloatArray:
        """Shapes, rows x K."""
        return self.shape_.astype(np.float64)

    @property
    def b(self) -> FloatArray:
        """Rates, rows x K."""
        return self.shape_ / self.mean_.astype(np.float64)

    @property
    def mean(self) -> FloatArray:
        """E[s] = a / b."""
        return self.mean_.astype(np.float64)

    @property
    def exposed_mean_(self) -> NDArray[np.float32]:
        """E[s] times the exposure of the row: the products of both axes are the rates."""
        return self.mean_ if self.exposure is None else scale_rows(self.mean_, self.exposure)

    @cached_property
    def mean_sums(self) -> FloatArray:
        """The sum of ``exposed_mean_`` over the rows, of each component."""
        return self.exposed_mean_.sum(axis=0, dtype=np.float64)

    @property
    def log_mean(self) -> FloatArray:
        """E[log s] = digamma(a) - log b."""
        return special.psi(self.a) - np.log(self.b)

    def at(self, rows: Any) -> "FactorPosterior":
        """Return some of the rows, chosen as NumPy would."""
        return FactorPosterior(
            self.shape_[rows],
            self.mean_[rows],
            self.activity_a[rows],
            self.activity_b[rows],
            None if self.theta is None else self.theta.at(rows),
            None if self.exposure is None else self.exposure[rows],
        )

    def joined(self, *more: "FactorPosterior") -> "FactorPosterior":
        """Return these rows followed by more."""
        names, parts = ("shape_", "mean_", "activity_a", "activity_b"), (self, *more)
        thetas = [part.theta for part in parts if part.theta is not None]
        return FactorPosterior(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in names),
            theta=thetas[0].joined(*thetas[1:]) if len(thetas) == len(parts) else self.theta,
            exposure=_joined_exposures(parts),
        )

    def untempered(self, prior_shape: float, tempering: float) -> "FactorPosterior":
        """Return the same means with the shapes that each entry counted once would give."""
        if tempering == 1.0:
            return self
        prior = np.float32(prior_shape)
        shape = prior + np.maximum(self.shape_ - prior, 0.0) / np.float32(tempering)
        return replace(self, shape_=shape.astype(np.float32))

    def sample(self, size: int, rng: np.random.Generator) -> NDArray[np.float32]:
        """Draws of the factors, size x rows x K."""
        shape = (size, *self.shape_.shape)
        draws = rng.standard_gamma(self.shape_, shape, dtype=np.float32)
        draws *= self.mean_ / self.shape_
        return draws


def unit_rows(rows: NDArray[Any]) -> FloatArray:
    """Return the rows at length 1; rows of zeros stay so."""
    rows = rows.astype(np.float64, copy=False)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)


def scale_rows(rows: NDArray[np.float32], factor: FloatArray | None) -> NDArray[np.float32]:
    """Return rows, each multiplied by its factor; themselves without factors."""
    return rows if factor is None else rows * factor[:, None].astype(np.float32)


def _joined_exposures(parts: "Sequence[FactorPosterior]") -> FloatArray | None:
    if all(part.exposure is None for part in parts):
        return None
    return np.concatenate(
        [np.ones(len(p.mean_)) if p.exposure is None else p.exposure for p in parts]
    )


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of both axes of the matrix."""

    users: FactorPosterior
    items: FactorPosterior

    def axis(self, axis: Axis) -> FactorPosterior:
        """Return the posterior of one axis."""
        return self.users if axis is Axis.USERS else self.items

    def replace(self, axis: Axis, **changes: Any) -> "Posterior":
        """Return the same posterior with some fields of one axis changed."""
        return replace(self, **{axis.value: replace(self.axis(axis), **changes)})

    @property
    def n_components(self) -> int:
        """K, the number of components."""
        return self.users.shape_.shape[1]


def axis_prior(
    priors: Priors, axis: Axis, n_components: int, step: float = 1.0, scale: float = 1.0
) -> Prior:
    """Return the kernels' constants of one axis.

    ``step`` is 1 for coordinate ascent, otherwise the step of the natural gradient; ``scale`` is
    how many times the entries count.
    """
    shape, activity_shape, activity_mean = priors.axis(axis)
    return Prior(
        shape, activity_shape + n_components * shape, activity_shape / activity_mean, step, scale
    )


def posterior_of(
    mine: AxisState, prior: Prior, rows: NDArray[np.int64] | None = None
) -> FactorPosterior:
    """Return the posterior of one axis: all rows as they are, or some rows in their order."""
    chosen = slice(None) if rows is None else rows
    activity_b = mine.factors.activity_b[chosen]
    exposure = None if mine.exposure is None else mine.exposure[chosen]
    return FactorPosterior(
        shape_=mine.factors.a[chosen],
        mean_=scale_rows(mine.factors.mean[chosen], None if exposure is None else 1.0 / exposure),
        activity_a=np.full(activity_b.shape, prior.activity_a),
        activity_b=activity_b,
        theta=None if mine.theta is None else mine.theta.at(chosen),
        exposure=exposure,
    )


@dataclass(frozen=True)
class Check:
    """One line of the history.

    ``elbo`` is that of the likelihood to the power ``tempering``: it bounds the evidence only where
    that is 1, and cannot be compared between fits that differ in it.
    """

    iteration: int
    seconds: float
    elbo: float
    validation_log_likelihood: float | None = None
    tempering: float = 1.0
