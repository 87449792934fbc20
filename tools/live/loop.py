"""Shows a job until it ends: as a live screen on a terminal, otherwise as a line from time to time."""

from __future__ import annotations

import os
import signal
import sys
import time

from rich.console import Console

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import clauses, one_line
from tools.live import keys, screen, sentences
from tools.live.job import ENDED, LOST, RUNNING
from tools.live.keys import Keys
from tools.logs import log_tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from rich.text import Text

    from tools.live.watcher import View, Watcher

EVERY = 2.0  # seconds between two looks at least
SHARE = 0.01  # of a processor, for looking and drawing
_LONGEST = 60.0  # seconds between two looks at most
_FILE_WIDTH = 200  # columns if stdout is not a terminal
_SUMMARY = 40  # lines of ranks that stay on the terminal
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # the other screen, without a cursor
_HOME, _REST_OF_LINE, _REST = "\x1b[H", "\x1b[K", "\x1b[J"


class Beside(Record):
    """The launcher whose job is shown on its own terminal (--console table)."""

    control: int  # a pipe: its end is that of the attempt
    messages: str  # the file with the launcher's messages

    def newest(self) -> list[str]:
        """The last messages."""
        try:
            return log_tail.read(self.messages).lines
        except OSError:
            return []


class Looks:
    """Looks at the job as often as SHARE allows.  The first look reads more than the others, and does not count."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._counted: float | None = None  # seconds of processor time before the last pause

    def look(self) -> View:
        """The job now."""
        return self._watcher.look(time.monotonic(), time.time())

    def pause(self) -> float:
        """Seconds until the next look, by all that this process did since the last pause."""
        now = time.process_time()
        spent = 0.0 if self._counted is None else now - self._counted
        self._counted = now
        return min(_LONGEST, max(EVERY, spent / SHARE))


def console_for_stdout() -> Console:
    """rich's console without its own ideas about numbers and paths; a file is as wide as the table.

    The kernel tells a terminal's size at every moment.  COLUMNS and LINES, where some program exported them, are old.
    """
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
    is_terminal = sys.stdout.isatty()  # rich would take a file for one where FORCE_COLOR is set
    width = None if is_terminal else _FILE_WIDTH
    return Console(highlight=False, markup=False, emoji=False, force_terminal=is_terminal, width=width)


# --- without a terminal -----------------------------------------------------------------------------------------------


def follow(watcher: Watcher, every: float, say: Callable[[str], None]) -> View:
    """Prints a line every `every` seconds until the job has ended; returns its end."""
    looks, last = Looks(watcher), ""
    while True:
        view = looks.look()
        if view.job.state != RUNNING:
            return view
        parts = (sentences.title, sentences.where, sentences.numbers, sentences.trouble, sentences.clocks)
        line = clauses(*filter(None, (part(view) for part in parts)))
        if line != last:
            say(line)
        last = line
        time.sleep(max(every, looks.pause()))


# --- on a terminal ----------------------------------------------------------------------------------------------------


class Screen:
    """The live screen on the terminal of stdout."""

    def __init__(self, watcher: Watcher, console: Console, keys_fd: int | None, beside: Beside | None = None) -> None:
        """keys_fd: a terminal; beside: of the launcher that shows its own job."""
        self._looks, self._console, self._keys_fd, self._beside = Looks(watcher), console, keys_fd, beside
        watcher.keep_curve()
        self._picture = screen.Picture()
        self._log_of: int | None = None  # the rank whose log is shown

    def run(self) -> tuple[View, bool]:
        """Shows the job until it has ended or the person quits; (the last look, whether the person ended it)."""
        before = {number: signal.signal(number, _end) for number in (signal.SIGTERM, signal.SIGHUP)}
        stop = signal.signal(signal.SIGTSTP, self._stop)
        self._write(_ENTER)
        try:
            with Keys(self._keys_fd, self._beside.control if self._beside else None) as pressed:
                return self._loop(pressed)
        finally:
            self._write(_LEAVE)
            signal.signal(signal.SIGTSTP, stop)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _loop(self, pressed: Keys) -> tuple[View, bool]:
        while True:
            view = self._looks.look()
            self._draw(view)
            if view.job.state != RUNNING and not self._beside:
                return view, False
            end = time.monotonic() + self._looks.pause()
            while (left := end - time.monotonic()) > 0:
                key = pressed.wait(left)
                if key in (keys.QUIT, keys.CLOSED):
                    return view, key == keys.QUIT
                self._take(key)
                if time.monotonic() < end:  # else the next look draws
                    self._draw(view)

    def _take(self, key: str | None) -> None:
        picture, page = self._picture, max(1, len(self._picture.lines) - 1)
        steps = {keys.UP: -1, keys.DOWN: 1, keys.PAGE_UP: -page, keys.PAGE_DOWN: page}
        if key in steps:
            picture.choose(steps[key])
        elif key == keys.PROBLEMS:
            picture.only_problems, picture.chosen = not picture.only_problems, 0
        elif key == keys.ENTER:
            self._log_of = picture.rank
        elif key == keys.BACK:
            self._log_of = None

    def _draw(self, view: View) -> None:
        self._write(_HOME + self._rendered(self._lines(view)) + _REST)

    def _lines(self, view: View) -> list[Text]:
        row = next((row for row in view.rows if row.rank == self._log_of), None)
        if row is None:
            messages = self._beside.newest() if self._beside else []
            return screen.frame(view, self._picture, self._console, messages)
        try:
            lines = log_tail.read(row.place.log).lines
        except (OSError, ValueError) as error:
            lines = [tr("cannot be read: {reason}", reason=strerror(error))]
        return screen.log_frame(row.place.log, lines, *self._console.size)

    def _rendered(self, lines: Sequence[Text]) -> str:
        with self._console.capture() as capture:
            for number, line in enumerate(lines, 1):
                self._console.print(line, end="\n" if number < len(lines) else "", no_wrap=True, crop=False)
        return capture.get().replace("\n", f"{_REST_OF_LINE}\r\n") + _REST_OF_LINE

    def _write(self, text: str) -> None:
        """In one piece, so that no frame is seen half."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        """Ctrl-Z: the shell gets its own screen back, until it lets us go on."""
        self._write(_LEAVE)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._write(_ENTER)


def _end(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


# --- the end ----------------------------------------------------------------------------------------------------------


def show(view: View, console: Console) -> None:
    """Prints the job and its ranks, as they are now."""
    with console.capture() as capture:  # rich would end this process by itself if the output is not read
        for line in screen.summary(view, console, _SUMMARY if console.is_terminal else len(view.rows)):
            console.print(line, no_wrap=True, crop=False, soft_wrap=not console.is_terminal)
    print(capture.get(), end="", flush=True)


def status(view: View) -> tuple[int, str]:
    """(the exit code for the job's end, the message about it)."""
    folder = one_line(view.job.folder)
    if view.job.state == LOST:
        text = tr("{run}: its launcher wrote no outcome, and is gone; see the end of its logs", run=folder)
        return 1, text
    code = min(max(view.job.exit or 0, 0), 255)
    if view.job.state == ENDED and code:
        text = tr("the job ended with {code}; why: python tools/diagnose.py {run}", code=code, run=folder)
        return code, text
    return code, ""
