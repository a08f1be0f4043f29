"""A saved model: a manifest that names its files, their sizes and checksums.

The files carry their checksum in the name and the manifest is replaced last, in one step. So a
crash at any moment leaves the old model, or the new one, whole.
"""

import hashlib
import json
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from hcpf._version import __version__
from hcpf.data.canonical import IdArray
from hcpf.data.id_files import read_ids, write_ids
from hcpf.errors import ModelError
from hcpf.io import file_digest, locked, os_errors, partial_file, write_atomically

MANIFEST = "manifest.json"
FORMAT, SCHEMA = "hcpf-model", 5
_ADVICE = "Pass a folder created by save() or hcpf fit."
_TYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64}
_LONGEST_HEADER = 1 << 24  # bytes
_MAX_READS = 10  # attempts to read a model that other processes are replacing
_ENDINGS = {"tensors": ".safetensors", "users": ".parquet", "items": ".parquet"}


@dataclass(frozen=True, eq=False)
class Stored:
    """What is in the folder: arrays, ids, and everything else as JSON."""

    about: dict[str, Any]
    tensors: dict[str, np.ndarray]
    users: IdArray
    items: IdArray


def write_folder(path: Path, stored: Stored, *, overwrite: bool) -> None:
    """Write a model; an existing one is replaced only with ``overwrite``."""
    with os_errors(ModelError, f"The model cannot be written to {path}"):
        _refuse_to_destroy(path, overwrite)
        with _new_folders(path), locked(path):
            _refuse_to_destroy(path, overwrite)  # another process may have written one meanwhile
            keep = _write_files(path, stored)
            _remove_others(path, keep)


def _write_files(path: Path, stored: Stored) -> set[str]:
    """Write files and manifest, and return their names; a failure leaves what was there before."""
    before = _own_file_names(path)
    try:
        files = {
            "tensors": _write(path, "tensors", lambda to: write_tensors(to, stored.tensors)),
            "users": _write(path, "users", lambda to: write_ids(to, stored.users, ModelError)),
            "items": _write(path, "items", lambda to: write_ids(to, stored.items, ModelError)),
        }
        manifest = {
            "format": FORMAT, "schema": SCHEMA, "hcpf": __version__,
            **stored.about, "files": files,
        }  # fmt: skip
        outer = {"sha256": _digest_of(manifest), "manifest": manifest}
        write_atomically(path / MANIFEST, json.dumps(outer, indent=1, allow_nan=False))
    except BaseException:
        _remove_others(path, before)
        raise
    return {entry["name"] for entry in files.values()}


@contextmanager
def _new_folders(path: Path) -> Generator[None]:
    """Make a folder and those above it; if the block fails, remove those that were made."""
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for folder in made:
            with suppress(OSError):  # it is not empty
                folder.rmdir()
        raise


def read_folder(path: Path, *, check: bool = True) -> Stored:
    """Read a model; ``check=False`` skips the checksums of the large files, not their sizes."""
    for _ in range(_MAX_READS):
        before = _manifest_bytes(path)
        try:
            with os_errors(ModelError, "it cannot be read"):
                return _read(path, check)
        except ModelError as error:
            if _manifest_bytes(path) == before:
                raise ModelError(f"The model {path} cannot be loaded: {error}") from None
    raise ModelError(f"The model {path} cannot be loaded: it is replaced again and again.")


def _manifest_bytes(path: Path) -> bytes | None:
    with suppress(OSError, ValueError):
        return (path / MANIFEST).read_bytes()
    return None


def _read(path: Path, check: bool) -> Stored:
    manifest = _read_manifest(path)
    files = {kind: _find(path, manifest, kind, check) for kind in _ENDINGS}
    n_users, n_items = _shape(manifest)
    return Stored(
        manifest, map_tensors(files["tensors"]),
        read_ids(files["users"], n_users, ModelError),
        read_ids(files["items"], n_items, ModelError),
    )  # fmt: skip


def _refuse_to_destroy(path: Path, overwrite: bool) -> None:
    if not path.exists():
        return
    if not path.is_dir():
        raise ModelError(f"{path} is a file; a model is saved as a folder. Choose another name.")
    is_model = (path / MANIFEST).exists()
    if not is_model and not {file.name for file in path.iterdir()} <= _own_file_names(path):
        raise ModelError(f"{path} contains other files. Choose another name.")
    if is_model and not overwrite:
        raise ModelError(f"{path} contains a model already. Pass overwrite=True to replace it.")


def _write(folder: Path, kind: str, writer: Callable[[Path], None]) -> dict[str, Any]:
    """Write a file under its final name, which carries its checksum."""
    with partial_file(folder, kind) as partial:
        writer(partial.path)
        digest = file_digest(partial.path)
        size = partial.path.stat().st_size
        final = folder / f"{kind}-{digest[:16]}{_ENDINGS[kind]}"
        partial.commit(final)
    return {"name": final.name, "bytes": size, "sha256": digest}


def _own_file_names(folder: Path) -> set[str]:
    """Return the names of what a save writes next to the manifest, or leaves when killed."""
    patterns = [f".{MANIFEST}.*.part", ".tmp??????"]  # the latter is how safetensors begins a file
    for kind, ending in _ENDINGS.items():
        patterns += [f"{kind}-*{ending}", f".{kind}[-.]*.part"]  # "-" before schema 2
    return {file.name for pattern in patterns for file in folder.glob(pattern)}


def _remove_others(folder: Path, keep: set[str]) -> None:
    """Remove the files of the previous model and of killed saves; a failure leaves them."""
    for name in _own_file_names(folder) - keep:
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
    """Return the path of a file after comparing it with the manifest."""
    try:
        entry = manifest["files"][kind]
        name, size, digest = str(entry["name"]), entry["bytes"], entry["sha256"]
    except (KeyError, TypeError):
        raise ModelError(f"{MANIFEST} lacks the file of its {kind}.") from None
    if Path(name).name != name:
        raise ModelError(f"{MANIFEST} names a file outside its folder: {name!r}.")
    path = folder / name
    if path.is_symlink() and path.resolve().parent != folder.resolve():
        raise ModelError(f"{name} is a link out of the folder. Copy the file itself into it.")
    if not path.is_file():
        raise ModelError(f"the file {name!r} is missing.")
    if path.stat().st_size != size:
        raise ModelError(f"{name} has {path.stat().st_size} bytes instead of {size!r}.")
    if check and file_digest(path) != digest:
        raise ModelError(f"{name} has been changed since it was written.")
    return path


def _shape(manifest: dict[str, Any]) -> tuple[int, int]:
    """Return the numbers of users and items."""
    try:
        n_users, n_items = manifest["shape"]
    except (KeyError, TypeError, ValueError):
        n_users = n_items = -1
    if not all(type(size) is int and size >= 0 for size in (n_users, n_items)):
        raise ModelError(f"{MANIFEST} lacks the numbers of users and items.")
    return n_users, n_items


def _digest_of(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def write_tensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """Write a file of named arrays."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    try:
        save_file({name: np.ascontiguousarray(array) for name, array in tensors.items()}, path)
    except SafetensorError as error:
        raise OSError(str(error)) from None  # a full disk, for one


def map_tensors(path: Path) -> dict[str, np.ndarray]:
    """Map a file of named arrays; raise a ModelError if it is damaged."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST_HEADER):
            raise ModelError(f"{path.name} is truncated or is not a safetensors file.")
        header = _parse(path, file.read(length))
    begin = 8 + length
    tensors: dict[str, np.ndarray] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype, shape, first, last = _checked(path, name, entry)
        if begin + last > size:
            raise ModelError(f"{path.name} is truncated: {name} extends beyond its end.")
        # Copy on write: nothing changes the file, and kernels need no second compilation.
        tensors[name] = (
            np.asarray(np.memmap(path, dtype, "c", begin + first, shape))
            if last > first
            else np.zeros(shape, dtype)
        )
    return tensors


def _parse(path: Path, text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise ModelError(f"{path.name} has no readable header.")
    return header


def _checked(path: Path, name: str, entry: Any) -> tuple[Any, tuple[int, ...], int, int]:
    """Return type, shape, first and last byte of a tensor, if they agree."""
    try:
        dtype = np.dtype(_TYPES[entry["dtype"]])
        shape, (first, last) = tuple(entry["shape"]), entry["data_offsets"]
        whole = all(type(n) is int and n >= 0 for n in (*shape, first, last))
    except (KeyError, TypeError, ValueError):
        raise ModelError(f"{path.name}: the entry of {name} is not readable.") from None
    count = 1
    for n in shape if whole else ():
        count *= n
    if not whole or last - first != count * dtype.itemsize:
        raise ModelError(f"{path.name}: the entry of {name} contradicts itself.")
    return dtype, shape, first, last


# -- manifests of earlier schemas, brought to the names of today -----------------------------------

_PRESENCE = {"element": "presence", "parameters": {}}
_SETTINGS = (
    "n_components", "element", "vary_by", "hurdle", "learn_element", "train_on", "n_fits",
    "combine", "priors", "tempering", "max_iter", "tol", "random_state",
)  # fmt: skip
"""Parameters of the estimator that have kept their names since schema 2."""
_CONSTANTS = {
    "auto": ("svi_passes",),
    "svi": ("batches", "local_sweeps", "tau", "xi"),
    "algorithm1": ("tau", "xi", "stratified"),
}
"""Constants of the solvers, which were parameters of the estimator."""


def upgraded(about: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest of any schema as one of schema 5."""
    if about["schema"] == 1:
        about = _from_schema_1(about)
    if about["schema"] == 2:
        about = _from_schema_2(about)
    if about["schema"] < 5:  # exposures, which came with schema 4, are tensors
        about = _from_schema_4(about)
    return about


def _from_schema_1(about: dict[str, Any]) -> dict[str, Any]:
    """Take vary_by and hurdle, once ``per`` and ``once``, from the element to the value model."""
    settings = dict(about["parameters"])
    settings |= _upgraded_element(settings["element"], settings["train_on"])
    value_model = _upgraded_element(about["element"], about["parameters"]["train_on"])
    return {
        **about,
        "schema": 2,
        "settings": settings,
        "value_model": value_model,
        "n_truncation": settings["n_truncation"],
    }


def _from_schema_2(about: dict[str, Any]) -> dict[str, Any]:
    """Take the constants of the solver to the solver; drop the arguments of ``fit``."""
    old = about["settings"]
    settings = {name: old[name] for name in _SETTINGS if name in old}
    if settings:
        settings |= {"start": old["init"], "solver": _upgraded_solver(old)}
    return {**about, "schema": 3, "settings": settings, "max_count": about["n_truncation"]}


def _from_schema_4(about: dict[str, Any]) -> dict[str, Any]:
    """Rename a constant of SVI; tell from the passes whether the first fit converged."""
    settings = dict(about["settings"])
    solver = settings.get("solver")
    if isinstance(solver, dict) and "local_sweeps" in solver:
        names = {"local_sweeps": "local_passes"}
        settings["solver"] = {names.get(name, name): solver[name] for name in solver}
    n_passes = about["history"][-1]["iteration"] if about["history"] else 0
    converged = not about["interrupted"] and n_passes < settings.get("max_iter", inf)
    return {**about, "schema": 5, "settings": settings, "converged": converged}


def _upgraded_solver(old: dict[str, Any]) -> dict[str, Any]:
    name = "algorithm1" if old["solver"] == "entry" else old["solver"]
    constants = {part: old[part] for part in _CONSTANTS.get(name, ()) if old[part] is not None}
    return {"solver": name, "max_count": old["n_truncation"], **constants}


def _upgraded_element(element: Any, train_on: str) -> dict[str, Any]:
    """Return element, vary_by, hurdle and train_on."""
    vary_by, hurdle = None, False
    if isinstance(element, dict):
        vary_by, hurdle = element.get("per"), element.get("once", False)
        element = {name: element[name] for name in ("element", "parameters")}
    if train_on == "binary":
        element, train_on = _PRESENCE, "full"
    return {"element": element, "vary_by": vary_by, "hurdle": hurdle, "train_on": train_on}
