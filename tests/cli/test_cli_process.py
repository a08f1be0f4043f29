"""In separate processes: Ctrl-C, pipes that break, and how quick the help is."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from typer.core import TyperGroup

from hcpf import HCPF
from hcpf.errors import MissingDependencyError
from hcpf.model.fitted import FittedModel
from hcpf.training import short_fits

ENDLESS = (
    "-K",
    "3",
    "--fits",
    "1",
    "-e",
    "gamma",
    "--threads",
    "1",
    "--tol",
    "0",
    "--max-iter",
    "100000000",
)


def interrupt_when(process, path, seconds=60):
    """Ctrl-C as soon as the first checkpoint is there."""
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_leaves_a_usable_model_and_says_how_to_resume(start, sales, tmp_path):
    output, checkpoint = tmp_path / "model", tmp_path / "checkpoint"
    arguments = ["fit", sales, "-o", output, *ENDLESS, "--checkpoint", checkpoint, "--json"]
    process = start(*arguments)
    interrupt_when(process, checkpoint / "fit-0.json")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert json.loads(out)["interrupted"]
    assert "Traceback" not in err
    assert "To resume: hcpf fit" in err
    assert "--overwrite" in err
    assert FittedModel.load(output).interrupted


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_an_interrupted_update_ends_with_the_code_of_ctrl_c(
    run, monkeypatch, model, sales, tmp_path, more
):
    def interrupted(self, *arguments, **options):
        self.model_ = replace(self.model_, interrupted=True)

    monkeypatch.setattr(HCPF, "partial_fit", interrupted)
    result = run(["update", str(model), str(sales), "-o", str(tmp_path / "new"), *more])
    assert result.exit_code == 130
    assert FittedModel.load(tmp_path / "new").interrupted


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_elsewhere_leaves_nothing(run, monkeypatch, model, tmp_path):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(FittedModel, "recommend", stop)
    path = tmp_path / "lists.csv"
    result = run(["recommend", str(model), "--all", "-o", str(path)])
    assert result.exit_code == 130
    assert "interrupted" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["hcpf.data.readers.open_files", "hcpf.estimator.HCPF.fit"])
def test_ctrl_c_during_a_fit_says_that_no_model_was_saved(run, monkeypatch, sales, tmp_path, place):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(place, stop)
    result = run(["fit", str(sales), "-o", str(tmp_path / "model")])
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "hcpf: interrupted; no model was saved."
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_options_are_read_is_not_silent(run, monkeypatch):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(TyperGroup, "parse_args", stop)
    result = run(["fit", "data.csv", "-o", "model"])
    assert result.exit_code == 130
    assert result.stderr == "hcpf: interrupted; no file was left half written.\n"


@pytest.mark.parametrize("name", ["SystemError", "MissingDependencyError"])
def test_ctrl_c_that_a_module_turns_into_another_error_is_one(run, model, monkeypatch, name):
    """A C extension that is interrupted while it loads raises a SystemError or ImportError."""

    def stop(*arguments, **options):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            if name == "SystemError":
                raise SystemError("initialization failed") from error
            raise MissingDependencyError("This requires another package.") from None

    monkeypatch.setattr(FittedModel, "recommend", stop)
    result = run(["recommend", str(model), "c1"])
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "hcpf: interrupted; no file was left half written."


def test_ctrl_c_before_there_is_a_model_says_so_in_one_line(run, sales, monkeypatch, tmp_path):
    def press(*arguments):
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(short_fits, "advance_fit", press)
    result = run(["fit", str(sales), "-o", str(tmp_path / "model"), "--threads", "1"])
    signal.signal(signal.SIGINT, before)
    assert result.exit_code == 130
    *remarks, last = result.stderr.splitlines()
    assert last == "hcpf: interrupted before any element was tried: nothing is kept."
    assert "detected" in remarks[0]
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "model").exists()


# Sends Ctrl-C to itself when a module begins to load.
INTERRUPT_AT = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

module = sys.argv.pop(1)
sys.meta_path.insert(0, Interrupt())
from hcpf.cli import main
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    "module",
    ["hcpf.cli.app", "typer", "numpy", "scipy.special", "pyarrow.lib", "hcpf.model.fitted"],
)
def test_ctrl_c_while_modules_load_prints_no_traceback(model, module):
    arguments = [sys.executable, "-c", INTERRUPT_AT, module, "recommend", str(model), "c1"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("hcpf: interrupted")
    if module in ("hcpf.cli.app", "typer"):
        assert done.stderr == "hcpf: interrupted before it began; nothing was saved.\n"


def test_piped_output_is_quiet(start, model):
    out, err = start("recommend", model, "c1", "-n", 3).communicate(timeout=60)
    assert err == ""
    assert out.count("\n") == 4
    assert "\x1b" not in out


@pytest.mark.skipif(os.name != "posix", reason="pipes")
def test_broken_pipe_is_quiet(start, model):
    pairs = [*(f"--item=p{i}" for i in range(40)), *(f"--user=c{u}" for u in range(60))]
    with start("predict", model, *pairs) as process:
        process.stdout.close()  # nobody reads
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_help_loads_no_heavy_modules():
    code = (
        "import sys; from typer.testing import CliRunner; from hcpf.cli.app import app\n"
        "heavy = ('matplotlib', 'numba', 'numpy', 'sklearn', 'pyarrow', 'narwhals')\n"
        "ours = ('hcpf.core', 'hcpf.data', 'hcpf.estimator', 'hcpf.training')\n"
        "for command in ([], ['fit'], ['compare'], ['reproduce', 'all']):\n"
        "    result = CliRunner().invoke(app, [*command, '--help'])\n"
        "    assert result.exit_code == 0\n"
        "print([m for m in heavy + ours if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "command",
    [["predict", "--user", "c3", "--item", "p5"], ["recommend", "c3"]],
    ids=lambda c: c[0],
)
def test_questions_to_a_model_load_no_heavy_modules(command, model):
    code = (
        "import sys; from typer.testing import CliRunner; from hcpf.cli.app import app\n"
        "heavy = ('numba', 'pandas', 'pyarrow.compute', 'scipy.optimize', 'sklearn')\n"
        "result = CliRunner().invoke(app, sys.argv[1:])\n"
        "assert result.exit_code == 0\n"
        "print([m for m in (*heavy, 'hcpf.estimator', 'hcpf.training') if m in sys.modules])"
    )
    line = [sys.executable, "-c", code, command[0], str(model), *command[1:]]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_module_can_be_run(start):
    import hcpf

    out, _ = start("--version").communicate(timeout=60)
    assert out == f"hcpf {hcpf.__version__}\n"
