"""The value model: what a pair's value consists of, resolved once."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from hcpf._checks import flag, one_of
from hcpf._types import ArrayLike, FloatArray
from hcpf.core.axis import Axis
from hcpf.distributions.compound import CompoundPoisson, Hurdle
from hcpf.distributions.pair import PairDistribution
from hcpf.distributions.series import SeriesSum, mean_count, single_element, sum_over_n
from hcpf.elements.base import Element
from hcpf.elements.conjugate import Sharing
from hcpf.errors import ParameterError, SupportError

VARY_BY = ("user", "item", "both")
TRAIN_ON = ("full", "observed")
_PER = {None: "", "user": " per user", "item": " per item", "both": " per user and item"}


@dataclass(frozen=True)
class ValueModel:
    """The element, its pooling, whether values are sums, and which pairs train.

    Parameters
    ----------
    element
        The distribution of one element; its mean is the shared mean, or the center of the pooled
        ones.
    vary_by
        Estimate a mean per "user", per "item" or "both", partially pooled; None is a shared mean.
    hurdle
        Whether a value is a single element; otherwise it is a sum of n elements.
    train_on
        "full" (missing pairs are data) or "observed" (they are not).
    """

    element: Element
    vary_by: str | None = None
    hurdle: bool = False
    train_on: str = "full"

    def __post_init__(self) -> None:
        kind, vary_by = type(self.element), self.vary_by
        flag("hurdle", self.hurdle)
        one_of("train_on", self.train_on, TRAIN_ON)
        if self.hurdle and self.train_on == "observed":
            raise ParameterError(
                "hurdle=True cannot be combined with train_on='observed': the rates cannot be "
                "learned without missing pairs. Use train_on='full' or remove hurdle=True."
            )
        if vary_by is None:
            return
        if vary_by not in VARY_BY:
            raise ParameterError(
                f"vary_by must be 'user', 'item', 'both' or None; got {vary_by!r}. Rows "
                "(customers, donors, cells) are users; columns (products, causes, genes) are items."
            )
        if vary_by not in ways_to_vary(kind):
            reason = (
                "it has no mean to estimate. Remove vary_by."
                if kind.conjugate is None
                else "use 'user' or 'item'. Gamma, InverseGaussian, Normal and Poisson take 'both'."
            )
            raise ParameterError(
                f"vary_by={vary_by!r} does not work with {kind.__name__}: {reason}"
            )

    @property
    def name(self) -> str:
        """The element and whether it is a hurdle model, such as "gamma hurdle"."""
        return self.element.name.replace("_", " ") + (" hurdle" if self.hurdle else "")

    @property
    def description(self) -> str:
        """The name and the pooling, such as "gamma hurdle per user and item"."""
        return self.name + _PER[self.vary_by]

    @property
    def sharing(self) -> Sharing | None:
        """How users and items share theta; None where not both have one."""
        conjugate = self.element.conjugate
        return conjugate.sharing if self.vary_by == "both" and conjugate is not None else None

    @property
    def weighs_values(self) -> bool:
        """Whether each half-step weighs the values by theta of the other axis."""
        sharing = self.sharing
        return sharing is not None and sharing.weighs

    def varies(self, axis: Axis) -> bool:
        """Return whether an axis is partially pooled."""
        return self.vary_by in (axis.word, "both")

    def replace(self, **changes: Any) -> Self:
        """Return the same value model with some fields changed."""
        return replace(self, **changes)

    def distribution(self, rate: ArrayLike, element: Element | None = None) -> PairDistribution:
        """Return the distribution of pairs at given rates; ``element`` is that of the pairs."""
        kind = Hurdle if self.hurdle else CompoundPoisson
        return kind(rate, self.element if element is None else element)

    def series(self, element: Element, y: FloatArray, rate: FloatArray) -> SeriesSum:
        """Return log Z and the moments of n for values ``y`` at given rates."""
        return (single_element if self.hurdle else sum_over_n)(element, y, rate)

    def mean_count(self, element: Element, y: FloatArray, log_rate: FloatArray) -> FloatArray:
        """Return E[n] for values ``y`` at rates given by their logarithms."""
        if self.hurdle:
            return single_element(element, y, np.exp(log_rate)).mean
        return mean_count(element, y, log_rate)

    def require(self, values: FloatArray, where: str = "") -> None:
        """Raise a SupportError if pairs cannot have these values; ``where`` names their source."""
        self.element.require(values, where)
        if not self.hurdle or not values.size:
            return
        extremes = np.array([values.min(), values.max()], dtype=np.float64)
        needed = self.element.n_range(extremes)[0]
        if needed.max() > 1:
            raise SupportError(
                f"{type(self.element).__name__}{where}: the value {extremes[needed.argmax()]:g} "
                f"takes at least {needed.max():g} elements, but hurdle=True allows one. Remove "
                "hurdle=True, or change the element's parameters."
            )


def ways_to_vary(element: type[Element]) -> tuple[str, ...]:
    """Return the values of ``vary_by`` that work with an element."""
    if element.conjugate is None:
        return ()
    return VARY_BY if element.conjugate.sharing is not None else VARY_BY[:2]
