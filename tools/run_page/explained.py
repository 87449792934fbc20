"""Explains why an attempt ended, in one record for the answer, the attempts and the evidence.

launch.json has the diagnosis of the last attempt.  Of earlier attempts it has only who failed first.  The end of that
log is read here.
"""

from __future__ import annotations

import os
from functools import lru_cache

from hccl_tools.common import documents, typed
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import one_line
from tools.diagnosis import answer_of_run, ends, find
from tools.diagnosis import run as run_folder
from tools.logs import known_failures, remedies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.diagnosis.run import Member
    from tools.logs.known_failures import KnownFailure
    from tools.run_page.reading import RunData


class Known(Record):
    """A known failure that logs of the attempt show."""

    code: str
    cause: str
    steps: list[str]  # what to do, for the device target of the run
    line: str  # of a log; empty: it is known by the exit status
    sure: bool  # it is what ended the rank; otherwise a line before that, or of another rank
    vague: bool


class Explained(Record):
    """Why an attempt failed; unknown fields are empty."""

    member: Member  # that failed first, with the end of its log
    who: str  # rank 5 (host node2, device 1)
    rank: int | None
    raised: str  # RuntimeError: ..., the first line of it
    more: list[str]  # its further lines
    place: str  # train.py:88
    root: dict[str, Any]  # what the logs of all ranks report, as launch.json has it
    roots: list[int]  # the ranks that failed first in truth: those of `root`, otherwise the member's
    known: list[Known]  # what explains most comes first
    certainty: str  # that it was the first: sure, likely, guess
    why: str

    @property
    def cause(self) -> Known | None:
        """The certain cause of its end."""
        return next((one for one in self.known if one.sure and not one.vague), None)

    @property
    def sentence(self) -> str:
        """Who failed first, and of what: known facts only."""
        root = self.root.get("sentence")
        if root:
            return one_line(root)
        form = tr("{who} failed first: {what}", who=self.who, what="{}")
        if not self.member.is_rank and self.member.name != "scheduler":  # an engine, which speaks of its hosts
            form = tr("{who} failed: {what}", who=self.who, what="{}")
        return form.replace("{}", self.what, 1)

    @property
    def what(self) -> str:
        """What the member failed of."""
        cause = self.cause
        if cause is not None:
            return cause.cause
        if self.raised:
            return self.raised
        if self.member.refusal:
            return one_line(self.member.refusal[0])
        return tr("exit status {status}", status=self.member.status)


def of(data: RunData, number: int, most: int = 8) -> Explained | None:
    """The explanation of attempt `number`, from 0 on; None: no member failed by itself. most: logs that are read."""
    launch = _launch_of(data, number, most)
    members = run_folder.read_members(launch, data.folder)
    if not members:
        return None
    said = _diagnosis(data, number)
    first, ranks = members[0], len(run_folder.places_of(launch))
    if said is None:
        target = data.launch.get("device_target")
        target = target if target in known_failures.TARGETS else None
        said = find.as_data(members, find.causes(_entries(), members, 0, target))
    root, exception = documents.part(said, "root"), documents.part(said, "exception")
    raised = _raised(exception)
    rank = int(first.name) if first.is_rank else None
    matches = [match for match in documents.objects(said, "matches") if match.get("rank") == rank]
    seen = str(matches[0].get("line") or "") if matches else ""
    certainty, why = answer_of_run.how_sure(first, ranks, seen)
    return Explained(
        member=first,
        who=ends.who(first),
        rank=rank,
        raised=raised[0],
        more=raised[1:],
        place=_place(exception),
        root=root,
        roots=roots_of(data) if number == len(data.attempts) - 1 else [] if rank is None else [rank],
        known=_known(said, first, "\n".join(raised), data),
        certainty=str(root.get("certainty") or certainty),
        why=str(root.get("why") or why) if root.get("sentence") else why,
    )


def roots_of(data: RunData) -> list[int]:
    """The ranks of the last attempt that really failed first: by the logs of all ranks, otherwise by the launcher."""
    number = len(data.attempts) - 1
    root = documents.part(_diagnosis(data, number), "root")
    ranks = documents.entries(root, "ranks") if root.get("sentence") else []
    known = {rank.rank for rank in data.ranks}
    found = [rank for rank in ranks if type(rank) is int and rank in known]
    first = data.attempts[number].first_failure or ""
    return found or ([int(first)] if first.isdecimal() and int(first) in known else [])


def _launch_of(data: RunData, number: int, most: int) -> dict[str, Any]:
    """launch.json as it was, had the run ended with this attempt; with `most` members at most."""
    attempt = data.attempts[number]
    first = attempt.first_failure
    names = [first] if first is not None else []
    names += [name for name in (*attempt.also_failed, *attempt.members) if name != first][: max(0, 4 * most)]
    names = names if most > 1 else names[:1]
    outcome = {
        "first_failure": first,
        "also_failed": [name for name in attempt.also_failed if name in names],
        "stopped_by": attempt.stopped_by,
        "members": {name: attempt.members[name] for name in names if name in attempt.members},
        "logs": logs_of(data, number),
    }
    return {**data.launch, **_plan_of(data, number), "outcome": outcome}


def logs_of(data: RunData, number: int) -> str:
    """The folder of the attempt's logs, in that of the run."""
    return os.path.relpath(data.attempts[number].logs, data.folder)


def places_of(data: RunData, number: int) -> dict[str, str | None]:
    """{a rank's name: its host} in the plan of the attempt."""
    places = run_folder.places_of({**data.launch, **_plan_of(data, number)})
    return {name: place["host"] for name, place in places.items()}


def _plan_of(data: RunData, number: int) -> dict[str, Any]:
    """The plan of the attempt, where a later one has another: after the loss of a host."""
    for plan in documents.objects(data.launch, "earlier_plans"):
        if type(plan.get("until")) is int and number <= plan["until"]:
            return {"ranks": plan["ranks"]} if "ranks" in plan else {}
    return {}


def _diagnosis(data: RunData, number: int) -> dict[str, Any] | None:
    """That of launch.json, which is of the last attempt."""
    if number != len(data.attempts) - 1:
        return None
    said = documents.part(data.launch, "outcome").get("diagnosis")
    return said if isinstance(said, dict) else None


@lru_cache(maxsize=1)
def _read_entries(own: str | None) -> list[KnownFailure]:
    return known_failures.load()[0]


def _entries() -> list[KnownFailure]:
    """The known failures, read once."""
    return _read_entries(os.environ.get(known_failures.VARIABLE))


def _raised(said: dict[str, Any]) -> list[str]:
    """The lines of the exception, at least one."""
    if not said.get("type"):
        return [""]
    lines = f"{said['type']}: {said.get('message')}".rstrip(": ").split("\n")[:12]
    return [one_line(line) for line in lines]


def _place(said: dict[str, Any]) -> str:
    return one_line(f"{said['file']}:{said.get('line')}") if said.get("file") else ""


def _known(said: dict[str, Any], first: Member, raised: str, data: RunData) -> list[Known]:
    """Each code once; what is vague comes last."""
    matches, faults = documents.objects(said, "matches"), documents.objects(said, "faults")
    if not matches and not faults:
        return []  # the known failures are not read, which takes as long as all the rest
    vague = {entry.code for entry in _entries() if entry.vague}
    found: dict[str, Known] = {}
    for entry in [*faults, *matches] if said.get("root") else [*matches, *faults]:
        code = str(entry.get("code"))
        if code in found:
            continue
        cause, remedy = known_failures.in_chinese(code) or (
            typed.as_typed(one_line(entry.get("cause") or "")),
            typed.as_typed(one_line(entry.get("remedy") or "")),
        )
        found[code] = Known(
            code=code,
            cause=cause,
            steps=[step for step in remedies.steps_for(remedy, data.launch.get("device_target")) if step],
            line=one_line(entry.get("line") or "").strip(),
            sure=_is_of_root(entry, said.get("root")) or (entry in matches and _is_end(entry, first, raised)),
            vague=code in vague,
        )
    return sorted((one for one in found.values() if one.cause), key=lambda one: one.vague)


def _is_of_root(fault: dict[str, Any], root: object) -> bool:
    """Whether a log of the rank that failed first in truth shows it."""
    return fault.get("rank") is not None and fault["rank"] in documents.entries(root, "ranks")


def _is_end(match: dict[str, Any], first: Member, raised: str) -> bool:
    """Whether the failure is what ended the first member: a line of its exception, or its exit status."""
    if str(match.get("rank", first.name)) != first.name:
        return False
    line = one_line(match.get("line") or "").strip()
    return not line or not raised or line in raised or raised.partition("\n")[0] in line
