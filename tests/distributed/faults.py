"""Parts whose loaders make workers fail at chosen moments, each once."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hcpf.core.shard import ShardSource
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
    """worker or node (SIGKILL), freeze (SIGSTOP), sleep, or raise."""
    rank: int
    moment: str
    """``load``, or one of the moments above."""
    passes: int
    """Passes that the fit has made at least, those before a resume included."""
    marker: Path
    """Made when the fault strikes; holds the passes made."""

    def strike(self, passes: int = 0) -> None:
        self.marker.write_text(str(passes))
        if self.kind == "worker":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.kind == "node":
            os.kill(os.getppid(), signal.SIGKILL)  # the raylet, which takes its workers along
            time.sleep(60)
        elif self.kind == "freeze":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self.kind == "sleep":
            time.sleep(600)
        else:
            raise RuntimeError("a bug")


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
        return _Loader(load, left[0]) if left and left[0].rank == rank else load


@dataclass(frozen=True, eq=False)
class _Loader:
    load: Any
    fault: Fault

    def __call__(self) -> Any:
        fault, passes = self.fault, 0
        if fault.moment == "load":
            fault.strike()

        def count_passes(fit: loop.Fit) -> None:
            nonlocal passes
            passes = fit.state.iteration

        def strike_when_due(*_: Any) -> None:
            if passes >= fault.passes:
                fault.strike(passes)

        _before(loop, "_make_pass", count_passes)
        _before(loop, "_retabulate", count_passes)
        _before(*_MOMENTS[fault.moment], strike_when_due)
        return self.load()


def _before(owner: Any, name: str, call: Callable[..., None]) -> None:
    """Call a function before each call of another one."""
    original = getattr(owner, name)

    def both(*args: Any, **keywords: Any) -> Any:
        call(*args)
        return original(*args, **keywords)

    setattr(owner, name, both)
