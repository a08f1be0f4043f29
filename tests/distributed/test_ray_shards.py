"""Folders of shards on a Ray cluster: every worker reads its own shards."""

import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

import hcpf
from hcpf import HCPF, Interactions, Shards, elements, simulate
from hcpf.cli.app import app
from hcpf.errors import ParameterError, ShardError
from hcpf.training.engine import ShardParts
from hcpf.training.held_out import split_validation

pytestmark = pytest.mark.xdist_group("ray")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Simulated interactions in four shards."""
    element = elements.Gamma(2.0, 0.1)
    data = simulate(120, 40, n_components=3, density=0.1, element=element, random_state=0)
    path = tmp_path_factory.mktemp("data") / "shards"
    data.interactions.to_shards(path, n_shards=4)
    return path


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


def test_a_folder_is_fitted_as_in_memory(engine, folder):
    shards = Shards.open(folder)
    arguments = {"element": "gamma", "n_fits": 1, "max_iter": 6, "random_state": 0}
    model = HCPF(3, tempering=1.0, **arguments).fit(shards, engine=engine, validation=0.1)
    alone = HCPF(3, tempering=1.0, **arguments).fit(shards.to_memory(), validation=0.1)
    assert model.history_[-1].elbo == pytest.approx(alone.history_[-1].elbo, rel=1e-4)
    np.testing.assert_array_equal(model.users_, alone.users_)
    np.testing.assert_allclose(
        model.posterior_.users.mean, alone.posterior_.users.mean, rtol=0.05, atol=1e-3
    )


def test_the_command_line_fits_on_a_cluster(engine, folder, tmp_path):
    data, model = tmp_path / "data.csv", tmp_path / "model"
    entries = Shards.open(folder).to_memory().matrix.tocoo()
    columns = np.column_stack([entries.row, entries.col, entries.data])
    np.savetxt(data, columns, "%g", delimiter=",", header="user,item,value", comments="")
    command = f"fit {data} --engine ray --workers 2 --address {engine.address} --quick"
    command += f" --element gamma -K 3 --max-iter 4 --output {model} --json"
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 0, done.output
    assert hcpf.load(model).n_iter == 4
