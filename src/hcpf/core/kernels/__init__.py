r"""Compiled code of training and ranking. A design note.

**What a half-step computes.** For every row u of one axis (users, say), with the other axis fixed:

    for each entry i of row u:
        dot  = g_u . h_i                               K multiply-adds; g = exp(E log s), h likewise
        x    = dot * multiplier_u * multiplier_i       the rate, in the scale of the tables
        n    = E[n] at rate x, for the entry's value   a cubic polynomial from a table
        acc += (n / dot) * h_i                         K multiply-adds
    a_u    = prior shape + g_u * acc                   (scaled by the tempering)
    b_u    = activity + sums of the other axis' means (+ listed pairs, see below)
    mean_u = a_u / b_u,  g_u = exp(digamma(a_u)) / b_u

Nothing of size entries x K exists, and no digamma or logarithm is taken per entry.

**Layout.** Entries lie in CSR order, once by user and once by item::

    start[u] ... stop[u]          positions of row u's entries
    index       | i  | i' | ...   row of the other axis (int32)
    coordinate  | y~ | y~'| ...   where the entry's value is found in the tables (float32)
    value       | y  | y' | ...   only where the pooled means of both axes weigh values

    g, padded:  | k = 0 ... 15 | 16 ... 31 | ... 0 0 0 |    rows of whole cache lines (16 float32)
    row_terms:  | multiplier | cross | weight (float64) |   one row = 16 bytes, read in no order

``row_terms`` holds what an entry needs of the other axis' row besides h, side by side, because
entries visit these rows in no order and each visit is a cache miss: MULTIPLIER, exp(log_scale +
shift); CROSS, x_i, for which the pair adds ``tables.cross * x_u * x_i`` to its log rate (partial
pooling of both axes); and WEIGHT, which a value is multiplied with in the sums for theta.

**Tables.** E[n] as a function of the rate has one row per distinct value, or one row for all
(``count_tables`` explains the five modes). A row consists of cubic pieces, eight per octave, found
from the bits of the float32 rate: its exponent and the first three bits of its mantissa number the
piece, the other bits are the position in it. A piece is 16 bytes and lies on one cache line.

**Lanes.** Four entries are done at a time (``vector``): their dot products share the loads of g_u,
one fused pass adds the four scaled rows, and the four E[n] are computed in one vector. Within a
row sixteen components make a vector. LLVM is given these vectors explicitly (``lanes`` is a small
vector class with operators) because its own vectorizer loses on the remainder of a row and on
horizontal sums. Rows needed 32 entries later are prefetched into the second cache, 8 later into
the first.

**The slow path.** Rates are carried as exp(log_scale_u + log_scale_i) * (g_u . h_i). The scales are
0 but for rows with shapes so small that exp(digamma) might underflow; these are scaled to a maximum
of 1. Where a scaled dot product still underflows, or a rate lies outside the table, the whole row
is redone in float64 by log-sum-exp and by summing over n (``slow_row``): which entries were at
fault may depend on the last bit, so that single entries are not patched.

**Precision and determinism.** Factors are float32, all sums over entries end in float64: ``acc`` is
flushed every 256 entries, sums of means every 32 rows. A thread owns whole rows; sums over rows are
taken per block of rows, whose boundaries depend on the data alone, and added in order. So there
are no atomics, and the bits do not depend on the number of threads. Kernels whose first arguments
are ``first`` and ``last`` do that range of blocks or rows; ``threads.run_in_parallel`` runs them.

**Split half-steps.** ``update_rows`` fuses everything above. With several workers the entries of
an item are spread over them: ``accumulate_rows`` stops before the posteriors, its sums are added
up, and ``apply_rows`` continues (``core.half_step``).

**Exposures.** Known exposures multiply the rate of a pair, e_u f_i sum_k s_uk v_ik. The arrays are
those of the factors times the row's exposure, e_u s_uk, whose posterior is a gamma with the same
shape. All sums over entries and rows are then what they are without exposures; only the prior of a
row differs: e_u s_uk ~ Gamma(eta, r_u / e_u). A posterior shows s_uk again (``posterior_of``).

**Listed pairs** enter b_u one by one: pairs excluded from training are subtracted from the sum over
all rows (sign -1); when training on observed entries only, these are added up instead (sign +1).
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hcpf.core.kernels.types import (
    DIRECT,
    GRID,
    KNOWN,
    ROWS,
    SHIFT,
    Entries,
    Factors,
    ListedPairs,
    Prior,
    TableArrays,
    aligned_zeros,
    padded_rows,
)

if TYPE_CHECKING:
    from hcpf.core.kernels.bound import axis_bound, listed_rates, pair_rates, sum_log_z
    from hcpf.core.kernels.converge import converge_rows, most_similar
    from hcpf.core.kernels.count import tabulate
    from hcpf.core.kernels.entry import entry_steps
    from hcpf.core.kernels.gibbs import draw_elements
    from hcpf.core.kernels.layout import (
        advance,
        copy_rows,
        transpose,
        transpose_columns,
        weigh_values,
    )
    from hcpf.core.kernels.rows import (
        accumulate_rows,
        apply_rows,
        extrapolate,
        scale_rows,
        update_rows,
    )
    from hcpf.core.kernels.topn import add_rates, best_of_products, best_of_tile, sort_best

# Kernels are loaded when one is called: that loads Numba, which a saved model does without.
_HOME = {
    **dict.fromkeys(("axis_bound", "listed_rates", "pair_rates", "sum_log_z"), "bound"),
    **dict.fromkeys(("converge_rows", "most_similar"), "converge"),
    "tabulate": "count",
    "entry_steps": "entry",
    **dict.fromkeys(
        ("advance", "copy_rows", "transpose", "transpose_columns", "weigh_values"), "layout"
    ),
    "draw_elements": "gibbs",
    **dict.fromkeys(
        ("accumulate_rows", "apply_rows", "extrapolate", "scale_rows", "update_rows"), "rows"
    ),
    **dict.fromkeys(("add_rates", "best_of_products", "best_of_tile", "sort_best"), "topn"),
}


def are_loaded() -> bool:
    """Return whether calling a kernel loads neither Numba nor LLVM, since some are loaded."""
    return "hcpf.core.jit" in sys.modules


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return globals()[name]


__all__ = [
    "DIRECT",
    "GRID",
    "KNOWN",
    "ROWS",
    "SHIFT",
    "Entries",
    "Factors",
    "ListedPairs",
    "Prior",
    "TableArrays",
    "accumulate_rows",
    "add_rates",
    "advance",
    "aligned_zeros",
    "apply_rows",
    "are_loaded",
    "axis_bound",
    "best_of_products",
    "best_of_tile",
    "converge_rows",
    "copy_rows",
    "draw_elements",
    "entry_steps",
    "extrapolate",
    "listed_rates",
    "most_similar",
    "padded_rows",
    "pair_rates",
    "scale_rows",
    "sort_best",
    "sum_log_z",
    "tabulate",
    "transpose",
    "transpose_columns",
    "update_rows",
    "weigh_values",
]
