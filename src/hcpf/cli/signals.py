"""SIGTERM and SIGHUP: end like Ctrl-C, so that files in the making are removed."""

import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import FrameType

_SIGNALS = ("SIGTERM", "SIGHUP")  # Windows has the first only


class Terminated(BaseException):
    """A signal asked the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


@contextmanager
def raise_on_termination() -> Generator[None]:
    """Raise `Terminated` in the block when a signal asks the process to end.

    A signal that is ignored stays so: ``nohup`` ignores SIGHUP.
    """
    before = {}
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            with suppress(ValueError):  # not in the main thread
                before[number] = signal.signal(number, _raise)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # once is enough: the cleaning up is not to be disturbed
    raise Terminated(number)
