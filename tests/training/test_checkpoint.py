"""Checkpoints: a killed run resumes to the bits of an uninterrupted one; others are refused."""

import contextlib
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import hcpf
from hcpf import CAVI, Auto, Checkpoints
from hcpf.elements import Gamma, Poisson
from hcpf.errors import CheckpointError
from hcpf.training import loop
from prepared import prepared

COUNTS = {"element": Poisson(1.0)}
SETTINGS = {
    "cavi": {"solver": "cavi", "max_iter": 30, "element": Gamma(1.0, 0.5), "tempering": 2.0},
    "search": {"solver": "cavi", "max_iter": 24, **COUNTS},  # short fits choose the tempering
    "auto": {"solver": Auto(svi_passes=4), "max_iter": 16, "validation": 0.1, **COUNTS},
    "algorithm1": {"solver": "algorithm1", "max_iter": 16, **COUNTS},
    "two": {"solver": Auto(svi_passes=3), "max_iter": 8, "n_fits": 2, **COUNTS},
}
COMMON = {"tol": 0.0, "check_every": 4, "random_state": 4, "n_threads": 1}
COMMON |= {"n_fits": 1}

# A process that has everything loaded and forks itself for each line "name folder" it reads.
SERVER = """
import os, sys
sys.path.insert(0, {tests!r})
from training.test_checkpoint import SETTINGS, run
for name in SETTINGS:
    run(name, None, max_iter=5)
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        run(*line.split())
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


def data(name):
    # Only above 400 users and 5,000 entries does "auto" begin with minibatches.
    n_users, density = (450, 0.3) if name in ("auto", "two") else (60, 0.2)
    element = SETTINGS[name]["element"]
    return hcpf.simulate(
        n_users, 50, n_components=4, density=density, element=element, random_state=5
    ).interactions


def run(name, folder, **changes):
    settings = {**COMMON, **SETTINGS[name], **changes}
    checkpoint = None if folder is None else Checkpoints(folder, every_passes=1)
    return prepared(5, checkpoint=checkpoint, **settings).fit(data(name))


def state_of(fitted):
    """Everything a fit gives back, but for the seconds."""
    sides = [side for p in fitted.posteriors_ for side in (p.users, p.items)]
    return (
        [getattr(s, n).tobytes() for s in sides for n in ("shape_", "mean_", "activity_b")],
        fitted.element_,
        [(c.iteration, c.elbo, c.validation_log_likelihood) for c in fitted.history_],
    )


@pytest.fixture(scope="module")
def server():
    script = SERVER.format(tests=str(Path(__file__).parent.parent))
    # Of Numba's threading layers this one survives a fork.
    environment = {**os.environ, "NUMBA_THREADING_LAYER": "workqueue"}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, env=environment,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()


def run_and_kill(server, name, folder, patience):
    """Begin a run in another process and kill it; True if it was not done before."""
    server.stdin.write(f"{name} {folder}\n")
    server.stdin.flush()
    child = int(server.stdout.readline())
    time.sleep(patience)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    return int(server.stdout.readline()) == signal.SIGKILL


@pytest.mark.parametrize(
    ("name", "n_kills"),
    [
        ("cavi", 2),
        ("auto", 2),
        *(pytest.param(name, 5, marks=pytest.mark.slow) for name in SETTINGS),
    ],
)
def test_a_run_killed_at_any_moment_goes_on_to_the_same_bits(name, n_kills, server, tmp_path):
    expected = state_of(run(name, None))
    # How long a run takes varies from machine to machine, and with what else runs there: kill
    # sooner if it was done, later if it had not come to a checkpoint.
    moments, patience, kills = random.Random(name), 1.0, 0
    for _ in range(60):
        hit = run_and_kill(server, name, tmp_path, moments.uniform(0.0, patience))
        begun = any(tmp_path.glob("*.safetensors"))
        kills += hit and begun
        if kills == n_kills:
            break
        if not hit:
            shutil.rmtree(tmp_path)
            patience *= 0.7
        elif not begun:
            patience *= 1.2
    assert kills == n_kills
    assert state_of(run(name, tmp_path)) == expected
    # Finished: nothing is left to do, and the result is the same once more.
    assert state_of(run(name, tmp_path)) == expected


class StoppedError(Exception):
    pass


def stop_in_the_middle(folder, name="cavi"):
    """Leave behind the checkpoint of a run that broke off after seven passes."""
    make_pass, passes = loop._make_pass, iter(range(7))

    def some_passes(*arguments):
        if next(passes, None) is None:
            raise StoppedError
        make_pass(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "_make_pass", some_passes)
        with pytest.raises(StoppedError):
            run(name, folder)


@pytest.fixture(scope="module")
def stopped_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped")
    stop_in_the_middle(folder)
    return folder


@pytest.fixture
def stopped(stopped_run, tmp_path):
    """A folder of one's own with the checkpoint of the run "cavi" after seven passes."""
    return shutil.copytree(stopped_run, tmp_path / "stopped")


@pytest.fixture(scope="module")
def uninterrupted():
    return state_of(run("cavi", None))


@pytest.mark.parametrize("name", SETTINGS)
def test_an_exception_in_the_middle_loses_nothing(name, tmp_path):
    stop_in_the_middle(tmp_path, name)
    assert state_of(run(name, tmp_path)) == state_of(run(name, None))


@pytest.mark.parametrize("name", ["cavi", "auto", "two"])
def test_a_run_ended_by_ctrl_c_goes_on_to_the_same_bits(name, tmp_path, monkeypatch):
    before, advance, calls = signal.getsignal(signal.SIGINT), loop.advance_fit, iter(range(99))

    def press(fit):
        advance(fit)
        if next(calls) == 6:  # between two checks
            signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(loop, "advance_fit", press)
    model = run(name, tmp_path)
    signal.signal(signal.SIGINT, before)
    assert (model.interrupted_, model.n_iter_) == (True, 7)
    assert state_of(run(name, tmp_path)) == state_of(run(name, None))


def test_without_a_seed_the_folder_remembers_one(tmp_path):
    one = run("two", tmp_path, random_state=None)
    assert state_of(run("two", tmp_path, random_state=None)) == state_of(one)
    other = run("two", tmp_path / "other", random_state=None)
    assert state_of(other) != state_of(one)


@pytest.mark.parametrize(
    "changes",
    [
        {"random_state": 5}, {"max_iter": 31}, {"tol": 1e-9}, {"element": Gamma(2.0, 1.0)},
        {"priors": "paper"}, {"learn_element": False}, {"validation": 0.2},
        {"solver": CAVI(max_count=50)}, {"train_on": "observed"}, {"check_every": 3},
        {"vary_by": "user"}, {"hurdle": True}, {"tempering": 1.0},
    ],
    ids=lambda changes: next(iter(changes)),
)  # fmt: skip
def test_a_checkpoint_of_other_settings_is_refused(changes, stopped, caplog):
    with pytest.raises(CheckpointError, match="other data or settings"):
        run("cavi", stopped, **changes)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_checkpoint_of_other_data_is_refused(stopped):
    matrix = data("cavi").matrix
    model = prepared(5, checkpoint=stopped, **COMMON, **SETTINGS["cavi"])
    with pytest.raises(CheckpointError, match="other data or settings"):
        model.fit(matrix * 1.001)
    with pytest.raises(CheckpointError, match="other data or settings"):
        model.fit(matrix, exclude=matrix[:, ::-1])
    with pytest.raises(CheckpointError, match="other data or settings"):
        model.fit(matrix, validation=matrix[:, ::-1])
    for argument in ("user_exposure", "item_exposure"):
        with pytest.raises(CheckpointError, match="other data or settings"):
            model.fit(matrix, **{argument: 2.0})


def test_the_same_settings_in_other_types_are_the_same(stopped, uninterrupted):
    changes = {"max_iter": np.int64(30), "tol": 0, "random_state": np.int64(4), "n_threads": 2}
    assert state_of(run("cavi", stopped, **changes)) == uninterrupted


def damage(path, how):
    content = path.read_bytes()
    if how == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "gone":
        path.unlink()
    elif how == "not safetensors":
        path.write_text("hello")
    elif how == "a flipped bit":
        flipped = bytearray(content)
        flipped[-100] ^= 1
        path.write_bytes(bytes(flipped))
    elif how == "a changed header":
        assert content.count(b'\\"iteration\\": ') > 1
        path.write_bytes(content.replace(b'\\"iteration\\": ', b'\\"iteration\\":1', 1))
    else:
        save_file(load_file(path), path)  # without the header


@pytest.mark.parametrize(
    "how",
    [
        "truncated", "empty", "gone", "not safetensors", "a flipped bit", "a changed header",
        "no header",
    ],
)  # fmt: skip
def test_a_damaged_checkpoint_is_refused_and_the_one_before_it_used(
    how, stopped, uninterrupted, caplog
):
    latest, before = (stopped / f"fit-0.pass-{n}.rank-0.safetensors" for n in (7, 6))
    damage(latest, how)
    if how in ("truncated", "gone"):
        copy = shutil.copytree(stopped, stopped / "copy")
        assert state_of(run("cavi", copy)) == uninterrupted
        assert "Resuming from pass 6" in caplog.text
    damage(before, how)
    with pytest.raises(CheckpointError, match=r"pass-7.*cannot be read"):
        run("cavi", stopped)


@pytest.mark.parametrize("content", ["", "{}", "[7]", '{"workers": 1, "passes": ["x"]}'])
def test_a_damaged_manifest_is_refused(content, stopped):
    (stopped / "fit-0.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"fit-0\.json cannot be read"):
        run("cavi", stopped)


def test_a_checkpoint_of_another_number_of_workers_is_refused(stopped):
    manifest = json.loads((stopped / "fit-0.json").read_text())
    (stopped / "fit-0.json").write_text(json.dumps(manifest | {"workers": 2}))
    with pytest.raises(CheckpointError, match="written by 2 workers, not by 1"):
        run("cavi", stopped)


def test_only_the_last_two_checkpoints_are_kept(stopped, uninterrupted):
    names = {f"fit-0.pass-{n}.rank-0.safetensors" for n in (6, 7)}
    assert {path.name for path in stopped.iterdir()} == {"fit-0.json", *names}
    stray = stopped / "fit-0.pass-3.rank-0.safetensors"  # of a run that was killed while it wrote
    stray.write_bytes(b"half")
    assert state_of(run("cavi", stopped)) == uninterrupted
    names = {f"fit-0.pass-{n}.rank-0.safetensors" for n in (29, 30)}
    assert {path.name for path in stopped.iterdir()} == {"fit-0.json", *names}


def test_a_folder_that_cannot_be_written_is_an_error_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "folder"):
        with pytest.raises(CheckpointError, match="cannot be written"):
            run("cavi", folder)
    if os.geteuid() != 0:
        (tmp_path / "locked").mkdir(mode=0o500)
        with pytest.raises(CheckpointError, match="cannot be written"):
            run("cavi", tmp_path / "locked")


def test_a_write_that_fails_keeps_the_old_files(stopped, monkeypatch):
    before = {path.name: path.read_bytes() for path in stopped.iterdir()}

    def full_disk(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(CheckpointError, match="No space left"):
        run("cavi", stopped)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in stopped.iterdir()} == before


def test_a_warm_start_does_not_resume_the_run_before_it(tmp_path):
    model = prepared(3, element=Poisson(1.0), warm_start=True, checkpoint=tmp_path, random_state=0)
    matrix = np.random.default_rng(0).poisson(1.0, (20, 15))
    model.set_params(max_iter=3, tol=0.0).fit(matrix)
    with pytest.raises(CheckpointError, match="other data or settings"):
        model.fit(matrix)


def test_the_seed_file_is_read_with_care(tmp_path):
    (tmp_path / "seed.json").write_text(json.dumps("x"))
    with pytest.raises(CheckpointError, match=r"seed\.json"):
        run("cavi", tmp_path, random_state=None)
