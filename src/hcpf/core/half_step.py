"""One half-step: the optimal posteriors of the rows of one axis, the other axis held fixed.

Its two stages can also be run apart: ``accumulate`` takes the sums over
the entries of each row, ``apply`` turns them into posteriors. With a single worker, and for
users, whose entries are all on one worker, both run fused (``half_step``), which needs no array of
statistics. The entries of an item are spread over the workers: each accumulates over its own
users, the sums are added up, and every worker applies them to its block of items.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcpf._types import FloatArray
from hcpf.core import kernels
from hcpf.core.axis import Axis, AxisState
from hcpf.core.collective import Collective, row_block
from hcpf.core.kernels import Prior, TableArrays
from hcpf.core.kernels.types import COUNT, CUT
from hcpf.core.layout import Layout, row_blocks
from hcpf.core.threads import POSTERIOR_WORK, run_in_parallel


class StepInfo(NamedTuple):
    """Totals of a half-step over its entries."""

    sum_counts: float
    """The sum of E[n]."""
    n_truncated: float
    """Entries whose sum over n met the end of the stored weights."""


class Statistics(NamedTuple):
    """Sums over the entries of each row; they add up over workers."""

    totals: FloatArray
    """Sums of E[n] times the component's share, rows x K."""
    listed_means: FloatArray
    """Means of the other axis over the listed pairs, rows x K."""
    counts: FloatArray
    """The columns COUNT, CUT, CROSS_COUNT and VALUE_SUM of ``kernels/types.py``."""


def update_axis(
    mine: AxisState,
    other: AxisState,
    layout: Layout,
    tables: TableArrays,
    prior: Prior,
    comm: Collective,
) -> StepInfo:
    """Make a half-step on all workers: each updates its users, or a block of the items."""
    if comm.size == 1:
        return half_step(mine, other, layout, tables, prior)
    if mine.axis is Axis.ITEMS:
        return _update_items(mine, other, layout, tables, prior, comm)
    info = half_step(mine, other, layout, tables, prior)
    return _add_up(mine, info, comm)


def half_step(
    mine: AxisState, other: AxisState, layout: Layout, tables: TableArrays, prior: Prior
) -> StepInfo:
    """Update the rows of one axis, and their ``mean_sums``; ``accumulate`` and ``apply`` fused."""
    blocks, size = layout.blocks, mine.n_components
    column_sums = np.zeros((len(blocks) - 1, size))
    counts = np.zeros((len(blocks) - 1, 2))  # COUNT and CUT; the other sums go to the factors
    run_in_parallel(
        kernels.update_rows, len(blocks) - 1, layout.entries, mine.factors, other.factors, tables,
        prior, _shared_b(other, layout), layout.listed, blocks, column_sums, counts,
        work=2.0 * size * layout.work,
    )  # fmt: skip
    mine.mean_sums = column_sums.sum(axis=0)
    return StepInfo(*counts.sum(axis=0).tolist())


def accumulate(
    mine: AxisState, other: AxisState, layout: Layout, tables: TableArrays
) -> Statistics:
    """Return what the entries of each row add up to."""
    shape, blocks = mine.factors.a.shape, layout.blocks
    found = Statistics(np.zeros(shape), np.zeros(shape), np.zeros((shape[0], 4)))
    run_in_parallel(
        kernels.accumulate_rows, len(blocks) - 1, layout.entries, mine.factors, other.factors,
        tables, layout.listed, blocks, *found,
        work=2.0 * shape[1] * layout.work,
    )  # fmt: skip
    return found


def apply(
    mine: AxisState, other: AxisState, layout: Layout, found: Statistics, prior: Prior, rows: slice
) -> FloatArray:
    """Set the posteriors of some rows from their statistics; return the sums of their means."""
    blocks = row_blocks(layout.entries, rows.start, rows.stop)
    column_sums = np.zeros((len(blocks) - 1, mine.n_components))
    run_in_parallel(
        kernels.apply_rows, len(blocks) - 1, rows.start, mine.factors, prior,
        _shared_b(other, layout), layout.listed.sign, *found, blocks, column_sums,
        work=POSTERIOR_WORK * found.totals.size,
    )  # fmt: skip
    return column_sums.sum(axis=0)


def _shared_b(other: AxisState, layout: Layout) -> FloatArray:
    """Return the part of b that all rows share: nothing where only listed pairs train."""
    return np.zeros(other.n_components) if layout.listed.sign > 0 else other.mean_sums


def _update_items(
    mine: AxisState,
    other: AxisState,
    layout: Layout,
    tables: TableArrays,
    prior: Prior,
    comm: Collective,
) -> StepInfo:
    """Accumulate over the own users, update the own block of items, and exchange the blocks."""
    local = accumulate(mine, other, layout, tables)
    info = StepInfo(*local.counts.sum(axis=0)[[COUNT, CUT]].tolist())
    rows, factors = row_block(comm.rank, comm.size, mine.n_rows), mine.factors
    if layout.listed.sign != 0:
        found = Statistics(*comm.sum_rows(*local))
    else:  # the means are zeros, as large as all the rest
        totals, counts = comm.sum_rows(local.totals, local.counts)
        found = Statistics(totals, local.listed_means[rows], counts)
    mine.mean_sums = apply(mine, other, layout, found, prior, rows)
    info = _add_up(mine, info, comm)
    _exchange_blocks(
        (
            factors.a, factors.mean, factors.activity_b, factors.count, factors.cross_count,
            factors.value_sum,
        ),
        rows, comm,
    )  # fmt: skip
    kernels.scale_rows(factors)  # sets g, the scales and the multipliers from these
    return info


def _exchange_blocks(arrays: Sequence[NDArray[Any]], rows: slice, comm: Collective) -> None:
    """Fill in the rows of the other workers, in one message of bytes for arrays of all types."""
    flat = [array.reshape(len(array), prod(array.shape[1:])) for array in arrays]  # no -1: 0 rows
    blocks = [array[rows].view(np.uint8) for array in flat]
    gathered, first = comm.gather(np.concatenate(blocks, axis=1)), 0
    for array, block in zip(arrays, blocks, strict=True):
        last = first + block.shape[1]
        array[:] = gathered[:, first:last].view(array.dtype).reshape(array.shape)
        first = last


def _add_up(mine: AxisState, info: StepInfo, comm: Collective) -> StepInfo:
    """Add up the workers' sums of means and counts, in one message."""
    total = comm.sum(np.concatenate([info, mine.mean_sums]))
    mine.mean_sums = total[len(info) :]
    return StepInfo(*total[: len(info)].tolist())
