"""The dense float64 twin of training: every formula as the design prints it, nothing clever.

Arrays are users x items. ``observed`` marks the entries, ``included`` the pairs that take part in
training: all but the excluded ones, or only the observed ones. Factors are those at exposure 1.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import optimize, special

from core import dense_theta
from core.dense_theta import Thetas
from hcpf.core.axis import Axis
from hcpf.core.priors import Priors
from hcpf.core.value_model import ValueModel

LARGEST_N = 200


@dataclass(frozen=True)
class Side:
    """One side's q: Gamma(a, b) for the factors, b of the activities, and the prior."""

    a: np.ndarray
    b: np.ndarray
    activity_b: np.ndarray
    shape: float
    activity_shape: float
    activity_mean: float
    exposure: np.ndarray | float = 1.0

    @property
    def prior(self):
        return self.shape, self.activity_shape, self.activity_mean

    @property
    def mean(self):
        return self.a / self.b

    @property
    def log_mean(self):
        return special.psi(self.a) - np.log(self.b)

    @property
    def activity_a(self):
        return self.activity_shape + self.a.shape[1] * self.shape

    @property
    def activity_rate(self):
        return self.activity_shape / self.activity_mean


@dataclass(frozen=True)
class Model:
    users: Side
    items: Side
    value_model: ValueModel
    values: np.ndarray
    observed: np.ndarray
    included: np.ndarray
    max_count: int | None = None
    tempering: float = 1.0
    thetas: Thetas | None = None

    @property
    def element(self):
        return self.value_model.element

    @property
    def priors(self):
        return Priors(*self.users.prior, *self.items.prior)

    @property
    def exposure(self):
        """The known multiplier of the rate of every pair."""
        users, items = np.ones(self.values.shape[0]), np.ones(self.values.shape[1])
        return np.outer(self.users.exposure * users, self.items.exposure * items)

    def with_element(self, element):
        return replace(self, value_model=self.value_model.replace(element=element))

    @property
    def transposed(self):
        return replace(
            self,
            users=self.items,
            items=self.users,
            values=self.values.T,
            observed=self.observed.T,
            included=self.included.T,
            thetas=None if self.thetas is None else self.thetas.transposed,
        )


def make_side(priors: Priors, axis: Axis, a, b, activity_b) -> Side:
    return Side(a, b, activity_b, *priors.axis(axis))


# -- the local step -------------------------------------------------------------------------------


def sum_over_counts(value_model, y, log_rate, most=None, theta=None):
    """E[n] and log Z of q(n) prop. to p(y | n) rate^n / n!, for arrays, by a plain sum.

    ``theta`` are E[theta] and E[Psi(theta)] of the entries, where it is not the element's own.
    """
    element = value_model.element
    n = np.arange(1.0, (most or LARGEST_N) + 1.0)
    summed = np.ones_like(n) if value_model.hurdle else n
    with np.errstate(all="ignore"):
        if theta is None:
            density = element.log_density_unchecked(y[:, None], summed)
        else:
            total = summed * element.kappa
            density = y[:, None] * theta[0][:, None] - total * theta[1][:, None]
            density = density + element.log_base_measure(y[:, None], total)
    terms = density - special.gammaln(n + 1.0) + n * log_rate[:, None]
    log_z = special.logsumexp(terms, axis=1)
    weight = np.exp(terms - log_z[:, None])
    assert most is not None or np.all(weight[:, -1] < 1e-16), "LARGEST_N is too small"
    return weight @ n, log_z


def one_sum_over_counts(element, y, log_rate, most=None):
    """The same for one entry of any size: from the mode outward, in windows."""
    low, high = (float(end) for end in element.n_range(np.array(float(y))))
    high = min(high, most or np.inf)

    def terms(n):
        with np.errstate(all="ignore"):
            density = element.log_density_unchecked(np.full(n.shape, float(y)), n)
        return density - special.gammaln(n + 1.0) + n * log_rate

    def rises(n):
        first, second = terms(np.array([n, n + 1.0]))
        return n < high and second > first

    top = low
    while rises(top):
        top = min(2.0 * top, high)
    mode = low
    while mode < top:
        middle = np.floor(0.5 * (mode + top))
        mode, top = (middle + 1.0, top) if rises(middle) else (mode, middle)
    width = 64.0
    while True:
        n = np.arange(max(low, mode - width), min(high, mode + width) + 1.0)
        t = terms(n)
        ends = np.array([n[0] > low, n[-1] < high]) & (t[[0, -1]] > t.max() - 45.0)
        if not np.any(ends):
            break
        width *= 2.0
    log_z = special.logsumexp(t)
    return float(np.exp(t - log_z) @ n), float(log_z)


def log_rates(model):
    """The log of the geometric rate of every pair."""
    return np.log(model.exposure) + special.logsumexp(
        model.users.log_mean[:, None, :] + model.items.log_mean[None, :, :], axis=2
    )


def expected_counts(model, log_rate=None):
    """E[n] and log Z of every pair, 0 where nothing was observed."""
    log_rate = log_rates(model) if log_rate is None else log_rate
    mean, log_z = np.zeros(model.values.shape), np.zeros(model.values.shape)
    where, theta = model.observed, None
    if model.thetas is not None:
        of_pairs = dense_theta.of_pairs(model.element, model.thetas)
        theta = [np.broadcast_to(x, where.shape)[where] for x in of_pairs]
    mean[where], log_z[where] = sum_over_counts(
        model.value_model, model.values[where], log_rate[where], model.max_count, theta
    )
    return mean, log_z


# -- coordinate ascent ----------------------------------------------------------------------------


def update_users(model):
    """The users' optimal posterior given the items, then that of activities and theta."""
    users, items = model.users, model.items
    mean, _ = expected_counts(model)
    share = special.softmax(users.log_mean[:, None, :] + items.log_mean[None, :, :], axis=2)
    a = users.shape + model.tempering * np.sum(mean[:, :, None] * share, axis=1)
    activity = users.activity_a / users.activity_b
    b = activity[:, None] + model.tempering * ((model.included * model.exposure) @ items.mean)
    activity_b = users.activity_rate + np.sum(a / b, axis=1)
    model = replace(model, users=replace(users, a=a, b=b, activity_b=activity_b))
    if model.thetas is None:
        return model
    counts = model.observed if model.value_model.hurdle else mean
    thetas = dense_theta.updated(model.element, model.thetas, model.values, counts)
    return replace(model, thetas=thetas)


def update_items(model):
    return update_users(model.transposed).transposed


def cavi_pass(model):
    return update_items(update_users(model))


# -- the ELBO -------------------------------------------------------------------------------------


def log_gamma_density(a, b, mean, log_mean):
    """E log Gamma(x | a, b) from E[x] and E[log x]."""
    return a * np.log(b) - special.gammaln(a) + (a - 1.0) * log_mean - b * mean


def entropy(a, b):
    return a - np.log(b) + special.gammaln(a) + (1.0 - a) * special.psi(a)


def side_elbo(side):
    """E log p(s|r) + E log p(r) + H[s] + H[r]."""
    mean_r = side.activity_a / side.activity_b
    log_r = special.psi(side.activity_a) - np.log(side.activity_b)
    # E log p(s | r) is linear in r and in log r.
    given = (
        side.shape * log_r[:, None]
        - special.gammaln(side.shape)
        + (side.shape - 1.0) * side.log_mean
        - mean_r[:, None] * side.mean
    )
    activity = log_gamma_density(side.activity_shape, side.activity_rate, mean_r, log_r)
    return (
        np.sum(given + entropy(side.a, side.b))
        + np.sum(activity)
        + np.sum(entropy(side.activity_a, side.activity_b))
    )


def elbo(model):
    _, log_z = expected_counts(model)
    rate = model.exposure * (model.users.mean @ model.items.mean.T)
    data = np.sum(log_z) - np.sum(rate[model.included])
    if model.thetas is not None:
        data -= dense_theta.divergence(model.element, model.thetas)
    return float(model.tempering * data + side_elbo(model.users) + side_elbo(model.items))


# -- minibatches of users -------------------------------------------------------------------------


def natural_gradient_items(model, batch, step):
    """Items after one step of size ``step`` towards what the users in ``batch`` say, scaled up."""
    scale = len(model.values) / len(batch)
    part = replace(
        model,
        users=replace(
            model.users,
            a=model.users.a[batch],
            b=model.users.b[batch],
            activity_b=model.users.activity_b[batch],
            exposure=_rows_of(model.users.exposure, batch),
        ),
        values=model.values[batch],
        observed=model.observed[batch],
        included=model.included[batch],
    )
    items, target = model.items, update_items(part).items
    activity = (items.activity_a / items.activity_b)[:, None]
    a = (1 - step) * items.a + step * (items.shape + scale * (target.a - items.shape))
    b = (1 - step) * items.b + step * (activity + scale * (target.b - activity))
    activity_b = items.activity_rate + np.sum(a / b, axis=1)
    return replace(model, items=replace(items, a=a, b=b, activity_b=activity_b))


def _rows_of(exposure, rows):
    return exposure[rows] if np.ndim(exposure) else exposure


def update_some_users(model, batch):
    """Users in ``batch`` updated, the others as they were."""
    new, users = update_users(model).users, model.users
    a, b, activity_b = users.a.copy(), users.b.copy(), users.activity_b.copy()
    a[batch], b[batch], activity_b[batch] = new.a[batch], new.b[batch], new.activity_b[batch]
    return replace(model, users=replace(users, a=a, b=b, activity_b=activity_b))


def svi_pass(model, batches, local_passes, first_step, tau, xi):
    edges = np.linspace(0, len(model.values), min(batches, len(model.values)) + 1).astype(int)
    for t, (start, stop) in enumerate(pairwise(edges)):
        batch = np.arange(start, stop)
        for _ in range(local_passes):
            model = update_some_users(model, batch)
        model = natural_gradient_items(model, batch, min((first_step + t + tau) ** -xi, 1.0))
    return model


# -- Algorithm 1 ----------------------------------------------------------------------------------


def algorithm_1(model, u, i, weight_u, weight_i, t_u, t_i, xi):
    """One round of the paper's Algorithm 1 for the pair (u, i); C_I and C_U are the weights."""
    a_s, b_s, b_r = model.users.a.copy(), model.users.b.copy(), model.users.activity_b.copy()
    a_v, b_v, b_w = model.items.a.copy(), model.items.b.copy(), model.items.activity_b.copy()
    exposure = model.exposure[u, i]
    rate = exposure * np.sum(a_s[u] * a_v[i] / (b_s[u] * b_v[i]))
    log_phi = special.psi(a_s[u]) - np.log(b_s[u]) + special.psi(a_v[i]) - np.log(b_v[i])
    phi = special.softmax(log_phi)
    n = 0.0
    if model.observed[u, i]:
        y = model.values[u, i]
        n = sum_over_counts(model.value_model, np.array([y]), np.log([rate]), model.max_count)[0][0]
    users, items = model.users, model.items
    step = min(t_u**-xi, 1.0)
    b_r[u] = (1 - step) * b_r[u] + step * (users.activity_rate + np.sum(a_s[u] / b_s[u]))
    a_s[u] = (1 - step) * a_s[u] + step * (users.shape + weight_u * n * phi)
    goal = users.activity_a / b_r[u] + weight_u * exposure * a_v[i] / b_v[i]
    b_s[u] = (1 - step) * b_s[u] + step * goal
    step = min(t_i**-xi, 1.0)
    b_w[i] = (1 - step) * b_w[i] + step * (items.activity_rate + np.sum(a_v[i] / b_v[i]))
    a_v[i] = (1 - step) * a_v[i] + step * (items.shape + weight_i * n * phi)
    goal = items.activity_a / b_w[i] + weight_i * exposure * a_s[u] / b_s[u]
    b_v[i] = (1 - step) * b_v[i] + step * goal
    return replace(
        model,
        users=replace(users, a=a_s, b=b_s, activity_b=b_r),
        items=replace(items, a=a_v, b=b_v, activity_b=b_w),
    )


def draw_weights(model, share):
    """Per user: what an observed and a missing draw stand for, d_u/p_u and (C - d_u)/(1 - p_u).

    ``share`` of all draws are observed entries, uniformly; the others are missing pairs.
    """
    degree = model.observed.sum(axis=1)
    missing = (model.included & ~model.observed).sum(axis=1)
    draws_observed = share * degree / degree.sum()
    draws_missing = (1 - share) * missing / max(missing.sum(), 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = draws_observed / (draws_observed + draws_missing)
        observed = np.where(degree > 0, degree / p, 0.0)
        return np.stack([observed, np.where(missing > 0, missing / (1 - p), 0.0)], axis=1)


# -- the element ----------------------------------------------------------------------------------


def m_step(model):
    """The element whose mean is sum y / sum E[n], by a root of the mean in its own parameter.

    In a hurdle model that is the mean of the values.
    """
    element, name = model.element, model.element.mean_parameter
    if name is None:
        return model
    mean, _ = expected_counts(model)
    count = np.sum(model.observed) if model.value_model.hurdle else np.sum(mean)
    target = np.sum(model.values[model.observed]) / count
    if name == "mean":
        return model.with_element(element.replace(mean=target))
    into = special.expit if name == "probability" else np.exp

    def excess(t):
        return float(element.replace(**{name: float(into(t))}).mean) - target

    found = optimize.brentq(excess, -20.0, 20.0, xtol=1e-14, rtol=1e-14)
    return model.with_element(element.replace(**{name: float(into(found))}))
