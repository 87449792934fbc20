"""Detects running ranks that start ranks themselves: a start script may call msrun, or loop over all ranks."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.words import named, one_line
from tools.features.base import Feature
from tools.launch.member_processes import rank_of
from tools.launch.programs import launchers
from tools.supervise import proc
from tools.supervise.members import Member

LOOKS = (3.0, 30.0, 120.0)  # seconds after the start of an attempt: a script may copy its data first


class NestedLaunchers(Feature):
    """Examines a few times what the ranks have started, and reports a finding once."""

    _looks: list[float] | None = None  # what is left of LOOKS; None: no rank has started, as where pods meet first

    def begins(self) -> None:
        self._looks = list(LOOKS)
        self._began = self.run.world.now()

    def check(self) -> None:
        if not self._looks or self.run.world.now() < self._began + self._looks[0]:
            return
        self._looks.pop(0)
        found = self._find()
        if found:
            self._looks.clear()
            self.run.say(
                tr(
                    "{what}; each of the {number} ranks of this launch runs the same program; see docs/trainers.md, A "
                    "launcher as the program",
                    what=found,
                    number=len(self.run.plan.ranks),
                )
            )

    def _find(self) -> str:
        """What the first rank that has started ranks has done; empty: none has."""
        children = proc.children(proc.table())
        for member in self.run.supervisor.members.ranks():
            pids = [pid for root in _roots(member) for pid in (root, *proc.below(root, children))]
            found = _launcher(member, pids) or _ranks(member, pids)
            if found:
                return found
        return ""


def _roots(member: Member) -> set[int]:
    """The processes of a rank that are our children."""
    if member.status is not None or member.pid is None:
        return set()
    return {member.pid, *(pid for pid, _, _ in member.left)}


def _launcher(member: Member, pids: list[int]) -> str:
    for pid in pids:
        words = [os.fsdecode(word) for word in proc.words(pid).split(b"\0")[:-1]]
        ours = any(word.endswith("/tools/launch/main.py") for word in words[:4])
        found = launchers.find(words) if words else None
        if (ours or found) and (found is None or found.whole):
            name = found.name if found else "launch.sh"
            return tr(
                "rank {rank} has started {launcher} (PID {pid}), which starts ranks itself",
                rank=member.rank,
                launcher=one_line(name),
                pid=pid,
            )
    return ""


def _ranks(member: Member, pids: list[int]) -> str:
    """Whether its processes have the numbers of several ranks in their environment."""
    found = {rank for rank in (rank_of(pid, b"") for pid in pids) if rank is not None}
    if len(found) < 2:
        return ""
    return tr(
        "rank {rank} has started processes with the RANK_ID of {ranks}: it seems to start all ranks of a job itself",
        rank=member.rank,
        ranks=named("rank", found),
    )
