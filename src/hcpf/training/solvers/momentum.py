"""Momentum: a pass begins beyond where the last one ended, as in Nesterov's gradient method.

Coordinate ascent creeps along the ridges of the bound. Before a pass the geometric means g of both
sides move on in the direction of the pass before, in proportion to their logarithms. The pass from
there is as exact as any, but the bound may be lower than it was; then momentum starts anew.

Where most pairs are observed, a theta that varies moves along: rows have many entries and large
rates there, and twice the rate with elements of half the size gives much the same values, so that
neither gets far without the other. (Rows of few entries do best where the first passes leave them.)
"""

import numpy as np

from hcpf._types import FloatArray
from hcpf.core import kernels
from hcpf.core.layout import Problem
from hcpf.core.state import State, shift_side
from hcpf.core.threads import share

_AGE, _BEFORE = "momentum_age", ("momentum_users", "momentum_items")
_THETA_BEFORE, _BOUND = ("momentum_user_theta", "momentum_item_theta"), "momentum_bound"

_USUAL, _ONCE = (1.0, 5.0), (0.7, 1.3)
"""The most of the last step, and the most that g is multiplied with. Less where a value does not
say how large n is: E[n] follows the rate, and nothing holds back rates that have begun to grow."""
_LEAST = 0.2
"""What chi and nu are multiplied with at least, as the kernel does with g."""


def push(state: State, problem: Problem) -> None:
    """Move g of both sides and theta on, the further the longer the bound has risen."""
    extras, size = state.extras, state.users.a.shape[1]
    sides = dict(zip(_BEFORE, (state.users, state.items), strict=True))
    if _AGE not in extras:
        extras[_AGE] = np.zeros(1)
        extras |= {name: factors.g[:, :size].copy() for name, factors in sides.items()}
        return
    age = float(extras[_AGE][0])
    share_most, most = _ONCE if problem.value_model.hurdle else _USUAL
    part = min(age / (age + 3.0), share_most)
    extras[_AGE] += 1.0
    for name, factors in sides.items():
        share(
            kernels.extrapolate, len(factors.g), factors.g, extras[name], factors.log_scale,
            part, most, work=factors.g.size,
        )  # fmt: skip
    _push_theta(state, problem, part, most)
    if problem.train_on == "observed":
        # The rates of the users are sums over the means of their own items alone.
        before, mean = extras[_BEFORE[1]], state.items.mean
        np.multiply(mean, state.items.g[:, :size], out=mean, where=before > 0)
        np.divide(mean, before, out=mean, where=before > 0)


def moves_theta(state: State, problem: Problem) -> bool:
    """Whether theta moves along."""
    return state.varying is not None and not problem.value_model.hurdle and problem.is_dense


def restart_if_fallen(state: State, bound: float) -> None:
    """Forget the direction if the bound is lower than after the pass before.

    Asked after every pass where theta moves: what overshoots there goes far within a few passes.
    """
    before = state.extras.get(_BOUND)
    if before is not None and bound < float(before[0]):
        restart(state)
    else:
        state.extras[_BOUND] = np.array([bound])


def forget_theta(state: State) -> None:
    """Forget how theta moved: it has been brought to another kappa."""
    for name in (_BOUND, *_THETA_BEFORE):
        state.extras.pop(name, None)


def _push_theta(state: State, problem: Problem, part: float, most: float) -> None:
    """Move what the entries say of theta on by the same part of its last move."""
    varying, extras = state.varying, state.extras
    if varying is None or not moves_theta(state, problem):
        return
    for users, name in zip((True, False), _THETA_BEFORE, strict=True):
        groups = varying.side(users)
        if groups is None:
            continue
        now = np.stack([groups.chi - groups.chi0, groups.nu - groups.nu0])
        before, extras[name] = extras.get(name), now
        if before is None:
            continue
        chi, nu = _moved(now, before, part, most)
        conjugate = varying.conjugate
        centre = (groups.chi0 + chi) / (groups.nu0 + nu)
        inside = (centre > conjugate.lowest) & (centre < conjugate.highest)
        chi, nu = np.where(inside, chi, now[0]), np.where(inside, nu, now[1])
        varying.put(users, groups.observing(chi, nu))
        shift_side(state, problem, users=users)


def _moved(now: FloatArray, before: FloatArray, part: float, most: float) -> FloatArray:
    """As the kernel moves g: in proportion to logarithms, unless the sign has changed."""
    ahead, behind = 1.0 + part, 1.0 - part
    ratio = np.ones_like(now)
    same = now * before > 0
    np.divide(ahead * now + behind * before, behind * now + ahead * before, ratio, where=same)
    return now * np.clip(ratio, _LEAST, most)


def restart(state: State) -> None:
    """Forget the direction."""
    for name in (_AGE, _BOUND, *_BEFORE, *_THETA_BEFORE):
        state.extras.pop(name, None)
