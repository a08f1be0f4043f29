"""The contract of an element distribution: an additive exponential dispersion model."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.domains import Domain, Support, check_counts
from hcpf.errors import IncompleteElementError, InputError, ParameterError

Parameter = float | FloatArray


def parameter(domain: Domain) -> Any:
    """Declare a parameter of an element; left out (None), it waits to be estimated."""
    return dataclasses.field(default_factory=lambda: None, metadata={"domain": domain})


@dataclass(frozen=True)
class Separable:
    """log p(y | n) = c(y) + f(n) + g(y) phi(n): one scalar g(y) per entry says all."""

    c: Callable[[FloatArray], FloatArray]
    f: Callable[[FloatArray], FloatArray]
    g: Callable[[FloatArray], FloatArray]
    phi: Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Tabulated:
    """log p(y | n) = T(y, n): one row of a table per distinct discrete value."""

    table: Callable[[FloatArray, FloatArray], FloatArray]


class Element(ABC):
    r"""An additive exponential dispersion model :math:`p_\Psi(\theta, \kappa)`.

    The density is :math:`\exp(y\theta - \kappa\Psi(\theta))\, h(y, \kappa)` and the sum of n
    independent draws is :math:`p_\Psi(\theta, n\kappa)`. A subclass is a frozen dataclass that
    declares its parameters and supplies ``theta``, ``kappa``, ``log_partition``,
    ``log_base_measure``, ``mean``, ``variance`` and ``draw``; everything else has a default.

    Parameters may be numbers or arrays that broadcast with the values. A parameter left out is
    estimated from the data by ``complete``.
    """

    name: ClassVar[str]
    acronym: ClassVar[str]
    support: ClassVar[Support]

    mean: Any
    r"""The mean of one element, :math:`\kappa\Psi'(\theta)`: a parameter or a property."""
    variance: Any
    r"""The variance of one element, :math:`\kappa\Psi''(\theta)`: a parameter or a property."""

    def __post_init__(self) -> None:
        for name, domain in self._domains().items():
            value = self.__dict__[name]
            if value is None:
                object.__delattr__(self, name)
            else:
                object.__setattr__(self, name, domain.check(type(self).__name__, name, value))

    # -- parameters ---------------------------------------------------------------------------

    @classmethod
    def _domains(cls) -> dict[str, Domain]:
        return {f.name: f.metadata["domain"] for f in dataclasses.fields(cls)}

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters that are set, by name."""
        return {name: self.__dict__[name] for name in self._domains() if name in self.__dict__}

    @property
    def is_complete(self) -> bool:
        """Whether every parameter is set."""
        return len(self.parameters) == len(self._domains())

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in type(self)._domains():
            raise IncompleteElementError(
                f"{self!r} has no {name} yet: give one, or call complete(y) to estimate it."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        given = self.parameters
        shown = (
            f"{name}={_show(given[name])}" if name in given else f"{name}=?"
            for name in self._domains()
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = self.parameters, other.parameters
        return mine.keys() == theirs.keys() and all(
            np.array_equal(mine[name], theirs[name]) for name in mine
        )

    def __hash__(self) -> int:
        return hash(repr(self))

    def replace(self, **changes: Parameter | None) -> Self:
        """Return the same element with some parameters changed (None leaves one out)."""
        unknown = changes.keys() - self._domains().keys()
        if unknown:
            raise ParameterError(f"{type(self).__name__} has no parameter {sorted(unknown)[0]!r}.")
        return type(self)(**{**self.parameters, **changes})

    def at(self, index: Any) -> Self:
        """Select from array parameters as from the values they broadcast with."""
        if all(np.ndim(value) == 0 for value in self.parameters.values()):
            return self
        return self.replace(**{k: v[index] if np.ndim(v) else v for k, v in self.parameters.items()})  # pyright: ignore[reportIndexIssue]

    # -- the exponential dispersion model -----------------------------------------------------

    @property
    @abstractmethod
    def theta(self) -> Parameter:
        """The natural parameter."""

    @property
    @abstractmethod
    def kappa(self) -> Parameter:
        """The dispersion parameter of one element; n elements have n kappa."""

    @abstractmethod
    def log_partition(self, theta: ArrayLike) -> FloatArray:
        r"""The base log-partition :math:`\Psi(\theta)`."""

    @abstractmethod
    def log_base_measure(self, y: ArrayLike, kappa: ArrayLike) -> FloatArray:
        r"""The log base measure :math:`\log h(y, \kappa)`."""

    @abstractmethod
    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw one sum of n elements for each entry of ``n`` (all at least 1)."""

    # -- what follows from it -----------------------------------------------------------------

    def log_density(self, y: ArrayLike, n: ArrayLike = 1) -> FloatArray:
        r"""Log density (or mass) at ``y`` of the sum of ``n`` elements.

        :math:`\log p(y \mid n) = y\theta - n\kappa\Psi(\theta) + \log h(y, n\kappa)`
        """
        y = self.support.check(type(self).__name__, y)
        return self.log_density_unchecked(y, check_counts(n))

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        """``log_density`` without input checks; elements override it to keep more digits."""
        theta, kappa = self.theta, self.kappa
        return y * theta - n * kappa * self.log_partition(theta) + self.log_base_measure(y, n * kappa)

    def cdf(self, y: ArrayLike, n: ArrayLike = 1) -> FloatArray:
        """Probability that the sum of ``n`` elements is at most ``y`` (any real ``y``)."""
        y = np.asarray(y, dtype=np.float64)
        if np.any(np.isnan(y)):
            raise InputError("cdf: y must not be NaN.")
        return self.cdf_unchecked(y, check_counts(n))

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        """``cdf`` without input checks; by default the running sum of the masses."""
        if not self.support.discrete:
            raise InputError(
                f"{type(self).__name__} is continuous and defines no cdf: override cdf_unchecked."
            )
        from hcpf.elements.lattice import summed_cdf

        return summed_cdf(self, y, n)

    def sample(self, n: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Draw one sum of n elements for each entry of ``n``; where n is 0 the sum is 0."""
        counts = np.asarray(n, dtype=np.float64)
        present = counts > 0
        out = np.zeros(np.broadcast_shapes(counts.shape, *map(np.shape, self.parameters.values())))
        counts = np.broadcast_to(counts, out.shape)
        present = counts > 0
        if np.any(present):
            broadcast = self.replace(
                **{
                    k: np.broadcast_to(v, out.shape) if np.ndim(v) else v
                    for k, v in self.parameters.items()
                }
            )
            out[present] = broadcast.at(present).draw(check_counts(counts[present]), rng)
        return out

    @property
    def log_prob_zero(self) -> Parameter:
        """Log probability that one element is exactly 0."""
        if not (self.support.discrete and self.support.has_zero):
            return -np.inf
        return self.log_density_unchecked(np.zeros(()), np.ones(()))

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least and the largest n (infinite where unbounded) that can give the value y."""
        return np.ones_like(y), np.full_like(y, np.inf)

    @property
    def form(self) -> Separable | Tabulated:
        """How log p(y | n) depends on n, for the inference kernels."""
        if not self.support.discrete:
            raise InputError(f"{type(self).__name__} is continuous: its form must be Separable.")
        return Tabulated(self.log_density_unchecked)

    # -- maximum likelihood -------------------------------------------------------------------

    @classmethod
    def estimate(cls, y: ArrayLike, **given: Parameter) -> Self:
        """Maximum-likelihood element for the values ``y``; parameters in ``given`` stay fixed."""
        partial = cls(**given)
        for name, value in partial.parameters.items():
            if np.ndim(value):
                raise ParameterError(f"{cls.__name__}.estimate: {name} must be a single number.")
        values = cls.support.check(cls.__name__, y).ravel()
        if values.size == 0:
            raise InputError(f"{cls.__name__} cannot be estimated from no values at all.")
        return partial if partial.is_complete else partial.maximise_likelihood(values)

    def complete(self, y: ArrayLike) -> Self:
        """Estimate the parameters that were left out from ``y``, keeping those that are set."""
        return self if self.is_complete else type(self).estimate(y, **self.parameters)

    def maximise_likelihood(self, y: FloatArray) -> Self:
        """Estimate the missing parameters from checked values; by default by numeric search."""
        from hcpf.elements.search import numeric_maximum

        return numeric_maximum(self, y)


def _show(value: Parameter) -> str:
    if np.ndim(value) == 0:
        return f"{value:.6g}"
    return f"<array of shape {np.shape(value)}>"
