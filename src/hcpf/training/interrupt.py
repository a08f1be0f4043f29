"""Ctrl-C as a request to end a fit early."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager


class Interrupt:
    """Whether Ctrl-C has asked for the end of a fit."""

    is_requested = False

    def stop_requested(self) -> bool:
        """Return whether the fit is to end after the current pass."""
        return self.is_requested


@contextmanager
def interruptible() -> Generator[Interrupt]:
    """Turn the first Ctrl-C in the block into a request to stop; a second one raises."""
    interrupt = Interrupt()
    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not is_ours:  # another handler of Ctrl-C is installed: keep it
        yield interrupt
        return

    def ask(_number: int, _frame: object) -> None:
        if interrupt.is_requested:
            raise KeyboardInterrupt
        interrupt.is_requested = True

    signal.signal(signal.SIGINT, ask)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
