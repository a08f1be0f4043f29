"""The contract of an element distribution: an additive exponential dispersion model."""

import copy
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from hcpf._types import ArrayLike, FloatArray
from hcpf.elements.conjugate import Conjugate
from hcpf.elements.domains import (
    Domain,
    Support,
    as_float_array,
    check_counts,
    check_not_nan,
    check_rng,
)
from hcpf.errors import (
    EstimationError,
    IncompleteElementError,
    InputError,
    ParameterError,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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
    mean_parameter: ClassVar[str | None] = None
    """The parameter that follows from the mean at a given kappa; None if inference leaves it."""
    dispersion_parameter: ClassVar[str | None] = None
    """The continuous parameter that sets kappa; None where kappa is fixed."""
    counts_known: ClassVar[bool] = False
    """Whether a value tells n exactly, as in Poisson factorization."""
    conjugate: ClassVar[Conjugate | None] = None
    """The conjugate prior of theta; None where the mean cannot be pooled."""

    mean: Any
    r"""The mean of one element, :math:`\kappa\Psi'(\theta)`: a parameter or a property."""
    variance: Any
    r"""The variance of one element, :math:`\kappa\Psi''(\theta)`: a parameter or a property."""

    def __post_init__(self) -> None:
        for name, domain in self.domains().items():
            value = self.__dict__[name]
            if value is None:
                object.__delattr__(self, name)
            else:
                object.__setattr__(self, name, domain.check(type(self).__name__, name, value))

    # -- parameters ---------------------------------------------------------------------------

    @classmethod
    def domains(cls) -> dict[str, Domain]:
        """Where each parameter must lie, by name."""
        declared = cast("type[DataclassInstance]", cls)
        fields = dataclasses.fields(declared)
        return {f.name: f.metadata["domain"] for f in fields if "domain" in f.metadata}

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters that are set, by name."""
        return {name: self.__dict__[name] for name in self.domains() if name in self.__dict__}

    @property
    def is_complete(self) -> bool:
        """Whether every parameter is set."""
        return len(self.parameters) == len(self.domains())

    def __getattr__(self, name: str) -> Any:
        # Python also comes here when a property, such as theta, met a parameter that is not set.
        missing = [key for key in self.domains() if key not in self.__dict__]
        if missing and (name in missing or hasattr(type(self), name)):
            raise IncompleteElementError(
                f"{self!r} has no {' and no '.join(missing)} yet: give it, or call complete(y) to "
                "estimate it."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        given = self.parameters
        shown = [
            f"{name}={_show(given[name])}" if name in given else f"{name}=?"
            for name in self.domains()
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = self.parameters, other.parameters
        same_names = mine.keys() == theirs.keys()
        return same_names and all(np.array_equal(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        # Numbers that are equal hash alike (0.0 and -0.0 too); arrays count by their shape only.
        return hash((type(self), *((k, np.shape(v) or v) for k, v in self.parameters.items())))

    def replace(self, **changes: Parameter | None) -> Self:
        """Return the same element with some parameters changed (None leaves one out)."""
        self._refuse_unknown(changes)
        return self._made_with({**self._besides, **self.parameters, **changes})

    @classmethod
    def _made_with(cls, arguments: dict[str, Any]) -> Self:
        return cls(**arguments)

    @property
    def _besides(self) -> dict[str, Any]:
        """What else the element was made with, by name."""
        fields = dataclasses.fields(cast("DataclassInstance", self))
        return {f.name: getattr(self, f.name) for f in fields if "domain" not in f.metadata}

    @classmethod
    def _refuse_unknown(cls, names: Iterable[str]) -> None:
        for name in names:
            if name not in cls.domains():
                known = ", ".join(cls.domains()) or "none at all"
                raise ParameterError(f"{cls.__name__} has no parameter {name!r}; it has {known}.")

    def at(self, index: Any) -> Self:
        """Select from array parameters as from the values they broadcast with."""
        chosen = {k: v[index] for k, v in self.parameters.items() if isinstance(v, np.ndarray)}
        return self._with(chosen)

    def broadcast_to(self, shape: tuple[int, ...]) -> Self:
        """Broadcast array parameters to ``shape`` and flatten them; numbers stay numbers."""
        varying = {k: v for k, v in self.parameters.items() if isinstance(v, np.ndarray)}
        return self._with({k: np.broadcast_to(v, shape).ravel() for k, v in varying.items()})

    def reshape(self, shape: tuple[int, ...]) -> Self:
        """Reshape array parameters; numbers stay numbers."""
        arrays = {k: v for k, v in self.parameters.items() if isinstance(v, np.ndarray)}
        return self._with({k: v.reshape(shape) for k, v in arrays.items()})

    def _with(self, arrays: dict[str, FloatArray]) -> Self:
        """Put arrays taken from checked parameters in their place, without a second check."""
        if not arrays:
            return self
        other = copy.copy(self)
        for name, array in arrays.items():
            object.__setattr__(other, name, array)
        return other

    def require(self, values: FloatArray, where: str = "") -> None:
        """Raise a SupportError if pairs cannot have these values; ``where`` names their source."""
        self.support.require(type(self).__name__ + where, values)

    @classmethod
    def seen(cls, values: FloatArray) -> FloatArray:
        """Return the values as the element sees them: unchanged, unless it ignores them."""
        return values

    def scaled_for_observed(self, expected_count: float) -> Self:
        r"""Return the element for training on observed entries only.

        There a pair consists of ``expected_count`` elements rather than about one, so that the
        paper keeps theta and divides :math:`\kappa` by it. Elements whose kappa must stay an
        integer cannot follow and return themselves unless they override this method.
        """
        return self

    @classmethod
    def min_observed_count(cls, values: FloatArray) -> float:
        """Return the least E[n] that explains the values when training on observed entries only."""
        return 0.0

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
        r"""Return the base log-partition :math:`\Psi(\theta)`."""

    @abstractmethod
    def log_base_measure(self, y: ArrayLike, kappa: ArrayLike) -> FloatArray:
        r"""Return the log base measure :math:`\log h(y, \kappa)`."""

    @abstractmethod
    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw one sum of n elements for each entry of ``n`` (all at least 1)."""

    # -- what follows from it -----------------------------------------------------------------

    def log_density(self, y: ArrayLike, n: ArrayLike = 1) -> FloatArray:
        r"""Log density (or mass) at ``y`` of the sum of ``n`` elements.

        :math:`\log p(y \mid n) = y\theta - n\kappa\Psi(\theta) + \log h(y, n\kappa)`
        """
        values, counts = self.support.check(type(self).__name__, y), check_counts(n)
        with np.errstate(over="ignore"):  # a value too far out has density 0
            return self.log_density_unchecked(values, counts)

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        """``log_density`` of a sum, without input checks; overridden to keep more digits.

        Far outside the range of the values it may overflow to -inf: callers do not warn of that.
        """
        theta, kappa = self.theta, self.kappa
        normalizer = n * kappa * self.log_partition(theta)
        return y * theta - normalizer + self.log_base_measure(y, n * kappa)

    def cdf(self, y: ArrayLike, n: ArrayLike = 1) -> FloatArray:
        """Probability that the sum of ``n`` elements is at most ``y`` (any real ``y``)."""
        points, counts = check_not_nan(y, "cdf: y"), check_counts(n)
        with np.errstate(over="ignore"):
            return self.cdf_unchecked(points, counts)

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        """``cdf`` without input checks; by default the running sum of the masses."""
        if not self.support.discrete:
            raise InputError(
                f"{type(self).__name__} is continuous and defines no cdf: override cdf_unchecked."
            )
        from hcpf.elements.lattice import summed_cdf

        return summed_cdf(self, y, n)

    def masses(self, values: FloatArray, n: float) -> FloatArray:
        """Masses of the sum of n elements on consecutive integers that hold all of it."""
        return np.exp(self.log_density_unchecked(values, np.full(values.shape, n)))

    def compound_cdf(self, y: FloatArray, rate: FloatArray) -> FloatArray | None:
        """Pr(N >= 1 and X+ <= y) for flat arrays, where X+ has a form of its own; else None."""
        return None

    def sample(self, n: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Draw one sum of n elements for each entry of ``n``; where n is 0 the sum is 0."""
        check_rng(rng)
        counts = as_float_array(n, "n, the number of summed elements,")
        shape = np.broadcast_shapes(counts.shape, *map(np.shape, self.parameters.values()))
        flat = np.broadcast_to(counts, shape).ravel()
        present = flat != 0
        out = np.zeros(flat.shape)
        if np.any(present):
            chosen = self.broadcast_to(shape).at(present)
            out[present] = chosen.draw(check_counts(flat[present]), rng)
        return out.reshape(shape)

    @property
    def highest(self) -> Parameter:
        """The largest value that one element can take, infinite for most."""
        return np.inf

    @property
    def variance_of_mean(self) -> Parameter:
        """The variance of the mean itself, which all elements of a sum share; 0 if it is known."""
        return 0.0

    @property
    def log_prob_zero(self) -> Parameter:
        """Log probability that one element is exactly 0."""
        if not (self.support.discrete and self.support.has_zero):
            return -np.inf
        return self.log_density_unchecked(np.zeros(()), np.ones(()))

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest n (infinite: unbounded) that can give the value y."""
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
        """Maximum-likelihood element for the values ``y``; parameters in ``given`` stay fixed.

        Where the likelihood has no maximum inside the domain the result is the limit that the
        element's ``maximize_likelihood`` documents, or an EstimationError.
        """
        cls._refuse_unknown(given)
        partial = cls._made_with(dict(given))
        for name, value in partial.parameters.items():
            if np.ndim(value):
                raise ParameterError(f"{cls.__name__}.estimate: {name} must be a single number.")
        values = cls.support.check(cls.__name__, y).ravel()
        if values.size == 0:
            raise InputError(f"{cls.__name__} cannot be estimated from no values at all.")
        if partial.is_complete:
            return partial
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                return partial.maximize_likelihood(values)
        except ArithmeticError:
            raise EstimationError(
                f"{cls.__name__} cannot be estimated: values between {values.min():g} and "
                f"{values.max():g} leave the range of double precision. Rescale them."
            ) from None

    def complete(self, y: ArrayLike) -> Self:
        """Estimate the parameters that were left out from ``y``, keeping those that are set."""
        if self.is_complete:
            return self
        found = type(self).estimate(y, **self.parameters)
        return self.replace(**found.parameters)

    def with_mean(self, mean: Parameter) -> Self:
        r"""Solve :math:`\kappa\Psi'(\theta)` = mean for theta, with kappa as it is."""
        if self.mean_parameter is None:
            return self
        return self.replace(**{self.mean_parameter: self.parameter_for_mean(mean)})

    def parameter_for_mean(self, mean: Parameter) -> Parameter:
        """The ``mean_parameter`` that gives this mean at the present kappa, elementwise."""
        name = self.mean_parameter
        assert name is not None
        # At a given kappa the likelihood depends on the values through their mean alone.
        open_ = self.replace(**{name: None})
        each = [open_.maximize_likelihood(np.array([m])).parameters[name] for m in np.ravel(mean)]
        return np.asarray(each, dtype=np.float64).reshape(np.shape(mean))

    def maximize_likelihood(self, y: FloatArray) -> Self:
        """Estimate the missing parameters from checked values; by default by numeric search."""
        from hcpf.elements.search import numeric_maximum

        return numeric_maximum(self, y)


def _show(value: Parameter) -> str:
    if np.ndim(value) == 0:
        return f"{value:.6g}"
    return f"<array of shape {np.shape(value)}>"
