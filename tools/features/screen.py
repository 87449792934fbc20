"""Shows the ranks' output on stdout while they run: tools/output/console.py follows logs, tools/live draws the table.

The table uses the whole terminal.  So messages for stderr go into a file of the run meanwhile.  The screen shows its
last lines, and writes all of it to stderr when it ends.  Keys reach the screen because it stays in the launcher's
process group.
"""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from tools.features.base import Feature
from tools.output import console
from tools.supervise import proc
from tools.supervise.proc import ignore, signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.launch.run import Run

TABLE = "table"
_USUAL = b"\x1b[?25h\x1b[?1049l"  # the cursor, and the usual screen
_CLEAR = "\r\x1b[K"


class Screen(Feature):
    """The reader of this attempt: a process that ends with the pipe `_control`, so a blocked terminal never blocks the
    launcher."""

    _control = -1
    _pid = 0
    _stderr = -1  # a copy of the launcher's stderr, while that is a file of the run
    _unread = -1  # that file: what is behind its place has not been on stderr; the screen's process shares the place

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.shows = run.settings.console
        if self.shows == TABLE and not self._can_draw():
            self.shows = "0"
        if self.shows == TABLE:
            from tools.live import beside

            self._live = beside

    def _can_draw(self) -> bool:
        """Whether there can be a live table; states why not."""
        if not os.isatty(1) or os.environ.get("TERM", "dumb") == "dumb":
            self.run.note(tr("--console table needs a terminal; showing rank 0's log instead"))
            return False
        try:
            import rich  # noqa: F401
            import yaml  # noqa: F401
        except ImportError:
            self.run.note(tr("--console table needs the Python packages rich and PyYAML; showing rank 0's log instead"))
            return False
        return True

    def begins(self) -> None:
        if not self.run.plan.ranks:
            return
        control, self._control = os.pipe()
        self.run.world.own(self._control)
        if self.shows == TABLE:
            self._begin_table(control)
        else:
            self._begin_reader(control)
        os.close(control)

    def _begin_reader(self, control: int) -> None:
        run = self.run
        numbers = [rank for rank, _ in run.plan.ranks]
        if self.shows == "all":
            shown, why = console.shown(numbers)
            if why:
                run.say(why)
        else:
            shown = self._chosen(numbers)
        logs = [os.path.join(run.logs, f"rank_{rank}.log") for rank in shown]
        for log in logs:
            _touch(log)

        def child() -> None:
            proc.retitle(b"mindspore-launch-console")
            console.follow(logs, list(shown), control, len(numbers), run.voice.name)

        self._pid = run.world.fork(child)
        if len(shown) == 1 and os.isatty(1) and os.isatty(2) and os.environ.get("TERM", "dumb") != "dumb":
            run.voice.before = _CLEAR

    def _chosen(self, numbers: list[int]) -> list[int]:
        """The ranks that --console names; 0 is the first rank of this launcher, if it has not number 0 itself."""
        wanted = {int(number) for number in self.shows.split(",")}
        if numbers[0] != 0 and wanted == {0}:
            return numbers[:1]
        chosen = [number for number in numbers if number in wanted]
        if not chosen:
            self.run.note(
                tr(
                    "--console {ranks}: no such rank runs here; showing rank {rank}",
                    ranks=self.shows,
                    rank=numbers[0],
                )
            )
        return chosen or numbers[:1]

    def _begin_table(self, control: int) -> None:
        run = self.run
        path = os.path.join(run.plan.run_dir, "messages.txt")
        messages = -1
        try:
            messages = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            if self._unread < 0:
                self._unread = os.open(path, os.O_RDONLY)
        except OSError:
            pass  # a full disk: messages come between the frames
        unread = str(self._unread) if self._unread >= 0 else ""

        def child() -> None:
            ignore(signals.SIGINT, signals.SIGQUIT, signals.SIGTTOU, signals.SIGXFSZ)
            proc.retitle(b"mindspore-launch-screen")
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            self._live.main([str(control), run.plan.run_dir, path, unread])

        self._pid = run.world.fork(child, group=False)
        if messages >= 0:
            self._stderr = os.dup(2)
            run.world.own(self._stderr)
            os.dup2(messages, 2)
            os.close(messages)

    def attempt_ended(self) -> None:
        """Waits until everything is shown; a signal ends the wait.

        If the screen was killed, the messages in its file come now.
        """
        if not self._pid:
            return
        world, pid, self._pid = self.run.world, self._pid, 0
        world.disown(self._control)
        world.kill(pid, signals.SIGCONT)  # wakes a reader that was stopped
        if not world.await_shown(pid):
            world.kill(pid, signals.SIGTERM)
        self.run.voice.before = ""
        if self._unread < 0:
            return
        self._own_stderr()
        if world.status(pid) != 0:
            os.write(1, _USUAL)
        self.fell_silent()

    def _own_stderr(self) -> None:
        """stderr is stderr again."""
        if self._stderr >= 0:
            os.dup2(self._stderr, 2)
            self.run.world.disown(self._stderr)
            self._stderr = -1

    def fell_silent(self) -> None:
        """Writes to stderr what came into the file since then, from the process of --straggler say."""
        if self._unread < 0:
            return
        try:
            while block := os.read(self._unread, 1 << 16):
                os.write(2, block)
        except OSError:
            return


def _touch(log: str) -> None:
    """The log is there before its rank; if that fails, the rank reports it."""
    try:
        os.close(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666))
    except OSError:
        return
