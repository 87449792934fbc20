"""Watches CANN's own logs, the plogs, while the job runs.

Reports faults that training survives (--watch_plogs), and who waits for whom when the job hangs.
"""

from __future__ import annotations

import os
import time

from tools.features.base import Feature
from tools.features.beside import Beside, say_all
from tools.supervise.proc import QUIET, ignore, signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.launch.run import Run

PATIENCE = 10.0  # seconds for the report of a job that hangs
LAST_LOOK = 1.0
AROUND = 600  # seconds before a hang whose events count, too


class PlogWatch(Feature):
    """tools/diagnosis/watch_plogs.py follows the plogs of an attempt and writes its lines to stderr itself, because a
    terminal that takes nothing must not stop the launcher."""

    _beside: Beside | None = None

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        if run.settings.watch_plogs:
            from tools.diagnosis import watch_plogs

            self._watch = watch_plogs
        if run.settings.hang_timeout:
            from tools.diagnosis import plogs_now

            self._now = plogs_now

    def begins(self) -> None:
        run = self.run
        if not run.settings.watch_plogs:
            return
        launcher, since = os.getpid(), int(time.time())
        words = [str(launcher), str(since), run.plan.run_dir, run.logs, run.voice.name, run.voice.before]

        def child(orders: int, tells: int) -> None:
            ignore(*QUIET)
            self._watch.main(words)

        self._beside = Beside(run.world, "mindspore-launch-plogs", child)

    def attempt_ended(self) -> None:
        """Takes a last look, which takes milliseconds.  If that is impossible, it ends at once."""
        if self._beside is None:
            return
        beside, self._beside = self._beside, None
        beside.kill(signals.SIGTERM)
        beside.wake()
        if not self.run.world.await_end(beside.pid, LAST_LOOK):
            beside.kill()
        beside.close()

    def hangs(self) -> None:
        """The root among the ranks, and their last events."""
        run = self.run
        words = [run.plan.run_dir, run.logs, str(run.settings.hang_timeout + AROUND)]
        say_all(run, "mindspore-launch-plogs", lambda _, tells: self._now.tell(tells, words), PATIENCE)
