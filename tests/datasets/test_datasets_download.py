"""Downloads, from a real server on this machine."""

import hashlib
import http.server
import threading
from dataclasses import replace

import pytest

from hcpf import datasets
from hcpf.datasets import remote
from hcpf.errors import InputError

CONTENT = b"196\t242\t3\t881250949\n" * 5000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
MD5 = hashlib.md5(CONTENT).hexdigest()


class Site(http.server.BaseHTTPRequestHandler):
    requests: list = []  # noqa: RUF012

    def do_GET(self):
        self.requests.append(self.path)
        if self.path == "/absent/u.data":
            self.send_error(404, "Not here")
            return
        self.send_response(200)
        if self.path != "/unsized/u.data":
            self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        if self.path == "/broken/u.data":
            self.wfile.write(CONTENT[: len(CONTENT) // 2])
        elif self.path == "/silent/u.data":
            self.wfile.write(CONTENT[:100])
            self.wfile.flush()
            self.server.released.wait(10)
        else:
            self.wfile.write(CONTENT)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.released = threading.Event()
    Site.requests.clear()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}"

    def offer(folder, checksum=None, port=address):
        offered = replace(remote.REMOTES["movielens-100k"], url=f"{port}/{folder}/u.data")
        monkeypatch.setitem(remote.REMOTES, "test", replace(offered, checksum=checksum))

    yield offer
    server.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


def left_behind(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("checksum", [None, f"sha256:{SHA256}", f"md5:{MD5}"])
@pytest.mark.parametrize("folder", ["whole", "unsized"])
def test_whole_file(site, tmp_path, checksum, folder, caplog):
    site(folder, checksum)
    target = tmp_path / "new" / "folder"
    with caplog.at_level("INFO", logger="hcpf"):
        path = datasets.download("test", target, progress=False)
    assert path == target / "u.data"
    assert path.read_bytes() == CONTENT
    assert left_behind(target) == ["u.data"]
    assert (MD5 if "md5" in str(checksum) else SHA256) in caplog.text
    assert datasets.movielens(path, duplicates="last").n_observed == 1


def test_not_fetched_twice(site, tmp_path):
    site("whole", f"sha256:{SHA256}")
    datasets.download("test", tmp_path)
    datasets.download("test", tmp_path)
    assert len(Site.requests) == 1
    (tmp_path / "u.data").write_bytes(b"spoilt")
    assert datasets.download("test", tmp_path).read_bytes() == CONTENT
    assert len(Site.requests) == 2


def test_wrong_checksum_keeps_nothing(site, tmp_path):
    site("whole", f"sha256:{'0' * 64}")
    with pytest.raises(InputError, match=f"sha256 {SHA256}, but 0+ was expected"):
        datasets.download("test", tmp_path)
    assert left_behind(tmp_path) == []


def test_wrong_checksum_leaves_the_old_file(site, tmp_path):
    site("whole")
    (tmp_path / "u.data").write_bytes(b"old")
    with pytest.raises(InputError, match="was expected"):
        datasets.download("test", tmp_path, sha256="0" * 64)
    assert (tmp_path / "u.data").read_bytes() == b"old"
    assert left_behind(tmp_path) == ["u.data"]


def test_own_checksum(site, tmp_path):
    site("whole", f"md5:{'0' * 32}")
    assert datasets.download("test", tmp_path, sha256=SHA256.upper()).read_bytes() == CONTENT
    with pytest.raises(InputError, match="64 hexadecimal digits"):
        datasets.download("test", tmp_path, sha256="abc")


def test_broken_connection(site, tmp_path):
    site("broken")
    with pytest.raises(InputError, match=f"broke after .* of {len(CONTENT):,} bytes"):
        datasets.download("test", tmp_path)
    assert left_behind(tmp_path) == []


def test_silent_server(site, tmp_path):
    site("silent")
    with pytest.raises(InputError, match=r"u\.data.*timed out"):
        datasets.download("test", tmp_path, timeout=0.2)
    assert left_behind(tmp_path) == []


def test_absent_file(site, tmp_path):
    site("absent")
    with pytest.raises(InputError, match=r"Not here.*hcpf\.datasets\.movielens"):
        datasets.download("test", tmp_path)
    assert left_behind(tmp_path) == []


def test_no_server(site, tmp_path):
    site("whole", port="http://127.0.0.1:9")
    with pytest.raises(InputError, match="cannot be downloaded"):
        datasets.download("test", tmp_path)


def test_folder_that_is_a_file(site, tmp_path):
    site("whole")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be downloaded"):
        datasets.download("test", tmp_path / "file")
    assert Site.requests == []


def test_default_folder(site, tmp_path, monkeypatch):
    site("whole")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.download("test") == tmp_path / "hcpf" / "datasets" / "u.data"


def test_progress_bar(site, tmp_path, capsys):
    site("whole")
    datasets.download("test", tmp_path, progress=True)
    assert "100%" in capsys.readouterr().err


def test_unknown_name():
    with pytest.raises(InputError, match=r"'netflix'. Known downloads: movielens-100k, "):
        datasets.download("netflix")


def test_registry():
    assert datasets.downloads() == remote.REMOTES
    assert datasets.downloads() is not remote.REMOTES
    for name, one in remote.REMOTES.items():
        assert one.url.startswith("https://"), name
        assert one.reader in datasets.__all__
        assert one.terms
        if one.checksum is not None:
            kind, _, digits = one.checksum.partition(":")
            assert len(digits) == {"sha256": 64, "md5": 32}[kind]
            assert int(digits, 16)
