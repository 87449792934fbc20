"""Explains why the job failed, and makes the page of the run, in a forked child with a time limit.

Neither a huge log nor a Python environment that has disappeared can hurt the launcher, which imports nothing after the
ranks have started.  The child starts with the first failure, and reads its modules while the other ranks end.
"""

from __future__ import annotations

import json
import os

from hccl_tools.common import colours, typed
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.words import short_path
from tools.features import explanation_child
from tools.features.base import Feature
from tools.features.beside import Beside
from tools.launch import record
from tools.supervise.proc import QUIET, ignore, signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.supervise.members import Member

EXPLAIN_WITHIN = 10.0  # seconds; it reads no more of logs than takes much less
SETTLE_WITHIN = 60.0  # for removing and cutting plogs
PAGE_WITHIN = 60.0  # for a page that the user wants
SHORT_PAGE_WITHIN = 5.0  # and for one after a failure: 0.1 s is usual, but on a busy machine it takes longer


class Explanation(Feature):
    """Which of the three things the child does: explain, settle the plogs, write a page."""

    _beside: Beside | None = None
    _oom_kills = 0  # on this machine before this attempt

    def begins(self) -> None:
        self._oom_kills = oom_kills()

    def failed(self, member: Member, goes_on: bool) -> None:
        """Starts the child, unless a restart may follow: then this is not urgent."""
        if self._beside is None and not self.run.settings.max_restarts and self._is_to_be_explained():
            self._beside = self._start()

    def _is_to_be_explained(self) -> bool:
        """A rank that could not be started has no log to read, and the reason has been told."""
        first = self.run.supervisor.judge.first
        return first is not None and (first.began is not None or bool(self.run.engine.name))

    def _start(self, explains: bool = True) -> Beside | None:
        run = self.run

        def child(orders: int, tells: int) -> None:
            ignore(signals.SIGTERM, *QUIET)
            if explains:
                explanation_child.serve(orders, tells, run.plan.run_dir, bool(run.plan.plogs))
            else:
                explanation_child.serve_without_cause(orders, tells, run.plan.run_dir)

        try:
            return Beside(run.world, "mindspore-launch-report", child)
        except OSError as error:
            run.say(tr("this run cannot be explained: {reason}", reason=strerror(error)))
            return None

    def reported(self, trouble: str) -> None:
        run = self.run
        if trouble and os.path.isdir(run.plan.run_dir):  # the report has said that the folder is gone
            run.say(tr("the outcome is not saved: {reason}", reason=trouble))
        wanted: dict[str, Any] = {"trouble": trouble, "outcome": record.outcome(run.attempts) if trouble else {}}
        if self._is_to_be_explained():
            wanted["oom_kills"] = oom_kills() - self._oom_kills
        if run.plan.plogs:
            wanted["plogs"], wanted["attempts"] = run.plan.plogs.keep, run.attempts
        page = self._page()
        if page:
            wanted["page"] = page
        if len(wanted) > 2:
            self._ask(wanted, page)

    def _ask(self, wanted: dict[str, Any], page: tuple[str, float] | None) -> None:
        """Asks the child for all of it, and passes on what it states."""
        run = self.run
        beside, self._beside = self._beside, None
        if beside is None or not beside.lives():  # it was killed
            beside = self._start("oom_kills" in wanted)
        if beside is None:
            return
        began = run.world.now()
        seconds = EXPLAIN_WITHIN + (SETTLE_WITHIN if "plogs" in wanted else 0)
        answer = tr("it was not ready after {seconds} s, or was killed", seconds=f"{page[1]:.2f}") if page else ""
        explained = False
        beside.send(json.dumps({**wanted, "within": EXPLAIN_WITHIN}).encode(), EXPLAIN_WITHIN)
        for line in beside.lines(seconds + (page[1] if page else 0)):
            kind, _, text = line.partition(" ")
            if kind == "say" or kind in colours.CODES:
                run.say(colours.styled(text, kind) if kind in colours.CODES else text)
            elif kind == "done":
                explained = True
            elif kind == "page":
                answer = text
        if "oom_kills" in wanted and not explained:
            self._do_without(wanted, late=run.world.now() >= began + EXPLAIN_WITHIN)
        if answer not in ("", "written", "large"):
            command = _on_run("report.py", run.plan.run_dir)
            run.note(
                tr("no page of this run: {reason}; this command writes it: {command}", reason=answer, command=command)
            )
            _remove_part(run.plan.run_dir, beside.pid)

    def _do_without(self, wanted: dict[str, Any], late: bool) -> None:
        """The child has not come to an explanation; late: it has had its time.  Another one does the rest."""
        run = self.run
        command = _on_run("diagnose.py", run.plan.run_dir)
        if late:
            run.say(tr("there is no time now to read all logs; this command reads them: {command}", command=command))
        else:
            run.say(
                tr(
                    "the process that explains the failure was killed; this command does the same: {command}",
                    command=command,
                )
            )
        if "plogs" in wanted:
            left = {"trouble": "", "outcome": {}, "plogs": wanted["plogs"], "attempts": wanted["attempts"]}
            self._ask(left, None)

    def _page(self) -> tuple[str, float] | None:
        """(any or small, seconds) of the page to be written; None: none.  Whatever becomes of it is at most a note."""
        run, supervisor = self.run, self.run.supervisor
        if supervisor.stopping.signal and not run.settings.report:
            return None  # the process that ends the launcher may not wait long
        first = supervisor.judge.first
        if first is not None and first.began is None and not run.engine.name:
            return None  # it could not be started, because there are too many processes
        if not os.path.isfile(os.path.join(run.plan.run_dir, "launch.json")):
            return None
        if run.settings.report:
            return "any", PAGE_WITHIN
        return ("small", SHORT_PAGE_WITHIN) if run.status else None


def _on_run(tool: str, run_dir: str) -> str:
    """The command that does it for the whole run, as it can be pasted."""
    return typed.command(f"tools/{tool}", short_path(run_dir))


def _remove_part(run_dir: str, pid: int) -> None:
    """What a child that was ended has left of the page."""
    try:
        os.unlink(os.path.join(run_dir, f"report.html.{pid}.part"))
    except OSError:
        return


def oom_kills() -> int:
    """The kernel's count of OOM kills since boot; 0 if the kernel does not tell it."""
    try:
        with open("/proc/vmstat", "rb") as file:
            for line in file:
                if line.startswith(b"oom_kill "):
                    return int(line.split()[1])
    except (OSError, ValueError):
        return 0
    return 0
