"""Checkpoints: committed together by all workers, exact on resume, refused for other runs.

Every worker writes its own file, which carries the pass in its name. When all are written, worker 0
replaces the manifest, which commits them together: after a crash at any moment the manifest names
complete files. The commit before is kept as well, for the case that a file is damaged.
"""

import json
import logging
import time
from dataclasses import asdict
from typing import Any

import numpy as np

from hcpf.core.axis import AxisState
from hcpf.core.collective import Collective, any_worker
from hcpf.core.kernels import Factors
from hcpf.core.posterior import Check
from hcpf.core.shard import Shard
from hcpf.core.theta import ThetaPosterior
from hcpf.errors import CheckpointError
from hcpf.io import fingerprint, os_errors
from hcpf.training.state import DrawMemory, FitState, MomentumMemory, Tensors
from hcpf.training.storage import Location, folder_of

logger = logging.getLogger("hcpf")

_KEPT = 2  # commits on disk

Saved = tuple[dict[str, Any], Tensors]
"""Header and tensors of one worker's file."""


class Checkpoint:
    """The committed states of one fit in a folder.

    ``identity`` names the worker's data and settings; a file of another identity is an error
    rather than a silently wrong resume.
    """

    def __init__(
        self,
        folder: Location,
        name: str,
        identity: str,
        comm: Collective,
        *,
        every_passes: int,
        every_seconds: float,
    ) -> None:
        self._folder, self._name = folder_of(folder), name
        self._identity, self._comm = identity, comm
        self._every_passes, self._every_seconds = every_passes, every_seconds
        self._saved_at = time.monotonic()

    def maybe_save(self, state: FitState, shard: Shard, *, force: bool) -> None:
        """Save if enough passes or seconds have gone by, or by ``force``."""
        is_late = time.monotonic() - self._saved_at > self._every_seconds
        is_due = force or state.iteration % self._every_passes == 0
        if is_due or any_worker(self._comm, is_late):
            self.save(state, shard)

    def save(self, state: FitState, shard: Shard) -> None:
        """Write the worker's file and, when all workers have, commit them."""
        from safetensors.numpy import save

        tensors = {name: np.ascontiguousarray(a) for name, a in _tensors(state, shard).items()}
        header = json.dumps({"identity": self._identity, **_header(state, shard)})
        metadata = {"hcpf": header, "digest": _digest(header, tensors)}
        try:
            self._folder.write(self._file(state.iteration), save(tensors, metadata))
            any_worker(self._comm, False)  # returns when every worker has written its file
            if self._comm.rank == 0:
                self._commit(state.iteration)
        except OSError as error:
            raise CheckpointError(
                f"The checkpoint {self._folder} cannot be written after pass {state.iteration}: "
                f"{error.strerror or error}. Make it writable, for example by freeing space, and "
                "repeat the fit: it resumes from the last checkpoint, if there is one."
            ) from error
        self._saved_at = time.monotonic()

    def _commit(self, iteration: int) -> None:
        commits = [iteration, *(old for old in self._commits() if old != iteration)][:_KEPT]
        manifest = {"workers": self._comm.size, "passes": commits}
        self._folder.write(self._manifest, json.dumps(manifest))
        for name in self._folder.names():
            is_kept = any(name.startswith(self._stem(kept)) for kept in commits)
            if name.startswith(f"{self._name}.pass-") and not is_kept:
                self._folder.remove(name)

    def load(self) -> Saved | None:
        """Read the latest commit that is whole on every worker; None if there is none."""
        commits, errors = self._commits(), list[CheckpointError]()
        for iteration in commits:
            found = None
            try:
                found = self._read(self._file(iteration))
            except CheckpointError as error:
                errors.append(error)
            if not any_worker(self._comm, found is None):
                for error in errors:
                    logger.warning("Resuming from pass %d. %s", iteration, error)
                return found
        if errors:
            raise errors[0]
        if commits:
            raise CheckpointError(f"Another worker cannot read the checkpoint {self._folder}.")
        return None

    def _read(self, name: str) -> Saved:
        from safetensors import SafetensorError, safe_open

        path = f"{self._folder}/{name}"
        try:
            with self._folder.opened(name) as here, safe_open(here, "np") as file:
                metadata: dict[str, str] = file.metadata()
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if metadata["digest"] != _digest(metadata["hcpf"], tensors):
                raise ValueError("its content does not match its digest")
            header = json.loads(metadata["hcpf"])
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"The checkpoint {path} cannot be read ({error}). Delete the folder to start again."
            ) from None
        if header["identity"] != self._identity:
            raise CheckpointError(
                f"The checkpoint {path} belongs to other data or settings. Delete the folder, or "
                "give another checkpoint folder."
            )
        return header, tensors

    def _commits(self) -> list[int]:
        """Return the passes that are committed, the latest first."""
        try:
            manifest = json.loads(self._folder.read(self._manifest))
            workers, passes = int(manifest["workers"]), [int(x) for x in manifest["passes"]]
        except FileNotFoundError:
            return []
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"The checkpoint {self._folder}/{self._manifest} cannot be read ({error}). Delete "
                "the folder to start again."
            ) from None
        if workers != self._comm.size:
            raise CheckpointError(
                f"The checkpoint {self._folder} was written by {workers} workers, not by "
                f"{self._comm.size}. Use as many workers, or another checkpoint folder."
            )
        return passes

    @property
    def _manifest(self) -> str:
        return f"{self._name}.json"

    def _stem(self, iteration: int) -> str:
        return f"{self._name}.pass-{iteration}."

    def _file(self, iteration: int) -> str:
        return f"{self._stem(iteration)}rank-{self._comm.rank}.safetensors"


def restore(state: FitState, header: dict[str, Any], tensors: Tensors) -> None:
    """Put a saved state into a fit whose shard is laid out as it was then."""
    for mine in state.axes:
        _restore_axis(mine, header, tensors)
    state.momentum = _memory(MomentumMemory, "momentum.", tensors)
    state.draws = _memory(DrawMemory, "draws.", tensors)
    state.set_element(state.element.replace(**header["parameters"]))
    state.iteration, state.svi_step = header["iteration"], header["svi_step"]
    state.sum_counts, state.converged = header["sum_counts"], header["converged"]
    state.rng.bit_generator.state = header["rng"]
    state.history[:] = [Check(**check) for check in header["history"]]


def _restore_axis(mine: AxisState, header: dict[str, Any], tensors: Tensors) -> None:
    name = mine.axis.value
    for part in Factors._fields:
        getattr(mine.factors, part)[...] = tensors[f"{name}.{part}"]
    mine.mean_sums = tensors[f"{name}.mean_sums"].copy()
    if mine.theta is not None:
        chi, nu = (tensors[f"{name}.theta.{part}"].copy() for part in ("chi", "nu"))
        mine.theta = ThetaPosterior(chi, nu, **header["theta"][name])


def _memory(kind: type[MomentumMemory] | type[DrawMemory], prefix: str, tensors: Tensors) -> Any:
    found = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    return kind.from_tensors(found) if found else None


def _tensors(state: FitState, shard: Shard) -> Tensors:
    # Also what could be computed again: only the very bits make the resumed run the same one.
    named: Tensors = {"max_log2_rate": shard.tables.max_log2_rate}
    for mine in state.axes:
        name = mine.axis.value
        named |= {f"{name}.{part}": getattr(mine.factors, part) for part in Factors._fields}
        named[f"{name}.mean_sums"] = mine.mean_sums
        if mine.theta is not None:
            named |= {f"{name}.theta.{part}": getattr(mine.theta, part) for part in ("chi", "nu")}
    for prefix, memory in (("momentum.", state.momentum), ("draws.", state.draws)):
        if memory is not None:
            named |= {prefix + key: array for key, array in memory.tensors().items()}
    return named


def _header(state: FitState, shard: Shard) -> dict[str, Any]:
    priors = {m.axis.value: m.theta for m in state.axes if m.theta is not None}
    return {
        "parameters": state.element.parameters,
        "tabulated": shard.element.parameters,
        "theta": {name: {"chi0": t.chi0, "nu0": t.nu0} for name, t in priors.items()},
        "iteration": state.iteration,
        "svi_step": state.svi_step,
        "sum_counts": state.sum_counts,
        "rng": state.rng.bit_generator.state,
        "converged": state.converged,
        "history": [asdict(check) for check in state.history],
    }


def _digest(header: str, tensors: Tensors) -> str:
    return fingerprint(
        header, *(part for name in sorted(tensors) for part in (name, tensors[name]))
    )


def remembered_seed(location: Location) -> int:
    """Return the seed that runs on the same folder share, so that they resume without one given."""
    folder, name = folder_of(location), "seed.json"
    try:
        return int(json.loads(folder.read(name)))
    except FileNotFoundError:
        seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        with os_errors(CheckpointError, f"The checkpoint {folder} cannot be written"):
            folder.write(name, json.dumps(seed))
        return seed
    except (OSError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{folder}/{name} cannot be read ({error}). Delete the folder."
        ) from None


def make_folder(location: Location) -> None:
    """Create the folder of the checkpoints, or raise an error at once if it cannot be written."""
    folder = folder_of(location)
    with os_errors(CheckpointError, f"checkpoint={str(folder)!r} cannot be written"):
        folder.make()
