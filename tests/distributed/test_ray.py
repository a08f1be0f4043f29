"""Training on a real Ray cluster of two nodes: the same bits, whatever is lost on the way."""

import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import hcpf
from distributed.faults import Fault, FaultyParts
from distributed.test_messages import ThreadNetwork
from hcpf import HCPF, Shards
from hcpf.cli.app import app
from hcpf.distributed.messages import Mailbox, MessageCollective
from hcpf.errors import CheckpointError, ClusterError, ParameterError
from hcpf.training.engine import LOCAL_ENGINE, Parts
from hcpf.training.ensemble import Job, run_fits
from training.test_collective import prepare
from training.workers import with_checkpoint

pytestmark = pytest.mark.xdist_group("ray")

PASSES = 12


def make_job(*, n_fits=1, **settings):
    """Parts and job of a fit."""
    settings = {"element": "gamma", "passes": PASSES, "vary_by": "both", **settings}
    split, value_model, priors, plan = prepare(**settings)
    plan = replace(plan, n_fits=n_fits, check_every=5)
    seeds = np.arange(2 * n_fits).reshape(n_fits, 2)
    return Parts(split), Job(value_model, priors, plan, seeds)


def run_in_threads(parts, job, size=2):
    """What the workers of a fit return if they are threads of this process."""
    mailboxes = [Mailbox() for _ in range(size)]

    def work(rank):
        comm = MessageCollective(ThreadNetwork(rank, mailboxes))
        return run_fits(parts.of(rank, size)(), job, comm)

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(work, range(size)))


def users_of(results):
    return np.concatenate([result.posteriors[0].users.mean_ for result in results])


@pytest.fixture(scope="module")
def plain():
    """A fit without failures, in threads."""
    parts, job = make_job()
    results = run_in_threads(parts, job)
    return parts, job, results


def assert_same_bits(ensemble, results):
    np.testing.assert_array_equal(ensemble.posteriors[0].users.mean_, users_of(results))
    expected = results[0]
    for mine, theirs in zip(ensemble.posteriors, expected.posteriors, strict=True):
        for name in ("shape_", "mean_", "activity_b"):
            np.testing.assert_array_equal(getattr(mine.items, name), getattr(theirs.items, name))
    assert [check.elbo for check in ensemble.history] == [c.elbo for c in expected.history]
    assert ensemble.value_model == expected.value_model


def saving(job, folder):
    return replace(job, plan=with_checkpoint(job.plan, folder))


@pytest.mark.parametrize("settings", [{"n_fits": 2, "validation": 0.1, "excluded": 0.1}])
def test_workers_on_two_nodes_have_the_bits_of_threads(engine, settings):
    parts, job = make_job(vary_by=None, solver="auto", start="clusters", **settings)
    found = engine.run(parts, job)
    assert_same_bits(found, run_in_threads(parts, job))
    alone = LOCAL_ENGINE.run(parts, job)
    assert found.history[-1].elbo == pytest.approx(alone.history[-1].elbo, rel=1e-5)
    np.testing.assert_allclose(
        found.posteriors[1].items.mean_, alone.posteriors[1].items.mean_, rtol=5e-2, atol=1e-3
    )


# Each moment is a rank, a name in faults.py and the passes made by then. Checkpoints are made after
# passes 5, 10 and 12.
SOME_MOMENTS = [(0, "load", 0), (1, "sum_rows", 6)]
MANY_MOMENTS = [
    (0, "load", 0), (1, "lay_out", 0), (0, "sum", 0), (1, "sum_rows", 0), (0, "gather", 3),
    (1, "elbo", 5), (0, "save", 5), (1, "save", 5), (0, "commit", 5), (1, "next_pass", 5),
    (0, "gather", 7), (1, "save", 10), (0, "commit", 10), (1, "sum_rows", 11), (0, "commit", 12),
]  # fmt: skip


@pytest.mark.parametrize(
    "moments", [SOME_MOMENTS, pytest.param(MANY_MOMENTS, marks=pytest.mark.slow)]
)
def test_lost_workers_do_not_change_the_result(engine, plain, moments, tmp_path, caplog):
    faults = [
        Fault("worker", *moment, tmp_path / f"struck-{j}") for j, moment in enumerate(moments)
    ]
    check_faults(engine, plain, faults, tmp_path, caplog)


# Slow: after a node is lost, Ray may need more than a minute to start workers on the other one.
@pytest.mark.slow
@pytest.mark.parametrize("moment", [("lay_out", 0), ("sum_rows", 6), ("save", 10), ("elbo", 12)])
def test_a_lost_node_does_not_change_the_result(engine, plain, moment, tmp_path, caplog):
    fault = Fault("node", None, *moment, tmp_path / "struck")
    check_faults(engine, plain, [fault], tmp_path, caplog)


def check_faults(engine, plain, faults, folder, caplog):
    parts, job, expected = plain
    caplog.set_level(logging.WARNING, logger="hcpf")
    engine = replace(engine, max_restarts=len(faults))
    found = engine.run(FaultyParts(parts, faults), saving(job, folder))
    assert [fault.struck[1] for fault in faults] == [fault.passes for fault in faults]
    assert_same_bits(found, expected)
    assert f"Worker {faults[0].struck[0]} (node 127.0.0.1" in caplog.text
    assert caplog.text.count("was lost after pass") == len(faults)


def test_a_lost_connection_does_not_change_the_result(engine, plain, tmp_path, caplog):
    parts, job, expected = plain
    caplog.set_level(logging.WARNING, logger="hcpf")
    fault = Fault("cut", 1, "gather", 7, tmp_path / "struck")
    engine = replace(engine, max_restarts=1)
    assert_same_bits(engine.run(FaultyParts(parts, [fault]), saving(job, tmp_path)), expected)
    assert fault.struck == (1, 7)
    # Worker 1 finds it out, but the one at the other end is named.
    assert "Worker 0 (node 127.0.0.1" in caplog.text
    assert "(the connection with worker 0 has ended: OSError: [Errno 9]" in caplog.text


def test_where_ports_are_closed_arrays_go_through_ray(engine, plain, tmp_path, caplog):
    parts, job, expected = plain
    caplog.set_level(logging.WARNING, logger="hcpf")
    fault = Fault("firewall", 1, "load", 0, tmp_path / "struck")
    assert_same_bits(engine.run(FaultyParts(parts, [fault]), job), expected)
    (warning,) = caplog.messages
    assert warning.startswith("Worker 1 (node 127.0.0.1")
    assert "cannot connect to worker 0 at 127.0.0.1 port" in warning
    assert warning.endswith("Open the ports between the nodes.")


def test_a_worker_lost_again_and_again_ends_with_an_error(engine, plain, tmp_path):
    parts, job, _ = plain
    faults = [Fault("worker", 0, "sum", 0, tmp_path / f"struck-{j}") for j in range(2)]
    with pytest.raises(ClusterError, match=r"Worker 0 .* restarted 1 times in a row"):
        replace(engine, max_restarts=1).run(FaultyParts(parts, faults), job)


@pytest.mark.parametrize(
    ("kind", "limits", "message"),
    [
        ("freeze", {"silence_seconds": 6.0}, r"Worker 1 \(node 127.0.0.1, process \d+\) has given"),
        ("sleep", {"stall_seconds": 10.0}, r"Worker 1 \(node 127.0.0.1, process \d+\) has kept"),
        ("raise", {}, r"Worker 1 \(node 127.0.0.1, process \d+\) failed with RuntimeError: a bug"),
    ],
)
def test_a_worker_that_hangs_or_fails_ends_the_group(
    engine, plain, tmp_path, kind, limits, message
):
    parts, job, _ = plain
    fault = Fault(kind, 1, "sum_rows", 6, tmp_path / "struck")
    with pytest.raises(ClusterError, match=message) as error:
        replace(engine, **limits).run(FaultyParts(parts, [fault]), job)
    if limits:
        assert "since pass " in str(error.value)


def test_errors_of_the_library_arrive_as_they_are(engine, plain, tmp_path):
    parts, job, _ = plain
    run_in_threads(parts, saving(replace(job, plan=replace(job.plan, tol=0.5)), tmp_path))
    with pytest.raises(CheckpointError, match="belongs to other data or settings"):
        engine.run(parts, saving(job, tmp_path))


def test_a_damaged_checkpoint_takes_the_group_to_the_one_before(engine, plain, tmp_path):
    parts, job, expected = plain
    run_in_threads(parts, saving(job, tmp_path))
    newest = tmp_path / f"fit-0.pass-{PASSES}.rank-1.safetensors"
    newest.write_bytes(newest.read_bytes()[:-50])
    assert_same_bits(engine.run(parts, saving(job, tmp_path.as_uri())), expected)  # by fsspec


def test_another_version_is_refused(engine, plain, monkeypatch):
    from hcpf.distributed import actor

    parts, job, _ = plain
    monkeypatch.setattr(actor, "__version__", "9.9.9")
    with pytest.raises(
        ClusterError, match=r"Worker 0 .* has hcpf .*, but this process has 9\.9\.9"
    ):
        engine.run(parts, job)


def test_more_workers_than_fit_are_refused(engine, plain):
    parts, job, _ = plain
    greedy = replace(engine, cpus_per_worker=4, start_seconds=1.0)
    with pytest.raises(ClusterError, match=r"found no place .* 2 nodes with 2 CPUs"):
        greedy.run(parts, job)


def test_algorithm1_is_refused(engine):
    with pytest.raises(ParameterError, match="Algorithm 1 updates pair by pair"):
        engine.run(*make_job(solver="algorithm1", vary_by=None))


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


DRIVER = """
    import sys
    sys.path.insert(0, {tests!r})
    from pathlib import Path
    from distributed.test_ray import make_job, saving
    from hcpf import RayEngine
    parts, job = make_job()
    engine = RayEngine(workers=2, address={address!r})
    engine.run(parts, saving(job, Path({folder!r})))
"""


@pytest.mark.parametrize("passes", [5, pytest.param(0, marks=pytest.mark.slow)])
def test_a_killed_driver_is_resumed(engine, plain, tmp_path, passes):
    parts, job, expected = plain
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    tests = str(Path(__file__).parents[1])
    script = textwrap.dedent(DRIVER).format(tests=tests, address=engine.address, folder=str(folder))
    driver = subprocess.Popen([sys.executable, "-c", script])
    deadline = time.monotonic() + 90
    pattern = f"fit-0.pass-{passes}.*" if passes else "*"
    while not list(folder.glob(pattern)) and driver.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert_same_bits(engine.run(parts, saving(job, folder)), expected)


def test_a_wrong_token_is_refused(two_nodes):
    script = f"""
        from hcpf.distributed.connection import connected
        from hcpf.errors import ClusterError
        try:
            with connected({two_nodes.address!r}):
                print("connected")
        except ClusterError as error:
            print(error)
    """
    environment = {**os.environ, "RAY_AUTH_TOKEN": "0" * 64}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=environment, capture_output=True, text=True, timeout=90, check=True,
    )  # fmt: skip
    assert "refused the token" in done.stdout
