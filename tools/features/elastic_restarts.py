"""Restarts a job that has lost a host: on the hosts that are left, or with a spare one in its place.

After an attempt in which the engine may have lost a host, tools/launch/hosts/elastic.py makes another plan while
nothing runs.  It takes the hosts from launch.json, queries those that are left, and repeats the checks of the launch.
If such a plan is impossible, it reports the reason, and the job ends with its failure.
"""

from __future__ import annotations

import os
import pickle

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal
from tools.features.base import Feature
from tools.launch import plan as planning
from tools.launch.hosts import elastic
from tools.launch.planned import Plan
from tools.supervise import proc
from tools.supervise.proc import signals

WITHIN = 5.0  # seconds in which the process that makes the plan ends after Ctrl-C


class ElasticRestarts(Feature):
    """Plans without the hosts that are lost."""

    def __init__(self, run) -> None:  # type: ignore[no-untyped-def]
        super().__init__(run)
        self._plan: Plan | None = None  # the next attempt's; None: the plan stays as it is
        self._first: dict[str, str] = {}  # logs of an attempt that failed -> the host of the rank that failed first

    def may_restart(self, number: int) -> bool:
        """Makes the plan if a host is lost; False if there can be none, or if something ends the job meanwhile."""
        run, supervisor = self.run, self.run.supervisor
        self._plan = None
        self._note_first()
        lost = run.hooks.look_for_lost_host()
        if not lost and not any(member.lost for member in supervisor.members) and not run.engine.knows_hosts:
            return True
        supervisor.stopping.again()  # so that a signal, or the --timeout, ends the wait below
        supervisor.limits.again()
        path = os.path.join(run.plan.run_dir, f"restart_{number}", "plan")
        maker = run.world.fork(lambda: self._make(number, lost, path))
        if supervisor.guardian:
            supervisor.guardian.tell(b"start", maker)
        if not supervisor.wait_until(lambda: not run.world.lives(maker)):
            run.world.signal_group(maker, signals.SIGINT)
            if not run.world.await_end(maker, WITHIN):
                run.world.signal_group(maker, signals.SIGKILL)
                run.world.await_end(maker, WITHIN)
        if supervisor.guardian:
            supervisor.guardian.tell(b"gone", maker)
        status = run.world.status(maker)
        if status not in (0, REFUSED, USAGE) and supervisor.stopping.running:
            run.say(tr("no restart {number}: the process that plans it failed or was killed", number=number))
        if status or not supervisor.stopping.running:
            supervisor.stopping.soon()  # the attempt has ended as it was: members that we stopped are shown so
            return False
        self._plan = self._read(number, path)
        return True

    def _make(self, number: int, lost: str, path: str) -> None:
        """In a process of its own, which may wait for hosts: writes the plan, if another one is needed."""
        proc.retitle(b"mindspore-launch-plan")
        signals.signal(signals.SIGINT, signals.default_int_handler)
        request = self.run.plan.request.replace(attempt=number, run_dir=self.run.plan.run_dir, lost=lost)
        try:
            remarks, plan = elastic.begin(request, planning.make)
        except Refusal as refusal:
            for line in refusal.lines:
                self.run.say(line)
            os._exit(refusal.status)
        except KeyboardInterrupt:
            os._exit(130)
        for remark in remarks:
            self.run.say(remark)
        if plan is not None:
            with open(path, "wb") as file:
                pickle.dump(plan, file)

    def _read(self, number: int, path: str) -> Plan | None:
        """The plan that this launcher's own child has written for this restart, in a folder of this user."""
        try:
            with open(path, "rb") as file:
                found: Plan = pickle.load(file)
            os.unlink(path)
        except FileNotFoundError:
            return None
        return found

    def next_plan(self) -> None:
        if self._plan is not None:
            self.run.plan, self._plan = self._plan, None

    def reported(self, trouble: str) -> None:
        """Names the hosts that the job has lost, and one whose ranks failed first in every attempt."""
        for lost in self.run.plan.lost:
            host, _, reason = lost.partition(" ")
            self.run.say(
                tr(
                    "the job continued without {host} ({reason}); check that host before you use it again",
                    host=host,
                    reason=reason,
                )
            )
        self._note_first()
        hosts = set(self._first.values())
        if len(self._first) > 1 and len(hosts) == 1 and "" not in hosts:
            self.run.say(
                tr(
                    "in each of the {number} failed attempts, a rank on {host} failed first; check that host, or"
                    " exclude it",
                    number=len(self._first),
                    host=hosts.pop(),
                )
            )

    def _note_first(self) -> None:
        """Adds the host of the rank that failed first in this attempt."""
        first = self.run.supervisor.judge.first
        if first is not None:
            self._first[self.run.logs] = first.host
