"""How row-specific theta enters training: updates, ELBO and start of a partially pooled fit."""

from dataclasses import dataclass

import numpy as np

from hcpf._types import FloatArray
from hcpf.core.axis import Axis, AxisState
from hcpf.core.collective import LOCAL, Collective, sum_scalar
from hcpf.core.shard import Shard, Values
from hcpf.core.theta import ThetaPosterior
from hcpf.core.value_model import ValueModel
from hcpf.elements.base import Element
from hcpf.elements.conjugate import Conjugate, Part, Sharing

# Fibonacci numbers less 1: often at first, when q(n), and with it the evidence, changes most.
PRIOR_PASSES = frozenset({0, 1, 2, 4, 7, 12, 20, 33, 54, 88})
"""Passes in which the prior of theta is estimated again."""

_START_STRENGTH = 10.0  # elements that the prior counts as at the start
_MAX_START_COUNT = 30.0  # elements that an entry counts as at the start


@dataclass(frozen=True, eq=False)
class Pooling:
    """How the theta of users and items enters the rates and the ELBO; the same for a whole fit."""

    conjugate: Conjugate
    sharing: Sharing | None
    """How the axes share theta; None where only one has it."""
    hurdle: bool

    @classmethod
    def of(cls, value_model: ValueModel) -> "Pooling | None":
        """Return the pooling of a value model; None for a shared mean."""
        conjugate = value_model.element.conjugate
        if value_model.vary_by is None or conjugate is None:
            return None
        return cls(conjugate, value_model.sharing, value_model.hurdle)

    def part(self, chi: FloatArray, nu: FloatArray) -> Part:
        """Return what rows contribute to Psi of their pairs; all of it where one axis has theta."""
        if self.sharing is None:
            return Part(self.conjugate.moments(chi, nu)[1])
        return self.sharing.part(chi, nu)

    def set_row_terms(self, mine: AxisState, element: Element, rows: slice = slice(None)) -> None:
        """Set shift, cross and weight of some rows; the tables' normalizer is not subtracted."""
        factors, theta = mine.factors, mine.theta
        factors.shift[rows] = 0.0
        if theta is None:
            return
        part = self.part(theta.chi[rows], theta.nu[rows])
        if not self.hurdle:
            factors.shift[rows] = -float(element.kappa) * part.psi
        if part.cross is not None:
            factors.cross[rows] = part.cross
        if part.weight is not None:
            factors.weight[rows] = part.weight

    def update(
        self,
        mine: AxisState,
        values: Values,
        element: Element,
        *,
        rows: slice = slice(None),
        fit_prior: bool = False,
        comm: Collective = LOCAL,
    ) -> None:
        """Set the theta posterior of some rows from the counts of their last half-step."""
        theta = mine.theta
        if theta is None:
            return
        chi, nu = self._observed(mine, values, element, rows)
        if fit_prior:
            # Where both axes have theta, a free center of the items would not be identified.
            centered = self.sharing is not None and mine.axis is Axis.ITEMS
            all_rows = comm if mine.axis is Axis.USERS else LOCAL
            theta = theta.with_best_prior(self.conjugate, chi, nu, centered=centered, comm=all_rows)
        mine.theta = theta.observing(chi, nu, rows)

    def _observed(
        self, mine: AxisState, values: Values, element: Element, rows: slice
    ) -> tuple[FloatArray, FloatArray]:
        """Return what the entries of some rows add to chi and nu."""
        # The table of docs/partial-pooling.md ("Both axes"). With one axis: the sums of y and of
        # kappa E[n]; ``value_sum`` is of values that are weighed, in units that float32 holds.
        factors, sharing, kappa = mine.factors, self.sharing, float(element.kappa)
        if sharing is not None and sharing.weighs:
            total = values.unit * factors.value_sum[rows]
        else:
            total = values.sums(mine.axis)[rows]
        if sharing is not None and sharing.sign:
            crossed = kappa * factors.cross_count[rows]
            if not sharing.additive:
                return total, crossed
            total = total - crossed
        count = values.degrees(mine.axis) if self.hurdle else factors.count
        return total, kappa * np.asarray(count[rows], dtype=np.float64)

    def rescaled(
        self, users: "ThetaPosterior | None", items: "ThetaPosterior | None", ratio: float
    ) -> "tuple[ThetaPosterior | None, ThetaPosterior | None]":
        """Return the same means in terms of a kappa multiplied by ``ratio``."""
        # The mean is kappa chi / nu, so nu of the users grows with kappa. So does their theta, b_u
        # or t_u, which weighs what items add up: chi and nu of the items grow by b_u (gamma) or
        # t_u^2 (inverse Gaussian), and their centers stay.
        if users is not None:
            users = users.scaled(1.0, ratio)
        if items is not None:
            chi = 1.0
            if self.sharing is not None and not self.sharing.additive:
                chi = ratio = ratio**self.sharing.power
            items = items.scaled(chi, ratio)
        return users, items

    def elbo(
        self,
        users: AxisState,
        items: AxisState,
        values: Values,
        element: Element,
        comm: Collective = LOCAL,
    ) -> float:
        """Return the sum of y E[theta] over all entries, less the divergence from the prior.

        In a hurdle model less kappa E[Psi(theta)], too, which has no part in the rates there.
        """
        # With weights theta of a pair is theta_u times the weight of the item: y E[theta] is summed
        # by user, and the items add their divergence only. Without, theta_u + theta_i.
        total, weight = 0.0, None
        if self.hurdle:
            total -= float(element.kappa) * self._sum_of_psi(users, items, values, comm)
        if items.theta is not None:
            weight = self.part(items.theta.chi, items.theta.nu).weight
        if users.theta is not None:
            theta = self.conjugate.moments(users.theta.chi, users.theta.nu)[0]
            sums = values.sums(Axis.USERS) if weight is None else values.weighted_by_item(weight)
            total += sum_scalar(comm, float(theta @ sums))
            total -= sum_scalar(comm, float(users.theta.divergence(self.conjugate).sum()))
        if items.theta is not None:
            if weight is None:
                theta = self.conjugate.moments(items.theta.chi, items.theta.nu)[0]
                total += float(theta @ values.sums(Axis.ITEMS))
            total -= float(items.theta.divergence(self.conjugate).sum())
        return total

    def row_elbo(
        self, mine: AxisState, other: AxisState, values: Values, element: Element
    ) -> FloatArray:
        """Return what the theta of each row adds to the ELBO, the other axis held fixed.

        ``mine`` takes the place of the users; its counts are those of the last half-step.
        """
        theta, weight = mine.theta, None
        if theta is None:
            return np.zeros(mine.n_rows)
        if other.theta is not None:
            weight = self.part(other.theta.chi, other.theta.nu).weight
        sums = values.sums(Axis.USERS) if weight is None else values.weighted_by_item(weight)
        total = self.conjugate.moments(theta.chi, theta.nu)[0] * sums
        total -= theta.divergence(self.conjugate)
        if self.hurdle:
            part = self.part(theta.chi, theta.nu)
            psi = part.psi * values.degrees(Axis.USERS)
            if self.sharing is not None and part.cross is not None:
                psi = psi + self.sharing.sign * part.cross * mine.factors.cross_count
            total -= float(element.kappa) * psi
        return total

    def _sum_of_psi(
        self, users: AxisState, items: AxisState, values: Values, comm: Collective
    ) -> float:
        """Return the sum of E[Psi(theta)] over the entries; each counts once."""
        total, crosses = 0.0, list[FloatArray]()
        for mine in (users, items):
            if mine.theta is None:
                continue
            part = self.part(mine.theta.chi, mine.theta.nu)
            own = float(part.psi @ values.degrees(mine.axis))
            total += sum_scalar(comm, own) if mine.axis is Axis.USERS else own
            if part.cross is not None:
                crosses.append(part.cross)
        if self.sharing is not None and len(crosses) == 2:
            total += self.sharing.sign * values.sum_of_products(*crosses)
        return total

    def population(self, users: AxisState, items: AxisState, element: Element) -> Element:
        """Return the element at the center of the prior."""
        theta = users.theta if users.theta is not None else items.theta
        assert theta is not None
        mean = self.conjugate.mean(np.array(theta.chi0), np.array(theta.nu0))
        return element.with_mean(float(element.kappa * mean))


def start_theta(users: AxisState, items: AxisState, shard: Shard, comm: Collective = LOCAL) -> None:
    """Set theta from the sums of the values alone, as if every entry were one element."""
    pooling, element = Pooling.of(shard.value_model), shard.element
    if pooling is None:
        return
    totals, values = shard.totals, shard.values
    kappa, mean = float(element.kappa), float(element.mean)
    strength = _START_STRENGTH * kappa  # nu counts kappa per element
    chi0 = mean / kappa * strength
    is_sum = mean != 0 and not pooling.hurdle
    # The E[n] of an average entry at which the mean of the element fits the values.
    elements = totals.sum_of_values / (totals.n_entries * mean) if is_sum else 1.0
    per_entry = float(np.clip(elements, 1.0, _MAX_START_COUNT))
    for mine in (users, items):
        mine.factors.count[:] = per_entry * values.degrees(mine.axis)
    if pooling.sharing is None:
        first = users if shard.value_model.varies(Axis.USERS) else items
        first.theta = ThetaPosterior.at_prior(first.n_rows, chi0, strength)
    else:
        first = users
        users.theta = ThetaPosterior.at_prior(users.n_rows, chi0, strength)
        items.theta = _neutral_theta(pooling.sharing, items.n_rows, chi0, strength)
        users.factors.cross_count[:] = 0.0 if pooling.sharing.additive else users.factors.count
        weight = pooling.sharing.part(items.theta.chi, items.theta.nu).weight
        if weight is not None:
            users.factors.value_sum[:] = values.weighted_by_item(weight) / values.unit
    pooling.update(first, values, element, fit_prior=True, comm=comm)


def _neutral_theta(sharing: Sharing, n_rows: int, chi0: float, nu0: float) -> ThetaPosterior:
    """Return theta of items that leaves the means of the users' pairs unchanged."""
    strength = nu0
    cross = sharing.part(np.array([chi0]), np.array([nu0])).cross
    if cross is not None and not sharing.additive:
        # What an element adds to nu of an item is multiplied with its user's part.
        strength *= float(cross[0])
    return ThetaPosterior.at_prior(n_rows, 0.0 if sharing.additive else strength, strength)
