"""The six hyperparameters of the hierarchical gamma priors."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from hcpf._checks import number, whole
from hcpf.core.axis import Axis
from hcpf.elements.domains import Domain
from hcpf.errors import ParameterError

FACTOR_SHAPE = 0.3
"""Of the factors, in priors="auto": sparse, but not so much that components die at the start."""

_SHAPE = Domain("between 1e-12 and 1e12", lambda x: (x >= 1e-12) & (x <= 1e12))
_MEAN = Domain("between 1e-24 and 1e24", lambda x: (x >= 1e-24) & (x <= 1e24))


@dataclass(frozen=True)
class Priors:
    r"""Priors of the factors and activities, with the paper's symbol next to each name.

    :math:`r_u \sim \mathrm{Gamma}(\rho, \rho/\varrho)`,
    :math:`s_{uk} \sim \mathrm{Gamma}(\eta, r_u)`, and the same for items with
    :math:`\omega, \varpi, \zeta`.

    Parameters
    ----------
    user_shape
        :math:`\eta`, the shape of the user factors.
    user_activity_shape
        :math:`\rho`; small values let users differ widely in activity.
    user_activity_mean
        :math:`\varrho`, the mean of r; the scale of a user's factors is about eta / varrho.
    item_shape
        :math:`\zeta`.
    item_activity_shape
        :math:`\omega`.
    item_activity_mean
        :math:`\varpi`.
    """

    user_shape: float
    user_activity_shape: float
    user_activity_mean: float
    item_shape: float
    item_activity_shape: float
    item_activity_mean: float

    def __post_init__(self) -> None:
        for field in fields(self):
            domain = _MEAN if field.name.endswith("mean") else _SHAPE
            value = domain.check("Priors", field.name, getattr(self, field.name))
            if not isinstance(value, float):
                raise ParameterError(f"Priors: {field.name} must be a single number.")
            object.__setattr__(self, field.name, value)

    def axis(self, axis: Axis) -> tuple[float, float, float]:
        """Return the shape of the factors, and shape and mean of the activities, of one axis."""
        if axis is Axis.USERS:
            return self.user_shape, self.user_activity_shape, self.user_activity_mean
        return self.item_shape, self.item_activity_shape, self.item_activity_mean

    @classmethod
    def paper(cls, density: float, n_components: int) -> Self:
        r"""The paper's recipe: heavy tails, and shapes near 1e-5 for sparse data.

        :math:`\varrho = \varpi = 0.1`, :math:`\rho = \omega = 0.01`,
        :math:`\eta = \varrho\sqrt{E[n]/K}` with :math:`E[n] = -\log(1 - \text{density})`.
        """
        return cls.paper_for(expected_count(density), n_components)

    @classmethod
    def paper_for(cls, expected: float, n_components: int) -> Self:
        """The paper's recipe for a given expected count of a pair, E[n]."""
        shape = 0.1 * np.sqrt(expected / whole("n_components", n_components))
        return cls(shape, 0.01, 0.1, shape, 0.01, 0.1)

    @classmethod
    def matched(cls, expected: float, n_components: int, shape: float = FACTOR_SHAPE) -> Self:
        r"""Moderate shapes whose scale matches the data.

        The scale :math:`\eta/\varrho` of the user factors, that of the item factors, and the
        number of components multiply to ``expected``, the expected count of a pair. (It is the
        scale at the mean activity that is matched: E[1/r] is infinite for rho <= 1.)
        """
        mean = shape / np.sqrt(expected / whole("n_components", n_components))
        return cls(shape, 1.0, mean, shape, 1.0, mean)

    def with_numbers(self, given: Mapping[str, Any]) -> "Priors":
        """Return priors with some numbers replaced.

        A new shape of factors keeps their scale: unless it is given, too, the mean of the
        activities changes in proportion.
        """
        names = [field.name for field in fields(self)]
        if unknown := [name for name in given if name not in names]:
            raise ParameterError(
                f"priors: unknown name {unknown[0]!r}. Names are {', '.join(names)}."
            )
        found = replace(self, **given)
        scaled = {
            f"{word}_activity_mean": getattr(self, f"{word}_activity_mean")
            * (getattr(found, f"{word}_shape") / getattr(self, f"{word}_shape"))
            for word in ("user", "item")
            if f"{word}_activity_mean" not in given
        }
        return replace(found, **scaled)

    def for_exposure(self, user: float, item: float) -> "Priors":
        """Return priors that expect the same counts where exposures are this large on average."""
        return replace(
            self,
            user_activity_mean=user * self.user_activity_mean,
            item_activity_mean=item * self.item_activity_mean,
        )

    def expected(self, n_components: int) -> float:
        """The count of a pair that the priors expect at mean activities and exposure 1."""
        user = self.user_shape / self.user_activity_mean
        item = self.item_shape / self.item_activity_mean
        return n_components * user * item


def expected_count(density: float) -> float:
    """E[n] = -log(1 - density), the Poisson rate of a pair observed with that probability."""
    share = number("density", density, 1e-300, 1.0, "in (0, 1]")
    return float(-np.log1p(-min(share, 1.0 - 1e-9)))
