"""The best few columns of each row, from scores that come tile by tile.

The best so far of a row are a heap whose first member is the worst. As most scores of a tile are
below it, whole chunks of them are compared with it first, in vector instructions.
"""

import numpy as np

from hcpf.core.jit import FAST, inner, kernel
from hcpf.core.kernels.scalars import fast_log2
from hcpf.core.kernels.types import LANES
from hcpf.core.kernels.vector import any_above

f4 = np.float32
_CHUNK = 128  # scores compared at a time
_MIN_RATE = f4(1e-37)  # a product of factors may be 0 in float32, and 0 has no logarithm
_LOG_ERROR = 1e-4  # of a log2 in float32, generously


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
def _push(scores, places, size, score, place):
    """Offer a candidate, later than all before it, to a heap of ``size``; returns the new size."""
    n = len(scores)
    if size < n:
        scores[size], places[size] = score, place
        size += 1
        if size == n:
            for j in range(n // 2 - 1, -1, -1):
                _sift_down(scores, places, j, n)
    elif score > scores[0]:
        scores[0], places[0] = score, place
        _sift_down(scores, places, 0, n)
    return size


@inner()
def _any_above(values, first, last, least):
    """Whether some of the values are above ``least``; where they do not make vectors, always."""
    return (last - first) % LANES != 0 or any_above(values, first, last - first, least)


@kernel()
def best_of_tile(
    first, last, parts, offset, position, stop, index, denied, scores, places, found
):  # fmt: skip
    """Keep the best of some rows after another tile of scores, ``parts[0]``.

    The tile holds the columns from ``offset`` on. Columns that a row lists, from
    ``index[position[r]]`` on, are not considered, nor are those denied to all. ``found`` counts the
    members of each row's heap. The tile is overwritten.
    """
    block, n = parts[0], scores.shape[1]
    width = block.shape[1]
    for r in range(first, last):
        row, heap, columns = block[r], scores[r], places[r]
        e, size = position[r], found[r]
        while e < stop[r] and index[e] < offset + width:
            row[index[e] - offset] = -np.inf
            e += 1
        position[r] = e
        least = heap[0] if size == n else f4(-np.inf)
        for begin in range(0, width, _CHUNK):
            end = min(begin + _CHUNK, width)
            if not _any_above(row, begin, end, least):
                continue
            for i in range(begin, end):
                if row[i] > least and not denied[offset + i]:
                    size = _push(heap, columns, size, row[i], offset + i)
                    least = heap[0] if size == n else f4(-np.inf)
        found[r] = size


@inner(fastmath=FAST)
def _multiply(parts, r, begin, end, products):
    """Set the products of the rates of all parts, in float64, which does not underflow."""
    for i in range(begin, end):
        products[i - begin] = max(parts[0, r, i], _MIN_RATE)
    for part in range(1, len(parts)):
        for i in range(begin, end):
            products[i - begin] *= max(parts[part, r, i], _MIN_RATE)


@inner()
def _sum_logs(parts, r, i):
    """The sum of log2 of the rates of all parts."""
    total = f4(0.0)
    for part in range(len(parts)):
        total += fast_log2(max(parts[part, r, i], _MIN_RATE))
    return total


@inner()
def _least_product(least, n_parts):
    """A product that the products of all rates with a larger sum of logs exceed."""
    return 2.0 ** (float(least) - _LOG_ERROR * n_parts)


@kernel(allocates=True)
def best_of_products(
    first, last, parts, offset, position, stop, index, denied, scores, places, found
):  # fmt: skip
    """Keep the best by the geometric mean of the parts; as ``best_of_tile`` otherwise.

    Scores are sums of logarithms. They are taken only where the product is large enough.
    """
    n_parts, _, width = parts.shape
    n, products = scores.shape[1], np.empty(_CHUNK)
    for r in range(first, last):
        heap, columns = scores[r], places[r]
        e, size = position[r], found[r]
        least = _least_product(heap[0], n_parts) if size == n else -0.5
        for begin in range(0, width, _CHUNK):
            end = min(begin + _CHUNK, width)
            _multiply(parts, r, begin, end, products)
            while e < stop[r] and index[e] < offset + end:
                products[index[e] - offset - begin] = -1.0
                e += 1
            if not _any_above(products, 0, end - begin, least):
                continue
            for i in range(begin, end):
                if products[i - begin] > least and not denied[offset + i]:
                    size = _push(heap, columns, size, _sum_logs(parts, r, i), offset + i)
                    least = _least_product(heap[0], n_parts) if size == n else -0.5
        position[r], found[r] = e, size


@kernel()
def sort_best(scores, places, found):
    """Turn the heap of each row into its members, best first."""
    for r in range(len(scores)):
        heap, columns, size = scores[r], places[r], found[r]
        if size < len(heap):
            for j in range(size // 2 - 1, -1, -1):
                _sift_down(heap, columns, j, size)
        for last in range(size - 1, 0, -1):  # the worst goes to the end, and so on
            heap[0], heap[last] = heap[last], heap[0]
            columns[0], columns[last] = columns[last], columns[0]
            _sift_down(heap, columns, 0, last)


@kernel(fastmath=FAST)
def add_rates(rows, columns, out):
    """Add to ``out`` the dot products of a few rows with all columns, four columns at a time."""
    size, n_columns = rows.shape[1], len(columns)
    n_fours = n_columns - n_columns % 4
    for r in range(len(rows)):
        for i in range(0, n_fours, 4):
            one, two, three, four = f4(0.0), f4(0.0), f4(0.0), f4(0.0)
            for k in range(size):
                factor = rows[r, k]
                one += factor * columns[i, k]
                two += factor * columns[i + 1, k]
                three += factor * columns[i + 2, k]
                four += factor * columns[i + 3, k]
            out[r, i] += one
            out[r, i + 1] += two
            out[r, i + 2] += three
            out[r, i + 3] += four
        for i in range(n_fours, n_columns):
            total = f4(0.0)
            for k in range(size):
                total += rows[r, k] * columns[i, k]
            out[r, i] += total
