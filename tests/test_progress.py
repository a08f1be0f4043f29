"""Progress bars in a terminal of 80 columns."""

import io
import re
import sys
from contextlib import suppress

import pytest

from hcpf._progress import progress_bar

LONG = "inverse gaussian hurdle per user and item; best of 11: inverse gaussian per user and item"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def last_frame(monkeypatch):
    """Show a bar that ends, or fails after its steps, and return its last frame."""

    def go(n_steps, total, note="", *, fails=False, **options):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setenv("TERM", "xterm")
        with (
            suppress(ZeroDivisionError),
            progress_bar(True, "Choosing the element", total, **options) as advance,
        ):
            for _ in range(n_steps):
                advance(1, note)
            if fails:
                raise ZeroDivisionError
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
        return [line for line in re.split(r"[\r\n]+", shown) if line.strip()][-1]

    return go


def test_a_long_note_is_cut_but_no_number(last_frame):
    frame = last_frame(3, 4, LONG)
    assert re.match(r"Choosing the element ━{10} 100% 0:00:\d\d 0:00:\d\d inverse.*…$", frame)
    assert len(frame) <= 80


def test_a_short_note_leaves_room_for_the_bar(last_frame):
    assert re.match(r"Choosing the element ━{30,} 100% .* 0.5$", last_frame(4, 4, "0.5").strip())


def test_a_bar_whose_steps_were_underestimated_is_not_full_before_the_end(last_frame):
    assert " 75% " in last_frame(3, 2, fails=True, is_estimate=True)
    assert "100% " in last_frame(3, 2, is_estimate=True)


def test_the_time_left_is_not_shown_for_uneven_steps(last_frame):
    assert len(re.findall(r"\d:\d\d:\d\d", last_frame(2, 4, is_even=False))) == 1
    assert len(re.findall(r"\d:\d\d:\d\d", last_frame(2, 4))) == 2
