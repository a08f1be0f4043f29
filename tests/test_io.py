"""Atomic writing under kill -9, a full disk, links, umasks and concurrent writers; checksums."""

import errno
import hashlib
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from hcpf import io
from hcpf._checks import generator
from hcpf.errors import CheckpointError, InputError, ParameterError

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")

_HALF_WRITTEN = """
import sys, time
from pathlib import Path
from hcpf.io import atomic_path
with atomic_path(Path(sys.argv[1])) as path:
    path.write_text("half")
    print("writing", flush=True)
    time.sleep(60)
"""


def partials(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".part"))


@contextmanager
def half_writer(target):
    """Another process in the middle of writing ``target``; killed at the end."""
    command = [sys.executable, "-c", _HALF_WRITTEN, str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


@posix
def test_a_killed_writer_leaves_the_old_file_and_the_next_write_cleans_up(tmp_path):
    target = tmp_path / "model.json"
    io.write_atomically(target, "old")
    with half_writer(target):
        io.write_atomically(target, "new")
        assert len(partials(tmp_path)) == 1  # of a living process: left alone
    assert target.read_text() == "new"
    assert len(partials(tmp_path)) == 1
    (tmp_path / ".model.json.part").touch()  # not named as ours are
    io.write_atomically(tmp_path / "other.json", "x")
    assert len(partials(tmp_path)) == 2
    io.write_atomically(target, "newer")
    assert partials(tmp_path) == [".model.json.part"]
    assert target.read_text() == "newer"


def test_partials_of_other_machines_are_removed_after_a_day(tmp_path):
    target = tmp_path / "a.csv"
    fresh, old = (tmp_path / f".a.csv.00000000-1-{token * 8}.part" for token in "ab")
    fresh.touch()
    old.touch()
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(old, (two_days_ago, two_days_ago))
    io.write_atomically(target, b"1")
    assert partials(tmp_path) == [fresh.name]


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ValueError, OSError])
def test_a_failure_leaves_nothing_behind(tmp_path, raised):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def write():
        with io.atomic_path(target) as path:
            path.write_text("half")
            raise raised

    with pytest.raises(raised):
        write()
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert target.read_text() == "old"


@posix
def test_a_full_disk_keeps_the_old_file(tmp_path):
    resource = pytest.importorskip("resource")
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large") as caught:
            io.write_atomically(target, bytes(10_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.errno == errno.EFBIG
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]
    assert target.read_bytes() == b"old"


@posix
def test_links_are_replaced_and_never_written_through(tmp_path, monkeypatch):
    victim, target = tmp_path / "victim", tmp_path / "a.txt"
    victim.write_text("precious")
    target.symlink_to(victim)
    io.write_atomically(target, "mine")
    assert not target.is_symlink()
    assert victim.read_text() == "precious"

    monkeypatch.setattr(io, "_remove_abandoned", lambda folder, name: None)
    monkeypatch.setattr(io.secrets, "token_hex", lambda n: "12345678")
    (tmp_path / f".a.txt.{io._HOST}-{os.getpid()}-12345678.part").symlink_to(victim)
    with pytest.raises(FileExistsError):
        io.write_atomically(target, "again")
    assert victim.read_text() == "precious"


@posix
@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
@pytest.mark.parametrize("replaces_the_file", [False, True])
def test_permissions_follow_the_umask(tmp_path, umask, replaces_the_file):
    target, before = tmp_path / "a.txt", os.umask(umask)
    try:
        with io.atomic_path(target) as path:
            if replaces_the_file:  # as safetensors does
                (tmp_path / "b").touch(0o600)
                (tmp_path / "b").rename(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~umask


def test_concurrent_writers_leave_one_of_their_files_whole(tmp_path):
    target = tmp_path / "a.bin"
    contents = [bytes([n]) * 100_000 for n in range(8)]

    def write(content):
        for _ in range(5):
            io.write_atomically(target, content)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_bytes() in contents
    assert partials(tmp_path) == []


def test_the_final_name_may_depend_on_the_content(tmp_path):
    with io.partial_file(tmp_path, "tensors") as partial:
        partial.path.write_bytes(b"12")
        partial.commit(tmp_path / f"tensors-{io.file_digest(partial.path)[:8]}.bin")
    assert [path.name for path in tmp_path.iterdir()] == ["tensors-6b51d431.bin"]


def test_errors_of_the_system_are_translated(tmp_path):
    path = tmp_path / "none" / "a.txt"
    for error_type in (InputError, CheckpointError):
        with (
            pytest.raises(error_type, match=r"^Cannot write it: No such file or directory\.$"),
            io.os_errors(error_type, "Cannot write it"),
        ):
            io.write_atomically(path, "")
    with pytest.raises(OSError, match="irectory"):  # a folder is not replaced
        io.write_atomically(tmp_path, "")


@pytest.mark.parametrize("bad", [None, 3, "a\0b"])
def test_what_is_no_path_is_refused(bad):
    with pytest.raises(ParameterError, match="output must be a path; got"):
        io.as_path("output", bad)
    assert io.as_path("output", "a/b") == Path("a/b")


def test_checksums(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(range(256)) * 100)
    assert io.file_digest(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert io.file_digest(path, "md5") == hashlib.md5(path.read_bytes()).hexdigest()
    array = np.arange(10)
    assert io.fingerprint(array) == io.fingerprint(np.repeat(array, 2)[::2])
    assert io.fingerprint("a", array) != io.fingerprint(array, "a")


def test_random_states():
    rng = np.random.default_rng(1)
    assert generator(rng) is rng
    assert generator(1).random() == np.random.default_rng(1).random()
    for bad in ("seed", -1, 1.5):
        with pytest.raises(ParameterError, match="random_state must be an int, a Generator or No"):
            generator(bad)
