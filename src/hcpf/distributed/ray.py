"""The engine that trains on a Ray cluster: one actor per worker, restarted together.

The driver, which is the process that calls ``fit``, starts the workers, follows their signs of life
and collects the posteriors. It does not train. If a worker is lost, all workers end and
a new group resumes from the last checkpoint.
"""

import logging
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any, ClassVar

import numpy as np

from hcpf._checks import number, set_fields, whole
from hcpf.core.posterior import Posterior
from hcpf.distributed.actor import actor_class, in_mail, require_same_software
from hcpf.distributed.connection import connected, require_ray
from hcpf.distributed.messages import ConnectionLostError
from hcpf.distributed.pulse import TICK_SECONDS, Pulse
from hcpf.errors import ClusterError, HcpfError
from hcpf.training.engine import Parts
from hcpf.training.ensemble import Ensemble, Job
from hcpf.training.loop import UNWATCHED, Watch

logger = logging.getLogger("hcpf")


@dataclass(frozen=True)
class RayEngine:
    """Trains on a Ray cluster.

    Parameters
    ----------
    workers : int, optional
        The number of workers; by default one per node. The bits of the result depend on it.
    address : str, optional
        "host:port" of a running cluster, or "auto" for the one this machine belongs to. By default
        a cluster is started on this machine, reachable from this machine only, for the time of the
        fit.
    cpus_per_worker : int, optional
        CPUs, and threads, of each worker; by default an equal share of the CPUs of a node.
    silence_seconds : float, default 120
        A worker that gives no sign of life for this time ends the fit with an error.
    stall_seconds : float, default 3600
        So does a group in which no worker completes a call for this time although all are alive.
    start_seconds : float, default 300
        How long to wait for free CPUs in the cluster, at the start and after a lost worker.
    max_restarts : int, default 3
        How often in a row lost workers are replaced without a further pass in between.
    """

    workers: int | None = None
    address: str | None = None
    cpus_per_worker: int | None = None
    silence_seconds: float = 120.0
    stall_seconds: float = 3600.0
    start_seconds: float = 300.0
    max_restarts: int = 3

    name: ClassVar[str] = "ray"

    def __post_init__(self) -> None:
        for name in ("workers", "cpus_per_worker"):
            if getattr(self, name) is not None:
                set_fields(self, **{name: whole(name, getattr(self, name))})
        for name in ("silence_seconds", "stall_seconds", "start_seconds"):
            value = number(name, getattr(self, name), 1e-3, inf, "a number above 0")
            set_fields(self, **{name: value})
        set_fields(self, max_restarts=whole("max_restarts", self.max_restarts, least=0))

    def check(self) -> None:
        """Raise an error if Ray is not installed, or if no cluster answers at the address."""
        require_ray(self.address)

    def run(self, parts: Parts, job: Job, watch: Watch = UNWATCHED) -> Ensemble:
        """Make the fits of a job on the cluster, and join the users of all workers."""
        with connected(self.address, self.workers):
            if job.plan.checkpoint is None:
                logger.info("No checkpoint folder: if a worker is lost, the fit begins again.")
            return self._run_until_done(parts, job, watch)

    def _run_until_done(self, parts: Parts, job: Job, watch: Watch) -> Ensemble:
        restarts, furthest, size = 0, (0, 0), self.workers
        while True:
            group = _Group.start(self, size)
            size = len(group.workers)  # the bits depend on it: it stays as it was
            try:
                return _joined(group.run(parts, job, watch))
            except _WorkerLostError as error:
                restarts = 0 if group.reached > furthest else restarts
                furthest = max(furthest, group.reached)
                if restarts >= self.max_restarts:
                    raise ClusterError(
                        f"{error} The group was restarted {restarts} times in a row without a "
                        "further pass. Look for the reason in the logs of Ray; the same fit with "
                        "the same checkpoint folder resumes."
                    ) from None
                restarts += 1
                logger.warning("%s Restart %d of %d.", error, restarts, self.max_restarts)
            finally:
                group.end()


class _WorkerLostError(Exception):
    """A worker is gone for reasons that may not last."""


class _Group:
    """The workers of one attempt."""

    def __init__(
        self, engine: RayEngine, placement: Any, workers: list[Any], n_cpus: float
    ) -> None:
        self._engine, self._placement, self.workers = engine, placement, workers
        self._n_cpus = n_cpus
        self._places: list[Any] = [None] * len(workers)
        self._signs: list[Any] = [None] * len(workers)
        self.reached = (0, 0)
        """Fit and pass that all workers have completed."""
        self._has_warned = False

    @classmethod
    def start(cls, engine: RayEngine, size: int | None) -> "_Group":
        """Start workers on CPUs that are reserved for all of them together."""
        from ray.util.placement_group import placement_group, remove_placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        deadline = time.monotonic() + engine.start_seconds
        nodes, placement, n_cpus = None, None, 0.0
        while placement is None or not placement.wait(TICK_SECONDS):
            now = _node_cpus()
            if now != nodes:  # also where Ray notices only now that a node is lost
                if placement is not None:
                    remove_placement_group(placement)
                nodes, (size, n_cpus) = now, _share_cpus(engine, size, now)
                placement = placement_group([{"CPU": n_cpus}] * size, strategy="SPREAD")
            elif placement is not None and time.monotonic() > deadline:
                remove_placement_group(placement)
                raise ClusterError(
                    f"{size} workers with {n_cpus:g} CPUs each found no place in the cluster "
                    f"within {engine.start_seconds:g} s: it has {len(now)} nodes with "
                    f"{sum(now):g} CPUs together. Use fewer workers, or wait for other jobs."
                )
        assert size is not None
        kind = actor_class(n_cpus)
        workers = [
            kind.options(
                scheduling_strategy=PlacementGroupSchedulingStrategy(
                    placement, placement_group_bundle_index=rank
                )
            ).remote(rank)
            for rank in range(size)
        ]
        return cls(engine, placement, workers, n_cpus)

    def run(self, parts: Parts, job: Job, watch: Watch) -> list[Any]:
        """Train, and return the users and posteriors of all workers in rank order."""
        self._places = self._meet()
        require_same_software(self._places)
        size, silence = len(self.workers), self._engine.silence_seconds
        plan = replace(job.plan, progress=False)
        if plan.n_threads is None:
            plan = replace(plan, n_threads=max(1, int(self._n_cpus)))
        job = replace(job, plan=plan)
        addresses = [place.address for place in self._places]
        runs = [
            worker.run.options(num_returns=3).remote(
                parts.of(rank, size), job, self.workers, addresses, silence
            )
            for rank, worker in enumerate(self.workers)
        ]
        usages = self._follow([run[0] for run in runs], watch)
        self._warn_of_failures(usages)
        for rank, usage in enumerate(usages):
            logger.info("Worker %d: %s", rank, usage)
        # Posteriors may be large. They are fetched when nobody must give signs of life any more.
        return [
            tuple(self._result(rank, part) for part in run[1:]) for rank, run in enumerate(runs)
        ]

    def _meet(self) -> list[Any]:
        """Wait until all workers answer, and return where they are."""
        import ray

        secret = secrets.token_bytes(32)
        questions = [in_mail(worker.place).remote(secret) for worker in self.workers]
        _, missing = ray.wait(
            questions, num_returns=len(questions), timeout=self._engine.start_seconds
        )
        if missing:
            raise ClusterError(
                f"Worker {questions.index(missing[0])} did not start within "
                f"{self._engine.start_seconds:g} s. See the logs of Ray on its node."
            )
        return [self._place(rank, question) for rank, question in enumerate(questions)]

    def _place(self, rank: int, question: Any) -> Any:
        """Return where a worker is; one that cannot be made is not worth another try."""
        import ray
        from ray.exceptions import RayError

        try:
            return ray.get(question)
        except RayError as error:
            if "creation task" not in str(error):
                raise _WorkerLostError(self._lost(rank, error)) from None
            raise ClusterError(
                f"Worker {rank} cannot start ({_short(error)}). Install the same version of hcpf, "
                "with the extra ray, on all nodes."
            ) from None

    def _follow(self, runs: list[Any], watch: Watch) -> list[Any]:
        """Wait for the results, as long as all workers give signs of life."""
        import ray

        results: list[Any] = [None] * len(runs)
        pending = {run: rank for rank, run in enumerate(runs)}
        pulse = Pulse(self.workers, self._engine.silence_seconds)
        stop_was_sent = False
        while pending:
            done, _ = ray.wait(list(pending), num_returns=len(pending), timeout=TICK_SECONDS)
            for run in done:
                rank = pending.pop(run)
                results[rank] = self._result(rank, run)
            self._signs = pulse.take()
            self._tell(watch)
            self._warn_of_failures(self._signs)
            self._require_life(pulse, pending)
            if watch.stop_requested() and not stop_was_sent:
                stop_was_sent = True
                for worker in self.workers:
                    in_mail(worker.stop).remote()
        return results

    def _result(self, rank: int, reference: Any) -> Any:
        """Return the result of a call, or raise the error that it stands for."""
        import ray
        from ray.exceptions import RayError, RaySystemError, RayTaskError

        try:
            return ray.get(reference)
        except RayTaskError as error:
            cause = error.cause
            if isinstance(cause, HcpfError):
                raise cause from None
            if isinstance(cause, ConnectionLostError):  # the one at the other end is to blame
                raise _WorkerLostError(self._lost(cause.rank, cause)) from None
            if isinstance(cause, RayError) and not isinstance(cause, RaySystemError):
                raise _WorkerLostError(self._lost(rank, cause)) from None
            raise ClusterError(
                f"{self._name(rank)} failed with {type(cause).__name__}: {_short(cause)}."
            ) from error
        except RayError as error:
            raise _WorkerLostError(self._lost(rank, error)) from None

    def _lost(self, rank: int, error: Exception) -> str:
        return f"{self._name(rank)} was lost after {self._last_pass()} ({_short(error)})."

    def _name(self, rank: int) -> str:
        place = self._places[rank]
        return f"Worker {rank}" if place is None else f"Worker {rank} ({place})"

    def _last_pass(self) -> str:
        return f"pass {self.reached[1]} of fit {self.reached[0] + 1}"

    def _tell(self, watch: Watch) -> None:
        """Pass the progress of the slowest worker on."""
        signs = [sign for sign in self._signs if sign is not None]
        if len(signs) < len(self._signs):
            return
        slowest = min(signs, key=lambda sign: (sign.index, sign.iteration))
        reached = slowest.index, slowest.iteration
        if reached != self.reached:
            self.reached = reached
            watch.passed(slowest.title, slowest.iteration, slowest.note)

    def _warn_of_failures(self, found: Sequence[Any]) -> None:
        """Warn once if the sign or the usage of a worker has a failed connection."""
        for rank, shown in enumerate(found):
            if not self._has_warned and shown is not None and shown.failures:
                self._has_warned = True
                other, reason = next(iter(shown.failures.items()))
                logger.warning(
                    "%s cannot connect to worker %d at %s. Arrays between them go through Ray, "
                    "which is slower. Open the ports between the nodes.",
                    self._name(rank), other, reason,
                )  # fmt: skip

    def _require_life(self, pulse: Pulse, pending: dict[Any, int]) -> None:
        silence, stall = self._engine.silence_seconds, self._engine.stall_seconds
        for rank in sorted(pending.values()):
            seconds = pulse.silent_seconds(rank)
            if seconds > silence:
                raise ClusterError(
                    f"{self._name(rank)} has given no sign of life for {seconds:.0f} s, since "
                    f"{self._last_pass()}. Check its node; the same fit with the same checkpoint "
                    "folder resumes."
                )
        if pulse.stalled_seconds > stall:
            rank = pulse.blocking_rank(sorted(pending.values()))
            raise ClusterError(
                f"{self._name(rank)} has kept the others waiting for {pulse.stalled_seconds:.0f} s,"
                f" since {self._last_pass()}. Check its node; the same fit with the same "
                "checkpoint folder resumes."
            )

    def end(self) -> None:
        """End all workers and free their CPUs."""
        import ray
        from ray.util.placement_group import remove_placement_group

        for worker in self.workers:
            ray.kill(worker)
        remove_placement_group(self._placement)


def _short(error: BaseException) -> str:
    """Return the message of an error on one line."""
    return " ".join(str(error).split())[:300]


def _share_cpus(engine: RayEngine, size: int | None, cpus: Sequence[float]) -> tuple[int, float]:
    """Return the number of workers and the CPUs of each: an equal share of a node."""
    cpus = [n for n in cpus if n > 0]
    size = max(len(cpus), 1) if size is None else size
    if engine.cpus_per_worker is not None or not cpus:
        return size, float(engine.cpus_per_worker or 1)
    share = min(cpus) / ceil(size / len(cpus))
    return size, float(int(share)) if share >= 1 else int(share * 100) / 100


def _node_cpus() -> list[float]:
    import ray

    return [node["Resources"].get("CPU", 0.0) for node in ray.nodes() if node["Alive"]]


def _joined(results: Sequence[tuple[Any, Ensemble]]) -> Ensemble:
    """Return one ensemble with the users of all workers in the order of the data."""
    ensembles = [ensemble for _, ensemble in results]
    order = np.argsort(np.concatenate([numbers for numbers, _ in results]))
    posteriors: list[Posterior] = []
    for fits in zip(*(ensemble.posteriors for ensemble in ensembles), strict=True):
        users = fits[0].users.joined(*(fit.users for fit in fits[1:]))
        if np.any(np.diff(order) != 1):
            users = users.at(order)
        # Joined with nothing, items are copied out of the object store, which ends with Ray.
        posteriors.append(Posterior(users, fits[0].items.joined()))
    return replace(ensembles[0], posteriors=tuple(posteriors))
