"""The step of momentum: rows move on in the direction of their last move."""

import numpy as np

from hcpf.core.jit import FAST, kernel

f4 = np.float32
_LEAST = f4(0.2)  # that a number is multiplied with
_TINY = f4(1e-30)
_UNKNOWN = f4(-1.0)


@kernel(fastmath=FAST | {"nnan"})
def extrapolate(first, last, g, before, log_scale, share, most):
    """Move log g on by a share of its last move; where it was is left in ``before``.

    No number is multiplied with more than ``most``.

    (g / before)^share is all but ((1 + share) g + (1 - share) before) / ((1 - share) g + (1 +
    share) before). Rows that are scaled, now or before, stay where they are.
    """
    ahead, behind, most = f4(1.0 + share), f4(1.0 - share), f4(most)
    for u in range(first, last):
        if log_scale[u] != 0.0 or before[u, 0] == _UNKNOWN:
            for k in range(before.shape[1]):
                before[u, k] = g[u, k]
            if log_scale[u] != 0.0:
                before[u, 0] = _UNKNOWN
        else:
            for k in range(before.shape[1]):
                new, old = g[u, k], before[u, k]
                ratio = (ahead * new + behind * old) / max(behind * new + ahead * old, _TINY)
                before[u, k] = new
                g[u, k] = new * min(max(ratio, _LEAST), most)
