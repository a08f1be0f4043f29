"""The draws behind ``simulate``: factors, their scale, and the entries they give.

Poisson processes split and merge exactly, so no pass over all pairs is needed: user u has
Poisson(s_uk sum_i v_ik) events of component k, each at item i with probability proportional to
v_ik, and n_ui is the number of u's events at i.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from hcpf._types import FloatArray, IntArray
from hcpf.data.interactions import Interactions
from hcpf.elements.base import Element
from hcpf.errors import ParameterError

_BLOCK = 1 << 22  # expected events drawn at once
_PAIRS = 1_000_000  # pairs that the solution for the density is based on
_LARGEST_RATE = 2.0**53  # above it a count is no longer an exact float64
_LARGEST_INT32 = np.iinfo(np.int32).max


def draw_factors(
    side: str, size: int, n_components: int, priors: dict[str, float], rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw the activities and factors of one side, "user" or "item"."""
    shape, mean = priors[f"{side}_activity_shape"], priors[f"{side}_activity_mean"]
    activity = rng.gamma(shape, mean / shape, size)
    factors = rng.standard_gamma(priors[f"{side}_shape"], (size, n_components))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        factors /= activity[:, None]
        total = factors.sum()
    if not np.isfinite(total):
        raise ParameterError(
            f"simulate: with {side}_activity_shape={shape:g} the factors overflow float64. Give a "
            "larger shape; 1 and above are safe."
        )
    return activity, factors


def pair_rates(s: FloatArray, v: FloatArray, users: IntArray, items: IntArray) -> FloatArray:
    """Sum s_uk v_ik over k for each pair, in pieces so that memory stays small."""
    out = np.empty(len(users))
    step = max(1, _BLOCK // s.shape[1])
    for start in range(0, len(users), step):
        part = slice(start, start + step)
        np.einsum("jk,jk->j", s[users[part]], v[items[part]], out=out[part])
    return out


# -- the scale that gives a density ---------------------------------------------------------------


def solve_scale(s: FloatArray, v: FloatArray, density: float, rng: np.random.Generator) -> float:
    """Find c such that the share of pairs with an event at the rates c * Lambda is ``density``.

    The share, the mean of 1 - exp(-c Lambda) over all pairs, is estimated from a sample of them,
    unless they are few. A third of it is drawn in proportion to Lambda, which settles sparse
    matrices; a third uniformly, which settles dense ones; and a third in proportion to the roots
    of the activities, for heavy tails, where neither of the others meets the pairs that count.
    """
    rates, weights = _sample_of_rates(s, v, rng)

    def excess(log_scale: float) -> float:
        share = float(weights @ -np.expm1(-np.exp(log_scale) * rates))
        return np.log(share / density)

    mean, largest = float(weights @ rates), float(rates.max())
    if mean > 0:
        # The share is at most c times the mean rate.
        low = np.log(density) - np.log(mean) - 1e-6
        high = np.log(_LARGEST_RATE) - np.log(largest)
        if low < high and excess(high) > 0:
            root: Any = optimize.brentq(excess, low, high, xtol=1e-9)
            return float(np.exp(root))
    raise ParameterError(
        f"simulate: a density of {density:g} cannot be reached: the rates of the pairs differ too "
        "much. Give larger shapes, or a lower density."
    )


def _sample_of_rates(
    s: FloatArray, v: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return rates of pairs and weights with which sums over them estimate means over all pairs."""
    n_users, n_items = len(s), len(v)
    if n_users * n_items <= _PAIRS:
        rates = (s @ v.T).ravel()
        return rates, np.full(len(rates), 1.0 / len(rates))
    by_component = s.mean(axis=0) * v.mean(axis=0)
    mean = by_component.sum()
    if not 0.0 < mean < np.inf:
        return np.zeros(1), np.ones(1)
    third = _PAIRS // 3
    numbers = rng.multinomial(third, by_component / mean)
    users = [_choose(np.cumsum(s[:, k]), size, rng) for k, size in enumerate(numbers)]
    items = [_choose(np.cumsum(v[:, k]), size, rng) for k, size in enumerate(numbers)]
    roots = np.sqrt(s @ v.mean(axis=0)), np.sqrt(v @ s.mean(axis=0))
    users += [_choose(np.cumsum(roots[0]), third, rng), rng.integers(n_users, size=third)]
    items += [_choose(np.cumsum(roots[1]), third, rng), rng.integers(n_items, size=third)]
    rows, columns = np.concatenate(users), np.concatenate(items)
    rates = pair_rates(s, v, rows, columns)
    medium = roots[0][rows] * roots[1][columns] / (roots[0].mean() * roots[1].mean())
    # How much likelier each pair is under the mixture of the three than under uniform draws.
    likelier = (rates / mean + medium + 1.0) / 3.0
    return rates, 1.0 / (len(rates) * likelier)


def _choose(cumulative: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Draw indices with probabilities given by their cumulative sums."""
    found = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
    # A product that rounds up to the total would be one past the end.
    return np.minimum(found, len(cumulative) - 1, out=found)


# -- entries --------------------------------------------------------------------------------------


def draw_entries(
    s: FloatArray,
    v: FloatArray,
    element: Element,
    rng: np.random.Generator,
    *,
    keep_counts: bool,
    advance: Callable[[int], object],
) -> tuple[Interactions, IntArray | None]:
    """Draw counts and values block of users by block, in the order of the rows of a CSR matrix.

    ``advance`` is told the number of users of each block once it is done.
    """
    n_users, n_items = len(s), len(v)
    cumulative = np.ascontiguousarray(np.cumsum(v, axis=0).T)
    row_sizes = np.zeros(n_users + 1, dtype=np.int64)
    item_dtype = np.int32 if max(n_users, n_items) <= _LARGEST_INT32 else np.int64
    pieces: list[tuple[IntArray, FloatArray, IntArray | None]] = []
    for start, stop, events in _blocks(s @ cumulative[:, -1]):
        if events < (stop - start) * n_items:
            cells, counts = _draw_events(s[start:stop], cumulative, rng)
        else:
            cells, counts = _draw_cells(s[start:stop], v, rng)
        firsts = np.arange(stop - start + 1) * n_items
        sizes = np.diff(np.searchsorted(cells, firsts))
        row_sizes[start + 1 : stop + 1] = sizes
        cells -= np.repeat(firsts[:-1], sizes)
        values = element.sample(counts, rng)
        pieces.append((cells.astype(item_dtype), values, counts if keep_counts else None))
        advance(stop - start)
    items, values, counts = _join(pieces, keep_counts)
    indptr = np.cumsum(row_sizes)
    index_dtype = item_dtype if indptr[-1] <= _LARGEST_INT32 else np.int64
    matrix = sparse.csr_array(
        (values, items.astype(index_dtype, copy=False), indptr.astype(index_dtype)),
        shape=(n_users, n_items),
    )
    return Interactions(matrix, np.arange(n_users), np.arange(n_items)), counts


def _blocks(expected: FloatArray) -> Iterator[tuple[int, int, float]]:
    """Split the users into runs of at most ``_BLOCK`` expected events, or of one user with more."""
    largest = expected.max()
    if not largest < np.inf:
        raise ParameterError(_too_large(largest))
    # Clipped, because the sums after one enormous term would lose the small ones.
    ends = np.cumsum(np.minimum(expected, 2.0 * _BLOCK))
    start = 0
    while start < len(expected):
        before = ends[start - 1] if start else 0.0
        stop = int(np.searchsorted(ends, before + _BLOCK, side="right"))
        stop = max(stop, start + 1)
        yield start, stop, float(expected[start:stop].sum())
        start = stop


def _draw_events(
    block: FloatArray, cumulative: FloatArray, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw the events of a block one by one; return the distinct cells and their counts."""
    firsts = np.arange(len(block)) * cumulative.shape[1]
    numbers = rng.poisson(block * cumulative[:, -1])
    cells = np.empty(int(numbers.sum()), dtype=np.int64)
    end = 0
    for k, sums in enumerate(cumulative):
        begin, end = end, end + int(numbers[:, k].sum())
        cells[begin:end] = np.repeat(firsts, numbers[:, k])
        cells[begin:end] += _choose(sums, end - begin, rng)
    cells.sort()
    is_last = np.ones(len(cells), dtype=np.bool_)
    np.not_equal(cells[1:], cells[:-1], out=is_last[:-1])
    last = np.flatnonzero(is_last)
    return cells[last], np.diff(last, prepend=-1)


def _draw_cells(
    block: FloatArray, v: FloatArray, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw every cell of a block: the cheaper way where events outnumber the cells."""
    rates = (block @ v.T).ravel()
    largest = rates.max()
    if not largest <= _LARGEST_RATE:
        raise ParameterError(_too_large(largest))
    counts = rng.poisson(rates)
    cells = np.flatnonzero(counts)
    return cells, counts[cells]


def _too_large(rate: float) -> str:
    return (
        f"simulate: the factors give rates of {rate:.3g}, too large to count. Give larger "
        "activity shapes or means, or a lower density."
    )


def _join(
    pieces: list[tuple[IntArray, FloatArray, IntArray | None]], keep_counts: bool
) -> tuple[IntArray, FloatArray, IntArray | None]:
    """Join the blocks, letting each go once it is copied, so that memory is not doubled."""
    size = end = sum(len(items) for items, _, _ in pieces)
    items = np.empty(size, dtype=pieces[0][0].dtype)
    values = np.empty(size)
    counts: NDArray[np.int64] | None = np.empty(size, dtype=np.int64) if keep_counts else None
    while pieces:
        block_items, block_values, block_counts = pieces.pop()
        begin = end - len(block_items)
        items[begin:end], values[begin:end] = block_items, block_values
        if counts is not None and block_counts is not None:
            counts[begin:end] = block_counts
        end = begin
    return items, values, counts
