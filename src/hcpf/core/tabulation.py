"""Tabulation of E[n] and log Z by direct summation, and the cubic pieces that read it back."""

import numpy as np

from hcpf._types import FloatArray
from hcpf.core import kernels
from hcpf.core.threads import run_in_parallel

_TOLERANCE = 2e-6  # of E[n] (relative) and log Z between two rows of a grid
_MOST_ROWS = 512  # of a grid


def tabulate_rows(
    series: FloatArray, start: np.ndarray, least: FloatArray, nodes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Cubic pieces of E[n] and of log(sum / x^least), for each row of weights."""
    both = sum_rows(series, start, least, nodes)
    return cubic_pieces(nodes, both[0]), cubic_pieces(nodes, both[1])


def sum_rows(
    series: FloatArray, start: np.ndarray, least: FloatArray, nodes: FloatArray
) -> FloatArray:
    """E[n] and log(sum / x^least) with their slopes in log x, shape (2, 4, rows, nodes).

    The last two of four, derivatives across the rows of a grid, are 0.
    """
    rows = len(least)
    both = np.empty((2, 4, rows, nodes.size))
    nothing = np.zeros(1)
    owner = np.arange(rows)
    arguments = series, start, owner, nothing, np.zeros(rows), np.log(nodes)
    run_in_parallel(kernels.tabulate, rows, *arguments, *both)
    both[0, 0] += least[:, None] - 1.0  # the kernel counts n from 1
    return both


def tabulate_grid(
    series: FloatArray, phi: FloatArray, sign: float, ends: tuple[float, float], nodes: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Rows of log |g|, and the bicubic pieces of E[n] and of log(sum / x) between them.

    An interval between two rows is halved until the cubic across it meets the direct sum in its
    middle at all nodes. None where that takes too many rows: where a small change of g moves n
    from one integer to the next, a table does not pay.
    """
    log_x, start = np.log(nodes), np.array([0, len(series)])

    def rows_at(log_g: FloatArray) -> FloatArray:
        both = np.empty((2, 4, len(log_g), nodes.size))
        owner = np.zeros(len(log_g), dtype=np.int64)
        arguments = series, start, owner, phi, sign * np.exp(log_g), log_x
        run_in_parallel(kernels.tabulate, len(log_g), *arguments, *both)
        return both

    low, high = ends
    log_g = np.linspace(low, max(high, low + 0.5), max(int(2 * (high - low)), 1) + 1)
    values, rough = rows_at(log_g), np.arange(len(log_g) - 1)
    while len(rough):
        if len(log_g) + len(rough) > _MOST_ROWS:
            return None
        middle = 0.5 * (log_g[rough] + log_g[rough + 1])
        found = rows_at(middle)
        bad = _misses(values, rough, np.diff(log_g)[rough], found)
        rough, place = rough[bad], rough[bad] + 1
        log_g = np.insert(log_g, place, middle[bad])
        values = np.insert(values, place, found[:, :, bad], axis=2)
        left = rough + np.arange(len(rough))  # where the halved intervals are now
        rough = np.sort(np.concatenate([left, left + 1]))
    steps = np.diff(log_g)
    return log_g, cubic_pieces(nodes, values[0], steps), cubic_pieces(nodes, values[1], steps)


def _misses(
    values: FloatArray, left: np.ndarray, step: FloatArray, found: FloatArray
) -> np.ndarray:
    """Whether the cubics across some intervals miss what was found in their middle."""
    f0, f1 = values[:, 0, left], values[:, 0, left + 1]
    d0, d1 = values[:, 2, left], values[:, 2, left + 1]
    error = np.abs(0.5 * (f0 + f1) + 0.125 * step[:, None] * (d0 - d1) - found[:, 0])
    error[0] /= found[0, 0]
    return np.any(error > _TOLERANCE, axis=(0, 2))


def cubic_pieces(
    nodes: FloatArray, values: FloatArray, row_steps: FloatArray | None = None
) -> FloatArray:
    """Cubic (no row_steps) or bicubic coefficients per segment, from values and derivatives.

    ``values`` holds f, df/dlog x, df/dlog g and the mixed derivative at (row, node); the local
    coordinate of a segment runs from 0 to 1 linearly in x, and across rows linearly in log g.
    """
    width = np.diff(nodes)
    left, right = width / nodes[:-1], width / nodes[1:]

    def along(f: FloatArray, slope: FloatArray) -> FloatArray:
        return _cubic(f[:, :-1], f[:, 1:], slope[:, :-1] * left, slope[:, 1:] * right)

    main = along(values[0], values[1])
    if row_steps is None:
        return main
    across = along(values[2], values[3])
    steps = row_steps[:, None, None]
    pieces = _cubic(main[:-1], main[1:], across[:-1] * steps, across[1:] * steps)
    # (row, segment, power of t, power of s) -> powers of s outermost, as the kernel reads them
    return np.ascontiguousarray(np.swapaxes(pieces, -1, -2)).reshape(*pieces.shape[:2], 16)


def _cubic(f0: FloatArray, f1: FloatArray, d0: FloatArray, d1: FloatArray) -> FloatArray:
    """Coefficients of the cubic on [0, 1] with the given end values and slopes."""
    return np.stack([f0, d0, 3.0 * (f1 - f0) - 2.0 * d0 - d1, 2.0 * (f0 - f1) + d0 + d1], axis=-1)
