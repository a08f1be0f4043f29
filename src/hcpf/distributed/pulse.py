"""The signs of life of a group of Ray actors, asked for by the driver."""

import time
from collections.abc import Sequence
from typing import Any

from hcpf.distributed.actor import in_mail

TICK_SECONDS = 0.5
"""Seconds between two looks at the workers."""
_MAX_SIGNS_PER_SECOND = 100  # of all workers together


class Pulse:
    """The last sign of life of each worker."""

    def __init__(self, workers: Sequence[Any], silence_seconds: float) -> None:
        now = time.monotonic()
        self._workers, self._signs = workers, [None] * len(workers)
        self._asked: list[Any] = [None] * len(workers)
        self._seen_at, self._moved_at = [now] * len(workers), now
        self._interval = max(TICK_SECONDS, len(workers) / _MAX_SIGNS_PER_SECOND)
        self._interval = min(self._interval, silence_seconds / 4)
        self._ask_at = now

    def take(self) -> list[Any]:
        """Return the latest signs, and ask for new ones if it is time to."""
        import ray
        from ray.exceptions import RayError

        now = time.monotonic()
        open_questions = [asked for asked in self._asked if asked is not None]
        answered: set[Any] = set()
        if open_questions:
            answered |= set(ray.wait(open_questions, num_returns=len(open_questions), timeout=0)[0])
        for rank, asked in enumerate(self._asked):
            if asked in answered:
                self._asked[rank] = None
                try:
                    sign: Any = ray.get(asked)
                except RayError:
                    continue  # the error of its run has more to show
                before: Any = self._signs[rank]
                if before is None or sign.calls != before.calls:
                    self._moved_at = now
                self._signs[rank], self._seen_at[rank] = sign, now
        if now >= self._ask_at:
            self._ask_at = now + self._interval
            for rank, worker in enumerate(self._workers):
                if self._asked[rank] is None:
                    self._asked[rank] = in_mail(worker.sign).remote()
        return self._signs

    def silent_seconds(self, rank: int) -> float:
        """Return for how long a worker has given no sign of life."""
        return time.monotonic() - self._seen_at[rank]

    @property
    def stalled_seconds(self) -> float:
        """For how long no worker has completed a call."""
        return time.monotonic() - self._moved_at

    def blocking_rank(self, ranks: Sequence[int]) -> int:
        """Return a worker that waits for nobody, or else one that is waited for."""
        signs: list[tuple[int, Any]] = [(rank, self._signs[rank]) for rank in ranks]
        for rank, sign in signs:
            if sign is None or sign.waits_for is None:
                return rank
        return signs[0][1].waits_for
