"""The best few columns of each row of a block of scores."""

import numpy as np

from hcpf.core.jit import FAST, inner, kernel
from hcpf.core.kernels.scalars import fast_log2


@inner()
def _worse(scores, places, j, k):
    """Whether heap member j ranks below k: a lower score or, at the same score, a later place."""
    return scores[j] < scores[k] or (scores[j] == scores[k] and places[j] > places[k])


@inner()
def _sift_down(scores, places, j, size):
    """Restore the heap, whose first member is the worst, after member j changed."""
    while True:
        worst, left = j, 2 * j + 1
        for child in (left, left + 1):
            if child < size and _worse(scores, places, child, worst):
                worst = child
        if worst == j:
            return
        scores[j], scores[worst] = scores[worst], scores[j]
        places[j], places[worst] = places[worst], places[j]
        j = worst


@inner()
def _best_of_row(row, denied, scores, places):
    """Fill in the best candidates, best first; returns how many there are."""
    n, size = len(scores), 0
    least = np.float32(-np.inf)
    for i in range(len(row)):
        score = row[i]
        if not score > least or denied[i]:
            continue
        if size < n:
            scores[size], places[size] = score, i
            size += 1
            if size == n:
                for j in range(n // 2 - 1, -1, -1):
                    _sift_down(scores, places, j, n)
                least = scores[0]
        else:
            scores[0], places[0] = score, i
            _sift_down(scores, places, 0, n)
            least = scores[0]
    if size < n:
        for j in range(size // 2 - 1, -1, -1):
            _sift_down(scores, places, j, size)
    for last in range(size - 1, 0, -1):  # the worst goes to the end, and so on
        scores[0], scores[last] = scores[last], scores[0]
        places[0], places[last] = places[last], places[0]
        _sift_down(scores, places, 0, last)
    return size


@kernel(fastmath=FAST)
def add_logs(first, last, rates, least, out):
    """Add to some rows of ``out`` log2 of the rates, which count as at least ``least``."""
    for r in range(first, last):
        rate, total = rates[r], out[r]
        for i in range(len(total)):
            total[i] += fast_log2(max(rate[i], least))


@kernel()
def best_columns(first, last, block, start, stop, index, denied, scores, places, found):
    """For some rows of a block of scores: the best columns, those in its list left out.

    ``block`` is overwritten: what row r has at ``index[start[r]:stop[r]]`` becomes -inf.
    """
    for r in range(first, last):
        for e in range(start[r], stop[r]):
            block[r, index[e]] = -np.inf
        found[r] = _best_of_row(block[r], denied, scores[r], places[r])
