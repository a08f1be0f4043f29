"""Several fits as one predictor: the average of their rates."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core import kernels
from hcpf.core.axis import Axis
from hcpf.core.posterior import Posterior
from hcpf.core.rates import pair_rates
from hcpf.core.theta import ThetaPosterior, conjugate_of, pair_element, pair_theta
from hcpf.elements.base import Element

Positions = NDArray[np.int64]

_FEW = 25_000_000  # products; NumPy computes fewer faster than Numba can be loaded


@dataclass(frozen=True, eq=False)
class Combined:
    """The ensemble of some fits; pairs are given by position."""

    posteriors: Sequence[Posterior]

    def rates(
        self, users: Positions, items: Positions, exposure: FloatArray | None = None
    ) -> FloatArray:
        """Return the posterior mean rates of pairs, averaged over the fits.

        ``exposure`` replaces the exposures of the users and items.
        """
        n_products = len(users) * sum(fit.users.mean_.shape[1] for fit in self.posteriors)
        is_few = n_products <= _FEW and not kernels.are_loaded()
        rates_of = _rates_of_few if is_few else pair_rates
        total = np.zeros(len(users))
        for fit in self.posteriors:
            total += rates_of(fit.users.mean_, fit.items.mean_, users, items)
        total /= len(self.posteriors)
        return total * (self.exposure(users, items) if exposure is None else exposure)

    def exposure(self, users: Positions, items: Positions) -> FloatArray | float:
        """Return the known multipliers of the rates of pairs; 1 without exposures."""
        found = 1.0
        for axis, rows in ((Axis.USERS, users), (Axis.ITEMS, items)):
            exposure = self.posteriors[0].axis(axis).exposure
            if exposure is not None:
                found = found * exposure[rows]
        return found

    def factors(self, axis: Axis) -> NDArray[np.float32]:
        """Return the factors of all fits side by side: their products are the rates at exposure 1.

        The factors of items are divided by the number of fits.
        """
        parts = [fit.axis(axis).mean_ for fit in self.posteriors]
        joined = (
            parts[0] if len(parts) == 1 else np.ascontiguousarray(np.concatenate(parts, axis=1))
        )
        return joined if axis is Axis.USERS else joined / np.float32(len(parts))

    def rate_sums(self, axis: Axis) -> FloatArray:
        """Return the sums of the factors times the exposures of their rows, side by side.

        The product of those of both axes is the sum of the rates of all pairs.
        """
        factors, exposure = self.factors(axis), self.posteriors[0].axis(axis).exposure
        if exposure is None:
            return factors.sum(axis=0, dtype=np.float64)
        return exposure @ factors.astype(np.float64)

    def element_at(self, element: Element, users: Positions, items: Positions) -> Element:
        """Return the element of pairs, whose parameters are arrays under partial pooling."""
        if all(theta is None for theta in self._thetas[0]):
            return element
        return pair_element(element, self._thetas, users, items)

    def element_means(self, element: Element, users: Positions, items: Positions) -> FloatArray:
        """Return the mean of ``element_at`` under partial pooling, without making the element."""
        conjugate = conjugate_of(element)
        chi, nu = pair_theta(conjugate, self._thetas, users, items)
        return float(element.kappa) * conjugate.mean(chi, nu)

    @property
    def _thetas(self) -> list[tuple[ThetaPosterior | None, ThetaPosterior | None]]:
        return [(fit.users.predictive_theta, fit.items.predictive_theta) for fit in self.posteriors]


def _rates_of_few(
    user_mean: NDArray[np.float32],
    item_mean: NDArray[np.float32],
    users: Positions,
    items: Positions,
) -> FloatArray:
    """Do what ``pair_rates`` does without compiled kernels, up to rounding."""
    return np.einsum("jk,jk->j", user_mean[users], item_mean[items], dtype=np.float64)
