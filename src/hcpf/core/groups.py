r"""One theta for each row: its conjugate posterior, and the prior that ties the rows together."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import optimize, special

from hcpf._types import FloatArray
from hcpf.elements.conjugate import Conjugate

_LOOKED_AT = 4096
"""Rows that a new prior is found on; whether it is better is then asked of all."""
_LOG_STRENGTH = (-12.0, 6.0)
"""Bounds of the prior's nu0, relative to what a usual row observes: nu has the unit of kappa. From
the upper one, where rows are all but alike, the search still finds its way back."""
_DIFFERENCE = 1e-4
"""Of log nu0 and of the centre, for gradients: that of two large logs of Gamma has few digits."""
_LOG_GROWTH = 3.0
"""By which log nu0 may grow at a time. A prior so strong that the rows hardly differ, before
the factors had a chance to follow them, would stay: q(n) then explains all that differs."""


@dataclass(frozen=True, eq=False)
class Groups:
    r"""q(theta_j), proportional to :math:`\exp(\chi_j\theta - \nu_j\Psi(\theta))`, of each row.

    ``chi`` and ``nu`` are the prior's chi0 and nu0 plus what the row's own entries say.
    """

    chi: FloatArray
    nu: FloatArray
    chi0: float
    nu0: float

    @classmethod
    def at_prior(cls, rows: int, chi0: float, nu0: float) -> "Groups":
        """Rows of which nothing is known yet."""
        return cls(np.full(rows, chi0), np.full(rows, nu0), chi0, nu0)

    def at(self, rows: Any) -> "Groups":
        """Some of the rows, chosen as NumPy would."""
        return replace(self, chi=self.chi[rows], nu=self.nu[rows])

    def joined(self, more: "Groups") -> "Groups":
        """These rows, and then more."""
        return replace(
            self, chi=np.concatenate([self.chi, more.chi]), nu=np.concatenate([self.nu, more.nu])
        )

    def observing(self, chi: FloatArray, nu: FloatArray, rows: slice = slice(None)) -> "Groups":
        """The optimal posterior of some rows, whose entries add ``chi`` and ``nu``."""
        chi, nu = self.chi0 + chi, self.nu0 + nu
        if len(chi) == len(self.chi):
            return replace(self, chi=chi, nu=nu)
        mine = replace(self, chi=self.chi.copy(), nu=self.nu.copy())
        mine.chi[rows], mine.nu[rows] = chi, nu
        return mine

    def scaled(self, chi: float, nu: float) -> "Groups":
        """The same with chi and nu, those of the prior too, multiplied."""
        return Groups(chi * self.chi, nu * self.nu, chi * self.chi0, nu * self.nu0)

    def divergence(self, conjugate: Conjugate) -> float:
        """Kullback-Leibler divergence of the posterior from the prior, summed over the rows."""
        theta, psi = conjugate.moments(self.chi, self.nu)
        inner = (self.chi - self.chi0) * theta - (self.nu - self.nu0) * psi
        prior = conjugate.log_normaliser(np.array(self.chi0), np.array(self.nu0))
        return float(np.sum(inner - conjugate.log_normaliser(self.chi, self.nu) + prior))

    def with_best_prior(
        self, conjugate: Conjugate, chi: FloatArray, nu: FloatArray, *, centred: bool
    ) -> "Groups":
        r"""The prior under which rows that observed ``chi`` and ``nu`` are likeliest.

        With q(n) given, theta integrates out: the evidence of a row is
        :math:`\log Z(\chi_0 + \chi, \nu_0 + \nu) - \log Z(\chi_0, \nu_0)`. ``centred`` keeps
        chi0 / nu0, the centre, where it is.
        """
        seen = np.flatnonzero(nu > 0)
        if not seen.size:
            return self
        some = seen[np.linspace(0, seen.size - 1, min(seen.size, _LOOKED_AT)).astype(np.int64)]
        if not conjugate.exact:
            # Laplace's normaliser is no judge of the centre: that is where all the values are.
            centred, centre = True, float(chi[seen].sum() / nu[seen].sum())
            self = replace(self, chi0=centre * self.nu0)
        usual = float(np.median(nu[seen]))
        space = _Space(conjugate, self.chi0 / self.nu0, self.nu0, usual, centred)
        start = space.point(self.chi0, self.nu0)

        def loss(point: FloatArray) -> float:
            return -_evidence(conjugate, *space.prior(point), chi[some], nu[some]) / some.size

        highest = min(_LOG_STRENGTH[1], float(start[0]) + _LOG_GROWTH)
        bounds = [(_LOG_STRENGTH[0], highest)]
        bounds += [(start[-1] - 5.0, start[-1] + 5.0)] * (not centred)
        found: Any = optimize.minimize(
            loss, start, method="L-BFGS-B", bounds=bounds, options={"eps": _DIFFERENCE}
        )
        prior = space.prior(np.asarray(found.x))
        now = _evidence(conjugate, self.chi0, self.nu0, chi[seen], nu[seen])
        if not _evidence(conjugate, *prior, chi[seen], nu[seen]) > now:
            return self
        return replace(self, chi0=prior[0], nu0=prior[1])


def _evidence(
    conjugate: Conjugate, chi0: float, nu0: float, chi: FloatArray, nu: FloatArray
) -> float:
    with np.errstate(all="ignore"):
        prior = conjugate.log_normaliser(np.array(chi0), np.array(nu0))
        total = float(np.sum(conjugate.log_normaliser(chi0 + chi, nu0 + nu) - prior))
    return total if np.isfinite(total) else -1e300


class _Space:
    """The prior as free numbers: log strength, and the centre moved to the whole line."""

    def __init__(
        self, conjugate: Conjugate, centre: float, nu0: float, usual: float, centred: bool
    ) -> None:
        self._centre, self._usual, self._centred = centre, usual, centred
        self._to, self._back = _unbounded(conjugate, centre, nu0)

    def point(self, chi0: float, nu0: float) -> FloatArray:
        strength = float(np.clip(np.log(nu0 / self._usual), *_LOG_STRENGTH))
        return np.array([strength] if self._centred else [strength, self._to(chi0 / nu0)])

    def prior(self, point: FloatArray) -> tuple[float, float]:
        nu0 = self._usual * float(np.exp(point[0]))
        centre = self._centre if self._centred else self._back(float(point[1]))
        return centre * nu0, nu0


def _unbounded(
    conjugate: Conjugate, centre: float, nu0: float
) -> tuple[Callable[[float], float], Callable[[float], float]]:
    low, high = conjugate.lowest, conjugate.highest
    if np.isinf(low):
        unit = max(abs(centre), nu0**-0.5)  # the normal's own spread: its centre may be 0
        return (lambda c: c / unit), (lambda t: t * unit)
    if np.isinf(high):
        least = max(1e-12 * low, 1e-300)
        return (lambda c: float(np.log(max(c - low, least)))), (lambda t: low + float(np.exp(t)))
    return (lambda c: float(special.logit(c))), (lambda t: float(special.expit(t)))
