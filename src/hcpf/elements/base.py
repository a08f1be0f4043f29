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
from hcpf.elements.special import numeric_maximum
from hcpf.elements.sums import summed_cdf
from hcpf.errors import EstimationError, IncompleteElementError, InputError, ParameterError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Parameter = float | FloatArray


def parameter(domain: Domain) -> Any:
    """Declare a parameter of an element; the default None means that it is to be estimated."""
    return dataclasses.field(default_factory=lambda: None, metadata={"domain": domain})


@dataclass(frozen=True)
class Separable:
    """log p(y | n) = c(y) + f(n) + g(y) phi(n): of y only the number g(y) matters for n."""

    c: Callable[[FloatArray], FloatArray]
    f: Callable[[FloatArray], FloatArray]
    g: Callable[[FloatArray], FloatArray]
    phi: Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Tabulated:
    """log p(y | n) = T(y, n): a table with a row per distinct value."""

    table: Callable[[FloatArray, FloatArray], FloatArray]


class Element(ABC):
    r"""An additive exponential dispersion model :math:`p_\Psi(\theta, \kappa)`.

    The density is :math:`\exp(y\theta - \kappa\Psi(\theta))\, h(y, \kappa)` and the sum of n
    independent draws is :math:`p_\Psi(\theta, n\kappa)`. A subclass is a frozen dataclass that
    declares its parameters and defines ``theta``, ``kappa`` (unless it is 1), ``log_partition``,
    ``log_base_measure``, ``mean``, ``variance`` and ``draw``; everything else has a default.

    Parameters are numbers or arrays that broadcast with the values. ``complete`` estimates those
    that are not given.
    """

    name: ClassVar[str]
    acronym: ClassVar[str]
    support: ClassVar[Support]
    mean_parameter: ClassVar[str | None] = None
    """The parameter that sets the mean at a given kappa; None if the mean is not estimated."""
    dispersion_parameter: ClassVar[str | None] = None
    """The continuous parameter that sets kappa; None if kappa is fixed."""
    count_parameter: ClassVar[str | None] = None
    """The integer parameter that sets kappa; None if there is none."""
    kappa_note: ClassVar[str] = (
        "its kappa is fixed, and elements of at least 1 limit E[n] to 0.9 of the mean value"
    )
    """Why kappa cannot be divided for training on observed entries only; empty if it can."""
    counts_known: ClassVar[bool] = False
    """Whether a value determines n, as in Poisson factorization."""
    shares_theta: ClassVar[bool] = False
    """Whether the elements of a sum share one uncertain theta instead of being independent."""
    conjugate: ClassVar[Conjugate | None] = None
    """The conjugate prior of theta; None if the mean cannot be pooled."""

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
        """Return the domain of each parameter by name."""
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
        # Python also calls this if a property such as theta needs a parameter that is not set.
        missing = [key for key in self.domains() if key not in self.__dict__]
        if missing and (name in missing or hasattr(type(self), name)):
            raise IncompleteElementError(
                f"{self!r} has no {' and no '.join(missing)}. Pass it, or estimate it with "
                "complete(y)."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        given = self.parameters
        shown = (f"{k}={_show(given[k]) if k in given else '?'}" for k in self.domains())
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = self.parameters, other.parameters
        same_names = mine.keys() == theirs.keys()
        return same_names and all(np.array_equal(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        # Equal numbers have equal hashes (0.0 and -0.0 too); of arrays only the shape counts.
        return hash((type(self), *((k, np.shape(v) or v) for k, v in self.parameters.items())))

    def replace(self, **changes: Parameter | None) -> Self:
        """Return the same element with some parameters changed; None unsets one."""
        self._check_names(changes)
        return self._made_with({**self._other_fields, **self.parameters, **changes})

    @classmethod
    def _made_with(cls, arguments: dict[str, Any]) -> Self:
        return cls(**arguments)

    @property
    def _other_fields(self) -> dict[str, Any]:
        """The fields that are not parameters, by name."""
        fields = dataclasses.fields(cast("DataclassInstance", self))
        return {f.name: getattr(self, f.name) for f in fields if "domain" not in f.metadata}

    @classmethod
    def _check_names(cls, names: Iterable[str]) -> None:
        for name in names:
            if name not in cls.domains():
                known = ", ".join(cls.domains()) or "none"
                raise ParameterError(
                    f"{cls.__name__} has no parameter {name!r}. Its parameters: {known}."
                )

    def at(self, index: Any) -> Self:
        """Return the element with array parameters indexed like the values they belong to."""
        return self._map_arrays(lambda array: array[index])

    def broadcast_to(self, shape: tuple[int, ...]) -> Self:
        """Broadcast array parameters to ``shape`` and flatten them; numbers stay numbers."""
        return self._map_arrays(lambda array: np.broadcast_to(array, shape).ravel())

    def reshape(self, shape: tuple[int, ...]) -> Self:
        """Reshape array parameters; numbers stay numbers."""
        return self._map_arrays(lambda array: array.reshape(shape))

    def _map_arrays(self, change: Callable[[FloatArray], FloatArray]) -> Self:
        """Return the element with array parameters changed, without checking them again."""
        arrays = {k: v for k, v in self.parameters.items() if isinstance(v, np.ndarray)}
        if not arrays:
            return self
        other = copy.copy(self)
        for name, array in arrays.items():
            object.__setattr__(other, name, change(array))
        return other

    def require(self, values: FloatArray, where: str = "") -> None:
        """Raise a SupportError unless a model can be trained on all values.

        They must be in the support and not of an extreme size; ``where`` names their source.
        """
        owner = type(self).__name__ + where
        self.support.require(owner, values)
        self.support.require_magnitude(owner, values)

    @classmethod
    def seen(cls, values: FloatArray) -> FloatArray:
        """Return the values that the element models: ones if it ignores them, else unchanged."""
        return values

    def scaled_for_observed(self, expected_count: float) -> Self:
        r"""Return the element for training on observed entries only.

        There a pair has ``expected_count`` elements on average instead of about one. The paper
        keeps theta and divides :math:`\kappa` by it. The default, for elements with a fixed
        kappa, changes nothing.
        """
        return self

    @classmethod
    def min_observed_count(cls, values: FloatArray) -> float:
        """Return the smallest E[n] that fits the values when training on observed entries only."""
        return 0.0

    # -- the exponential dispersion model -----------------------------------------------------

    @property
    @abstractmethod
    def theta(self) -> Parameter:
        """The natural parameter."""

    @property
    def kappa(self) -> Parameter:
        """The dispersion parameter of one element, 1 by default; n elements have n kappa."""
        return 1.0

    @abstractmethod
    def log_partition(self, theta: Parameter) -> FloatArray:
        r"""Return the base log-partition :math:`\Psi(\theta)`."""

    @abstractmethod
    def log_base_measure(self, y: FloatArray, kappa: Parameter) -> FloatArray:
        r"""Return the log base measure :math:`\log h(y, \kappa)`."""

    @abstractmethod
    def draw(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw one sum of n elements per entry of ``n`` (all at least 1)."""

    # -- what follows from it -----------------------------------------------------------------

    def log_density(self, y: ArrayLike, n: ArrayLike = 1) -> FloatArray:
        r"""Return the log density (or mass) at ``y`` of the sum of ``n`` elements.

        :math:`\log p(y \mid n) = y\theta - n\kappa\Psi(\theta) + \log h(y, n\kappa)`
        """
        values, counts = self.support.check(type(self).__name__, y), check_counts(n)
        with np.errstate(over="ignore"):  # the density of an extreme value underflows to 0
            return self.log_density_unchecked(values, counts)

    def log_density_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        """Return ``log_density`` without input checks; most elements override it for accuracy.

        At extreme values it may overflow to -inf; callers silence the warning.
        """
        theta, kappa = self.theta, self.kappa
        normalizer = n * kappa * self.log_partition(theta)
        return y * theta - normalizer + self.log_base_measure(y, n * kappa)

    def cdf(self, y: ArrayLike, n: ArrayLike = 1) -> FloatArray:
        """Return the probability that the sum of ``n`` elements is at most ``y`` (any real)."""
        points, counts = check_not_nan(y, "cdf: y"), check_counts(n)
        with np.errstate(over="ignore"):
            return self.cdf_unchecked(points, counts)

    def cdf_unchecked(self, y: FloatArray, n: FloatArray) -> FloatArray:
        """Return ``cdf`` without input checks; by default the running sum of the masses."""
        if not self.support.discrete:
            raise InputError(
                f"{type(self).__name__} is continuous and defines no cdf: override cdf_unchecked."
            )
        return summed_cdf(self, y, n)

    def masses(self, values: FloatArray, n: float) -> FloatArray:
        """Return the masses of the sum of n elements at consecutive integers with all the mass."""
        return np.exp(self.log_density_unchecked(values, np.full(values.shape, n)))

    def compound_cdf(self, y: FloatArray, rate: FloatArray) -> FloatArray | None:
        """Return Pr(N >= 1 and X+ <= y) for flat arrays if X+ has a simpler form, else None."""
        return None

    def sample(self, n: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Draw one sum of n elements per entry of ``n``; where n is 0 the sum is 0."""
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
        """The largest value of one element, usually infinite."""
        return np.inf

    @property
    def variance_of_mean(self) -> Parameter:
        """The variance of the mean, which the elements of a sum share; 0 if theta is known."""
        return 0.0

    @property
    def at_expected_mean(self) -> "Element":
        """The element with a known theta that has the same mean; itself if theta is known."""
        return self

    @property
    def log_prob_zero(self) -> Parameter:
        """The log probability that one element is exactly 0."""
        if not (self.support.discrete and self.support.has_zero):
            return -np.inf
        return self.log_density_unchecked(np.zeros(()), np.ones(()))

    def n_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and the largest n, perhaps infinite, that can give the value y."""
        return np.ones_like(y), np.full_like(y, np.inf)

    @property
    def form(self) -> Separable | Tabulated:
        """How log p(y | n) depends on n, for the tables of the training kernels."""
        if not self.support.discrete:
            raise InputError(
                f"{type(self).__name__} is continuous and has no form: override it with Separable."
            )
        return Tabulated(self.log_density_unchecked)

    # -- maximum likelihood -------------------------------------------------------------------

    @classmethod
    def estimate(cls, y: ArrayLike, **given: Parameter) -> Self:
        """Return the maximum-likelihood element for ``y``, with the parameters ``given`` fixed.

        If the likelihood has no maximum inside the domain, the result is the limit documented in
        ``maximize_likelihood`` of the element, or an EstimationError.
        """
        cls._check_names(given)
        partial = cls._made_with(dict(given))
        for name, value in partial.parameters.items():
            if np.ndim(value):
                raise ParameterError(f"{cls.__name__}.estimate: {name} must be a single number.")
        values = cls.support.check(cls.__name__, y).ravel()
        if values.size == 0:
            raise InputError(f"{cls.__name__} cannot be estimated: there are no values.")
        if partial.is_complete:
            return partial
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                return partial.maximize_likelihood(values)
        except ArithmeticError:
            raise EstimationError(
                f"{cls.__name__} cannot be estimated: values between {values.min():g} and "
                f"{values.max():g} exceed the range of double precision. Rescale them."
            ) from None

    def complete(self, y: ArrayLike) -> Self:
        """Return the element with the parameters that are not set estimated from ``y``."""
        if self.is_complete:
            return self
        return self.replace(**type(self).estimate(y, **self.parameters).parameters)

    def with_mean(self, mean: Parameter) -> Self:
        r"""Return the element with theta such that :math:`\kappa\Psi'(\theta)` = mean."""
        if self.mean_parameter is None:
            return self
        return self.replace(**{self.mean_parameter: self.parameter_for_mean(mean)})

    def parameter_for_mean(self, mean: Parameter) -> Parameter:
        """Return the ``mean_parameter`` of a given mean at the present kappa, elementwise."""
        name = self.mean_parameter
        assert name is not None
        # At a given kappa the likelihood depends on the values through their mean only.
        unset = self.replace(**{name: None})
        each = [unset.maximize_likelihood(np.array([m])).parameters[name] for m in np.ravel(mean)]
        return np.asarray(each, dtype=np.float64).reshape(np.shape(mean))

    def maximize_likelihood(self, y: FloatArray) -> Self:
        """Estimate the parameters that are not set from checked values; by default numerically."""
        return numeric_maximum(self, y)


def _show(value: Parameter) -> str:
    if np.ndim(value) == 0:
        return f"{value:.6g}"
    return f"<array of shape {np.shape(value)}>"
