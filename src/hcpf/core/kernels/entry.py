"""Algorithm 1 of the paper: one sampled entry at a time, in float64."""

import math

import numpy as np

from hcpf.core.jit import inner, kernel
from hcpf.core.kernels.count import outside
from hcpf.core.kernels.scalars import digamma
from hcpf.core.kernels.vector import table_four


@inner()
def _find(entries, u, i):
    """Position of pair (u, i) among the row's sorted entries, or -1."""
    low, high = entries.start[u], entries.stop[u]
    while low < high:
        middle = (low + high) // 2
        if entries.index[middle] < i:
            low = middle + 1
        else:
            high = middle
    if low < entries.stop[u] and entries.index[low] == i:
        return low
    return -1


@inner()
def _expected_count(tables, rate, shift, y):
    """E[n] at the product-of-means rate, the paper's rule for q(n); 1 if its sum was cut short."""
    # Clipped because exp may overflow: such a rate lies beyond the table, and is summed below.
    x = np.float32(rate * math.exp(min(shift, 80.0)))
    fast = table_four(
        tables.mode, tables.first_code, tables.x_low, tables.x_high,
        tables.mean_table.shape[1], tables.mean_table.reshape(-1), (x, x, x, x), (y, y, y, y),
    )[0]  # fmt: skip
    if fast >= np.float32(0.0):
        return float(fast), 0
    mean, _, cut = outside(tables, math.log(rate) + shift, y)
    return mean, cut


@inner()
def _draw(entries, owner, excluded, n_items, share, rng):
    """Draw an observed pair with probability ``share``, else a missing one, uniform among each.

    With the share that they have in the grid that is a uniform draw from the grid. (A generator's
    ``integers`` would take seconds to compile.)
    """
    if rng.random() < share:
        e = int(rng.random() * len(entries.index))
        return owner[e], np.int64(entries.index[e]), e
    # It ends: ``share`` is 1 where no pair is missing.
    while True:
        u = int(rng.random() * len(entries.start))
        i = int(rng.random() * n_items)
        if _find(entries, u, i) < 0 and _find(excluded, u, i) < 0:
            return u, i, np.int64(-1)


@inner()
def _move(
    a, b, activity_b, exposure, activity_a, rate, shape, step, count_share, weight, other_mean
):
    """The paper's update of one row, in its order: activity, shapes, rates."""
    total = 0.0
    for k in range(len(a)):
        total += a[k] / b[k]
    activity = (1.0 - step) * activity_b + step * (rate + total / exposure)
    for k in range(len(a)):
        a[k] = (1.0 - step) * a[k] + step * (shape + weight * count_share[k])
        goal = activity_a / activity / exposure + weight * other_mean[k]
        b[k] = (1.0 - step) * b[k] + step * goal
    return activity


@kernel(allocates=True)
def entry_steps(
    entries, excluded, owner, tables, shifts, users, items, exposures, user_prior, item_prior,
    weights, clocks, tau, xi, share_observed, n_steps, rng, counts,
):  # fmt: skip
    """Run ``n_steps`` of Algorithm 1; users and items are (a, b, activity_b) in float64.

    a and b are those of factors times the row's exposure.

    ``weights`` holds, per user and per item, what an observed and a missing draw stand for;
    ``counts`` gathers the observed draws, the sum of E[n], and the sums over n cut short.
    """
    a_s, b_s, b_r = users
    a_v, b_v, b_w = items
    user_shift, item_shift, user_cross, item_cross = shifts
    size = a_s.shape[1]
    share, mean_u, mean_i = np.empty(size), np.empty(size), np.empty(size)
    for _ in range(n_steps):
        u, i, e = _draw(entries, owner, excluded, a_v.shape[0], share_observed, rng)
        rate, peak = 0.0, -np.inf
        for k in range(size):
            mean_i[k] = a_v[i, k] / b_v[i, k]
            rate += a_s[u, k] / b_s[u, k] * mean_i[k]
            share[k] = digamma(a_s[u, k]) - math.log(b_s[u, k])
            share[k] += digamma(a_v[i, k]) - math.log(b_v[i, k])
            peak = max(peak, share[k])
        total = 0.0
        for k in range(size):
            share[k] = math.exp(share[k] - peak)
            total += share[k]
        kind, count = 1, 0.0
        if e >= 0:
            kind = 0
            shift = user_shift[u] + item_shift[i] + tables.cross * user_cross[u] * item_cross[i]
            count, cut = _expected_count(tables, rate, shift, entries.coordinate[e])
            counts[0] += 1.0
            counts[1] += count
            counts[2] += cut
        for k in range(size):
            share[k] *= count / total
        step_u = min((tau + clocks[0][u]) ** -xi, 1.0)
        step_i = min((tau + clocks[1][i]) ** -xi, 1.0)
        b_r[u] = _move(
            a_s[u], b_s[u], b_r[u], exposures[0][u],
            user_prior.activity_a, user_prior.activity_rate, user_prior.shape,
            step_u, share, weights[0][u, kind], mean_i,
        )  # fmt: skip
        for k in range(size):
            mean_u[k] = a_s[u, k] / b_s[u, k]
        b_w[i] = _move(
            a_v[i], b_v[i], b_w[i], exposures[1][i],
            item_prior.activity_a, item_prior.activity_rate, item_prior.shape,
            step_i, share, weights[1][i, kind], mean_u,
        )  # fmt: skip
        clocks[0][u] += 1.0
        clocks[1][i] += 1.0
