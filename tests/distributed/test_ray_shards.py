"""Folders of shards for several workers: every worker reads its own shards."""

import shutil

import numpy as np
import pytest

from hcpf import Interactions, Shards, elements, simulate
from hcpf.errors import ParameterError, ShardError
from hcpf.training.engine import ShardParts
from hcpf.training.held_out import split_validation


def shard_parts(folder, **changes):
    shards = Shards.open(folder)
    split = split_validation(shards.to_memory().matrix, None, None, 0.1, "full", generator())
    return ShardParts(split, shards=shards, **changes)


def generator():
    return np.random.default_rng(3)


def test_workers_read_their_own_shards(folder):
    parts = shard_parts(folder)
    for size in (1, 2, 3, 4):
        found = [parts.of(rank, size)().data for rank in range(size)]
        numbers = np.concatenate([data.numbers for data in found])
        np.testing.assert_array_equal(numbers, np.arange(120))
        for data in found:
            expected = parts.split.training[data.numbers]
            found_rows = data.matrix[np.arange(len(data.numbers))]
            np.testing.assert_array_equal(found_rows.todense(), expected.todense())
            assert data.excluded.shape == expected.shape


def test_more_workers_than_shards_are_refused(folder):
    with pytest.raises(ParameterError, match="has 4 shards, fewer than the 5 workers"):
        shard_parts(folder).of(0, 5)


def test_other_shards_are_refused(folder, tmp_path):
    copy = tmp_path / "shards"
    shutil.copytree(folder, copy)
    load = shard_parts(copy).of(1, 2)
    more = simulate(30, 40, density=0.2, element=elements.Gamma(2.0, 0.1), random_state=1)
    renamed = Interactions(more.interactions.matrix, np.arange(1000, 1030), more.interactions.items)
    renamed.to_shards(copy, append=True)
    with pytest.raises(ShardError, match="holds other shards"):
        load()
