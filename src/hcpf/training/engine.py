"""Engines, which run the workers of a fit in this process or elsewhere."""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hcpf._types import Csr
from hcpf.core.axis import Exposure
from hcpf.core.posterior import Posterior
from hcpf.core.shard import ShardData
from hcpf.data.held_out import HeldOutPairs
from hcpf.data.sampling import without
from hcpf.data.shards.folder import Shards
from hcpf.errors import ParameterError, ShardError
from hcpf.training.ensemble import Ensemble, Job, Part, run_fits
from hcpf.training.held_out import TrainingSplit
from hcpf.training.loop import UNWATCHED, Watch


class Engine(Protocol):
    """Runs the workers of a fit."""

    def check(self) -> None:
        """Raise an error at once if the engine cannot be used."""
        ...

    def run(self, parts: "Parts", job: Job, watch: Watch = UNWATCHED) -> Ensemble:
        """Make the fits of a job, and return the posteriors of all users."""
        ...


class LocalEngine:
    """Trains in this process, as a single worker."""

    def check(self) -> None:
        """Do nothing: this process can always be used."""

    def run(self, parts: "Parts", job: Job, watch: Watch = UNWATCHED) -> Ensemble:
        """Make the fits of a job."""
        return run_fits(parts.whole(), job, watch=watch)


LOCAL_ENGINE = LocalEngine()


@dataclass(frozen=True, eq=False)
class Parts:
    """The data of a fit, which several workers share out.

    Each has a block of neighboring users, with about equally many entries.
    """

    split: TrainingSplit
    start: tuple[Posterior, ...] = ()

    def whole(self) -> Part:
        """Return all users: what a single worker in this process trains on."""
        split = self.split
        data = ShardData.whole(split.training, split.excluded, split.exposure)
        return Part(data, split.validation, self.start)

    def of(self, rank: int, size: int) -> Callable[[], Part]:
        """Return what loads the users of one worker; it is called by the worker."""
        matrix = self.split.training
        users = balanced_block(matrix.indptr, rank, size)
        return partial(_Users.of(self.split, self.start, users).with_entries, matrix[users])


@dataclass(frozen=True, eq=False)
class ShardParts(Parts):
    """Neighboring shards of a folder, with about equally many entries.

    Every worker reads its own shards, from a folder that all nodes see.
    """

    shards: Shards = field(kw_only=True)
    ignores_values: bool = field(kw_only=True, default=False)
    """Whether all values are taken as 1."""

    def of(self, rank: int, size: int) -> Callable[[], Part]:
        """Return what reads the shards of one worker."""
        records = self.shards.manifest.shards
        if len(records) < size:
            raise ParameterError(
                f"{self.shards.folder} has {len(records)} shards, fewer than the {size} workers. "
                "Use fewer workers, or write more shards with n_shards."
            )
        pointer = np.cumsum([0, *(record.n_entries for record in records)])
        own = balanced_block(pointer, rank, size)
        ends = np.cumsum([0, *(record.n_users for record in records)])
        users = _Users.of(self.split, self.start, slice(int(ends[own.start]), int(ends[own.stop])))
        numbers = tuple(range(own.start, own.stop))
        shards = self.shards
        return _ShardReader(users, shards.folder, shards.digest, numbers, self.ignores_values)


@dataclass(frozen=True, eq=False)
class _Users:
    """All that a worker needs of its users but for their entries."""

    numbers: NDArray[np.int64]
    n_users: int
    excluded: Csr | None
    exposure: Exposure
    validation: HeldOutPairs | None
    start: tuple[Posterior, ...]

    @classmethod
    def of(cls, split: TrainingSplit, start: Sequence[Posterior], users: slice) -> "_Users":
        """Take the rows of a block of users."""
        return cls(
            np.arange(users.start, users.stop),
            split.training.shape[0],
            None if split.excluded is None else split.excluded[users],
            split.exposure.of_users(users),
            _pairs_of(split.validation, users),
            tuple(Posterior(fit.users.at(users), fit.items) for fit in start),
        )

    def with_entries(self, matrix: Csr) -> Part:
        """Join the users with their entries."""
        data = ShardData(matrix, self.excluded, self.numbers, self.n_users, self.exposure)
        return Part(data, self.validation, self.start)


@dataclass(frozen=True, eq=False)
class _ShardReader:
    """Reads some shards of a folder, where the worker runs."""

    users: _Users
    folder: Path
    digest: str
    numbers: tuple[int, ...]
    ignores_values: bool

    def __call__(self) -> Part:
        shards = Shards.open(self.folder, check=False)
        if shards.digest != self.digest:
            raise ShardError(
                f"{self.folder} holds other shards on node {socket.gethostname()} than where the "
                "fit was started. All nodes must see the same folder."
            )
        matrix: Any = shards.part(self.numbers)[0]
        if self.ignores_values:
            matrix = matrix.with_ones()
        return self.users.with_entries(without(matrix, self.users.excluded))


def balanced_block(pointer: NDArray[np.integer], rank: int, size: int) -> slice:
    """Return one of several blocks of rows with about as many entries each.

    No block is empty unless there are fewer rows than blocks.
    """
    n_rows = len(pointer) - 1
    targets = np.linspace(0, int(pointer[-1]), size + 1)[1:-1]
    cuts = np.concatenate([[0], np.searchsorted(pointer, targets), [n_rows]])
    # At least one row per block, from both ends.
    numbers = np.arange(size + 1)
    cuts = np.clip(np.maximum(cuts, numbers), None, np.maximum(n_rows - size + numbers, 0))
    return slice(int(cuts[rank]), int(cuts[rank + 1]))


def _pairs_of(pairs: HeldOutPairs | None, users: slice) -> HeldOutPairs | None:
    """Return the pairs of a block of users, by position in the block."""
    if pairs is None:
        return None
    first, last = users.start, users.stop
    observed = (pairs.users >= first) & (pairs.users < last)
    missing = (pairs.missing_users >= first) & (pairs.missing_users < last)
    return HeldOutPairs(
        pairs.users[observed] - first, pairs.items[observed], pairs.values[observed],
        pairs.missing_users[missing] - first, pairs.missing_items[missing], pairs.missing_weight,
    )  # fmt: skip
