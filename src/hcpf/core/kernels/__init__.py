"""All jitted code of the training loop.

Everything here works on whole rows of a CSR matrix: a thread owns its rows, so there are no
atomics, no array of entries x K, and the bits do not depend on the number of threads. Sums over
rows are taken per fixed block of rows and added in order. Kernels whose first arguments are
``first`` and ``last`` do that range of blocks or rows; ``threads.share`` runs them.

Rates are carried as ``exp(log_scale_u + log_scale_i) * dot(g_u, g_i)``. The scales are 0 but for
rows with shapes so small that exp(digamma) might underflow, which are scaled to a maximum of 1;
where even that dot product underflows, the entry is redone by log-sum-exp.
"""

from hcpf.core.kernels.bound import listed_rates, pair_rates, side_bound, sum_log_z
from hcpf.core.kernels.extrapolate import extrapolate
from hcpf.core.kernels.layout import advance, transpose, weigh_values
from hcpf.core.kernels.rows import accumulate_rows, apply_rows, scale_rows, update_rows
from hcpf.core.kernels.tabulate import tabulate
from hcpf.core.kernels.topn import add_logs, best_columns
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
)
from hcpf.core.kernels.vector import aligned_zeros, padded_rows

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
    "add_logs",
    "advance",
    "aligned_zeros",
    "apply_rows",
    "best_columns",
    "extrapolate",
    "listed_rates",
    "padded_rows",
    "pair_rates",
    "scale_rows",
    "side_bound",
    "sum_log_z",
    "tabulate",
    "transpose",
    "update_rows",
    "weigh_values",
]
