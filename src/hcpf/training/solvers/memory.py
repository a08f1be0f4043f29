"""What solvers remember from pass to pass, by name."""

from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core.axis import Axis, AxisState

Tensors = dict[str, NDArray[Any]]


@dataclass(eq=False)
class MomentumMemory:
    """Where the last pass began, so that the next one can go further in its direction."""

    g: dict[Axis, NDArray[np.float32]]
    """Geometric means of both axes before the last pass."""
    theta: dict[Axis, FloatArray] = field(default_factory=dict)
    """What entries said of theta, chi and nu, before the last pass; empty where it stays."""
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
    """What Algorithm 1 remembers of both axes."""

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
