"""Watches the rank table of a launcher in a pod: an operator may write it again, because the job moves.

tools/launch/pods/pod_watch.py runs next to the launcher and looks at the table.
"""

from __future__ import annotations

import os

from tools.features.beside import Beside
from tools.features.hosts_attempts import HostsAttempts
from tools.launch.pods import pod_watch
from tools.supervise.events import Heard
from tools.supervise.proc import QUIET, ignore


class PodTable(HostsAttempts):
    """Ends the job on an operator's order, in the same way as a verdict of another host does."""

    name = "pod"

    def opened(self) -> None:
        table = self.run.plan.watched_table
        assert table is not None  # or the launch has no such feature
        launcher = os.getpid()

        def child(orders: int, tells: int) -> None:
            ignore(*QUIET)
            os.dup2(tells, 1)
            pod_watch.begin(launcher, table.path, table.digest)

        self._watcher = Beside(self.run.world, "mindspore-launch-table", child)
        self._watcher.hear(self.name)
        self._alone = self.run.plan.agreement is None

    def is_ready(self) -> bool:
        return True

    def stops(self) -> None:
        return

    def attempt_ended(self) -> None:
        return

    def check(self) -> None:
        self._watcher.wake()

    def heard(self, event: Heard) -> None:
        if event.feature != self.name:
            return
        if event.line.startswith("say "):
            self.run.say(event.line[len("say ") :])
        elif self._alone:  # else the feature of the other hosts hears it
            super().heard(event)

    def finishing(self) -> None:
        self._watcher.kill()
        self._watcher.close()
