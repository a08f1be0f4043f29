"""Momentum: a pass begins beyond where the last one ended, as in Nesterov's gradient method.

Coordinate ascent creeps along the ridges of the bound. Before a pass the geometric means g of both
sides move on in the direction of the pass before, in proportion to their logarithms. The pass from
there is as exact as any, but the bound may be lower than it was; then momentum starts anew.
"""

import numpy as np

from hcpf.inference import kernels
from hcpf.inference.state import State
from hcpf.inference.threads import share

_AGE, _BEFORE = "momentum_age", ("momentum_users", "momentum_items")

_USUAL, _ONCE = (1.0, 5.0), (0.7, 1.3)
"""The most of the last step, and the most that g is multiplied with. Less where a value does not
say how large n is: E[n] follows the rate, and nothing holds back rates that have begun to grow."""


def push(state: State, *, observed: bool) -> None:
    """Move g of both sides on, the further the longer the bound has risen."""
    extras, size = state.extras, state.users.a.shape[1]
    sides = dict(zip(_BEFORE, (state.users, state.items), strict=True))
    if _AGE not in extras:
        extras[_AGE] = np.zeros(1)
        extras |= {name: factors.g[:, :size].copy() for name, factors in sides.items()}
        return
    age = float(extras[_AGE][0])
    share_most, most = _ONCE if state.element.once else _USUAL
    extras[_AGE] += 1.0
    for name, factors in sides.items():
        share(
            kernels.extrapolate, len(factors.g), factors.g, extras[name], factors.log_scale,
            min(age / (age + 3.0), share_most), most, work=factors.g.size,
        )  # fmt: skip
    if observed:
        # The rates of the users are sums over the means of their own items alone.
        before, mean = extras[_BEFORE[1]], state.items.mean
        np.multiply(mean, state.items.g[:, :size], out=mean, where=before > 0)
        np.divide(mean, before, out=mean, where=before > 0)


def restart(state: State) -> None:
    """Forget the direction."""
    for name in (_AGE, *_BEFORE):
        state.extras.pop(name, None)
