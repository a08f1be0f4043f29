"""One pass of Gibbs sampling over the entries: how many elements each has, and of which component.

Random numbers come from Numba's generator of the thread, which is seeded at the start of a block of
rows: its draws depend on the seed and the blocks, not on the number of threads. All sums are of
integers, so their order does not matter either.
"""

# ruff: noqa: NPY002 - a Generator would have to be passed to every thread

import math

import numpy as np

from hcpf.core.jit import inner, kernel
from hcpf.core.kernels.count import mode_of, weights_of
from hcpf.core.kernels.types import KNOWN

_MANY = 16  # elements of an entry that are divided by binomial draws instead of one by one
_NEGLIGIBLE = -23.0  # log of a term, relative to the largest, that is never drawn: 1e-10


@inner()
def draw_count(tables, log_rate, coordinate):
    """Draw the number of elements of an entry, from the weights that its E[n] is summed from."""
    if tables.mode == KNOWN:
        return int(coordinate)
    row, g, log_x = weights_of(tables, log_rate, coordinate)
    start = tables.start[row]
    size = tables.start[row + 1] - start
    mode = mode_of(tables, start, size, g, log_x)
    chosen, total = mode, 1.0
    peak = tables.series[start + mode] + (g * tables.phi[mode] if g != 0.0 else 0.0)
    # A later term replaces the choice so far with the probability of its share in the sum so far.
    for direction in (1, -1):
        j = mode + direction
        while 0 <= j < size:
            t = tables.series[start + j] - peak + float(j - mode) * log_x
            if g != 0.0:
                t += g * tables.phi[j]
            if t < _NEGLIGIBLE:
                break
            weight = math.exp(t)
            total += weight
            if np.random.random() * total < weight:
                chosen = j
            j += direction
    return int(tables.least[row]) + chosen


@inner()
def divide(n, shares, total, mine, theirs):
    """Divide n elements among the components by their shares, and add them to two rows of sums."""
    size = len(shares)
    if n < _MANY:
        for _ in range(n):
            level = np.random.random() * total
            k = 0
            while k < size - 1 and level >= shares[k]:
                level -= shares[k]
                k += 1
            mine[k] += 1
            theirs[k] += 1
        return
    left, rest = n, total
    for k in range(size):
        if left == 0:
            break
        # All that is left, unless later components have a share: rounding moves ``rest`` to either
        # side of the last share.
        part = left
        if k < size - 1 and shares[k] < rest:
            part = np.random.binomial(left, max(shares[k] / rest, 0.0))
        rest -= shares[k]
        mine[k] += part
        theirs[k] += part
        left -= part


@kernel(allocates=True)
def draw_elements(
    first, last, blocks, entries, tables, users, items, user_terms, item_terms, seeds, user_sums,
    item_sums,
):  # fmt: skip
    """Draw the elements of all entries in some blocks of rows, given the factors of both axes.

    ``user_terms`` and ``item_terms`` have two columns: what a row adds to the log rates of its
    pairs, and x, whose product over the two rows is added ``tables.cross`` times. The sums of the
    elements go to ``user_sums``, and to ``item_sums``, which has a copy per block.
    """
    size = users.shape[1]
    shares = np.empty(size)
    for block in range(first, last):
        np.random.seed(seeds[block])
        for u in range(blocks[block], blocks[block + 1]):
            for position in range(entries.start[u], entries.stop[u]):
                i = entries.index[position]
                total = 0.0
                for k in range(size):
                    shares[k] = float(users[u, k]) * float(items[i, k])
                    total += shares[k]
                if total < 1e-300:  # factors may be drawn as 0: all components alike
                    total = 0.0
                    for k in range(size):
                        shares[k] = 1e-300
                        total += shares[k]
                log_rate = math.log(total) + user_terms[u, 0] + item_terms[i, 0]
                log_rate += tables.cross * user_terms[u, 1] * item_terms[i, 1]
                n = draw_count(tables, log_rate, entries.coordinate[position])
                divide(n, shares, total, user_sums[u], item_sums[block, i])
