"""Handles requests to end: tells the ranks to save before SIGTERM comes, and reports afterwards which ranks saved.

A signal to the launcher, a time limit, the end of a pod and Slurm's own SIGTERM are requests.  A failure is not a
request: the ranks cannot save together then, and end at once.
"""

from __future__ import annotations

import os
import re

from hccl_tools.common.language import tr
from hccl_tools.common.words import count
from tools.features.base import Feature
from tools.output import alike, report
from tools.trainer import request_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.supervise.members import Member

TAIL = 16384  # bytes at the end of a log, among which the line is
# What tools/trainer/resume.py prints.
SAVED = re.compile(rb"^epoch: (\d{1,18}) step: (\d{1,18}), asked to end: the checkpoint is saved$", re.MULTILINE)


class Saving(Feature):
    """Of each attempt."""

    _since: float | None = None  # when the ranks were asked
    _found: dict[str, Any] | None = None  # for launch.json

    def begins(self) -> None:
        self._since = self._found = None
        request_file.forget(self.run.plan.run_dir)

    def ending(self, asks: bool) -> None:
        run = self.run
        if not run.supervisor.members.ranks_left:
            return
        if asks and self._since is None:
            self._since = run.world.now()
        trouble = request_file.tell(run.plan.run_dir, asks)
        if trouble and asks:
            path = report.path(request_file.path(run.plan.run_dir))
            run.say(
                tr(
                    "{path}: cannot be written, so ranks may end without saving: {reason}",
                    path=path,
                    reason=tr(trouble),
                )
            )

    def attempt_ended(self) -> None:
        stopping, ranks = self.run.supervisor.stopping, self.run.supervisor.members.ranks()
        if self._since is None or self.run.supervisor.judge.first is not None:
            return
        place = next(filter(None, map(_place, ranks)), None)
        if place:
            stopping.heeds_warning()
        elif not stopping.signal and not self.run.supervisor.limits.reached:
            by_others = self.run.hooks.others_host()
            if not by_others:
                return  # SIGUSR1 came, and the ranks have gone on to their own end
        saved = [rank for rank in ranks if rank.status == 0 or (rank.status and _place(rank))]
        ended = [rank.ended for rank in ranks if rank.ended is not None]
        self._found = {
            "seconds": round(max(ended, default=self._since) - self._since, 1),
            "epoch": place[0] if place else None,
            "step": place[1] if place else None,
            "saved": [rank.rank for rank in saved],
            "not_saved": [rank.rank for rank in ranks if rank not in saved],
        }

    def outcome(self, outcome: dict[str, Any]) -> None:
        if self._found:
            outcome["asked"] = self._found

    def reported(self, trouble: str) -> None:
        """Reports which ranks saved; nothing for a program that does not save: the table shows how its ranks ended."""
        found = self._found
        if not found or not (found["saved"] or self.run.plan.checkpoints):
            return
        if found["not_saved"]:
            self.run.say(_not_saved(found))
        elif found["step"] is None:
            self.run.note(
                tr(
                    "asked to end: {ranks} ended with 0 after {seconds} s",
                    ranks=count(len(found["saved"]), "rank"),
                    seconds=found["seconds"],
                )
            )
        else:
            self.run.note(
                tr(
                    "asked to end: {ranks} saved after step {step} of epoch {epoch}, within {seconds} s; the same"
                    " command with --resume={run} continues from there",
                    ranks=count(len(found["saved"]), "rank"),
                    step=found["step"],
                    epoch=found["epoch"],
                    seconds=found["seconds"],
                    run=report.path(self.run.plan.run_dir),
                )
            )


def _not_saved(found: dict[str, Any]) -> str:
    names = alike.named(found["not_saved"])
    return tr(
        "asked to end: {ranks} ended without saving; --resume continues from the last checkpoint that all ranks have",
        ranks=names,
    )


def _place(rank: Member) -> tuple[int, int] | None:
    """The epoch and the step of it after which the rank has saved, by its log; None: it does not state this."""
    try:
        with open(rank.log, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - TAIL))
            found = SAVED.findall(file.read(TAIL))
    except OSError:
        return None
    return (int(found[-1][0]), int(found[-1][1])) if found else None
