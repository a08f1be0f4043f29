"""Kernels compile late, and report it; what others may write to holds no machine code."""

import logging
import os
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from hcpf._progress import announce, progress_bar
from hcpf.core import jit
from hcpf.core.kernels import advance

# The smallest kernel of all shows whether one compiles and runs. It prints its result and how
# often it was found on disk.
ADVANCE = """
import numpy as np
from hcpf.core.kernels import advance

out = np.zeros(1, np.int64)
advance(0, 1, np.zeros(1, np.int64), np.array([3]), np.array([1, 5, 9]), 5, out)
print(out[0], sum(advance.stats.cache_hits.values()))
"""
COMPILED, LOADED = "1 0", "1 1"

SMALL_FIT = """
import numpy as np
from hcpf import HCPF

data = np.random.default_rng(0).gamma(2.0, 1.0, (20, 10))
model = HCPF(2, element="gamma", n_fits=1, max_iter=3, random_state=0)
print(model.fit(data, progress=False).rate([0], [0])[0].hex())
"""


def run(script, **environment):
    """Run a script in a separate process, with no cache folders but those given."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "TMPDIR")
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=kept | {name: str(value) for name, value in environment.items()},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "environment",
    [
        {"HOME": "/proc/nothing", "NUMBA_CACHE_DIR": "/proc/nothing"},
        {"XDG_CACHE_HOME": "/dev/null", "TMPDIR": "/proc/nothing"},
    ],
    ids=["no home", "a file for a cache"],
)
def test_the_estimator_compiles_nothing_at_import_and_survives_an_unwritable_cache(environment):
    script = """
from numba.core import event

compiled = []

class Listener(event.Listener):
    def on_start(self, e):
        compiled.append(e)
    def on_end(self, e):
        pass

event.register("numba:compile", Listener())
from hcpf import HCPF
HCPF()
assert not compiled
"""
    assert run(script + ADVANCE, **environment).startswith("1 ")


def test_without_any_folder_kernels_are_compiled_in_memory():
    script = """
from pathlib import Path

def refuse(self, *arguments, **options):
    raise PermissionError(13, "Permission denied")

Path.mkdir = refuse
from hcpf.core.jit import cache_folder
assert cache_folder() is None
"""
    assert run(script + ADVANCE, HOME=Path.home()) == COMPILED


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A cache that holds the kernel."""
    folder = tmp_path_factory.mktemp("compiled")
    assert run(ADVANCE, NUMBA_CACHE_DIR=folder) == COMPILED
    return folder


def test_kernels_are_compiled_once_and_a_changed_one_has_a_folder_of_its_own(compiled, tmp_path):
    shutil.copytree(compiled, tmp_path, dirs_exist_ok=True)
    assert run(ADVANCE, NUMBA_CACHE_DIR=tmp_path) == LOADED
    (folder,) = (tmp_path / "hcpf").iterdir()
    folder.rename(folder.with_name("of-another-version"))
    assert run(ADVANCE, NUMBA_CACHE_DIR=tmp_path) == COMPILED


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param("empty", marks=pytest.mark.slow),
        pytest.param("truncated", marks=pytest.mark.slow),
        pytest.param("garbage", marks=pytest.mark.slow),
        "one bit",
        "a folder",
    ],
)
def test_a_damaged_file_is_compiled_again(compiled, tmp_path, damage):
    shutil.copytree(compiled, tmp_path, dirs_exist_ok=True)
    (file,) = (tmp_path / "hcpf").glob("*/*")
    content = bytearray(file.read_bytes())
    if damage == "a folder":
        file.unlink()
        file.mkdir()
    else:
        content[len(content) // 2] ^= 1
        file.write_bytes(
            {
                "empty": b"",
                "truncated": content[: len(content) // 2],
                "garbage": b"\x80garbage" * 100,
                "one bit": content,
            }[damage]
        )
    assert run(ADVANCE, NUMBA_CACHE_DIR=tmp_path) == COMPILED
    if damage != "a folder":
        assert run(ADVANCE, NUMBA_CACHE_DIR=tmp_path) == LOADED


@pytest.mark.skipif(os.name != "posix", reason="permissions")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_to_is_not_private(tmp_path, mode):
    tmp_path.chmod(mode)
    assert not jit._is_private(tmp_path)
    tmp_path.chmod(0o700)
    assert jit._is_private(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="permissions")
def test_a_temporary_folder_that_others_can_write_to_is_not_used(tmp_path):
    folder = tmp_path / f"hcpf-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o702)
    assert run(ADVANCE, HOME="/proc/nothing", TMPDIR=tmp_path) == COMPILED
    assert not any(path.is_file() for path in folder.rglob("*"))
    folder.chmod(0o700)
    assert run(ADVANCE, HOME="/proc/nothing", TMPDIR=tmp_path) == COMPILED
    assert run(ADVANCE, HOME="/proc/nothing", TMPDIR=tmp_path) == LOADED


@pytest.mark.skipif(os.name != "posix", reason="permissions")
def test_a_folder_of_another_user_or_a_link_is_not_used(tmp_path, monkeypatch):
    own, link = tmp_path / "own", tmp_path / "link"
    own.mkdir(mode=0o700)
    link.symlink_to(own)  # all may follow a link, and its mode shows that
    assert jit._is_private(own)
    assert not jit._is_private(link)
    monkeypatch.setattr(os, "getuid", lambda: own.stat().st_uid + 1)
    assert not jit._is_private(own)


def test_the_folder_is_closed_to_others(tmp_path):
    run(f"import os; os.umask(0)\n{ADVANCE}", NUMBA_CACHE_DIR=tmp_path)
    for folder in (tmp_path / "hcpf", *(tmp_path / "hcpf").iterdir()):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def cold_processes(script, n_processes, folder):
    with ThreadPoolExecutor(n_processes) as pool:
        return set(pool.map(lambda _: run(script, NUMBA_CACHE_DIR=folder), range(n_processes)))


def test_three_processes_compile_at_once(tmp_path):
    assert cold_processes(ADVANCE, 3, tmp_path) <= {COMPILED, LOADED}
    assert [path.name[0] for path in (tmp_path / "hcpf").glob("*/*")] == ["l"]  # no partial files
    assert run(ADVANCE, NUMBA_CACHE_DIR=tmp_path) == LOADED


@pytest.mark.slow
def test_eight_first_fits_at_once(tmp_path):
    (rate,) = cold_processes(SMALL_FIT, 8, tmp_path)
    assert run(SMALL_FIT, NUMBA_CACHE_DIR=tmp_path) == rate


def compile_anew(monkeypatch, folder):
    """Compile one more version of a kernel, which nobody else uses."""
    jit._log_once.cache_clear()
    monkeypatch.setattr(jit, "cache_folder", lambda: folder)
    position, out = np.zeros(1, np.int16), np.zeros(1, np.uint8)
    advance(0, 1, position, np.ones(1, np.uint16), np.ones(1, np.int8), 1, out)


def test_compiling_is_logged_once(monkeypatch, caplog, tmp_path):
    with caplog.at_level(logging.INFO, "hcpf"):
        compile_anew(monkeypatch, tmp_path)
        jit._announce_compiling()
    assert caplog.messages == ["Compiling kernels (once per machine)."]


def test_a_bar_prints_once_what_it_waits_for(capsys):
    announce("No bar is shown.")
    with progress_bar(True, "Fitting", 2.0) as advance_bar:
        announce("Compiling kernels.")
        advance_bar(1.0)
        announce("Compiling kernels.")
    announce("The bar is gone.")
    shown = capsys.readouterr().err
    assert shown.count("Compiling kernels.") == 1
    assert "No bar" not in shown
    assert "gone" not in shown
