"""The draws behind ``simulate``: factors, their scale, and the entries they give.

Poisson processes split and merge exactly, so no pass over all pairs is needed: user u has
Poisson(s_uk sum_i v_ik) events of component k, each at item i with probability proportional to
v_ik, and n_ui is the number of u's events at i.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from hcpf._types import FloatArray, IntArray
from hcpf.data.interactions import Interactions
from hcpf.data.shards.folder import Shards, write_blocks
from hcpf.data.shards.writing import Block, balanced_cuts
from hcpf.elements.base import Element
from hcpf.errors import ParameterError

_BLOCK_EVENTS = 1 << 22  # expected, drawn at once
_SAMPLE_PAIRS = 1_000_000  # pairs that the scale for a density is computed from
_MAX_RATE = 2.0**53  # elements per pair; larger counts are not exact in float64
_MAX_INT32 = np.iinfo(np.int32).max


def draw_factors(
    axis: str, size: int, n_components: int, priors: dict[str, float], rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw the activities and factors of one axis, "user" or "item"."""
    shape, mean = priors[f"{axis}_activity_shape"], priors[f"{axis}_activity_mean"]
    activity = rng.gamma(shape, mean / shape, size)
    factors = rng.standard_gamma(priors[f"{axis}_shape"], (size, n_components))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        factors /= activity[:, None]
        total = factors.sum()
    if not np.isfinite(total):
        raise ParameterError(
            f"simulate: with {axis}_activity_shape={shape:g} the factors overflow float64. Use a "
            "larger shape; 1 and above are safe."
        )
    return activity, factors


def pair_rates(s: FloatArray, v: FloatArray, users: IntArray, items: IntArray) -> FloatArray:
    """Sum s_uk v_ik over k for each pair, in blocks to save memory."""
    out = np.empty(len(users))
    step = max(1, _BLOCK_EVENTS // s.shape[1])
    for start in range(0, len(users), step):
        block = slice(start, start + step)
        np.einsum("jk,jk->j", s[users[block]], v[items[block]], out=out[block])
    return out


# -- the scale that gives a density ---------------------------------------------------------------


def solve_scale(s: FloatArray, v: FloatArray, density: float, rng: np.random.Generator) -> float:
    """Return the c for which a share ``density`` of the pairs is observed at rates c * Lambda.

    The share, the mean of 1 - exp(-c Lambda) over all pairs, is estimated from a sample unless
    there are few pairs. A third of the sample is drawn in proportion to Lambda, which is efficient
    for sparse matrices; a third uniformly, for dense ones; and a third in proportion to the square
    roots of the rows' total rates, for heavy tails, where the other two miss the relevant pairs.
    """
    rates, weights = _sample_of_rates(s, v, rng)

    def excess(log_scale: float) -> float:
        share = float(weights @ -np.expm1(-np.exp(log_scale) * rates))
        return np.log(share / density)

    mean, largest = float(weights @ rates), float(rates.max())
    if mean > 0:
        # The share is at most c times the mean rate.
        low = np.log(density) - np.log(mean) - 1e-6
        high = np.log(_MAX_RATE) - np.log(largest)
        if low < high and excess(high) > 0:
            root: Any = optimize.brentq(excess, low, high, xtol=1e-9)
            return float(np.exp(root))
    raise ParameterError(
        f"simulate: a density of {density:g} cannot be reached because the rates of the pairs "
        "differ too much. Use larger shapes or a lower density."
    )


def _sample_of_rates(
    s: FloatArray, v: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return rates of pairs and weights with which sums over them estimate means over all pairs."""
    n_users, n_items = len(s), len(v)
    if n_users * n_items <= _SAMPLE_PAIRS:
        rates = (s @ v.T).ravel()
        return rates, np.full(len(rates), 1.0 / len(rates))
    by_component = s.mean(axis=0) * v.mean(axis=0)
    mean = by_component.sum()
    if not 0.0 < mean < np.inf:
        return np.zeros(1), np.ones(1)
    third = _SAMPLE_PAIRS // 3
    numbers = rng.multinomial(third, by_component / mean)
    users = [_choose(np.cumsum(s[:, k]), size, rng) for k, size in enumerate(numbers)]
    items = [_choose(np.cumsum(v[:, k]), size, rng) for k, size in enumerate(numbers)]
    roots = np.sqrt(s @ v.mean(axis=0)), np.sqrt(v @ s.mean(axis=0))
    users += [_choose(np.cumsum(roots[0]), third, rng), rng.integers(n_users, size=third)]
    items += [_choose(np.cumsum(roots[1]), third, rng), rng.integers(n_items, size=third)]
    rows, columns = np.concatenate(users), np.concatenate(items)
    rates = pair_rates(s, v, rows, columns)
    medium = roots[0][rows] * roots[1][columns] / (roots[0].mean() * roots[1].mean())
    # Probability of each pair under the mixture of the three, relative to uniform draws.
    relative = (rates / mean + medium + 1.0) / 3.0
    return rates, 1.0 / (len(rates) * relative)


def _choose(cumulative: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Draw indices with probabilities given by their cumulative sums."""
    index = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
    # A product that rounds up to the total would be one past the end.
    return np.minimum(index, len(cumulative) - 1, out=index)


# -- entries --------------------------------------------------------------------------------------


class DrawnBlock(NamedTuple):
    """The entries of the next users: how many each has, their items, values and counts."""

    sizes: IntArray
    items: IntArray
    values: FloatArray
    counts: IntArray


def draw_blocks(
    s: FloatArray,
    v: FloatArray,
    element: Element,
    rng: np.random.Generator,
    *,
    hurdle: bool,
    advance: Callable[[int], object],
) -> Iterator[DrawnBlock]:
    """Draw counts and values in blocks of users, in the order of the rows of a CSR matrix.

    ``advance`` is called with the number of users of each block that is done.
    """
    n_users, n_items = len(s), len(v)
    cumulative = np.ascontiguousarray(np.cumsum(v, axis=0).T)
    item_dtype = np.int32 if max(n_users, n_items) <= _MAX_INT32 else np.int64
    for start, stop, events in _blocks(expected_events(s, v)):
        if events < (stop - start) * n_items:
            pairs, counts = _draw_events(s[start:stop], cumulative, rng)
        else:
            pairs, counts = _draw_pairs(s[start:stop], v, rng)
        firsts = np.arange(stop - start + 1) * n_items
        sizes = np.diff(np.searchsorted(pairs, firsts))
        pairs -= np.repeat(firsts[:-1], sizes)
        values = element.sample(np.ones_like(counts) if hurdle else counts, rng)
        yield DrawnBlock(sizes, pairs.astype(item_dtype), element.seen(values), counts)
        advance(stop - start)


def expected_events(s: FloatArray, v: FloatArray) -> FloatArray:
    """Return the expected number of events of each user."""
    return s @ np.cumsum(v, axis=0)[-1]


def draw_entries(
    s: FloatArray,
    v: FloatArray,
    element: Element,
    rng: np.random.Generator,
    *,
    hurdle: bool = False,
    keep_counts: bool,
    advance: Callable[[int], object],
) -> tuple[Interactions, IntArray | None]:
    """Draw counts and values, all in memory; see ``draw_blocks``."""
    n_users, n_items = len(s), len(v)
    sizes: list[IntArray] = []
    blocks: list[tuple[IntArray, FloatArray, IntArray | None]] = []
    for block in draw_blocks(s, v, element, rng, hurdle=hurdle, advance=advance):
        sizes.append(block.sizes)
        blocks.append((block.items, block.values, block.counts if keep_counts else None))
    items, values, counts = _join(blocks, keep_counts)
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    index_dtype = items.dtype if indptr[-1] <= _MAX_INT32 else np.int64
    matrix = sparse.csr_array(
        (values, items.astype(index_dtype, copy=False), indptr.astype(index_dtype)),
        shape=(n_users, n_items),
    )
    return Interactions(matrix, np.arange(n_users), np.arange(n_items)), counts


def draw_shards(
    folder: Path,
    n_shards: int,
    s: FloatArray,
    v: FloatArray,
    element: Element,
    rng: np.random.Generator,
    *,
    hurdle: bool,
    advance: Callable[[int], object],
) -> Shards:
    """Draw the same entries as ``draw_entries`` straight into shards, values as float32."""
    drawn = draw_blocks(s, v, element, rng, hurdle=hurdle, advance=advance)
    blocks = (Block(block.sizes, block.items, _as_float32(block.values)) for block in drawn)
    cuts = balanced_cuts(expected_events(s, v), n_shards)
    items = np.arange(len(v))
    return write_blocks(folder, blocks, cuts, items, np.float32)


def _as_float32(values: FloatArray) -> NDArray[np.float32]:
    """Round values; those too small for float32 become its smallest normal number, not 0."""
    tiny = np.finfo(np.float32).tiny
    return np.where((values > 0.0) & (values < tiny), tiny, values).astype(np.float32)


def _blocks(expected: FloatArray) -> Iterator[tuple[int, int, float]]:
    """Split the users into runs of limited expected events, or of one user with more."""
    largest = expected.max()
    if not largest < np.inf:
        raise ParameterError(_too_large(largest))
    # Clipped, since sums after one enormous term would lose the small ones.
    ends = np.cumsum(np.minimum(expected, 2.0 * _BLOCK_EVENTS))
    start = 0
    while start < len(expected):
        before = ends[start - 1] if start else 0.0
        stop = int(np.searchsorted(ends, before + _BLOCK_EVENTS, side="right"))
        stop = max(stop, start + 1)
        yield start, stop, float(expected[start:stop].sum())
        start = stop


def _draw_events(
    block: FloatArray, cumulative: FloatArray, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw the events of a block one by one; return the distinct pairs and their counts."""
    firsts = np.arange(len(block)) * cumulative.shape[1]
    numbers = rng.poisson(block * cumulative[:, -1])
    pairs = np.empty(int(numbers.sum()), dtype=np.int64)
    end = 0
    for k, sums in enumerate(cumulative):
        begin, end = end, end + int(numbers[:, k].sum())
        pairs[begin:end] = np.repeat(firsts, numbers[:, k])
        pairs[begin:end] += _choose(sums, end - begin, rng)
    pairs.sort()
    is_last = np.ones(len(pairs), dtype=np.bool_)
    np.not_equal(pairs[1:], pairs[:-1], out=is_last[:-1])
    last = np.flatnonzero(is_last)
    return pairs[last], np.diff(last, prepend=-1)


def _draw_pairs(
    block: FloatArray, v: FloatArray, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw every pair of a block, which is faster if events outnumber the pairs."""
    rates = (block @ v.T).ravel()
    largest = rates.max()
    if not largest <= _MAX_RATE:
        raise ParameterError(_too_large(largest))
    counts = rng.poisson(rates)
    pairs = np.flatnonzero(counts)
    return pairs, counts[pairs]


def _too_large(rate: float) -> str:
    return (
        f"simulate: the factors give rates of {rate:.3g}, which are too large for exact counts. "
        "Use larger activity shapes or means, or a lower density."
    )


def _join(
    blocks: list[tuple[IntArray, FloatArray, IntArray | None]], keep_counts: bool
) -> tuple[IntArray, FloatArray, IntArray | None]:
    """Join the blocks, freeing each as it is copied, which avoids doubling the memory."""
    size = end = sum(len(items) for items, _, _ in blocks)
    items = np.empty(size, dtype=blocks[0][0].dtype)
    values = np.empty(size)
    counts: NDArray[np.int64] | None = np.empty(size, dtype=np.int64) if keep_counts else None
    while blocks:
        block_items, block_values, block_counts = blocks.pop()
        begin = end - len(block_items)
        items[begin:end], values[begin:end] = block_items, block_values
        if counts is not None and block_counts is not None:
            counts[begin:end] = block_counts
        end = begin
    return items, values, counts
