"""Checkpoints: written atomically, refused when they belong to another run, exact on resume."""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hcpf.core.kernels import Factors
from hcpf.core.theta import ThetaPosterior
from hcpf.errors import CheckpointError

if TYPE_CHECKING:
    from hcpf.training.loop import Run

Tensors = dict[str, np.ndarray]


class Checkpoint:
    """One file that holds the latest committed state of one fit.

    ``identity`` names the data and the settings; a file of another identity is an error rather
    than a silently wrong resume.
    """

    def __init__(self, path: Path, identity: str, every_passes: int, every_seconds: float) -> None:
        self.path, self.identity = path, identity
        self.every_passes, self.every_seconds = every_passes, every_seconds
        self._saved_at = time.monotonic()

    def maybe_save(self, run: "Run", *, force: bool) -> None:
        """Save if it is time to."""
        due = run.state.iteration % self.every_passes == 0
        due |= time.monotonic() - self._saved_at > self.every_seconds
        if force or due:
            self.save(run)

    def save(self, run: "Run") -> None:
        """Write a whole new file beside the old one, then replace it in one step."""
        from safetensors.numpy import save

        tensors = {name: np.ascontiguousarray(array) for name, array in _tensors(run).items()}
        header = json.dumps({"identity": self.identity, **_header(run)})
        metadata = {"hcpf": header, "digest": _digest(header, tensors)}
        write_atomically(self.path, save(tensors, metadata))
        self._saved_at = time.monotonic()

    def load(self) -> tuple[dict[str, Any], Tensors] | None:
        """Read the header and the tensors; None if there is no file."""
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, "np") as file:
                metadata: dict[str, str] = file.metadata()
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if metadata["digest"] != _digest(metadata["hcpf"], tensors):
                raise ValueError("its content does not match its digest")
            header = json.loads(metadata["hcpf"])
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"The checkpoint {self.path} cannot be read ({error}). Delete it to start afresh."
            ) from None
        if header["identity"] != self.identity:
            raise CheckpointError(
                f"The checkpoint {self.path} belongs to other data or settings. Delete it, or give "
                "another checkpoint folder."
            )
        return header, tensors


def restore(run: "Run", header: dict[str, Any], tensors: Tensors) -> None:
    """Put a saved state into ``run``; its problem must be laid out as it was then."""
    from hcpf.model.history import Check

    state = run.state
    for side, factors in (("user", state.users), ("item", state.items)):
        for name in Factors._fields:
            getattr(factors, name)[...] = tensors[f"{side}_{name}"]
    if state.varying is not None:
        for side in header["groups"]:
            chi, nu = (tensors[f"{side}_{name}"].copy() for name in ("chi", "nu"))
            state.varying.put(side == "user", ThetaPosterior(chi, nu, **header["groups"][side]))
    state.user_sums, state.item_sums = tensors["user_sums"], tensors["item_sums"]
    extras = (name for name in tensors if name.startswith("extra_"))
    state.extras = {name.removeprefix("extra_"): tensors[name].copy() for name in extras}
    state.element = run.problem.element.replace(**header["parameters"])
    state.slope, state.iteration = header["slope"], header["iteration"]
    state.steps, state.sum_counts = header["steps"], header["sum_counts"]
    run.rng.bit_generator.state = header["rng"]
    run.history = [Check(**check) for check in header["history"]]
    run.converged = header["converged"]


def _tensors(run: "Run") -> Tensors:
    # Also what could be computed anew: only the very bits make the resumed run the same one.
    state = run.state
    sides = (("user", state.users), ("item", state.items))
    return {
        "user_sums": state.user_sums,
        "item_sums": state.item_sums,
        "reach": run.problem.local.reach,
        **{f"extra_{name}": array for name, array in state.extras.items()},
        **{f"{side}_{name}": getattr(f, name) for side, f in sides for name in Factors._fields},
        **{
            f"{side}_{name}": getattr(groups, name)
            for side, groups in _groups(run).items()
            for name in ("chi", "nu")
        },
    }


def _groups(run: "Run") -> dict[str, ThetaPosterior]:
    """Theta of the sides that have one of their own."""
    varying = run.state.varying
    sides = {} if varying is None else {"user": varying.users, "item": varying.items}
    return {side: groups for side, groups in sides.items() if groups is not None}


def _header(run: "Run") -> dict[str, Any]:
    state = run.state
    return {
        "parameters": state.element.parameters,
        "tabulated": run.problem.element.parameters,
        "groups": {s: {"chi0": g.chi0, "nu0": g.nu0} for s, g in _groups(run).items()},
        "slope": state.slope,
        "iteration": state.iteration,
        "steps": state.steps,
        "sum_counts": state.sum_counts,
        "rng": run.rng.bit_generator.state,
        "converged": run.converged,
        "history": [asdict(check) for check in run.history],
    }


def _digest(header: str, tensors: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.blake2b(header.encode(), digest_size=16)
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(tensors[name]).data)
    return digest.hexdigest()


def remembered_seed(folder: Path) -> int:
    """A seed that runs on the same folder share, so that they can resume without one given."""
    path = folder / "seed.json"
    try:
        return int(json.loads(path.read_text()))
    except FileNotFoundError:
        seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        write_atomically(path, json.dumps(seed).encode())
        return seed
    except (OSError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}). Delete the folder.") from None


def make_folder(folder: Path) -> None:
    """Make the folder of the checkpoints, or say at once that it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise CheckpointError(
            f"checkpoint: the folder {folder} cannot be written: {error.strerror}."
        ) from None


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that, whatever happens, the old or the new one is there whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise CheckpointError(f"Cannot write {path}: {error.strerror}.") from error
