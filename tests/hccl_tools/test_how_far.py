"""The line that says how far a long operation is: when it comes, what it says, and that it goes."""

import io
import os
import pty
import signal
import subprocess
import sys
import termios
import types

import pytest

from hccl_tools.common import how_far, language
from hccl_tools.common.colours import columns


class Terminal:
    """A terminal that keeps what it gets."""

    def __init__(self, width=80):
        self.width, self.seen, self.takes = width, [], True

    def columns(self):
        return self.width

    def write(self, text):
        if self.takes:
            self.seen.append(text)
        return self.takes

    def lines(self):
        return [text.removeprefix("\r").removesuffix("\x1b[K") for text in self.seen]


@pytest.fixture
def shown():
    """A terminal, its screen, and the clock, which a test moves; the screen's own thread finds nothing to do."""
    terminal, clock = Terminal(), types.SimpleNamespace(now=100.0)
    screen = how_far.Screen(terminal, lambda: clock.now)
    with how_far.showing(screen):
        yield types.SimpleNamespace(terminal=terminal, screen=screen, clock=clock)


def test_no_line_in_the_first_two_seconds_then_one_that_is_drawn_in_its_place_and_goes(shown):
    with how_far.doing("reads 3 logs", 3_000_000, in_bytes=True):
        how_far.more(1_500_000)
        shown.clock.now += 1.9
        shown.screen.draw()
        assert shown.terminal.seen == []
        shown.clock.now += 0.2
        shown.screen.draw()
        how_far.more(1_500_000)
        shown.screen.draw()
    assert shown.terminal.seen == [
        "\rreads 3 logs: 1.5 MB of 3.0 MB\x1b[K",
        "\rreads 3 logs: 3.0 MB of 3.0 MB\x1b[K",
        "\r\x1b[K",
    ]
    shown.screen.draw()
    assert len(shown.terminal.seen) == 3  # nothing is done now


def test_an_operation_that_is_short_leaves_no_trace(shown):
    with how_far.doing("asks 8 devices", 8):
        shown.screen.draw()
    how_far.clear()
    assert shown.terminal.seen == []


def test_the_innermost_work_is_shown_and_then_the_outer_one_again(shown):
    shown.clock.now += 5
    with how_far.doing("makes the page"):
        shown.screen.draw()
        with how_far.doing("reads the logs of 2 ranks", 2) as work:
            work.about = "rank_1.log"
            how_far.more()
            shown.screen.draw()
        shown.screen.draw()
    texts = ["makes the page", "reads the logs of 2 ranks: 1 of 2, rank_1.log", "", "makes the page", ""]
    assert shown.terminal.lines() == texts


@pytest.mark.parametrize("width", [0, 1, 10, 30])
def test_the_line_is_never_as_wide_as_the_terminal(shown, width):
    """In the last column some terminals go on to the next line."""
    shown.terminal.width = width
    shown.clock.now += 5
    with how_far.doing("读取 3 个日志 reads three logs", 3) as work:
        work.about = "rank\x1b[2J\n_1.log"
        shown.screen.draw()
    (text, _) = shown.terminal.lines()
    assert columns(text) <= max(0, width - 1) and text.isprintable()


def test_the_whole_is_never_less_than_what_is_done(shown):
    """A log grows while it is read."""
    work = how_far.Work("reads", 10)
    work.done = 12
    assert work.text() == "reads: 10 of 10"


def test_a_message_clears_the_line_first(shown):
    shown.clock.now += 5
    with how_far.doing("asks 8 hosts", 8):
        shown.screen.draw()
        how_far.clear()
        how_far.clear()
        assert shown.terminal.lines() == ["asks 8 hosts: 0 of 8", ""]


def test_a_terminal_that_takes_nothing_holds_nobody_up(shown):
    shown.terminal.takes = False
    shown.clock.now += 5
    with how_far.doing("asks 8 hosts", 8):
        shown.screen.draw()
    assert shown.terminal.seen == []


def test_after_an_exception_the_line_is_gone_and_the_next_command_has_its_own(shown):
    shown.clock.now += 5
    with pytest.raises(KeyboardInterrupt), how_far.doing("asks 8 hosts", 8):
        shown.screen.draw()
        raise KeyboardInterrupt
    assert shown.terminal.lines()[-1] == "" and shown.screen.works == []


def test_in_chinese(shown, monkeypatch):
    monkeypatch.setenv("LAUNCH_LANG", "zh")
    language.use("zh")
    try:
        assert how_far.Work("读取日志", 3).text() == "读取日志：0/3"
    finally:
        language.use("en")


def test_without_a_terminal_there_is_no_screen(monkeypatch):
    for stream in (None, io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        with how_far.showing(), how_far.doing("reads", 3) as work:
            how_far.more()
            assert not how_far.is_shown() and work.done == 0
    monkeypatch.setattr(sys, "stderr", types.SimpleNamespace(isatty=lambda: True, encoding="utf-8"))
    for term in ("dumb", ""):
        monkeypatch.setenv("TERM", term)
        with how_far.showing():
            assert not how_far.is_shown()


# ---- a file that is counted ------------------------------------------------------------------------------------------


def test_what_is_read_twice_counts_once(shown):
    with how_far.doing("reads", 10) as work:
        file = how_far.counted(io.BytesIO(b"0123456789"))
        assert file.read(4) == b"0123" and work.done == 4
        file.seek(0)
        assert file.read(6) == b"012345" and work.done == 6
        assert file.read() == b"6789" and work.done == 10
        assert file.tell() == 10


def test_a_file_that_nobody_looks_at_is_the_file():
    file = io.BytesIO()
    assert how_far.counted(file) is file


# ---- a real terminal -------------------------------------------------------------------------------------------------

COMMAND = """
import sys, time
sys.path.insert(0, sys.argv[1])
from hccl_tools.commands import boundary
from hccl_tools.common import how_far
how_far.AFTER = how_far.EVERY = 0.01

def work():
    with how_far.doing("waits", 7):
        how_far.more(3)
        time.sleep(60)

sys.exit(boundary.run("waits.py", work))
"""


def test_ctrl_c_leaves_a_clean_line(root):
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    words = [sys.executable, "-c", COMMAND, str(root)]
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    seen = b""
    while b"waits: 3 of 7" not in seen:
        seen += os.read(ours, 1024)
    process.send_signal(signal.SIGINT)
    try:
        while block := os.read(ours, 1024):
            seen += block
    except OSError:  # nobody has it open any more
        pass
    os.close(ours)
    assert process.wait(60) == 130
    assert seen.endswith(b"\rwaits: 3 of 7\x1b[K\r\x1b[Kwaits.py: interrupted\r\n"), seen


def test_a_terminal_without_a_size_and_one_that_is_stopped(monkeypatch):
    ours, theirs = pty.openpty()
    terminal = how_far.Terminal(theirs)
    assert terminal.columns() == 80  # a new one says 0
    assert terminal.write("\rtext")
    assert os.read(ours, 100) == b"\rtext"
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp() + 1)  # the command is in the background
    assert not terminal.write("\rmore")
    monkeypatch.undo()
    termios.tcflow(theirs, termios.TCOOFF)  # as Ctrl-S does
    assert not terminal.write("\rmore")
    termios.tcflow(theirs, termios.TCOON)
    assert terminal.write("\rmore")
    os.close(ours)
    assert not terminal.write("\rmore")  # nobody has the other end
    os.close(theirs)
