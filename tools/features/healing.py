"""Reports when ranks that TaskD starts again end and begin, and determines what the end of msrun means for them."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.words import named
from tools.features.base import Feature
from tools.output import report
from tools.supervise.members import Member

MOST = 50  # lines about ranks


class Healing(Feature):
    """Reports each step, up to MOST of them."""

    _told = 0

    def handed(self) -> None:
        run = self.run
        names = {"program": run.supervisor.healing.to, "engine": run.engine.name}
        run.note(
            tr(
                "{program} controls the ranks: it may restart them, and the exit code of {engine} is that of the job",
                **names,
            )
        )
        if run.settings.hang_timeout:
            run.say(
                tr(
                    "note: --hang_timeout ends the whole job, even while {program} repairs it; each start of a rank"
                    " resets its time",
                    program=names["program"],
                )
            )

    def healed(self, member: Member) -> None:
        self._told += 1
        to = self.run.supervisor.healing.to or self.run.engine.name
        if self._told > MOST:
            if self._told == MOST + 1:
                self.run.say(tr("more ranks fail and are restarted; the report at the end names them"))
        elif member.earlier and member.status is None:
            self.run.say(
                tr(
                    "{who} has been restarted (start {number})",
                    who=report.who(member),
                    number=len(member.earlier) + 1,
                )
            )
        else:
            self.run.say(tr("{what}; {program} decides what follows", what=report.what(member), program=to))

    def settle(self, status: int) -> None:
        """With msrun's own 0 the job has ended well, whatever its ranks ended with."""
        supervisor = self.run.supervisor
        if status or not supervisor.healing.to:
            return
        failed = [m.rank for m in supervisor.members.ranks() if m.status and m.rank is not None]
        if failed:
            self.run.say(
                tr(
                    "note: {engine} ended with 0, so the job has ended well, although {ranks} did not end with 0",
                    engine=self.run.engine.name,
                    ranks=named("rank", failed),
                )
            )
