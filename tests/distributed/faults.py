"""Parts whose loaders make workers fail at chosen moments, each once."""

import gc
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hcpf.core.shard import ShardSource
from hcpf.distributed import messages, sockets
from hcpf.distributed.messages import MessageCollective
from hcpf.training import loop
from hcpf.training.checkpoint import Checkpoint
from hcpf.training.engine import Parts
from hcpf.training.state import FitState

_MOMENTS = {
    "lay_out": (ShardSource, "lay_out"),
    "sum": (MessageCollective, "sum"),
    "sum_rows": (MessageCollective, "sum_rows"),
    "gather": (MessageCollective, "gather"),
    "elbo": (FitState, "elbo"),
    "save": (Checkpoint, "save"),
    "commit": (Checkpoint, "_commit"),  # when all files are written; by worker 0
    "next_pass": (loop, "advance_fit"),
}
"""The function before whose call a fault strikes."""


@dataclass(frozen=True)
class Fault:
    """What happens to a worker, and when."""

    kind: str
    """worker or node (SIGKILL), freeze (SIGSTOP), sleep, raise, or one of these connections.

    cut: those that the worker sends by end, which it finds out itself. firewall: it can make none.
    """
    rank: int | None
    """None: the worker that is not on the node of the driver, whose loss would end the fit."""
    moment: str
    """``load``, or one of the moments above."""
    passes: int
    """Passes that the fit has made at least, those before a resume included."""
    marker: Path
    """Made when the fault strikes; holds the rank and the passes made."""

    @property
    def struck(self) -> tuple[int, int]:
        """Which worker was struck, and after how many passes; an error if none was."""
        rank, passes = self.marker.read_text().split()
        return int(rank), int(passes)

    def strike(self, rank: int, passes: int = 0) -> None:
        self.marker.write_text(f"{rank} {passes}")
        if self.kind == "worker":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.kind == "node":
            os.kill(os.getppid(), signal.SIGKILL)  # the raylet, which takes its workers along
            time.sleep(60)
        elif self.kind == "freeze":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self.kind == "sleep":
            time.sleep(600)
        elif self.kind == "cut":
            messages._LOST_SECONDS = 0.5
            for found in gc.get_objects():
                if isinstance(found, sockets.Connections):
                    found.close()
        elif self.kind == "firewall":
            sockets.socket.create_connection = _refuse
        else:
            raise RuntimeError("a bug")


def _refuse(*_: Any) -> None:
    raise ConnectionRefusedError("no way")


@dataclass(frozen=True, eq=False)
class FaultyParts:
    """The parts of a fit whose workers meet faults, one per start of the group."""

    parts: Parts
    faults: Sequence[Fault]

    def whole(self) -> Any:
        return self.parts.whole()

    def of(self, rank: int, size: int) -> Any:
        load = self.parts.of(rank, size)
        left = [fault for fault in self.faults if not fault.marker.exists()]
        return _Loader(load, left[0], rank) if left and left[0].rank in (rank, None) else load


@dataclass(frozen=True, eq=False)
class _Loader:
    load: Any
    fault: Fault
    rank: int

    def __call__(self) -> Any:
        fault, passes = self.fault, 0
        if fault.rank is None and _is_on_head_node():
            return self.load()
        if fault.moment == "load":
            fault.strike(self.rank)
            return self.load()

        def count_passes(fit: loop.Fit) -> None:
            nonlocal passes
            passes = fit.state.iteration

        def strike_when_due(*_: Any) -> None:
            if passes >= fault.passes:
                fault.strike(self.rank, passes)

        _before(loop, "_make_pass", count_passes)
        _before(loop, "_retabulate", count_passes)
        _before(*_MOMENTS[fault.moment], strike_when_due)
        return self.load()


def _is_on_head_node() -> bool:
    import ray

    own = ray.get_runtime_context().get_node_id()
    (node,) = (node for node in ray.nodes() if node["NodeID"] == own)
    return "node:__internal_head__" in node["Resources"]


def _before(owner: Any, name: str, call: Callable[..., None]) -> None:
    """Call a function before each call of another one."""
    original = getattr(owner, name)

    def both(*args: Any, **keywords: Any) -> Any:
        call(*args)
        return original(*args, **keywords)

    setattr(owner, name, both)
