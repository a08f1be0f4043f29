"""The best columns of each row, tile by tile, against a sort of all scores."""

import numpy as np
import pytest

from hcpf.core import kernels

N, ROWS = 7, 5


def best(scores, width, seen, denied, n=N):
    """Rank the columns of ``scores`` (parts x rows x columns) in tiles of some width."""
    select = kernels.best_of_tile if len(scores) == 1 else kernels.best_of_products
    kept, places = np.empty((ROWS, n), np.float32), np.empty((ROWS, n), np.int32)
    found, index = np.zeros(ROWS, np.int64), np.concatenate(seen).astype(np.int32)
    stop = np.cumsum([len(columns) for columns in seen])
    position = stop - [len(columns) for columns in seen]
    for begin in range(0, scores.shape[2], width):
        tile = np.ascontiguousarray(scores[:, :, begin : begin + width])
        select(0, ROWS, tile, begin, position, stop, index, denied, kept, places, found)
    kernels.sort_best(kept, places, found)
    return [columns[:size].tolist() for columns, size in zip(places, found, strict=True)]


@pytest.mark.parametrize("n_parts", [1, 3])
@pytest.mark.parametrize("n_columns", [3, 128, 1000, 2049])
@pytest.mark.parametrize("width", [100, 384, 4096])
def test_tiles_give_the_best_of_a_sort(n_parts, n_columns, width, rng):
    scores = rng.gamma(0.3, size=(n_parts, ROWS, n_columns)).astype(np.float32)
    scores[:, :, : n_columns // 2] = np.round(scores[:, :, : n_columns // 2])  # many are equal
    seen = [np.sort(rng.permutation(n_columns)[: n_columns // 4]) for _ in range(ROWS)]
    denied = rng.random(n_columns) < 0.1
    logs = np.log2(np.maximum(scores.astype(np.float64), 1e-37)).sum(axis=0)
    found = best(scores, width, seen, denied)
    for r, columns in enumerate(found):
        allowed = np.setdiff1d(np.flatnonzero(~denied), seen[r])
        order = allowed[np.argsort(-logs[r, allowed], kind="stable")][:N]
        assert len(columns) == len(order)
        np.testing.assert_allclose(logs[r, columns], logs[r, order], rtol=0, atol=2e-4)
        if n_parts == 1:
            assert columns == order.tolist()


@pytest.mark.parametrize("position", [0, 15, 16, 127, 128, 300, 511])
def test_a_single_high_score_is_found_anywhere(position):
    scores = np.full((1, ROWS, 512), 0.25, np.float32)
    scores[0, :, position] = 2.0
    nothing = [np.zeros(0, np.int64)] * ROWS
    found = best(scores, 512, nothing, np.zeros(512, np.bool_), n=1)
    assert found == [[position]] * ROWS
