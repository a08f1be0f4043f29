r"""Elements whose theta varies by user, by item or by both: the extra block of the bound.

The local step sees theta only through its expectations: :math:`-\kappa E[\Psi(\theta)]` shifts the
log rate, and :math:`y E[\theta]` is a constant. Where both sides vary, :math:`\Psi` of a pair has a
part of each side's own and one proportional to the product of their ``cross``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from hcpf._types import FloatArray
from hcpf.core.axis import Axis
from hcpf.core.kernels import Factors
from hcpf.core.layout import Problem, Values
from hcpf.core.value_model import ValueModel
from hcpf.elements.base import Element
from hcpf.elements.conjugate import Conjugate, Part, Sharing, Theta
from hcpf.elements.integrated import Integrated

PRIOR_AT = frozenset({0, 1, 2, 4, 7, 12, 20, 33, 54, 88})
"""Passes in which the prior of theta is estimated anew."""

_FIRST_STRENGTH = 10.0  # elements that the prior counts as, before the data say
_MOST_ELEMENTS = 30.0  # that an entry counts as at the start


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
class ThetaPosterior:
    r"""q(theta_j), proportional to :math:`\exp(\chi_j\theta - \nu_j\Psi(\theta))`, of each row.

    ``chi`` and ``nu`` are the prior's chi0 and nu0 plus what the row's own entries say.
    """

    chi: FloatArray
    nu: FloatArray
    chi0: float
    nu0: float

    @classmethod
    def at_prior(cls, rows: int, chi0: float, nu0: float) -> "ThetaPosterior":
        """Rows of which nothing is known yet."""
        return cls(np.full(rows, chi0), np.full(rows, nu0), chi0, nu0)

    def at(self, rows: Any) -> "ThetaPosterior":
        """Some of the rows, chosen as NumPy would."""
        return replace(self, chi=self.chi[rows], nu=self.nu[rows])

    def joined(self, more: "ThetaPosterior") -> "ThetaPosterior":
        """These rows, and then more."""
        return replace(
            self, chi=np.concatenate([self.chi, more.chi]), nu=np.concatenate([self.nu, more.nu])
        )

    def observing(
        self, chi: FloatArray, nu: FloatArray, rows: slice = slice(None)
    ) -> "ThetaPosterior":
        """The optimal posterior of some rows, whose entries add ``chi`` and ``nu``."""
        chi, nu = self.chi0 + chi, self.nu0 + nu
        if len(chi) == len(self.chi):
            return replace(self, chi=chi, nu=nu)
        mine = replace(self, chi=self.chi.copy(), nu=self.nu.copy())
        mine.chi[rows], mine.nu[rows] = chi, nu
        return mine

    def scaled(self, chi: float, nu: float) -> "ThetaPosterior":
        """The same with chi and nu, those of the prior too, multiplied."""
        return ThetaPosterior(chi * self.chi, nu * self.nu, chi * self.chi0, nu * self.nu0)

    def divergence(self, conjugate: Conjugate) -> float:
        """Kullback-Leibler divergence of the posterior from the prior, summed over the rows."""
        theta, psi = conjugate.moments(self.chi, self.nu)
        inner = (self.chi - self.chi0) * theta - (self.nu - self.nu0) * psi
        prior = conjugate.log_normaliser(np.array(self.chi0), np.array(self.nu0))
        return float(np.sum(inner - conjugate.log_normaliser(self.chi, self.nu) + prior))

    def with_best_prior(
        self, conjugate: Conjugate, chi: FloatArray, nu: FloatArray, *, centred: bool
    ) -> "ThetaPosterior":
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


@dataclass(eq=False)
class Varying:
    """Theta of the users, of the items, or of both."""

    conjugate: Conjugate
    users: ThetaPosterior | None
    items: ThetaPosterior | None
    hurdle: bool = False

    @property
    def sharing(self) -> Sharing | None:
        """How the sides share theta; None where only one has it."""
        both = self.users is not None and self.items is not None
        return self.conjugate.sharing if both else None

    def side(self, users: bool) -> ThetaPosterior | None:
        """Theta of one side."""
        return self.users if users else self.items

    def put(self, users: bool, groups: ThetaPosterior) -> None:
        """Replace one side."""
        if users:
            self.users = groups
        else:
            self.items = groups

    # -- what the kernels see -----------------------------------------------------------------

    def set_shifts(
        self, factors: Factors, element: Element, users: bool, rows: slice = slice(None)
    ) -> None:
        """Set shift, cross and weight of one side's rows; the tables' slope is not taken off."""
        groups = self.side(users)
        factors.shift[rows] = 0.0
        if groups is None:
            return
        part = _part(self.conjugate, self.sharing, groups.chi[rows], groups.nu[rows])
        if not self.hurdle:
            factors.shift[rows] = -float(element.kappa) * part.psi
        if part.cross is not None:
            factors.cross[rows] = part.cross
        if part.weight is not None:
            factors.weight[rows] = part.weight

    # -- learning -----------------------------------------------------------------------------

    def learn(
        self,
        factors: Factors,
        values: Values,
        element: Element,
        users: bool,
        *,
        rows: slice = slice(None),
        fit_prior: bool = False,
    ) -> None:
        """The optimal posterior of one side's theta, given the counts of its last half-step."""
        groups = self.side(users)
        if groups is None:
            return
        chi, nu = self._observed(factors, values, element, users, rows)
        if fit_prior:
            centred = self.sharing is not None and not users
            groups = groups.with_best_prior(self.conjugate, chi, nu, centred=centred)
        self.put(users, groups.observing(chi, nu, rows))

    def _observed(
        self, factors: Factors, values: Values, element: Element, users: bool, rows: slice
    ) -> tuple[FloatArray, FloatArray]:
        """What the entries of some rows add to chi and nu."""
        sharing, kappa = self.sharing, float(element.kappa)
        if sharing is not None and sharing.weighs:
            total = values.unit * factors.value_sum[rows]
        else:
            total = (values.by_user() if users else values.by_item())[rows]
        if sharing is not None and sharing.sign:
            crossed = kappa * factors.cross_count[rows]
            if not sharing.additive:
                return total, crossed
            total = total - crossed
        count = values.count(users) if self.hurdle else factors.count
        return total, kappa * np.asarray(count[rows], dtype=np.float64)

    def rescale(self, ratio: float) -> None:
        """Follow a kappa that was multiplied by ``ratio``, all means staying as they are."""
        sharing = self.sharing
        for users in (True, False):
            groups = self.side(users)
            if groups is None:
                continue
            if users or sharing is None or sharing.additive:
                self.put(users, groups.scaled(1.0, ratio))
            else:
                both = ratio**sharing.power
                self.put(users, groups.scaled(both, both))

    # -- the bound, and what is predicted -----------------------------------------------------

    def bound(self, values: Values, element: Element) -> float:
        """Sum of y E[theta] over the entries, less the divergence of theta from its prior.

        Less kappa E[Psi(theta)], too, where that is no matter of n.
        """
        total = -float(element.kappa) * self._sum_of_psi(values) if self.hurdle else 0.0
        weight = None
        if self.items is not None:
            weight = _part(self.conjugate, self.sharing, self.items.chi, self.items.nu).weight
        if self.users is not None:
            theta = self.conjugate.moments(self.users.chi, self.users.nu)[0]
            total += float(theta @ values.by_user(weight))
            total -= self.users.divergence(self.conjugate)
        if self.items is not None:
            if weight is None:
                theta = self.conjugate.moments(self.items.chi, self.items.nu)[0]
                total += float(theta @ values.by_item())
            total -= self.items.divergence(self.conjugate)
        return total

    def _sum_of_psi(self, values: Values) -> float:
        """Sum of E[Psi(theta)] over the entries, each counted once."""
        total, crosses = 0.0, list[FloatArray]()
        for users in (True, False):
            groups = self.side(users)
            if groups is None:
                continue
            part = _part(self.conjugate, self.sharing, groups.chi, groups.nu)
            total += float(part.psi @ values.count(users))
            if part.cross is not None:
                crosses.append(part.cross)
        if self.sharing is not None and len(crosses) == 2:
            total += self.sharing.sign * values.sum_of_products(*crosses)
        return total

    def population(self, element: Element) -> Element:
        """The element at the centre of the prior."""
        groups = self.users if self.users is not None else self.items
        assert groups is not None
        mean = self.conjugate.mean(np.array(groups.chi0), np.array(groups.nu0))
        return element.with_mean(float(element.kappa * mean))

    def element_at(
        self, element: Element, users: NDArray[np.int64], items: NDArray[np.int64]
    ) -> Element:
        """The element of pairs given by position, theta integrated out."""
        return pair_element(element, [(self.users, self.items)], users, items)

    def means(
        self, element: Element, users: NDArray[np.int64], items: NDArray[np.int64]
    ) -> FloatArray:
        """The expected mean of one element for pairs given by position."""
        return pair_means(element, self.users, self.items, users, items)


def pair_element(
    element: Element,
    posteriors: Sequence[tuple[ThetaPosterior | None, ThetaPosterior | None]],
    u: NDArray[np.int64],
    i: NDArray[np.int64],
) -> Element:
    """The element of pairs, theta integrated out.

    ``posteriors`` are theta of the users and of the items in each of several fits.
    """
    conjugate = element.conjugate
    assert conjugate is not None
    chi, nu = pair_theta(conjugate, posteriors, u, i)
    return Integrated(chi, nu, base=element)


def pair_theta(
    conjugate: Conjugate,
    posteriors: Sequence[tuple[ThetaPosterior | None, ThetaPosterior | None]],
    u: NDArray[np.int64],
    i: NDArray[np.int64],
) -> Theta:
    """One (chi, nu) for theta of each pair, pooled over its sides and averaged over the fits."""
    chi, nu = np.zeros((2, len(u)))
    for users, items in posteriors:
        parts = [
            (groups.chi[rows], groups.nu[rows])
            for groups, rows in ((users, u), (items, i))
            if groups is not None
        ]
        theta = parts[0]
        if len(parts) == 2:
            assert conjugate.sharing is not None
            theta = conjugate.sharing.pooled(*parts)
        chi += theta[0] / len(posteriors)
        nu += theta[1] / len(posteriors)
    return chi, nu


def pair_means(
    element: Element,
    users: ThetaPosterior | None,
    items: ThetaPosterior | None,
    u: NDArray[np.int64],
    i: NDArray[np.int64],
) -> FloatArray:
    """The expected mean of one element for pairs of rows of either side."""
    conjugate = element.conjugate
    assert conjugate is not None
    return _joined(
        element,
        [
            conjugate.mean(groups.chi, groups.nu)[rows]
            for groups, rows in ((users, u), (items, i))
            if groups is not None
        ],
    )


def pair_shift(
    value_model: ValueModel,
    users: ThetaPosterior | None,
    items: ThetaPosterior | None,
    u: int,
    i: NDArray[np.int64],
) -> FloatArray | float:
    """Return the log-rate shift of one user's pairs caused by row-specific theta."""
    element = value_model.element
    conjugate = element.conjugate
    if value_model.vary_by is None or value_model.hurdle or conjugate is None:
        return 0.0
    sides = [g.at(rows) for g, rows in ((users, np.array([u])), (items, i)) if g is not None]
    if len(sides) == 1:
        psi = conjugate.moments(sides[0].chi, sides[0].nu)[1]
    else:
        sharing = conjugate.sharing
        assert sharing is not None
        user, item = (sharing.part(side.chi, side.nu) for side in sides)
        psi = user.psi + item.psi
        if user.cross is not None and item.cross is not None:
            psi = psi + sharing.sign * user.cross * item.cross
    return float(element.kappa) * (float(element.log_partition(element.theta)) - psi)


def draw_means(
    element: Element,
    users: ThetaPosterior | None,
    items: ThetaPosterior | None,
    u: NDArray[np.int64],
    i: NDArray[np.int64],
    rng: np.random.Generator,
) -> FloatArray:
    """One draw from the posterior of theta, as the mean of an element for each pair."""
    conjugate = element.conjugate
    assert conjugate is not None
    parts: list[FloatArray] = []
    for groups, rows in ((users, u), (items, i)):
        if groups is not None:
            some, place = np.unique(rows, return_inverse=True)
            parts.append(conjugate.sample_mean(groups.chi[some], groups.nu[some], rng)[place])
    return _joined(element, parts)


def _part(conjugate: Conjugate, sharing: Sharing | None, chi: FloatArray, nu: FloatArray) -> Part:
    """What one side has in Psi of its pairs; all of it where the other has no theta."""
    return Part(conjugate.moments(chi, nu)[1]) if sharing is None else sharing.part(chi, nu)


def _joined(element: Element, parts: list[FloatArray]) -> FloatArray:
    """The mean of an element from what the sides say of Psi'."""
    kappa = float(element.kappa)
    if len(parts) == 1:
        return kappa * parts[0]
    sharing = element.conjugate.sharing if element.conjugate is not None else None
    assert sharing is not None
    return kappa * (parts[0] + parts[1] if sharing.additive else parts[0] * parts[1])


def first_varying(problem: Problem, users: Factors, items: Factors) -> Varying | None:
    """A start from the sums of the values alone, as if every entry were one element."""
    element, value_model = problem.element, problem.value_model
    conjugate, hurdle = element.conjugate, value_model.hurdle
    if value_model.vary_by is None or conjugate is None:
        return None
    kappa, mean = float(element.kappa), float(element.mean)
    strength = _FIRST_STRENGTH * kappa
    first = ThetaPosterior.at_prior(0, mean / kappa * strength, strength)
    n_users, n_items = problem.users.size, problem.items.size
    is_sum = mean != 0 and not hurdle
    elements = problem.sum_of_values / (problem.n_observed * mean) if is_sum else 1.0
    per_entry = float(np.clip(elements, 1.0, _MOST_ELEMENTS))
    users.count[:], items.count[:] = (per_entry * s.degrees for s in (problem.users, problem.items))
    if not value_model.is_crossed:
        by_user = value_model.varies(Axis.USERS)
        prior = ThetaPosterior.at_prior(n_users if by_user else n_items, first.chi0, first.nu0)
        varying = Varying(conjugate, prior if by_user else None, None if by_user else prior, hurdle)
    else:
        sharing = conjugate.sharing
        assert sharing is not None
        users.cross_count[:] = 0.0 if sharing.additive else users.count
        by_user = True
        cross = sharing.part(np.array([first.chi0]), np.array([first.nu0])).cross
        if cross is not None and not sharing.additive:
            # What an element adds to nu of an item is multiplied with its user's part.
            strength *= float(cross[0])
        prior = ThetaPosterior.at_prior(n_items, 0.0 if sharing.additive else strength, strength)
        mine = ThetaPosterior.at_prior(n_users, first.chi0, first.nu0)
        varying = Varying(conjugate, mine, prior, hurdle)
        weight = sharing.part(prior.chi, prior.nu).weight
        if weight is not None:
            users.value_sum[:] = problem.values.by_user(weight) / problem.values.unit
    factors = users if by_user else items
    varying.learn(factors, problem.values, element, by_user, fit_prior=True)
    return varying
