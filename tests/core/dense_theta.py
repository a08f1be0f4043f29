"""Theta of the users, the items or both, dense: E[theta] and E[Psi] of every pair, as printed.

Where both axes are pooled the element of a pair has the rate b_u c_i (gamma, Poisson), the mean
kappa (t_u + t_i) (normal), or theta = -(t_u t_i)^2 / 2 (inverse Gaussian).
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import special


@dataclass(frozen=True)
class Theta:
    """q(theta) of each row of one side, prop. to exp(chi theta - nu Psi), and its prior."""

    chi: np.ndarray
    nu: np.ndarray
    chi0: float
    nu0: float


@dataclass(frozen=True)
class Thetas:
    users: Theta | None
    items: Theta | None

    @property
    def transposed(self):
        return Thetas(self.items, self.users)


def truncated_moments(theta):
    """E[t] and E[t^2] under t N(t; nu/chi, 1/chi) on t > 0, by the trapezoid rule."""
    chi, nu = theta.chi[:, None], theta.nu[:, None]
    center, spread = nu / chi, 1.0 / np.sqrt(chi)
    low, high = np.maximum(center - 12.0 * spread, 0.0), center + 12.0 * spread
    t = low + (high - low) * np.linspace(0.0, 1.0, 8_001)
    weight = t * np.exp(-0.5 * ((t - center) / spread) ** 2)
    return [np.sum(weight * t**j, axis=1) / np.sum(weight, axis=1) for j in (1, 2)]


def of_pairs(element, thetas):
    """E[theta] and E[Psi(theta)] of every pair, users x items."""
    users, items = thetas.users, thetas.items
    if users is None or items is None:
        mine = users or items
        found = element.conjugate.moments(mine.chi, mine.nu)
        return [x[:, None] if items is None else x[None, :] for x in found]
    if element.name == "gamma":
        (b, log_b), (c, log_c) = (
            ((s.nu + 1.0) / s.chi, special.psi(s.nu + 1.0) - np.log(s.chi)) for s in (users, items)
        )
        return -np.outer(b, c), -log_b[:, None] - log_c
    if element.name == "poisson":
        (b, log_b), (c, log_c) = (
            (s.chi / s.nu, special.psi(s.chi) - np.log(s.nu)) for s in (users, items)
        )
        return log_b[:, None] + log_c, np.outer(b, c)
    if element.name == "normal":
        m, t = users.chi / users.nu, items.chi / items.nu
        spread = 1.0 / users.nu[:, None] + 1.0 / items.nu
        total = m[:, None] + t
        return total, 0.5 * (total**2 + spread)
    assert element.name == "inverse_gaussian"
    (t, t2), (x, x2) = truncated_moments(users), truncated_moments(items)
    return -0.5 * np.outer(t2, x2), -np.outer(t, x)


def updated(element, thetas, values, counts):
    """The users' optimal theta, given that of the items and E[n]; values are 0 where missing."""
    users, items = thetas.users, thetas.items
    if users is None:
        return thetas
    value, count = values, element.kappa * counts
    if items is not None:
        if element.name == "gamma":
            value = values * (items.nu + 1.0) / items.chi
        elif element.name == "poisson":
            count = count * items.chi / items.nu
        elif element.name == "normal":
            value = values - count * items.chi / items.nu
        else:
            t, t2 = truncated_moments(items)
            value, count = values * t2, count * t
    chi, nu = users.chi0 + value.sum(axis=1), users.nu0 + count.sum(axis=1)
    return replace(thetas, users=replace(users, chi=chi, nu=nu))


def divergence(element, thetas):
    """Kullback-Leibler divergence from the prior, over both sides."""
    total, conjugate = 0.0, element.conjugate
    for side in (thetas.users, thetas.items):
        if side is not None:
            theta, psi = conjugate.moments(side.chi, side.nu)
            own = conjugate.log_normalizer(side.chi, side.nu)
            prior = conjugate.log_normalizer(np.array(side.chi0), np.array(side.nu0))
            total += np.sum((side.chi - side.chi0) * theta - (side.nu - side.nu0) * psi)
            total += np.sum(prior - own)
    return float(total)
