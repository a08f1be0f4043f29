"""Table rows at some of the values, and the cubic through four of them for those between."""

from collections.abc import Callable

import numpy as np

from hcpf._types import FloatArray, IntArray

_STEP = 0.5  # of log(1 + y) between the first rows
_TOLERANCE = 2e-6  # of E[n] (relative) and log Z (relative to 1 + |log Z|) between rows
_KEPT_ERROR = 0.2
"""The error between rows after the one in the middle was added, in terms of that before."""


def choose_rows(
    values: FloatArray,
    rows_at: Callable[[IntArray, IntArray], FloatArray | None],
    max_rows: int,
) -> tuple[IntArray, FloatArray] | None:
    """Return which of the sorted values have rows, and their rows; None if they would be too many.

    ``rows_at(chosen, upper)`` gives E[n] and log Z and their slopes, in an array of shape (2, 2,
    rows, nodes), of chosen values, or None to give up; ``upper`` are the largest values that these
    rows serve. An interval with values inside is halved until the cubic through four rows meets the
    row in its middle at all nodes.
    """
    place = np.log1p(values)
    even = np.arange(place[0], place[-1], _STEP)
    chosen = np.unique([*np.searchsorted(place, even), len(values) - 1])
    if len(chosen) < 4:
        return None
    rows = rows_at(chosen, _upper(chosen, np.arange(len(chosen))))
    if rows is None:
        return None
    rough = np.flatnonzero(np.diff(chosen) > 1)
    while len(rough):
        if len(chosen) + len(rough) > max_rows:
            return None
        ends = chosen[rough], chosen[rough + 1]
        middle = np.searchsorted(place, 0.5 * (place[ends[0]] + place[ends[1]]))
        middle = np.clip(middle, ends[0] + 1, ends[1] - 1)
        found = rows_at(middle, _upper(chosen, rough))
        if found is None:
            return None
        four, weights = stencils(place[chosen], rough, place[middle])
        guess = np.einsum("qj,aqjn->aqn", weights, rows[:, 0][:, four])
        size = np.stack([found[0, 0], 1.0 + np.abs(found[1, 0])])
        error = np.max(np.abs(guess - found[:, 0]) / size, axis=(0, 2))
        bad = _KEPT_ERROR * error > _TOLERANCE
        left = rough + np.arange(len(rough))  # where the halved intervals are now
        chosen = np.insert(chosen, rough + 1, middle)
        rows = np.insert(rows, rough + 1, found, axis=2)
        halves = np.sort(np.concatenate([left[bad], left[bad] + 1]))
        rough = halves[np.diff(chosen)[halves] > 1]
    return chosen, rows


def _upper(chosen: IntArray, position: IntArray) -> IntArray:
    """The largest value between which and its neighbor a row at some position is used."""
    return chosen[np.minimum(position + 2, len(chosen) - 1)]


def stencils(place: FloatArray, interval: IntArray, x: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the four rows next to each interval, and their weights at a place in it."""
    four = np.clip(interval - 1, 0, len(place) - 4)[:, None] + np.arange(4)
    nodes = place[four]
    weights = np.ones_like(nodes)
    for j in range(4):
        for k in range(4):
            if k != j:
                weights[:, j] *= (x - nodes[:, k]) / (nodes[:, j] - nodes[:, k])
    return four, weights


def pieces_between_rows(place: FloatArray, pieces: FloatArray) -> FloatArray:
    """Return bicubic pieces, from each row to the next, from the cubic pieces of the rows."""
    n_rows, n_segments, _ = pieces.shape
    four = np.clip(np.arange(n_rows) - 1, 0, n_rows - 4)[:, None] + np.arange(4)
    width = np.append(np.diff(place), 1.0)  # nothing lies beyond the last row
    s = (place[four] - place[:, None]) / width[:, None]
    powers = np.linalg.inv(s[:, :, None] ** np.arange(4.0))  # of s, per row of the four
    out = np.einsum("rpj,rjnq->rnpq", powers, pieces[four], optimize=True)
    return out.reshape(n_rows, n_segments, 16)
