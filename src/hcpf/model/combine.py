"""Several fits as one predictor: their rates averaged."""

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core.posterior import Posterior
from hcpf.core.rates import pair_rates
from hcpf.core.theta import ThetaPosterior, pair_element, pair_theta
from hcpf.elements.base import Element


class Combined:
    """The average of the fits' rates; the same as factors side by side, scaled."""

    def __init__(self, posteriors: list[Posterior]) -> None:
        self.posteriors = posteriors

    def rates(self, users: NDArray[np.int64], items: NDArray[np.int64]) -> FloatArray:
        """Average posterior mean rates of pairs given by position."""
        total = np.zeros(len(users))
        for posterior in self.posteriors:
            total += pair_rates(posterior.users.mean_, posterior.items.mean_, users, items)
        return total / len(self.posteriors)

    def element_at(
        self, element: Element, users: NDArray[np.int64], items: NDArray[np.int64]
    ) -> Element:
        """The element of pairs given by position, with their own theta where that varies."""
        if self.posteriors[0].users.theta is None and self.posteriors[0].items.theta is None:
            return element
        return pair_element(element, self._groups, users, items)

    def means(
        self, element: Element, users: NDArray[np.int64], items: NDArray[np.int64]
    ) -> FloatArray:
        """The mean of ``element_at``, where theta varies, without making the element."""
        conjugate = element.conjugate
        assert conjugate is not None
        chi, nu = pair_theta(conjugate, self._groups, users, items)
        return float(element.kappa) * conjugate.mean(chi, nu)

    @property
    def _groups(self) -> list[tuple[ThetaPosterior | None, ThetaPosterior | None]]:
        """Theta of the users and of the items in each fit."""
        return [(fit.users.theta, fit.items.theta) for fit in self.posteriors]
