"""Checkpoints: written atomically, refused when they belong to another run, exact on resume."""

import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hcpf.errors import CheckpointError

if TYPE_CHECKING:
    from hcpf.inference.fit import Run

_FACTORS = ("a", "mean", "activity_b", "shift")


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

        state = run.state
        tensors: dict[str, Any] = {
            "user_sums": state.user_sums,
            "item_sums": state.item_sums,
            **{f"extra_{name}": array for name, array in state.extras.items()},
        }
        for side, factors in (("user", state.users), ("item", state.items)):
            tensors |= {f"{side}_{name}": getattr(factors, name) for name in _FACTORS}
        header = {
            "identity": self.identity,
            "element": state.element.name,
            "parameters": dict(state.element.parameters),
            "tabulated": dict(run.problem.element.parameters),
            "octaves": list(run.problem.local.octaves),
            "slope": state.slope,
            "iteration": state.iteration,
            "steps": state.steps,
            "sum_counts": state.sum_counts,
            "rng": run.rng.bit_generator.state,
            "converged": run.converged,
            "history": [asdict(check) for check in run.history],
        }
        content = save(
            {k: np.ascontiguousarray(v) for k, v in tensors.items()}, {"hcpf": json.dumps(header)}
        )
        write_atomically(self.path, content)
        self._saved_at = time.monotonic()

    def restore(self, run: "Run") -> dict[str, Any] | None:
        """Put a saved state into ``run`` and return its header; None if there is none."""
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, "np") as file:
                header = json.loads(file.metadata()["hcpf"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"The checkpoint {self.path} cannot be read ({error}). Delete it to start afresh."
            ) from None
        if header["identity"] != self.identity:
            raise CheckpointError(
                f"The checkpoint {self.path} belongs to other data or settings. Delete it, or give "
                "another checkpoint folder."
            )
        _fill(run, header, tensors)
        return header


def _fill(run: "Run", header: dict[str, Any], tensors: dict[str, Any]) -> None:
    from hcpf.inference.fit import Check

    state = run.state
    for side, factors in (("user", state.users), ("item", state.items)):
        for name in _FACTORS:
            getattr(factors, name)[...] = tensors.pop(f"{side}_{name}")
    state.user_sums, state.item_sums = tensors.pop("user_sums"), tensors.pop("item_sums")
    state.extras = {name.removeprefix("extra_"): array for name, array in tensors.items()}
    state.element = run.problem.element.replace(**header["parameters"])
    state.slope, state.iteration = header["slope"], header["iteration"]
    state.steps, state.sum_counts = header["steps"], header["sum_counts"]
    run.rng.bit_generator.state = header["rng"]
    run.history = [Check(**check) for check in header["history"]]
    run.converged = header["converged"]


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that, whatever happens, the old or the new one is there whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise CheckpointError(f"Cannot write {path}: {error.strerror}.") from error
