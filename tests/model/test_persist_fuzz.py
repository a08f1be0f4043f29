"""Damaged and forged models: a ModelError that says what is wrong, or the very same predictions."""

import hashlib
import json
import os
import shutil
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hcpf import HCPF, Interactions
from hcpf.elements import Gamma
from hcpf.errors import ModelError
from hcpf.model.persist.folder import SCHEMA
from model.small import draw_matrix, ids, quick

MORE = int(os.environ.get("HCPF_FUZZ", "1"))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved model, its files' contents, and the rates it predicts."""
    path = tmp_path_factory.mktemp("saved") / "model"
    data = Interactions.from_matrix(
        draw_matrix(Gamma(2.0, 1.0)), users=ids("uuid", 14), items=ids("str", 11)
    )
    model = quick(2, element=Gamma(), n_fits=2, max_iter=3).fit(data)
    model.save(path)
    files = {file.name: file.read_bytes() for file in sorted(path.iterdir())}
    return path, files, predictions(model)


def predictions(model):
    users, items = np.asarray(model.users_)[:, None], np.asarray(model.items_)
    names = [*model.users_, *model.items_]
    return names, model.predict(users, items).tobytes(), model.predict_proba(users, items).tobytes()


def restore(path, files):
    shutil.rmtree(path)
    path.mkdir()
    for name, content in files.items():
        (path / name).write_bytes(content)


@st.composite
def damages(draw):
    """A change of a file's bytes: flipped bits, a cut, more bytes, fewer bytes."""
    kind = draw(st.sampled_from(["flip", "cut", "insert", "delete", "swap"]))
    place, size = draw(st.floats(0.0, 1.0)), draw(st.integers(1, 9))
    bit, more = draw(st.integers(0, 7)), draw(st.binary(min_size=1, max_size=9))

    def damage(content):
        at = min(int(place * len(content)), len(content) - 1)
        if kind == "flip":
            return content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]
        if kind == "cut":
            return content[:at]
        if kind == "insert":
            return content[:at] + more + content[at:]
        if kind == "delete":
            return content[:at] + content[at + size :]
        return content[:at] + content[at:][::-1]

    return damage


@settings(max_examples=250 * MORE)
@given(data=st.data(), changes=st.lists(damages(), min_size=1, max_size=3))
def test_any_damage_is_noticed_or_harmless(saved, data, changes):
    path, files, expected = saved
    name = data.draw(st.sampled_from(sorted(files)))
    content = files[name]
    for change in changes:
        content = change(content) if content else content
    (path / name).write_bytes(content)
    message = ""
    try:
        assert predictions(HCPF.load(path)) == expected
    except ModelError as error:
        message = str(error)
    finally:
        (path / name).write_bytes(files[name])
    assert not message or (str(path) in message and content != files[name])


@settings(max_examples=80 * MORE)
@given(data=st.data(), change=damages())
def test_without_checksums_damage_still_gives_a_model_or_a_model_error(saved, data, change):
    path, files, _ = saved
    name = data.draw(st.sampled_from(sorted(n for n in files if not n.endswith("parquet"))))
    (path / name).write_bytes(change(files[name]))
    try:
        with suppress(ModelError):
            HCPF.load(path, check=False)
    finally:
        (path / name).write_bytes(files[name])


@pytest.mark.parametrize("what", ["tensors", "users", "items", "manifest.json"])
def test_missing_renamed_and_exchanged_files(saved, what):
    path, files, _ = saved
    (name,) = (n for n in files if n.startswith(what))
    for change in ("missing", "renamed", "empty", "folder"):
        (path / name).unlink()
        if change == "renamed":
            (path / f"x{name}").write_bytes(files[name])
        elif change == "empty":
            (path / name).write_bytes(b"")
        elif change == "folder":
            (path / name).mkdir()
        with pytest.raises(ModelError, match=r"missing|no manifest|0 bytes instead|damaged"):
            HCPF.load(path)
        restore(path, files)
    other = next(n for n in files if n.endswith("parquet") and n != name)
    (path / name).write_bytes(files[other])
    with pytest.raises(ModelError):
        HCPF.load(path)
    restore(path, files)


def forged(path, files, change):
    """A manifest with a change, and the checksum that goes with it."""
    manifest = json.loads(files["manifest.json"])["manifest"]
    place, value = change
    inner = manifest
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    text = json.dumps({"sha256": digest, "manifest": manifest})
    (path / "manifest.json").write_text(text)


FORGERIES = [
    (("schema",), SCHEMA + 1, "newer than this one"),
    (("schema",), 1, "do not fit together"),
    (("schema",), 0, "unknown schema"),
    (("schema",), "1", "not written by hcpf"),
    (("format",), "other", "not written by hcpf"),
    (("files",), [], "not written by hcpf"),
    (("files", "users"), None, "lacks the file of its users"),
    (("files", "users", "name"), "../../secret", "outside its folder"),
    (("files", "users", "name"), "/etc/passwd", "outside its folder"),
    (("files", "users", "name"), "..", "missing"),
    (("files", "users", "name"), "a\0b", "missing"),
    (("files", "users", "name"), "\ud800", "missing"),
    (("files", "users", "name"), "x" * 999, "too long"),
    (("files", "tensors", "bytes"), 5, "instead of 5"),
    (("files", "tensors", "sha256"), "0" * 64, "changed since"),
    (("settings",), [], "do not fit together"),
    (("settings", "nonsense"), 1, "settings of the model are not those of HCPF"),
    (("settings", "element"), {"element": 3}, "do not fit together"),
    (("value_model",), None, "do not fit together"),
    (("value_model", "vary_by"), "item", "if and only if its rows"),
    (("value_model", "vary_by"), "store", "do not fit together"),
    (("value_model", "element", "parameters"), {}, "lacks parameters"),
    (("value_model", "element", "parameters", "rate"), -1.0, "do not fit together"),
    (("shape",), [14, 12], "11 ids instead of 12"),
    (("shape",), [float("inf"), 11], "lacks the numbers of users"),
    (("shape",), [], "lacks the numbers of users"),
    (("n_fits",), 0, "n_fits must be an integer"),
    (("n_fits",), 10**9, "do not fit together"),
    (("history",), [3], "do not fit together"),
    (("priors",), {}, "do not fit together"),
]


@pytest.mark.parametrize(("place", "value", "message"), FORGERIES)
def test_a_forged_manifest_is_refused(saved, place, value, message):
    path, files, expected = saved
    forged(path, files, (place, value))
    try:
        with pytest.raises(ModelError, match=message):
            HCPF.load(path)
    finally:
        restore(path, files)
    assert predictions(HCPF.load(path)) == expected


@pytest.mark.parametrize(
    "text",
    [
        b"", b"\xff\xfe", b"null", b"[1, 2]", b'{"manifest": ' + b"9" * 5000 + b"}",
        b"[" * 200_000, b'{"manifest": {"format": "hcpf-model", "schema": 1e400, "files": {}}}',
        b'{"sha256": "a", "manifest": {"format": "hcpf-model", "schema": 1, "files": {}, "x": '
        + b"[" * 950 + b"]" * 950 + b"}}",
    ],
    ids=["empty", "not text", "null", "list", "long number", "deep", "infinite", "deep inside"],
)  # fmt: skip
def test_a_manifest_that_is_none(saved, text):
    path, files, _ = saved
    (path / "manifest.json").write_bytes(text)
    with pytest.raises(ModelError, match=r"manifest\.json (is|has been)"):
        HCPF.load(path)
    restore(path, files)


def test_where_there_is_no_model(tmp_path):
    for path in (tmp_path / "nothing", tmp_path, "x" * 999):
        with pytest.raises(ModelError, match=r"no manifest\.json in it|cannot be read"):
            HCPF.load(path)
