"""Observes the ranks of a job: names slow ones, and writes the metrics."""

from __future__ import annotations

import os
import time

from hccl_tools.common import documents, utc
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.refusal import Refusal
from hccl_tools.common.words import named, one_line
from tools.diagnosis import slow_ranks
from tools.launch import record
from tools.monitor import metrics
from tools.monitor.formats import Foreign
from tools.monitor.living import Living
from tools.progress import slowness
from tools.progress.ranks import Ranks
from tools.progress.slowness import Stragglers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tools.monitor.formats import MetricsFile
    from tools.monitor.served import Served
    from tools.progress.ranks import RankProgress
    from tools.progress.slowness import Pace
    from tools.progress.tails import Patterns

MOST_LINES = 20  # about slow ranks
MANY_STEPS = 100  # after so many of one rank all others have printed something


class Monitor:
    """One job, from its first attempt to its end."""

    def __init__(
        self,
        run_dir: str,
        mark: str,
        patterns: Patterns,
        say: Callable[[str], None],
        factor: float | None = None,
        file: MetricsFile | None = None,
        served: Served | None = None,
    ) -> None:
        """mark: LAUNCH_JOB of the job's processes; factor: of --straggler; file, served: of --metrics."""
        self._run_dir, self._mark, self._patterns = run_dir, mark, patterns
        self._say, self._factor, self._file, self._served = say, factor, file, served
        self._job = Job(run_dir, {})
        self._attempt = 0
        self._ranks = Ranks((), patterns)
        self._living = Living(mark, {})
        self._stragglers = Stragglers(factor or 0)
        self._rows: dict[int, dict[str, Any]] = {}  # of this plan's ranks that were named
        self._earlier: list[dict[str, Any]] = []  # of ranks that were elsewhere then
        self._failure: metrics.Failure | None = None
        self._told_of_unseen = False
        self._compared = False  # whether there ever was a step time to compare
        self._said: set[str] = set()
        self._paces: dict[int, Pace] = {}

    def begin(self, attempt: int) -> None:
        """An attempt begins; 0 is the first.  After the loss of a host it has another plan."""
        try:
            job = Job(self._run_dir, record.read(self._run_dir))
        except Refusal as refusal:
            self._say_once(str(refusal))
            job = self._job
        if job.places != self._job.places:
            self._earlier += self._rows.values()
            self._rows, self._stragglers = {}, Stragglers(self._factor or 0)
        else:
            self._stragglers.again()
        self._job, self._attempt = job, attempt
        self._ranks = job.ranks(attempt, self._patterns)
        self._living = Living(self._mark, job.host_of)
        self.started_again()

    def started_again(self) -> None:
        """Ranks begin, or one of them does once more: until its first step it may take long."""
        if self._served:
            self._served.begin()

    def failed(self, member: str, status: int) -> None:
        """A member of the job has failed: a rank's number, or another name."""
        rank = int(member) if member.isdecimal() and len(member) < 10 else -1
        _, host = self._job.places.get(rank, ("", self._job.host))
        self._failure = metrics.Failure(member, host, status, self._attempt)

    def look(self, happened: bool = False, ended: int | None = None) -> None:
        """Takes what is new.  happened: the job is in another state; ended: with this exit code."""
        now = time.monotonic()
        grown = self._ranks.look(now)
        seen = [one for one in self._ranks.by_rank.values() if one.values]
        self._paces = slowness.paces(seen, self._job.host_of)
        self._compared = self._compared or bool(self._paces)
        if self._factor is not None:
            self._name(grown)
            self._tell_of_unseen()
        if self._file and (happened or self._file.is_due(now)):
            self._write(self._file, now, ended)
        if self._served:
            self._served.look(self._ranks.by_rank.values(), bool(grown))
            self._served.take(metrics.families(self._facts(now, ended)))
        if ended is not None and self._factor is not None:
            self._end(ended)

    def _name(self, grown: list[RankProgress]) -> None:
        """Reports which ranks are slow, each once."""
        new = self._stragglers.update(grown, self._paces)
        if not new:
            return
        told = len(self._earlier) + len(self._rows)
        for rank, pace in new:
            self._rows[rank] = self._row(rank, pace)
        self._save()
        for rank, _ in new[: max(0, MOST_LINES - told)]:
            self._say(slow_ranks.says(self._rows[rank]))
        if told + len(new) > MOST_LINES:
            self._say_once(tr("more ranks are slow; the report at the end names them"))

    def _row(self, rank: int, pace: Pace) -> dict[str, Any]:
        _, host = self._job.places[rank]
        steps = self._stragglers.steps[rank]
        return slow_ranks.row(rank, self._job.device(rank), host, self._attempt, pace, steps)

    def _save(self) -> None:
        try:
            slow_ranks.save(self._run_dir, [*self._earlier, *self._rows.values()])
        except OSError as error:
            self._say_once(tr("--straggler: the report at the end may lack a rank: {reason}", reason=strerror(error)))

    def _tell_of_unseen(self) -> None:
        """Reports which ranks have no numbers, once others have done many steps.  Their logs may be on other hosts."""
        ranks = self._ranks.by_rank.values()
        if self._told_of_unseen or not any(one.steps_done >= MANY_STEPS for one in ranks):
            return
        self._told_of_unseen = True
        unseen = [one.rank for one in ranks if not one.values]
        if unseen:
            who = named("rank", unseen)
            self._say(tr("--straggler does not see {ranks}: no log here has their numbers", ranks=who))

    def _end(self, ended: int) -> None:
        """The job has ended: keeps the longest time and the worst factor of each slow rank."""
        if self._rows:
            for rank, pace in self._stragglers.worst.items():
                self._rows[rank] = {**self._row(rank, pace), "attempt": self._rows[rank]["attempt"]}
            self._save()
        if not self._compared and not ended:
            text = tr("--straggler had nothing to compare: no two logs have the time of a step; see docs/metrics.md")
            self._say_once(text)

    def _write(self, file: MetricsFile, now: float, ended: int | None) -> None:
        """Writes the metrics; the job goes on, whatever comes."""
        try:
            file.write(metrics.families(self._facts(now, ended)), now)
        except Foreign as foreign:
            self._say_once(f"--metrics {file.path}: {foreign}")
        except OSError as error:
            text = tr(
                "--metrics {path}: cannot be written: {reason}; the job goes on",
                path=one_line(file.path),
                reason=strerror(error),
            )
            self._say_once(text)
        if file.shared:
            path = one_line(file.path)
            self._say_once(tr("--metrics {path}: another launch writes to it, too; each needs its own", path=path))

    def _facts(self, now: float, ended: int | None) -> metrics.Facts:
        job, today = self._job, time.time()
        return metrics.Facts(
            run=job.run,
            script=job.script,
            host=job.host,
            device_target=job.device_target,
            started=job.started,
            now=today,
            clock=now,
            restarts=self._attempt,
            failure=self._failure,
            ended=None if ended is None else (today, ended),
            places=job.places,
            ranks=self._ranks.by_rank,
            runs=self._living.look(now),
            paces=self._paces,
            stragglers=len(self._earlier) + len(self._rows),
        )

    def _say_once(self, text: str) -> None:
        if text not in self._said and len(self._said) < MOST_LINES:
            self._said.add(text)
            self._say(text)


class Job:
    """The job as launch.json has it for the plan in force, whatever the document holds."""

    def __init__(self, run_dir: str, document: dict[str, Any]) -> None:
        self.run_dir, self.run = run_dir, os.path.basename(run_dir)
        self.script = _as_text(document.get("script"))
        self.host = _as_text(document.get("host"))
        self.device_target = _as_text(document.get("device_target"))
        self.started = utc.seconds(document.get("started"))
        self.places = {  # rank: its device and host
            row["rank"]: (_as_text(row.get("device")), _as_text(row.get("host")) or self.host)
            for row in documents.objects(document, "ranks")
            if type(row.get("rank")) is int
        }

    @property
    def host_of(self) -> dict[int, str]:
        """The host of each rank."""
        return {rank: host for rank, (_, host) in self.places.items()}

    def device(self, rank: int) -> int:
        """The number of a rank's device."""
        text = self.places[rank][0]
        return int(text) if text.isdecimal() and len(text) < 10 else 0

    def ranks(self, attempt: int, patterns: Patterns) -> Ranks:
        """The logs of an attempt; 0 is the first."""
        folder = os.path.join(self.run_dir, f"restart_{attempt}") if attempt else self.run_dir
        return Ranks(((rank, os.path.join(folder, f"rank_{rank}.log")) for rank in self.places), patterns)


def _as_text(value: object) -> str:
    return str(value) if isinstance(value, (str, int)) else ""
