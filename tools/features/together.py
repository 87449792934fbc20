"""Reports a job whose ranks do not train one model together (--no_watch turns this off).

While ranks run, a forked child looks at them at intervals (tools/together/look.py), if their logs have grown.  It looks
after 20 seconds, and each time the job has run twice as long, at least every half hour.  So no process exists next to a
job that only waits.  If weights are saved into a folder that ranks share, the child stays for some saves, and observes
who writes.  The feature reports each finding once while the job runs, and in the report.  Findings do not change the
exit code.
"""

from __future__ import annotations

import json
import os
import re
import time

from tools.features.base import Feature
from tools.features.beside import Beside
from tools.launch.engines import joining
from tools.rank import likeness
from tools.supervise.members import SCHEDULER
from tools.supervise.proc import QUIET, ignore, signals
from tools.together import findings, hosts, look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.launch.run import Run
    from tools.supervise.events import Heard
    from tools.together.findings import Row

    Key = tuple[Any, ...]  # what a finding is about

SOONEST, LATEST = 20.0, 1800.0  # seconds between two looks
SAVES, LONGEST = 20, 600.0  # after so many, or so many seconds, the saves of weights are not observed
WITHIN = 10.0  # for the one at the end: on an idle machine it takes milliseconds
_TITLE = "mindspore-launch-watch"
_PART = 64 << 10  # bytes at both ends of a log, in which a job that trains has printed something of this
_SAYS = re.compile(rb"loss|rank_?size|world_?size|group_size|device_num|_exec_save|Rename failed", re.IGNORECASE)


class Together(Feature):
    """Its rows belong to the attempt that runs, or has ended."""

    name = "together"
    _beside: Beside | None = None

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._rows: list[Row] = []
        self._all: list[Row] = []  # of all attempts, for the report
        self._said: set[Key] = set()
        self._hosts: dict[str, dict[str, str]] = {}  # what they must have alike
        self._began = self._due = self._since = 0.0
        self._saves = 0  # so many were watched
        self._size = 0  # of the logs at the last look

    # ---- while the ranks run -----------------------------------------------------------------------------------------

    def begins(self) -> None:
        self._rows, self._hosts, self._size, self._saves = [], {}, 0, 0
        self._said.clear()
        self._since = time.time()
        self._began = self.run.world.now()
        self._due = self._began + SOONEST

    def check(self) -> None:
        now = self.run.world.now()
        if now < self._due or not self.run.supervisor.stopping.running:
            return
        self._due = now + min(LATEST, now - self._began)
        size = self._size_of_logs()
        if size > self._size and self._may_say() and (self._beside is None or not self._beside.lives()):
            self._size = size
            self._forget_child()
            self._beside = self._start(watches=0 if self._saves >= SAVES else min(LONGEST, self._due - now - 5))
            if self._beside:
                self._beside.hear(self.name)

    def heard(self, event: Heard) -> None:
        """Handles a finding, or at last whether a log has a loss."""
        if event.feature != self.name:
            return
        if event.line.startswith("has "):
            self._host_has(event.line)
            return
        is_on = self._take(event.line)
        if is_on:
            self._keep(self._apart(ended=False))
        self._tell()

    def _tell(self) -> None:
        """Reports what has not been said: the numbers of a finding change with each look."""
        rows = [row for row in findings.without_effects(self._rows) if _key(row) not in self._said]
        self._said.update(map(_key, rows))
        for line in findings.report(rows):
            self.run.say(line)

    def _keep(self, rows: list[Row]) -> None:
        """Takes these instead of earlier ones about the same."""
        new = set(map(_key, rows))
        self._rows = [row for row in self._rows if _key(row) not in new] + rows

    def _host_has(self, line: str) -> None:
        """Keeps what an agent reports about its host; compares the hosts when all of them have answered."""
        _, rank, text = line.split(" ", 2)
        member = self.run.supervisor.members.get(rank)
        if member is None:
            return
        self._hosts[member.host] = likeness.read(text)
        if len(self._hosts) == len(self.run.plan.sizes):
            self._compare_hosts()
            self._tell()

    def _compare_hosts(self) -> None:
        ranks: dict[str, list[int]] = {}
        for member in self.run.supervisor.members.ranks():
            ranks.setdefault(member.host, []).append(member.rank or 0)
        self._keep(hosts.differing(self._hosts, ranks))
        self._hosts = {}

    def attempt_ended(self) -> None:
        """Takes the last look, instead of one that has not finished."""
        if self._beside is not None:
            self._beside.kill()
        self._forget_child()

    def _forget_child(self) -> None:
        if self._beside is not None:
            self._beside.close()
            self._beside = None

    # ---- the end -----------------------------------------------------------------------------------------------------

    def outcome(self, outcome: dict[str, Any]) -> None:
        """Adds the last look; after a signal to the launcher it may not be waited for."""
        is_on = False
        if len(self._hosts) > 1:
            self._compare_hosts()
        if not self.run.supervisor.stopping.signal and self._may_say():
            is_on = self._look_again()
        self._keep(self._apart(ended=True, is_on=is_on))
        rows = findings.without_effects(self._rows)
        self._all += rows
        if rows:
            outcome["findings"] = rows

    def reported(self, trouble: str) -> None:
        for line in findings.report(self._all):
            self.run.say(line)

    def _look_again(self) -> bool:
        beside = self._start()
        if beside is None:
            return False
        beside.end_orders()
        return any([self._take(line) for line in beside.lines(WITHIN)])

    # ---- what both need ----------------------------------------------------------------------------------------------

    def _start(self, watches: float | None = None) -> Beside | None:
        """The child that looks; None where no more processes may be started: then nothing is found.

        watches: None at the end of an attempt; otherwise for how many seconds it may watch who saves weights.
        """
        run = self.run
        job = look.Job(
            logs=run.logs,
            ranks=[rank for rank, _ in run.plan.ranks],
            sizes=run.plan.sizes,
            mark=run.mark,
            words=run.trainer,
            runs=watches is not None,
            watches=watches or 0.0,
            since=self._since,
        )

        def child(orders: int, tells: int) -> None:
            ignore(signals.SIGTERM, *QUIET)
            if job.runs:
                os.nice(5)  # the ranks come first
            os.dup2(1, 2)  # the user does not need to know what cannot be looked at
            look.tell(tells, job.replace(lifeline=orders))

        try:
            return Beside(run.world, _TITLE, child)
        except OSError:
            return None

    def _take(self, line: str) -> bool:
        """Keeps the row, or the number of saves, that the line is; otherwise returns whether a log has a loss."""
        said = json.loads(line)
        if isinstance(said, bool):
            return said
        if isinstance(said, int):
            self._saves += said
            return False
        self._keep(findings.rows_of([said]))
        return False

    def _apart(self, *, ended: bool, is_on: bool = True) -> list[Row]:
        """Ranks that have not joined the cluster, as the log of its scheduler reports.

        Only those that use MindSpore count, and that have got somewhere: a log has a loss, or they have ended well.
        """
        run = self.run
        if b"MS_SIMULATION_LEVEL" in run.environment:
            return []
        try:
            seen = joining.read(os.path.join(run.logs, f"{SCHEDULER}.log"))
        except OSError:
            return []
        scheduler = run.supervisor.members.get(SCHEDULER)
        if scheduler and scheduler.status == 0:
            return []  # it ends by itself when all ranks have joined and left
        missing = (seen.loaded | self._forked()) - seen.connected
        if ended and not is_on:
            missing = {rank for rank in missing if self._ended_well(rank)}
        if not missing or seen.others:
            return []
        if not seen.connected:
            return [findings.row("alone", missing, number=sum(run.plan.sizes))]
        return [findings.row("not-joined", missing, others=findings.listed(seen.connected))]

    def _forked(self) -> set[int]:
        """Ranks that have MindSpore from their first moment: the scheduler looks too rarely to see a short one."""
        ranks = self.run.supervisor.members.ranks()
        return {member.rank or 0 for member in ranks if "mindspore" in member.imported}

    def _ended_well(self, rank: int) -> bool:
        member = self.run.supervisor.members.get(str(rank))
        return member is not None and member.status == 0

    def _logs(self) -> list[str]:
        """The logs of the first rank and of the last."""
        ranks = self.run.plan.ranks
        return [os.path.join(self.run.logs, f"rank_{rank}.log") for rank, _ in (*ranks[:1], *ranks[-1:])]

    def _size_of_logs(self) -> int:
        return sum(map(_size, self._logs()))

    def _may_say(self) -> bool:
        """Whether a look may find something: most jobs that end within a second have not trained."""
        return any(map(_says, self._logs()))


def _key(row: Row) -> Key:
    return row["kind"], *row["ranks"], row.get("path"), row.get("what")


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _says(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            if _SAYS.search(file.read(_PART)):
                return True
            file.seek(max(0, file.seek(0, os.SEEK_END) - _PART))
            return bool(_SAYS.search(file.read(_PART)))
    except OSError:
        return False
