"""Finds the known failures that explain a run, and selects what goes into its launch.json."""

from __future__ import annotations

import sys

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.record import Record
from hccl_tools.common.typed import name_of
from hccl_tools.common.words import one_line
from tools.launch import record
from tools.logs import known_failures, log_tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tools.diagnosis.faults import Fault
    from tools.diagnosis.job_logs import Explained
    from tools.diagnosis.run import Member
    from tools.diagnosis.verdict import Verdict
    from tools.logs.known_failures import KnownFailure


_MOST_FAULTS = 50  # in launch.json
_MOST_ROOTS = 1000


class Match(Record):
    """A known failure, and where it was seen."""

    entry: KnownFailure
    member: Member
    index: int | None  # of the line in the member's log; None: by its exit status
    sure: bool  # the exit status, or a line of the exception that ended the member, not merely a line before it

    @property
    def line(self) -> str | None:
        """The line of the log."""
        return None if self.index is None else self.member.log.lines[self.index]

    @property
    def row(self) -> int | None:
        """The line number in the file, if the whole log was read."""
        return None if self.index is None or not self.member.log.whole else self.index + 1

    @property
    def raises(self) -> bool:
        """Whether it is the first line of the exception's message, and not one of the details that follow it."""
        return self.member.exception is not None and self.index == self.member.exception.row


def causes(
    entries: list[KnownFailure], members: list[Member], oom_kills: int, target: str | None = None
) -> list[Match]:
    """The Matches, the best explanation first; a code of several members names the first of them.

    oom_kills: processes that the kernel killed for memory meanwhile; target: the launch's, None if it is not known.
    """
    places = {id(entry): place for place, entry in enumerate(entries)}
    found = []
    for order, member in enumerate(members):
        for match in _matches(entries, member, oom_kills, target):
            weight = (match.entry.vague, order, not match.sure, not match.raises, places[id(match.entry)])
            found.append((weight, match))
    found.sort(key=lambda pair: pair[0])
    first_of: dict[str, Match] = {}
    for _, match in found:
        first_of.setdefault(match.entry.code, match)
    return list(first_of.values())


def _matches(entries: list[KnownFailure], member: Member, oom_kills: int, target: str | None) -> Iterator[Match]:
    by_status = known_failures.by_status(entries, member.status, oom_kills)
    if by_status:
        yield Match(entry=by_status, member=member, index=None, sure=True)
    since = member.exception.row if member.exception else len(member.log.lines)
    for entry, lines in known_failures.by_lines(entries, log_tail.without_source(member.log.lines), target):
        sure = [index for index in lines if index >= since]
        yield Match(entry=entry, member=member, index=sure[0] if sure else lines[-1], sure=bool(sure))


# --- launch.json ------------------------------------------------------------------------------------------------------


def as_data(members: list[Member], matches: list[Match], logs: Explained | None = None) -> dict[str, Any]:
    """What goes into launch.json; see schemas/launch.schema.json."""
    raised = members[0].exception
    exception = raised and {name: getattr(raised, name) for name in ("type", "message", "file", "line")}
    data: dict[str, Any] = {"exception": exception, "matches": [_match_data(match) for match in matches]}
    if logs and logs.recorded:
        data["root"] = _root_data(logs.recorded)
    if logs and logs.faults:
        data["faults"] = [_fault_data(fault) for fault in logs.faults[:_MOST_FAULTS]]
    return data


def _root_data(verdict: Verdict) -> dict[str, Any]:
    return {
        "kind": verdict.kind,
        "ranks": [one.rank for one in verdict.roots[:_MOST_ROOTS] if one.rank is not None],
        "sentence": verdict.sentence,
        "chain": verdict.chain,
        "certainty": verdict.certainty,
        "why": verdict.why,
        "next": verdict.next,
        "line": verdict.text or None,
    }


def _fault_data(fault: Fault) -> dict[str, Any]:
    return {
        "code": fault.entry.code,
        "rank": fault.rank,
        "file": fault.path,
        "row": fault.seen.row,
        "line": fault.seen.text,
        "times": fault.count,
        "cause": fault.entry.cause,
        "remedy": fault.entry.remedy,
    }


def _match_data(match: Match) -> dict[str, Any]:
    return {
        "code": match.entry.code,
        "rank": int(match.member.name) if match.member.is_rank else match.member.name,
        "line": match.line,
        "row": match.row,
        "cause": match.entry.cause,
        "remedy": match.entry.remedy,
    }


def save(launch: dict[str, Any], folder: str) -> None:
    """Rewrites launch.json, completely or not at all."""
    try:
        record.write(folder, launch)
    except (OSError, ValueError) as error:
        path, reason = one_line(record.path(folder)), strerror(error)
        text = tr("{path}: the diagnosis could not be added: {reason}", path=path, reason=reason)
        print(f"{name_of('diagnose.py')}: {text}", file=sys.stderr)
