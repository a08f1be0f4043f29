"""Parts whose loaders make workers fail at chosen moments, each once."""

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hcpf.distributed.messages import MessageCollective
from hcpf.training.engine import Parts


@dataclass(frozen=True)
class Fault:
    """What happens to a worker, and when."""

    kind: str
    """worker or node (SIGKILL), freeze (SIGSTOP), sleep, or raise."""
    rank: int
    call: int
    """The number of the collective call; 0 is before the first one."""
    marker: Path
    """Made when the fault strikes."""

    def strike(self) -> None:
        self.marker.write_text(str(os.getpid()))
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
        if self.fault.call == 0:
            self.fault.strike()
        original = MessageCollective._next

        def count(comm: MessageCollective, name: str) -> Any:
            key = original(comm, name)
            if key[0] == self.fault.call:
                self.fault.strike()
            return key

        MessageCollective._next = count
        return self.load()
