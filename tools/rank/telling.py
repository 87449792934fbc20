"""Sends an agent's reports to the launcher: lines that begin with the launch's secret, on stdout or in our pipe."""

from __future__ import annotations

import os
import sys

from tools.rank import places
from tools.supervise.events import LeftFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.rank.told import Told
    from tools.supervise.events import Left

MOST_WORDS = 200  # characters of a command


class Voice:
    """The way to the launcher."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._out = self._open(told["BUS"])
        self._seen: object = None  # the log at the last look

    def _open(self, pipe: str) -> int:
        if not pipe:
            return 1
        try:
            return os.open(pipe, os.O_WRONLY)
        except OSError:
            return os.open(os.devnull, os.O_WRONLY)  # the launcher is gone

    def tell(self, *words: object) -> None:
        """Sends one line, in one write, so that mpirun does not mix it with another rank's."""
        line = "\n." + self._told["SECRET"] + " " + " ".join(map(str, words)) + "\n"  # another's line may lack its end
        self._write(os.fsencode(line))

    def tell_exit(self, status: int, pid: int | None) -> None:
        """Reports the end of the trainer.  On the launcher's host also its process: msrun may have started another.

        pid: as told at its start, 0: the agent's; None: no start was told.
        """
        process = [] if pid is None or not self._told["BUS"] else [pid or os.getpid()]
        self.tell("exit", self._told.name, status, *process)

    def _write(self, line: bytes) -> None:
        try:
            os.write(self._out, line)
        except OSError:
            return  # the launcher or the engine is gone

    def tell_growth(self, log: str) -> None:
        """The launcher cannot see itself that the log grows.  A log that was removed does not show a hang."""
        try:
            about = os.stat(log)
        except OSError:
            self.tell("wrote", self._told.name)
            return
        seen = about.st_size, about.st_mtime_ns
        if seen != self._seen:
            self._seen = seen
            self.tell("wrote", self._told.name)

    def tell_left(self, event: Left | LeftFailed) -> None:
        """Reports what the trainer has left: a line for each process, then that these are all."""
        name = self._told.name
        if isinstance(event, LeftFailed):
            self.tell("failed", name, event.pid, _in_one_line(event.words))
            return
        for pid, group, words in event.rows:
            self.tell("left", name, pid, group, _in_one_line(words))
        self.tell("waits", name, event.ends)

    def tell_stack(self, trainer: int) -> None:
        """Reports where the trainer is, by tools/diagnosis/stacks.py, which writes the stack next to the log."""
        import subprocess  # only a job that hangs needs it

        told = self._told
        program = os.path.join(sys.path[0], "tools", "diagnosis", "stacks.py")
        words = [told["PYTHON"], program, told["LOGS"], f"{told.name}={trainer}"]
        said = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        _, _, place = os.fsdecode(said.stdout).strip().partition(": ")
        self.tell("stack", told.name, place)

    def tell_away(self, log: str, trainer: int) -> None:
        """Sends what the launcher's host cannot read of a failed rank: the end of its log, and CANN's errors."""
        from tools.output import lines
        from tools.rank import plog_errors

        told = self._told
        folder = places.Plogs(told["PLOGS"], told["LOGS"]).folder(told.name)
        since = os.path.join(told["LOGS"], f"rank_{told.name}.env")
        begin_of = f"\n.{told['SECRET']} %s {told.name} "
        for word, texts in (
            ("line", lines.tail(log)),
            ("plog", plog_errors.of_rank(folder, trainer, since) if folder else []),
        ):
            for text in texts:
                self._write(os.fsencode(begin_of % word) + text.replace(b"\n", b" ") + b"\n")


def _in_one_line(words: str) -> str:
    """The words of a command, as far as they name it."""
    return words[:MOST_WORDS].rstrip("\0").replace("\0", " ").replace("\n", " ")
