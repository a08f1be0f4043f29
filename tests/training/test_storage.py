"""Checkpoints at URLs: the same as in a folder, and one clear error where that cannot be."""

import secrets
import sys

import pytest

from hcpf import Checkpoints
from hcpf.errors import CheckpointError, MissingDependencyError, ParameterError
from hcpf.training.storage import RemoteFolder
from training.test_checkpoint import run, state_of, stop_in_the_middle

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def url():
    """A folder in the memory of this process."""
    return f"memory://{secrets.token_hex(8)}/checkpoint"


@pytest.mark.parametrize("is_file", [False, True])
def test_an_interrupted_fit_resumes_from_a_url(url, is_file, tmp_path):
    url = (tmp_path / "new" / "folder").as_uri() if is_file else url
    stop_in_the_middle(url)
    names = [f"fit-0.pass-{n}.rank-0.safetensors" for n in (6, 7)]
    assert sorted(RemoteFolder(url).names()) == ["fit-0.json", *names]
    assert state_of(run("cavi", url)) == state_of(run("cavi", None))
    assert "fit-0.pass-30.rank-0.safetensors" in RemoteFolder(url).names()


def test_a_damaged_file_at_a_url_is_noticed(url, caplog):
    stop_in_the_middle(url)
    RemoteFolder(url).write("fit-0.pass-7.rank-0.safetensors", b"half")
    assert state_of(run("cavi", url)) == state_of(run("cavi", None))
    assert f"Resuming from pass 6. The checkpoint {url}/fit-0.pass-7" in caplog.text


def test_the_seed_is_kept_at_a_url(url):
    one = run("cavi", url, random_state=None)
    assert state_of(run("cavi", url, random_state=None)) == state_of(one)


def test_a_file_is_replaced_as_a_whole(url, monkeypatch):
    folder = RemoteFolder(url)
    folder.make()
    folder.write("a", "old")

    def full_disk(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "mv", full_disk)
    with pytest.raises(CheckpointError, match=r"memory://.* cannot be written: No space left"):
        run("cavi", url)
    assert (folder.read("a"), folder.names()) == (b"old", ["a"])


def test_errors_of_a_service_are_errors_of_the_checkpoint(url, monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("no credentials")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "makedirs", refuse)
    with pytest.raises(CheckpointError, match="cannot be written: RuntimeError: no credentials"):
        run("cavi", url)


def test_urls_that_cannot_be_opened(monkeypatch):
    with pytest.raises(ParameterError, match=r"'nowhere://x' is not a URL .*Protocol not known"):
        run("cavi", "nowhere://x")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingDependencyError, match=r"requires fsspec .* '\.\[ray\]'"):
        run("cavi", "s3://bucket/folder")


def test_a_url_stays_as_it_is():
    assert Checkpoints("s3://bucket/folder").folder == "s3://bucket/folder"
