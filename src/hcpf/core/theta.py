r"""Partial pooling: a mean per user, per item or both, as an extra block of the ELBO.

Each row j of a pooled axis has a natural parameter :math:`\theta_j` with the conjugate posterior
:math:`q(\theta_j) \propto \exp(\chi_j\theta - \nu_j\Psi(\theta))`, whose prior
:math:`(\chi_0, \nu_0)` ties the rows together. The local step sees theta only through its
expectations: :math:`-\kappa E[\Psi(\theta)]` shifts the log rate, and :math:`y E[\theta]` is a
constant. Where both axes are pooled, :math:`\Psi` of a pair has a part of each axis and one
proportional to the product of their ``cross``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hcpf._types import FloatArray
from hcpf.core.collective import LOCAL, Collective
from hcpf.core.threads import single_blas_thread
from hcpf.core.value_model import ValueModel
from hcpf.elements.base import Element
from hcpf.elements.conjugate import Conjugate, Theta
from hcpf.elements.integrated import Integrated

_MAX_PRIOR_ROWS = 4096
"""Rows that a new prior is estimated from; whether it is better is then checked on all."""
_LOG_STRENGTH = (-12.0, 6.0)
"""Bounds of log nu0 relative to the median nu of the rows, which has the unit of kappa. At the
upper one, where rows are all but alike, the gradient still leads back."""
_DIFFERENCE = 1e-4
"""Step of numerical gradients: a difference of two large logs of Gamma has few digits."""
_LOG_GROWTH = 3.0
"""Largest growth of log nu0 per update. A very strong prior in the first passes would never weaken:
the rows hardly differ under it, and q(n) explains all differences."""


@dataclass(frozen=True, eq=False)
class ThetaPosterior:
    r"""q(theta_j), proportional to :math:`\exp(\chi_j\theta - \nu_j\Psi(\theta))`, of each row.

    ``chi`` and ``nu`` are the prior's chi0 and nu0 plus the contributions of the row's entries.
    """

    chi: FloatArray
    nu: FloatArray
    chi0: float
    nu0: float
    limit: float = np.inf
    """How many times what the prior expects an entry counts at most in predictions."""
    counted: FloatArray | None = None
    """The share of chi - chi0 that predictions count, below 1 for rows with odd entries; None
    stands for ones."""

    @cached_property
    def for_predictions(self) -> "ThetaPosterior":
        """The rows with each entry counted up to the limit."""
        if self.counted is None:
            return self
        chi = self.chi0 + (self.chi - self.chi0) * self.counted
        return replace(self, chi=chi, counted=None)

    @classmethod
    def at_prior(cls, rows: int, chi0: float, nu0: float) -> "ThetaPosterior":
        """Return rows without entries: their posterior is the prior."""
        return cls(np.full(rows, chi0), np.full(rows, nu0), chi0, nu0)

    def without_entries(self, rows: int) -> "ThetaPosterior":
        """Return new rows with the same prior."""
        chi, nu = np.full(rows, self.chi0), np.full(rows, self.nu0)
        return replace(self, chi=chi, nu=nu, counted=None)

    def at(self, rows: Any) -> "ThetaPosterior":
        """Return some of the rows, chosen as NumPy would."""
        counted = None if self.counted is None else self.counted[rows]
        return replace(self, chi=self.chi[rows], nu=self.nu[rows], counted=counted)

    def joined(self, *more: "ThetaPosterior") -> "ThetaPosterior":
        """Return these rows followed by more."""
        parts, counted = (self, *more), None
        chi, nu = ([getattr(part, name) for part in parts] for name in ("chi", "nu"))
        if any(part.counted is not None for part in parts):
            shares = [np.ones_like(p.chi) if p.counted is None else p.counted for p in parts]
            counted = np.concatenate(shares)
        return replace(self, chi=np.concatenate(chi), nu=np.concatenate(nu), counted=counted)

    def observing(
        self, chi: FloatArray, nu: FloatArray, rows: slice = slice(None)
    ) -> "ThetaPosterior":
        """Return the optimal posterior, given what the entries of some rows contribute."""
        chi, nu = self.chi0 + chi, self.nu0 + nu
        if len(chi) == len(self.chi):
            return replace(self, chi=chi, nu=nu, counted=None)
        mine = replace(self, chi=self.chi.copy(), nu=self.nu.copy(), counted=None)
        mine.chi[rows], mine.nu[rows] = chi, nu
        return mine

    def scaled(self, chi: float, nu: float) -> "ThetaPosterior":
        """Return chi and nu, those of the prior as well, multiplied by factors."""
        return replace(
            self, chi=chi * self.chi, nu=nu * self.nu, chi0=chi * self.chi0, nu0=nu * self.nu0
        )

    def divergence(self, conjugate: Conjugate) -> FloatArray:
        """Return the Kullback-Leibler divergence of each row from the prior."""
        theta, psi = conjugate.moments(self.chi, self.nu)
        inner = (self.chi - self.chi0) * theta - (self.nu - self.nu0) * psi
        prior = conjugate.log_normalizer(np.array(self.chi0), np.array(self.nu0))
        return inner - conjugate.log_normalizer(self.chi, self.nu) + prior

    def with_best_prior(
        self,
        conjugate: Conjugate,
        chi: FloatArray,
        nu: FloatArray,
        *,
        centered: bool,
        comm: Collective = LOCAL,
    ) -> "ThetaPosterior":
        r"""Return the rows with the prior under which what they observed is most likely.

        With q(n) given, theta integrates out: the evidence of a row that observed ``chi`` and
        ``nu`` is :math:`\log Z(\chi_0 + \chi, \nu_0 + \nu) - \log Z(\chi_0, \nu_0)`.
        ``centered`` keeps chi0 / nu0, the center, where it is. ``comm`` joins the rows of several
        workers.
        """
        from scipy import optimize  # slow to load, and not needed to predict

        seen = nu > 0  # the evidence of a row without entries is log Z - log Z = 0
        chi, nu = comm.gather(chi[seen]), comm.gather(nu[seen])
        if not nu.size:
            return self
        some = np.linspace(0, nu.size - 1, min(nu.size, _MAX_PRIOR_ROWS)).astype(np.int64)
        if not conjugate.is_exact:
            # Laplace's normalizer does not tell where the center is: that of all the values.
            centered, center = True, float(chi.sum() / nu.sum())
            self = replace(self, chi0=center * self.nu0)
        space = _PriorSpace(
            conjugate, self.chi0 / self.nu0, self.nu0, float(np.median(nu)), centered
        )
        start = space.point(self.chi0, self.nu0)

        def loss(point: FloatArray) -> float:
            return -_evidence(conjugate, *space.prior(point), chi[some], nu[some]) / some.size

        highest = min(_LOG_STRENGTH[1], float(start[0]) + _LOG_GROWTH)
        bounds = [(_LOG_STRENGTH[0], highest)]
        bounds += [(start[-1] - 5.0, start[-1] + 5.0)] * (not centered)
        with single_blas_thread():
            slopes = _with_slopes(loss, bounds)
            found: Any = optimize.minimize(
                slopes, start, method="L-BFGS-B", jac=True, bounds=bounds
            )
        prior = space.prior(np.asarray(found.x))
        now = _evidence(conjugate, self.chi0, self.nu0, chi, nu)
        if not _evidence(conjugate, *prior, chi, nu) > now:
            return self
        return replace(self, chi0=prior[0], nu0=prior[1])


def _with_slopes(
    loss: Callable[[FloatArray], float], bounds: list[tuple[float, float]]
) -> Callable[[FloatArray], tuple[float, FloatArray]]:
    """Return a function and its forward differences; scipy's own take longer than the losses."""

    def both(point: FloatArray) -> tuple[float, FloatArray]:
        value, slopes = loss(point), np.empty_like(point)
        for k, (_, high) in enumerate(bounds):
            moved = point.copy()
            moved[k] += _DIFFERENCE if point[k] + _DIFFERENCE <= high else -_DIFFERENCE
            slopes[k] = (loss(moved) - value) / (moved[k] - point[k])
        return value, slopes

    return both


def _evidence(
    conjugate: Conjugate, chi0: float, nu0: float, chi: FloatArray, nu: FloatArray
) -> float:
    with np.errstate(all="ignore"):
        prior = conjugate.log_normalizer(np.array(chi0), np.array(nu0))
        total = float(np.sum(conjugate.log_normalizer(chi0 + chi, nu0 + nu) - prior))
    # A prior outside the conjugate's domain: the search can compare a number, but not NaN.
    return total if np.isfinite(total) else -1e300


class _PriorSpace:
    """The prior as unbounded numbers: log strength and, unless it is fixed, the center."""

    def __init__(
        self, conjugate: Conjugate, center: float, nu0: float, typical_nu: float, centered: bool
    ) -> None:
        self._center, self._typical_nu, self._centered = center, typical_nu, centered
        self._to, self._back = _unbounded(conjugate, center, nu0)

    def point(self, chi0: float, nu0: float) -> FloatArray:
        strength = float(np.clip(np.log(nu0 / self._typical_nu), *_LOG_STRENGTH))
        return np.array([strength] if self._centered else [strength, self._to(chi0 / nu0)])

    def prior(self, point: FloatArray) -> tuple[float, float]:
        nu0 = self._typical_nu * float(np.exp(point[0]))
        center = self._center if self._centered else self._back(float(point[1]))
        return center * nu0, nu0


def _unbounded(
    conjugate: Conjugate, center: float, nu0: float
) -> tuple[Callable[[float], float], Callable[[float], float]]:
    low, high = conjugate.min_center, conjugate.max_center
    if np.isinf(low):
        unit = max(abs(center), nu0**-0.5)  # the normal's own spread: its center may be 0
        return (lambda c: c / unit), (lambda t: t * unit)
    if np.isinf(high):
        least = max(1e-12 * low, 1e-300)
        return (lambda c: float(np.log(max(c - low, least)))), (lambda t: low + float(np.exp(t)))
    # The logit has the limits 0 and 1: those of the binomial, the only one with an upper limit.
    return (lambda c: float(special.logit(c))), (lambda t: float(special.expit(t)))


def pair_element(
    element: Element,
    posteriors: Sequence[tuple[ThetaPosterior | None, ThetaPosterior | None]],
    u: NDArray[np.int64],
    i: NDArray[np.int64],
) -> Element:
    """Return the element of pairs, theta integrated out.

    ``posteriors`` are those of the users' and of the items' theta in each of several fits.
    """
    return Integrated(*pair_theta(conjugate_of(element), posteriors, u, i), base=element)


def pair_theta(
    conjugate: Conjugate,
    posteriors: Sequence[tuple[ThetaPosterior | None, ThetaPosterior | None]],
    u: NDArray[np.int64],
    i: NDArray[np.int64],
) -> Theta:
    """Return one (chi, nu) for theta of each pair, joined over its axes, averaged over the fits."""
    chi, nu = np.zeros((2, len(u)))
    for users, items in posteriors:
        parts = [(theta.chi[rows], theta.nu[rows]) for theta, rows in _pooled(users, items, u, i)]
        pair = parts[0]
        if len(parts) == 2:
            assert conjugate.sharing is not None
            pair = conjugate.sharing.pooled(*parts)
        chi += pair[0] / len(posteriors)
        nu += pair[1] / len(posteriors)
    return chi, nu


def pair_means(
    element: Element,
    users: ThetaPosterior | None,
    items: ThetaPosterior | None,
    u: NDArray[np.int64],
    i: NDArray[np.int64],
) -> FloatArray:
    """Return the expected mean of one element of pairs given by position."""
    mean, axes = conjugate_of(element).mean, _pooled(users, items, u, i)
    return _joined(element, [mean(theta.chi, theta.nu)[rows] for theta, rows in axes])


def pair_shift(
    value_model: ValueModel,
    element: Element,
    users: ThetaPosterior | None,
    items: ThetaPosterior | None,
    u: NDArray[np.int64],
    i: NDArray[np.int64],
) -> FloatArray | float:
    """Return the log-rate shift of pairs caused by row-specific theta.

    It is relative to ``element``, whose mean may be that of each pair: this keeps shifts small.
    """
    conjugate = element.conjugate
    if value_model.vary_by is None or value_model.hurdle or conjugate is None:
        return 0.0
    thetas = [theta.at(rows) for theta, rows in _pooled(users, items, u, i)]
    if len(thetas) == 1:
        psi = conjugate.moments(thetas[0].chi, thetas[0].nu)[1]
    else:
        sharing = conjugate.sharing
        assert sharing is not None
        user, item = (sharing.part(theta.chi, theta.nu) for theta in thetas)
        psi = user.psi + item.psi
        if user.cross is not None and item.cross is not None:
            psi = psi + sharing.sign * user.cross * item.cross
    # A rate is multiplied with exp(-kappa E[Psi]); the density of ``element`` has exp(-kappa Psi).
    return float(element.kappa) * (element.log_partition(element.theta) - psi)


def draw_means(
    element: Element,
    users: ThetaPosterior | None,
    items: ThetaPosterior | None,
    u: NDArray[np.int64],
    i: NDArray[np.int64],
    rng: np.random.Generator,
) -> FloatArray:
    """Draw theta once from its posterior; return the mean of an element of each pair."""
    sample, parts = conjugate_of(element).sample_mean, list[FloatArray]()
    for theta, rows in _pooled(users, items, u, i):
        # One draw per row: its pairs share theta.
        distinct, position = np.unique(rows, return_inverse=True)
        parts.append(sample(theta.chi[distinct], theta.nu[distinct], rng)[position])
    return _joined(element, parts)


def conjugate_of(element: Element) -> Conjugate:
    """Return the conjugate prior of an element whose mean can be pooled."""
    assert element.conjugate is not None
    return element.conjugate


def _pooled(
    users: ThetaPosterior | None,
    items: ThetaPosterior | None,
    u: NDArray[np.int64],
    i: NDArray[np.int64],
) -> list[tuple[ThetaPosterior, NDArray[np.int64]]]:
    """Return the theta posteriors of the pooled axes, each with the rows of the pairs."""
    return [(theta, rows) for theta, rows in ((users, u), (items, i)) if theta is not None]


def _joined(element: Element, parts: list[FloatArray]) -> FloatArray:
    """Return the mean of an element from the expected Psi' of each axis."""
    kappa = float(element.kappa)
    if len(parts) == 1:
        return kappa * parts[0]
    sharing = conjugate_of(element).sharing
    assert sharing is not None
    return kappa * (parts[0] + parts[1] if sharing.additive else parts[0] * parts[1])
