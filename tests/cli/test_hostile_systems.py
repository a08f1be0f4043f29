"""Signals, full disks, broken pipes and bare environments: one line, and no half-written file."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals, limits and mounts")

ITEMS = [f"p{i}" for i in range(40)]
FIT = "--element", "gamma", "-K", "3", "--fits", "1", "--threads", "1"


def writing_commands(sales, model, folder):
    """Return, by name, the commands that write, each to a path in ``folder``."""
    return {
        "fit": ["fit", sales, "-o", folder / "model", *FIT, "--max-iter", 3],
        "evaluate": ["evaluate", sales, "-o", folder / "scores.json", *FIT, "--max-iter", 3],
        "recommend": ["recommend", model, "--all", "-n", 40, "-o", folder / "lists.csv"],
        "predict": ["predict", model, "--all", "-o", folder / "pairs.parquet"],
        "simulate": ["simulate", 300, 200, "-o", folder / "drawn.csv", "--element", "gamma:2,1"],
        "report": ["report", model, "-o", folder / "report.html"],
        "shard": ["shard", sales, "-o", folder / "shards", "--shards", 2],
        "update": ["update", model, sales, "-o", folder / "new", "--duplicates", "last"],
        "fold-in": ["fold-in", model, sales, "-n", 30, "-o", folder / "lists.csv"],
        "components": ["components", model, "--top", 40, "-o", folder / "components.tsv"],
        "similar": ["similar", model, *ITEMS, "-n", 30, "-o", folder / "similar.xlsx"],
        "figure1": ["reproduce", "figure1", "-o", folder / "figure1.svg"],
    }


NAMES = list(writing_commands("", "", Path()))


def assert_one_line(stderr, code):
    assert "Traceback" not in stderr
    lines = [line for line in stderr.splitlines() if line.startswith("hcpf: ")]
    assert len(lines) == 1, (code, stderr)
    return lines[0]


# -- no room for what is written ------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_on_the_size_of_files(run, sales, model, tmp_path, name):
    command = writing_commands(sales, model, tmp_path)[name]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # as ulimit -f does
    try:
        result = run([str(part) for part in command])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.exit_code == 1, (result.output, result.exception)
    assert "oo large" in assert_one_line(result.stderr, result.exit_code)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def tiny_disk(tmp_path):
    """A disk with room for 4 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", "size=4k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(["mount", *options], capture_output=True).returncode:
        pytest.skip("mounting a small disk needs the rights of root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "evaluate"])
def test_a_full_disk(run, sales, model, tiny_disk, name):
    command = writing_commands(sales, model, tiny_disk)[name]
    result = run([str(part) for part in command])
    assert result.exit_code == 1, (result.output, result.exception)
    assert "No space left" in assert_one_line(result.stderr, result.exit_code)
    assert list(tiny_disk.iterdir()) == []


@pytest.mark.parametrize("name", ["report", "similar"])
def test_a_full_disk_is_one_line_about_the_file_asked_for(start, sales, model, tiny_disk, name):
    """Also when Python ends, and collects archives that could not be completed."""
    command = writing_commands(sales, model, tiny_disk)[name]
    _, stderr = start(*command).communicate(timeout=120)
    said = f"hcpf: {command[-1]} cannot be written: No space left on device."
    assert stderr.splitlines()[-1] == said
    assert "Exception ignored" not in stderr


def test_a_full_disk_keeps_the_old_file(run, model, tiny_disk):
    path = tiny_disk / "lists.csv"
    path.write_text("old")
    result = run(["recommend", str(model), "--all", "-n", "40", "-o", str(path), "--overwrite"])
    assert result.exit_code == 1
    assert [file.read_text() for file in tiny_disk.iterdir()] == ["old"]


def test_a_limit_on_memory(tmp_path):
    words = "simulate 2000000000 3 --density 1e-6 -o drawn.csv"
    limited = f"ulimit -v 6000000; exec {sys.executable} -m hcpf.cli {words}"
    done = subprocess.run(
        limited, shell=True, capture_output=True, text=True, timeout=240, cwd=tmp_path
    )
    assert done.returncode == 1, done.stderr
    assert assert_one_line(done.stderr, 1).startswith("hcpf: not enough memory: Unable to allocate")
    assert list(tmp_path.iterdir()) == []


# -- signals --------------------------------------------------------------------------------------


def wait_for_partial_file(process, folder):
    """Wait until the command has begun to write, or has ended."""
    while process.poll() is None:
        if any(".part" in file.name for file in folder.rglob(".*.part")):
            return
        time.sleep(0.002)


def assert_ended_cleanly(process, number, folder):
    _, stderr = process.communicate(timeout=120)
    # Before any module of hcpf is loaded, a signal has the effect that Python gives it.
    is_early = "Traceback" in stderr and "/hcpf/" not in stderr
    assert is_early or "Traceback" not in stderr, stderr
    ended = 0, 128 + number, -number
    assert is_early or process.returncode in ended, (process.returncode, stderr)
    assert not list(folder.rglob("*.part")), list(folder.rglob("*"))
    for written in (folder / name for name in ("model", "new", "shards")):
        assert not written.exists() or any(written.glob("*manifest.json")), list(folder.rglob("*"))
    assert not list(folder.rglob(".spool"))
    return process.returncode


@pytest.mark.parametrize("name", NAMES)
def test_a_signal_while_a_file_is_written(start, sales, model, tmp_path, name):
    number = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT][NAMES.index(name) % 3]
    process = start(*writing_commands(sales, model, tmp_path)[name])
    wait_for_partial_file(process, tmp_path)
    process.send_signal(number)
    assert_ended_cleanly(process, number, tmp_path)


def test_nohup_keeps_a_command_alive(sales, model, tmp_path):
    command = writing_commands(sales, model, tmp_path)["recommend"]
    words = ["nohup", sys.executable, "-m", "hcpf.cli", *map(str, command)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for_partial_file(process, tmp_path)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert (tmp_path / "lists.csv").exists()


def test_a_terminated_command_says_so(run, monkeypatch, model):
    from hcpf.model.fitted import FittedModel

    def stop(*arguments, **options):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)

    monkeypatch.setattr(FittedModel, "recommend", stop)
    result = run(["recommend", str(model), "c1"])
    assert result.exit_code == 143
    assert assert_one_line(result.stderr, 143).startswith("hcpf: terminated")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_signal_during_an_import_is_asked_for_again():
    from hcpf.cli.errors import Terminated, raise_on_termination

    importing = compile(
        "os.kill(os.getpid(), signal.SIGTERM)", "<frozen importlib._bootstrap>", "exec"
    )
    with pytest.raises(Terminated), raise_on_termination():  # noqa: PT012
        exec(importing, {"os": os, "signal": signal})
        time.sleep(5)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("name", NAMES)
def test_signals_at_many_moments(start, sales, model, tmp_path, name, number):
    rng = np.random.default_rng([NAMES.index(name), number])
    for trial in range(6):
        folder = tmp_path / str(trial)
        folder.mkdir()
        process = start(*writing_commands(sales, model, folder)[name])
        time.sleep(rng.uniform(0.0, 3.0))
        process.send_signal(number)
        assert_ended_cleanly(process, number, folder)


# -- pipes and environments -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [["recommend", *(f"c{u}" for u in range(60)), "-n", "40"], ["info"]]
)
def test_output_that_only_head_reads(model, command):
    name, *options = command
    hcpf = f"{sys.executable} -m hcpf.cli {name} {model} {' '.join(options)}"
    done = subprocess.run(
        f"{hcpf} | head -1", shell=True, capture_output=True, text=True, timeout=120
    )
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1


def test_without_home_locale_or_terminal(sales, tmp_path):
    """As in a container or a cron job; ids that are not ASCII are printed all the same."""
    data = tmp_path / "café.csv"
    data.write_text(sales.read_text().replace("c1,", "é1,"), encoding="utf-8")
    bare = {"PATH": os.defpath, "LC_ALL": "C", "LANG": "C", "TERM": "dumb"}
    bare["PYTHONPATH"] = os.pathsep.join(sys.path)

    def hcpf(*words):
        return subprocess.run(
            [sys.executable, "-m", "hcpf.cli", *map(str, words)],
            env=bare, capture_output=True, timeout=240, cwd="/",
        )  # fmt: skip

    fitted = hcpf("fit", data, "-o", tmp_path / "model", *FIT, "--max-iter", 3)
    assert fitted.returncode == 0, fitted.stderr
    listed = hcpf("recommend", tmp_path / "model", "é1", "-n", 2)
    assert (listed.returncode, listed.stderr) == (0, b"")
    assert "é1\t" in listed.stdout.decode()
    failed = hcpf("recommend", tmp_path / "model", "ö")
    assert failed.returncode == 1
    assert_one_line(failed.stderr.decode(), 1)


def test_a_read_only_installation(sales, tmp_path):
    """Compiled kernels are kept elsewhere, or compiled again: never an error."""
    import hcpf

    package = tmp_path / "site"
    package.mkdir()
    (package / "hcpf").symlink_to(Path(hcpf.__file__).parent)
    script = (
        "import os, sys\n"
        "real = os.open\n"
        "def refuse(path, flags, *rest, **named):\n"
        "    text = os.fspath(path) if not isinstance(path, int) else ''\n"
        "    if str(text).startswith(sys.argv[1]) and flags & (os.O_WRONLY | os.O_RDWR):\n"
        "        raise PermissionError(30, 'Read-only file system', text)\n"
        "    return real(path, flags, *rest, **named)\n"
        "os.open = refuse\n"
        "os.access = lambda path, mode, **named: mode != os.W_OK\n"
        "from hcpf import HCPF\n"
        "import numpy as np\n"
        "HCPF(2, element='gamma', n_fits=1, max_iter=2).fit(np.ones((4, 3)) + np.eye(4, 3))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(package), "HOME": "/nonexistent"}
    done = subprocess.run(
        [sys.executable, "-c", script, str(package)], env=environment, capture_output=True,
        text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
