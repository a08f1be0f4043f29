"""A collective over threads, and fits that several such workers make together."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from hcpf.core.collective import row_block
from hcpf.core.shard import ShardData
from hcpf.core.threads import kernel_threads
from hcpf.data.held_out import HeldOutPairs
from hcpf.training.ensemble import Job, Part, Worker, run_fits
from hcpf.training.settings import Checkpoints


class _Meeting:
    """Where the threads of a group exchange arrays."""

    def __init__(self, size):
        self.size = size
        self.barrier = threading.Barrier(size, timeout=60)
        self.slots = [None] * size

    def exchange(self, rank, array):
        self.slots[rank] = array.copy()
        self.barrier.wait()
        found = list(self.slots)
        self.barrier.wait()  # no worker overwrites a slot that another still reads
        return found


class WorkerLostError(Exception):
    """A worker that is no longer there."""


class ThreadCollective:
    """A Collective whose workers are threads of one process; counts its calls."""

    def __init__(self, meeting, rank, max_calls=None):
        self._meeting, self.rank, self.size = meeting, rank, meeting.size
        self.calls, self._max_calls = [], max_calls

    def _exchange(self, name, x):
        self.calls.append((name, x.shape))
        if len(self.calls) == self._max_calls:
            raise WorkerLostError
        return self._meeting.exchange(self.rank, x)

    def sum(self, x):
        total, *others = self._exchange("sum", x)
        for other in others:
            total = total + other
        return total

    def max(self, x):
        return np.max(self._exchange("max", x), axis=0)

    def gather(self, x):
        return np.concatenate(self._exchange("gather", x))

    def sum_rows(self, *arrays):
        return tuple(self._sum_rows(x) for x in arrays)

    def _sum_rows(self, x):
        own = row_block(self.rank, self.size, len(x))
        total, *others = (part[own] for part in self._exchange("sum_rows", x))
        for other in others:
            total = total + other
        return total


def run_alone(split, value_model, priors, plan, seed=7):
    """The fit of a single worker."""
    data = ShardData.whole(split.training, split.excluded, split.exposure)
    rng = np.random.default_rng(seed)
    with kernel_threads(1):
        job = Job(value_model, priors, plan, np.zeros((1, 2), np.int64))
        return Worker(Part(data, split.validation), job, rng).run()


def run_together(
    split, value_model, priors, plan, n_workers, seed=7, collectives=None, lost_after=None,
    make_comm=ThreadCollective,
):  # fmt: skip
    """The outcomes of several workers, in rank order; the last one may be lost after some calls.

    Several fits are combined into ensembles.
    """
    meeting = _Meeting(n_workers)

    def work(rank):
        comm = make_comm(meeting, rank, lost_after if rank == n_workers - 1 else None)
        if collectives is not None:
            collectives.append(comm)
        rng = np.random.default_rng(seed)
        try:
            with kernel_threads(1):
                own = own_users(split.training.shape[0], n_workers, rank)
                data = shard_of(split, own)
                held_out = pairs_of(split.validation, own)
                part = Part(data, held_out)
                if plan.n_fits > 1:
                    job = Job(value_model, priors, plan, rng.integers(1 << 63, size=(3, 2)))
                    return run_fits(part, job, comm)
                job = Job(value_model, priors, plan, np.zeros((1, 2), np.int64))
                return Worker(part, job, rng, comm=comm).run()
        except BaseException:
            meeting.barrier.abort()
            raise

    with ThreadPoolExecutor(n_workers) as pool:
        futures = [pool.submit(work, rank) for rank in range(n_workers)]
        # The worker that failed first says why; the others only that their meeting is broken.
        errors = [future.exception() for future in futures]
        for error in sorted(
            filter(None, errors), key=lambda e: isinstance(e, threading.BrokenBarrierError)
        ):
            raise error
        return [future.result() for future in futures]


def own_users(n_users, n_workers, rank):
    """The users of a worker: every n-th, so that neighbors are apart."""
    return np.arange(rank, n_users, n_workers)


def shard_of(split, users):
    excluded = None if split.excluded is None else split.excluded[users]
    n_users, exposure = split.training.shape[0], split.exposure.of_users(users)
    return ShardData(split.training[users], excluded, users, n_users, exposure)


def pairs_of(pairs, users):
    if pairs is None:
        return None
    local = np.full(max(users.max(), pairs.users.max(), pairs.missing_users.max(initial=0)) + 1, -1)
    local[users] = np.arange(len(users))
    observed, missing = local[pairs.users] >= 0, local[pairs.missing_users] >= 0
    return HeldOutPairs(
        local[pairs.users[observed]], pairs.items[observed], pairs.values[observed],
        local[pairs.missing_users[missing]], pairs.missing_items[missing], pairs.missing_weight,
    )  # fmt: skip


def joined_users(outcomes, array_of):
    """One array of all users, in the order of the data, from those of the workers."""
    parts = [array_of(outcome.posterior.users) for outcome in outcomes]
    out = np.empty((sum(map(len, parts)), *parts[0].shape[1:]), parts[0].dtype)
    for rank, part in enumerate(parts):
        out[rank :: len(parts)] = part
    return out


def with_checkpoint(plan, folder, **changes):
    return replace(plan, checkpoint=Checkpoints(folder, every_passes=5), **changes)
