"""The state of one fit, which solvers change, checkpoints store and posteriors are made of."""

from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core.axis import Axis, AxisState
from hcpf.core.collective import Collective
from hcpf.core.count_tables import rate_normalizer
from hcpf.core.elbo import elbo
from hcpf.core.layout import UserOrder
from hcpf.core.pooling import Pooling
from hcpf.core.posterior import Check, Posterior, axis_prior, posterior_of
from hcpf.core.priors import Priors
from hcpf.core.shard import Shard
from hcpf.core.value_model import ValueModel
from hcpf.elements.base import Element

Tensors = dict[str, NDArray[Any]]


@dataclass(eq=False)
class MomentumMemory:
    """Where the last pass began, so that the next one can go further in its direction."""

    g: dict[Axis, NDArray[np.float32]]
    """Geometric means of both axes before the last pass."""
    theta: dict[Axis, FloatArray] = field(default_factory=dict)
    """Chi and nu less the prior's before the last pass; empty where theta has no momentum."""
    age: float = 0.0
    """Passes since momentum began."""
    elbo: float | None = None
    """The ELBO after the last pass, where it was evaluated."""

    def tensors(self) -> Tensors:
        """Return everything as named arrays."""
        named: Tensors = {"age": np.array([self.age])}
        if self.elbo is not None:
            named["elbo"] = np.array([self.elbo])
        for name in ("g", "theta"):
            named |= {f"{name}_{axis.value}": a for axis, a in getattr(self, name).items()}
        return named

    @classmethod
    def from_tensors(cls, tensors: Tensors) -> Self:
        """Return what ``tensors`` described."""

        def by_axis(name: str) -> dict[Axis, Any]:
            keys = ((axis, f"{name}_{axis.value}") for axis in Axis)
            return {axis: tensors[key].copy() for axis, key in keys if key in tensors}

        elbo = float(tensors["elbo"][0]) if "elbo" in tensors else None
        return cls(by_axis("g"), by_axis("theta"), float(tensors["age"][0]), elbo)


@dataclass(eq=False)
class RowMemory:
    """Float64 parameters of the rows of one axis: single draws move them by less than float32."""

    a: FloatArray
    b: FloatArray
    activity_b: FloatArray
    clock: FloatArray
    """Draws of each row so far."""

    @classmethod
    def of(cls, mine: AxisState) -> Self:
        """Return copies of the current parameters."""
        factors = mine.factors
        return cls(
            factors.a.astype(np.float64),
            factors.a / factors.mean.astype(np.float64),
            factors.activity_b.copy(),
            np.zeros(len(factors.activity_b)),
        )

    def write_to(self, mine: AxisState) -> None:
        """Set the parameters of an axis."""
        factors = mine.factors
        factors.a[:] = self.a
        factors.mean[:] = self.a / self.b
        factors.activity_b[:] = self.activity_b


@dataclass(eq=False)
class DrawMemory:
    """The parameters of both axes that Algorithm 1 keeps between passes."""

    users: RowMemory
    items: RowMemory

    def tensors(self) -> Tensors:
        """Return everything as named arrays."""
        return {
            f"{axis}_{part.name}": getattr(getattr(self, axis), part.name)
            for axis in ("users", "items")
            for part in fields(RowMemory)
        }

    @classmethod
    def from_tensors(cls, tensors: Tensors) -> Self:
        """Return what ``tensors`` described."""
        rows = (
            RowMemory(*(tensors[f"{axis}_{part.name}"].copy() for part in fields(RowMemory)))
            for axis in ("users", "items")
        )
        return cls(*rows)


@dataclass(eq=False)
class FitState:
    """Both axes, the value model with the current element, and where the solver stands."""

    users: AxisState
    items: AxisState
    value_model: ValueModel
    priors: Priors
    rng: np.random.Generator
    iteration: int = 0
    """Passes made."""
    svi_step: int = 0
    """Minibatch steps made."""
    sum_counts: float = 0.0
    """The sum of E[n] over all entries in the last pass."""
    is_truncated: bool = False
    """Whether some entry's sum over n met the end of the stored weights."""
    momentum: MomentumMemory | None = None
    draws: DrawMemory | None = None
    history: list[Check] = field(default_factory=list)
    converged: bool = False
    interrupted: bool = False

    def is_finished(self, max_iter: int) -> bool:
        """Return whether no pass is left to make."""
        return self.converged or self.iteration >= max_iter

    @property
    def element(self) -> Element:
        """The element as estimated so far."""
        return self.value_model.element

    @property
    def pooling(self) -> Pooling | None:
        """How theta enters; None for a shared mean."""
        return Pooling.of(self.value_model)

    @property
    def axes(self) -> tuple[AxisState, AxisState]:
        """The users and the items."""
        return self.users, self.items

    def axis(self, axis: Axis) -> AxisState:
        """Return the state of one axis."""
        return self.users if axis is Axis.USERS else self.items

    def set_element(self, element: Element) -> None:
        """Replace the element; the rates follow with ``set_shifts``."""
        self.value_model = self.value_model.replace(element=element)

    def elbo(self, shard: Shard, comm: Collective) -> float:
        """Return the ELBO."""
        return elbo(self.users, self.items, self.element, shard, self.priors, comm)

    def set_shifts(self, shard: Shard) -> None:
        """Shift the log rates from where the tables were made to the current element."""
        self.shift_rows(Axis.USERS, shard)
        if self.pooling is not None:
            self.shift_rows(Axis.ITEMS, shard)

    def shift_rows(self, axis: Axis, shard: Shard, rows: slice = slice(None)) -> None:
        """Shift the log rates of some rows, through their multipliers."""
        mine, pooling = self.axis(axis), self.pooling
        is_users = axis is Axis.USERS  # to which the tables' normalizer is charged
        tabulated = shard.tables.log_normalizer if is_users else 0.0
        if pooling is None:
            current = rate_normalizer(self.value_model) if is_users else 0.0
            mine.factors.shift[rows] = current - tabulated
        else:
            pooling.set_row_terms(mine, self.element, rows)
            mine.factors.shift[rows] -= tabulated
        mine.set_multipliers(rows)

    def update_theta(
        self,
        axis: Axis,
        shard: Shard,
        comm: Collective,
        *,
        rows: slice = slice(None),
        fit_prior: bool = False,
    ) -> None:
        """Update theta of some rows from the counts of their last half-step, if they have one."""
        mine, pooling = self.axis(axis), self.pooling
        if pooling is None or mine.theta is None:
            return
        pooling.update(mine, shard.values, self.element, rows=rows, fit_prior=fit_prior, comm=comm)
        self.shift_rows(axis, shard, rows)

    def to_posterior(self, order: UserOrder) -> Posterior:
        """Return the posterior, users in the data's order; the state cannot be used afterwards."""
        self.momentum = self.draws = None
        rows = None if order.order is None else order.rows_of_users()
        nothing = np.empty((0, 0), np.float32)
        for mine in self.axes:  # g is not part of the posterior, and as large as the means
            mine.factors = mine.factors._replace(g=nothing)
        priors = [axis_prior(self.priors, axis, self.users.n_components) for axis in Axis]
        return Posterior(
            posterior_of(self.users, priors[0], rows), posterior_of(self.items, priors[1])
        )
