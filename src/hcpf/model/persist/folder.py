"""A saved model: a manifest that names its files, their sizes and checksums.

The files carry their checksum in the name and the manifest is replaced last, in one step. So a
crash at any moment leaves the old model, or the new one, whole.
"""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hcpf._version import __version__
from hcpf.data.canonical import IdArray
from hcpf.errors import ModelError
from hcpf.io import file_digest, os_errors, partial_file, write_atomically
from hcpf.model.persist.id_files import read_ids, write_ids
from hcpf.model.persist.tensors import map_tensors, write_tensors

MANIFEST = "manifest.json"
FORMAT, SCHEMA = "hcpf-model", 3
_ADVICE = "Pass a folder created by save() or hcpf fit."
_ENDINGS = {"tensors": ".safetensors", "users": ".parquet", "items": ".parquet"}


@dataclass(frozen=True, eq=False)
class Stored:
    """What is in the folder: arrays, ids, and everything else as JSON."""

    about: dict[str, Any]
    tensors: dict[str, np.ndarray]
    users: IdArray
    items: IdArray


def write_folder(path: Path, stored: Stored, *, overwrite: bool) -> None:
    """Write a model; an existing one is replaced only if ``overwrite`` says so."""
    with os_errors(ModelError, f"The model cannot be written to {path}"):
        _refuse_to_destroy(path, overwrite)
        path.mkdir(parents=True, exist_ok=True)
        files = {
            "tensors": _write(path, "tensors", lambda to: write_tensors(to, stored.tensors)),
            "users": _write(path, "users", lambda to: write_ids(to, stored.users)),
            "items": _write(path, "items", lambda to: write_ids(to, stored.items)),
        }
        manifest = {
            "format": FORMAT, "schema": SCHEMA, "hcpf": __version__,
            **stored.about, "files": files,
        }  # fmt: skip
        outer = {"sha256": _digest_of(manifest), "manifest": manifest}
        write_atomically(path / MANIFEST, json.dumps(outer, indent=1, allow_nan=False))
    _remove_others(path, {entry["name"] for entry in files.values()})


def read_folder(path: Path, *, check: bool = True) -> Stored:
    """Read a model; ``check=False`` skips the checksums of the large files, not their sizes."""
    try:
        with os_errors(ModelError, "it cannot be read"):
            manifest = _read_manifest(path)
            files = {kind: _find(path, manifest, kind, check) for kind in _ENDINGS}
            return Stored(
                manifest, map_tensors(files["tensors"]),
                read_ids(files["users"]), read_ids(files["items"]),
            )  # fmt: skip
    except ModelError as error:
        raise ModelError(f"The model {path} cannot be loaded: {error}") from None


def _refuse_to_destroy(path: Path, overwrite: bool) -> None:
    if not path.exists():
        return
    if not path.is_dir():
        raise ModelError(f"{path} is a file; a model is saved as a folder. Choose another name.")
    is_model = (path / MANIFEST).exists()
    if not is_model and not {file.name for file in path.iterdir()} <= _ours(path):
        raise ModelError(f"{path} has other files in it, and is left alone. Choose another name.")
    if is_model and not overwrite:
        raise ModelError(f"{path} holds a model already: pass overwrite=True to replace it.")


def _write(folder: Path, kind: str, writer: Callable[[Path], None]) -> dict[str, Any]:
    """Write a file under its final name, which carries its checksum."""
    with partial_file(folder, kind) as partial:
        writer(partial.path)
        digest = file_digest(partial.path)
        size = partial.path.stat().st_size
        final = folder / f"{kind}-{digest[:16]}{_ENDINGS[kind]}"
        partial.commit(final)
    return {"name": final.name, "bytes": size, "sha256": digest}


def _ours(folder: Path) -> set[str]:
    """Return the names of what a save writes next to the manifest, or leaves when killed."""
    patterns = [f".{MANIFEST}.*.part", ".tmp??????"]  # the latter is how safetensors begins a file
    for kind, ending in _ENDINGS.items():
        patterns += [f"{kind}-*{ending}", f".{kind}[-.]*.part"]  # "-" before schema 2
    return {file.name for pattern in patterns for file in folder.glob(pattern)}


def _remove_others(folder: Path, keep: set[str]) -> None:
    """Remove the files of the previous model and of killed saves; a failure leaves them."""
    for name in _ours(folder) - keep:
        with suppress(OSError):
            (folder / name).unlink()


def _read_manifest(path: Path) -> dict[str, Any]:
    if not path.is_dir() or not (path / MANIFEST).is_file():
        raise ModelError(
            f"there is no {MANIFEST} in it. Pass a folder created by save() or hcpf fit."
        )
    try:
        outer = json.loads((path / MANIFEST).read_bytes())
        manifest, digest = outer["manifest"], outer["sha256"]
        schema, files = manifest["schema"], manifest["files"]
        ours = manifest["format"] == FORMAT and type(schema) is int and isinstance(files, dict)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ModelError(f"{MANIFEST} is damaged or was not written by hcpf.") from None
    if not ours:
        raise ModelError(f"{MANIFEST} was not written by hcpf. {_ADVICE}")
    if schema < 1:
        raise ModelError(f"{MANIFEST} has an unknown schema: {schema}.")
    if schema > SCHEMA:
        raise ModelError(
            f"it was written by hcpf {manifest.get('hcpf')}, which is newer than this one "
            f"({__version__}). Upgrade hcpf."
        )
    try:
        unchanged = digest == _digest_of(manifest)
    except RecursionError:
        unchanged = False
    if not unchanged:
        raise ModelError(f"{MANIFEST} has been changed since it was written.")
    return manifest


def _find(folder: Path, manifest: dict[str, Any], kind: str, check: bool) -> Path:
    """The path of one of the files, if it is what the manifest says."""
    try:
        entry = manifest["files"][kind]
        name, size, digest = str(entry["name"]), entry["bytes"], entry["sha256"]
    except (KeyError, TypeError):
        raise ModelError(f"{MANIFEST} does not say where its {kind} are.") from None
    if Path(name).name != name:
        raise ModelError(f"{MANIFEST} names a file outside its folder: {name!r}.")
    path = folder / name
    if not path.is_file():
        raise ModelError(f"the file {name!r} is missing.")
    if path.stat().st_size != size:
        raise ModelError(f"{name} has {path.stat().st_size} bytes instead of {size}.")
    if check and file_digest(path) != digest:
        raise ModelError(f"{name} has been changed since it was written.")
    return path


def _digest_of(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
