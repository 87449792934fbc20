"""Reports the first failure at once, before the other ranks are stopped, and a host that the engine has lost."""

from __future__ import annotations

from tools.features.base import Feature
from tools.output import report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.supervise.members import Member


class FirstFailure(Feature):
    """Reports each failure, up to report.FAILURES."""

    _count = 0
    _lost: tuple[str, list[Member]] | None = None  # the host as the plan names it, and its ranks
    _sentence = ""

    def begins(self) -> None:
        self._lost, self._sentence = None, ""

    def failed(self, member: Member, goes_on: bool) -> None:
        self._count += 1
        supervisor = self.run.supervisor
        sentence = self.sentence(member)
        line = report.failure(member, supervisor.members.ranks_left, goes_on, self._count, sentence)
        if line:
            self.run.say(line)

    def sentence(self, member: Member) -> str:
        """The message about a host that the engine has lost, if it has ended because of that; otherwise ""."""
        supervisor = self.run.supervisor
        if not supervisor.is_engine(member):
            return ""
        host = supervisor.engine.lost_host()
        if not host:
            return ""
        ranks = report.ranks_of_lost(host, supervisor.members.ranks())
        self._lost = (ranks[-1].host if ranks else "", ranks)
        return report.lost(member, host, ranks)

    def look_for_lost_host(self) -> str:
        self._lost = None
        engine = self.run.supervisor.members.get(self.run.engine.name)
        if engine:
            self.sentence(engine)
        return self._named()

    def what_failed(self) -> str:
        first = self.run.supervisor.judge.first
        return report.what(first, self.sentence(first)) if first else ""

    def lost_ranks(self) -> set[int]:
        return {member.rank for member in self._lost[1] if member.rank is not None} if self._lost else set()

    def _named(self) -> str:
        return self._lost[0] if self._lost else ""

    def outcome(self, outcome: dict[str, Any]) -> None:
        if outcome["first_failure"] and self._named():
            outcome["lost_host"] = self._named()
