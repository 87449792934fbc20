"""--straggler and --metrics: one process next to the launcher reads the ranks' logs, for all attempts.

tools/monitor names slow ranks on stderr itself, because a blocked terminal must not stop the launcher.  The slow ranks
for the report are in a file of the run folder.  So they are known even if the process is killed.
"""

from __future__ import annotations

import contextlib
import os

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.words import one_line
from tools.diagnosis import slow_ranks
from tools.features.base import Feature
from tools.features.beside import Beside
from tools.launch import monitored
from tools.monitor import main as monitor
from tools.supervise.proc import QUIET, ignore, signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

    from tools.launch.run import Run
    from tools.supervise.members import Member

PATIENCE = 10.0  # seconds that it may take at the end; with many ranks more
MOST_FAILURES = 1000  # that it is told: with --keep_going thousands may fail


class Metrics(Feature):
    """The process, and its findings."""

    _beside: Beside | None = None
    _told = 0
    _slow: list[Any] = []

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._port = monitored.address(run.settings.metrics or "")
        if self._port:
            from tools.monitor import served  # noqa: F401 - loaded before the ranks start

    def opened(self) -> None:
        """With a port it answers from now on, even while the launch waits for other hosts."""
        if not self._port:
            return
        try:
            listener = monitored.listen(*self._port)
        except OSError as error:
            place, reason = self.run.settings.metrics, strerror(error)
            self.run.say(tr("--metrics {place}: nobody can listen there: {reason}", place=place, reason=reason))
            return
        self._start(listener)
        listener.close()

    def begins(self) -> None:
        """Call it after the screen's, which may change how messages begin."""
        if self._beside is None:
            self._start()
        if self._beside:
            self._beside.order(f"attempt {self.run.attempt}")

    def _start(self, listener: socket.socket | None = None) -> None:
        run, settings = self.run, self.run.settings
        file = "" if self._port else settings.metrics or ""
        words = [str(os.getpid()), run.plan.run_dir, run.mark, settings.straggler or "", file]
        words += [run.voice.name, run.voice.before]
        if listener:
            words += [str(listener.fileno()), str(settings.stall_timeout)]

        def child(orders: int, tells: int) -> None:
            # A batch system signals all processes of a job, but the state at its end is still to be written.
            ignore(signals.SIGTERM, *QUIET)
            os.dup2(orders, 0)
            monitor.main(words)

        self._beside = Beside(run.world, "mindspore-launch-metrics", child)

    def healed(self, member: Member) -> None:
        """A rank that TaskD starts again takes long to its first step, and the others wait for it."""
        if self._beside:
            self._beside.order("again")

    def failed(self, member: Member, goes_on: bool) -> None:
        self._told += 1
        if self._beside and self._told <= MOST_FAILURES:
            self._beside.order(f"failed {member.name} {member.status}")

    def settle(self, status: int) -> None:
        """Reports the job's end to the process, which looks once more; that takes milliseconds."""
        if self._beside is None:
            return
        run, beside = self.run, self._beside
        beside.order(f"end {status}")
        if not run.world.await_end(beside.pid, PATIENCE + len(run.plan.ranks) / 1000):
            beside.kill()
            run.say(
                tr("the process of --straggler and --metrics did not end and was killed; its output may be outdated")
            )
        elif run.world.status(beside.pid) != 0:
            run.say(tr("the process of --straggler and --metrics was ended before the job; its output may be outdated"))
        beside.close()

    def outcome(self, outcome: dict[str, Any]) -> None:
        """Adds the ranks that --straggler has named; none if their file is missing."""
        if not self.run.settings.straggler or self._beside is None:
            return
        with contextlib.suppress(OSError, ValueError):
            self._slow = slow_ranks.read(self.run.plan.run_dir)
            if self._slow:
                outcome["stragglers"] = self._slow

    def reported(self, trouble: str) -> None:
        """Names them; if they are in launch.json, their own file can go."""
        if not self._slow:
            return
        for line in slow_ranks.report(self._slow):
            self.run.say(one_line(line))
        if not trouble:
            with contextlib.suppress(OSError):
                os.unlink(slow_ranks.path(self.run.plan.run_dir))
