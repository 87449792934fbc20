"""--max_restarts: stops restarts that do not help; delays a restart until nothing of the last attempt is left.

A process next to the launcher (restarts_child.py) reads how far each attempt came, and looks at this host.  This module
decides what that means.  In a job whose hosts have a launcher each, the host of rank 0 decides (hosts_attempts.py).
"""

from __future__ import annotations

import json

from hccl_tools.common import colours
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.words import clauses, one_line, short_path
from tools.attempts.count import Count
from tools.attempts.verdict import exhausted
from tools.features import restarts_facts
from tools.features.base import Feature
from tools.features.beside import Beside
from tools.output import attempts_table, report
from tools.supervise.proc import QUIET, ignore, signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.launch.run import Run
    from tools.supervise.events import Heard

LOOK_WITHIN = 10.0  # seconds; it reads no more of logs than takes much less
LATER = 10.0  # seconds after --restart_wait in which the process must have answered
TIMES = 3  # so often a rank may die of the same at the same step
_TITLE = "mindspore-launch-attempts"
_FREE = "free"


class Restarts(Feature):
    """came: how far the attempt came that has ended, see look.Came; {}: unknown."""

    name = "restarts"
    _beside: Beside | None = None

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.count = Count(run.settings.max_restarts, run.settings.restart_limit)
        self.came: dict[str, Any] = {}
        self._counted = False  # whether that attempt counts as one without progress
        self._answered = self._refused = False
        self._status = 0  # the exit code after that attempt
        self._free: str | tuple[str, str] = ""  # the answer, or what is held and a command that helps
        self._awaited = False
        self._why = ""  # why there is no other restart
        self._busy = restarts_facts.Busy(run.say, run.settings.restart_wait)
        self._rows: list[attempts_table.Attempt] = []

    # ---- the process -------------------------------------------------------------------------------------------------

    def opened(self) -> None:
        run, facts = self.run, restarts_facts.of(self.run)

        def child(orders: int, tells: int) -> None:
            ignore(signals.SIGTERM, *QUIET)
            from tools.features import restarts_child  # with it come the tables of lines

            restarts_child.main(orders, tells, facts)

        try:
            self._beside = Beside(run.world, _TITLE, child)
        except OSError as error:
            run.say(
                tr("how far an attempt comes is not known: {reason}; so each restart counts", reason=strerror(error))
            )
            return
        self._beside.hear(self.name)

    def _order(self, *words: object) -> bool:
        """Whether the process can answer."""
        if self._beside is None or not self._beside.lives():
            return False
        self._beside.order(json.dumps(words))
        return True

    def _lives(self) -> bool:
        return self._beside is not None and self._beside.lives()

    def finishing(self) -> None:
        beside, self._beside = self._beside, None
        if beside is not None:
            beside.end_orders()
            beside.kill()
        if self._refused and self.run.attempts:
            self.run.attempts[-1]["progress"]["no_restart"] = self._why

    # ---- an attempt has ended ----------------------------------------------------------------------------------------

    def attempt_ended(self) -> None:
        """Asks how far it came; after a signal or a limit the end of the job does not wait for it."""
        self.came, self._counted, self._answered = {}, False, False
        self._status = self.run.exit_status()
        supervisor = self.run.supervisor
        if supervisor.stopping.signal or supervisor.limits.reached or supervisor.stopping.cancelled:
            return
        first = supervisor.judge.first
        asked = {
            "logs": self.run.logs,
            "ranks": [rank for rank, _ in self.run.plan.ranks],
            "failed": first.rank if first else None,
            "status": first.status or 0 if first else 0,
        }
        if self._order("look", self.run.attempt, asked):
            world = self.run.world
            end = world.now() + LOOK_WITHIN
            supervisor.wait_after(lambda: self._answered or not self._lives() or world.now() >= end)
        if first is not None:
            self._counted = self.count.failed(self._is_further())

    def _is_further(self) -> bool:
        return self.came.get("reached", 0) > self.came.get("before", 0) or bool(self.came.get("saved"))

    def how_far(self) -> tuple[int, int, int, str]:
        return (
            self.came.get("reached", 0),
            self.came.get("before", 0),
            int(bool(self.came.get("saved"))),
            self._same_death(),
        )

    def _same_death(self) -> str:
        """The sentence about a rank that has died so too often, "" if none has."""
        first, alike = self.run.supervisor.judge.first, self.came.get("alike", ())
        if first is None or len(alike) < TIMES:
            return ""
        return tr(
            "{who} died {place} with the same error in three attempts ({attempts}): {error}",
            who=report.who(first),
            place=self.came["place"],
            attempts=", ".join(map(str, alike[-TIMES:])),
            error=self.came["error"] or tr("exit code {status}", status=first.status),
        )

    # ---- whether there is another one --------------------------------------------------------------------------------

    def wants_restart(self, number: int) -> bool:
        """Reports why not; the host of rank 0 has said it for a job whose hosts have a launcher each."""
        if self._busy.held:
            self._why = self._busy.held
            self.run.say(tr("no restart {number}: {reason}", number=number, reason=self._why))
            return False
        if self.run.plan.agreement is not None:
            return True
        self._why = self._same_death() or exhausted(self.count)
        if self._why:
            self.run.say(colours.styled(clauses(self._why, tr("the job ends")), colours.FAILURE))
            return False
        if self.count.number and not self._counted:
            self.run.say(self._helped())
        return True

    def _helped(self) -> str:
        """What the last restart has brought."""
        came = self.came
        if came["reached"] > came["before"]:
            what = tr("from step {before} to step {reached}", before=came["before"], reached=came["reached"])
        else:
            what = tr("to the checkpoint {path}", path=one_line(short_path(came["saved"])))
        return tr(
            "restart {number} made progress, {what}: --max_restarts counts from 0 again",
            number=self.count.number,
            what=what,
        )

    def in_vain(self) -> int:
        return 0 if self.run.plan.agreement is not None else self.count.vain

    # ---- before the next one -----------------------------------------------------------------------------------------

    def again(self, number: int) -> None:
        """The process looks while the pause lasts."""
        self.count.again()
        self._free = ""
        self._busy.again()
        seconds = self.run.settings.restart_wait
        self._awaited = seconds > 0 and self._order("free", seconds, list(self.run.world.children.others))

    def is_ready(self) -> bool:
        if not self._awaited:
            return True
        run, self._awaited = self.run, False
        end = run.world.now() + run.settings.restart_wait + LATER
        if not run.supervisor.wait_until(lambda: bool(self._free) or not self._lives() or run.world.now() >= end):
            return False
        if isinstance(self._free, tuple):
            what, command = self._free
            self._refused = True
            self._why = tr(
                "after {seconds} s (--restart_wait) {what}; look into it with: {command}",
                seconds=run.settings.restart_wait,
                what=what,
                command=command,
            )
            text = tr("no restart {number}: {reason}", number=self.count.number, reason=self._why)
            run.say(colours.styled(text, colours.FAILURE))
            return False
        return True

    def others_status(self) -> int:
        return self._status if self._refused else 0

    def why_not_ready(self) -> str:
        return self._why

    # ---- what it hears -----------------------------------------------------------------------------------------------

    def heard(self, event: Heard) -> None:
        if event.feature != self.name:
            return
        word, _, rest = event.line.partition(" ")
        if word == "came":
            number, _, came = rest.partition(" ")
            if int(number) == self.run.attempt:  # else it comes too late
                self.came, self._answered = json.loads(came), True
        elif word == "note":
            self.run.say(rest)
        elif word == "waits":
            self.run.say(restarts_facts.waits(rest, self.run.settings.restart_wait))
        elif word == "held":
            what, command = json.loads(rest)
            self._free = what, command
        elif word == "free":
            self._free = _FREE
            if rest:
                self.run.say(tr("everything that the restart waited for is free after {seconds} s", seconds=rest))
        elif word == "busy":
            rank, how, text = rest.split(" ", 2)
            member = self.run.supervisor.members.get(rank)
            self._busy.take((member.host or member.told_host) if member else "", how, text)

    # ---- what stays --------------------------------------------------------------------------------------------------

    def outcome(self, outcome: dict[str, Any]) -> None:
        """Adds how far the attempt came, and whether its restart made no progress."""
        supervisor = self.run.supervisor
        ended = supervisor.stopping.signal or supervisor.limits.reached or not outcome["exit"]
        vain = 0 if ended else self.run.hooks.in_vain()
        found: dict[str, Any] = {"steps": self.came.get("steps"), "counted": vain > 0}
        for name in ("reached", "saved", "place", "error"):
            if self.came.get(name):
                found[name] = self.came[name]
        if why := self.run.hooks.why_not_ready():
            found["no_restart"] = why
        outcome["progress"] = found
        self._rows.append(attempts_table.of(outcome, self._ended_by(outcome), vain))

    def _ended_by(self, outcome: dict[str, Any]) -> str:
        """Why the attempt ended, in a few words."""
        if failed := self.run.hooks.what_failed():
            error = self.came.get("error", "")
            return clauses(failed, error) if error else failed
        if outcome["stopped_by"]:
            return tr("stopped by {what}", what=one_line(outcome["stopped_by"]))
        return ""

    def reported(self, trouble: str) -> None:
        """Prints a line for each attempt, if there were several."""
        shown = self.run.status or not self.run.voice.quiet
        if shown and len(self._rows) > 1 and not self.run.supervisor.stopping.signal:
            self.run.voice.lines(attempts_table.lines(self._rows, self.run.settings.max_restarts))
