"""Builds the answer for a run of ours, whose launch.json records how its members ended."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.words import clauses
from tools.diagnosis import ends, error_lines
from tools.diagnosis.answer import ERRORS, ROOT, Answer, in_order, of_end, of_fault, of_match, of_verdict, texts
from tools.diagnosis.ends import near

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.diagnosis.answer import Cause
    from tools.diagnosis.ends import End
    from tools.diagnosis.find import Match
    from tools.diagnosis.job_logs import Explained
    from tools.diagnosis.run import Member
    from tools.diagnosis.verdict import Verdict


def of_run(
    members: list[Member], matches: list[Match], logs: Explained | None, ranks: int, english: bool = False
) -> Answer:
    """The answer of a run whose members failed by themselves, the first one first.  ranks: of the job."""
    verdict = (logs.recorded if english else logs.verdict) if logs else None
    first, all_ends = members[0], ends.of_members(members)
    own = [of_match(match) for match in matches]
    faults = [of_fault(fault) for fault in logs.faults] if logs else []
    if verdict and not _says_the_same(verdict, first):
        answer = of_verdict(verdict, in_order([*faults, *own]), ends.of_logs(logs) if logs else [])
        if first.name not in map(str, answer.ranks):
            answer = answer.replace(others=[ends.ended_first(first, all_ends), *answer.others])
    else:
        answer = _of_member(first, in_order([*own, *faults]), all_ends)
        certainty, why = (verdict.certainty, verdict.why) if verdict else how_sure(first, ranks, _seen(own, first))
        answer = answer.replace(certainty=certainty, why=why)
        if verdict:
            answer = answer.replace(roots=verdict.roots)
        if answer.kind == ERRORS:
            answer = _with_errors(answer, first, logs)
    return answer.replace(not_read=ends.not_read(logs)) if logs and logs.left_out else answer


def _says_the_same(verdict: Verdict, member: Member) -> bool:
    """Whether the root is the member that failed first, by the same exception."""
    raised = member.exception
    same = [one.rank for one in verdict.roots] == [int(member.name) if member.is_rank else None]
    return bool(raised and verdict.kind == "error" and same and verdict.text == raised.text)


def _of_member(first: Member, causes: list[Cause], all_ends: list[End]) -> Answer:
    who = ends.who(first)
    ranks = [int(first.name)] if first.is_rank else []
    form = tr("{who} failed first: {what}", who=who, what="{}")
    if not first.is_rank and first.name != "scheduler":  # an engine, which speaks of its hosts
        form = tr("{who} failed: {what}", who=who, what="{}")
    own = next((end for end in all_ends if end.name == first.name), None)
    if own:
        return of_end(own, form, all_ends).replace(causes=causes, ranks=ranks)
    status = tr("exit status {status}", status=first.status)
    mine = causes[0] if causes and causes[0].who == ends.short_who(first) else None
    what, kind = status, ROOT if causes else ERRORS
    if mine and mine.line is not None:
        what = texts(mine.entry)[0]
    elif mine:
        what = f"{status}: {texts(mine.entry)[0]}"
    elif first.trouble:
        what = clauses(status, tr("its log {log} {trouble}", log=near(first.path), trouble=first.trouble))
        kind = ROOT
    elif not causes:
        log = near(first.path)
        what = clauses(status, tr("its log {log} has no Python exception and no known failure", log=log))
    others = ends.told(all_ends, None)
    sentence = form.replace("{}", what, 1)
    return Answer(kind=kind, sentence=sentence, ranks=ranks, causes=causes, says_cause=mine is not None, others=others)


def _seen(causes: list[Cause], member: Member) -> str:
    """The line of its log that shows the first of the causes; empty: none is seen there."""
    return next((cause.line or "" for cause in causes if cause.who == ends.short_who(member)), "")


def how_sure(first: Member, ranks: int, seen: str = "") -> tuple[str, str]:
    """The launcher's certainty: it knows every end, but has not read the logs of other ranks, so it is never sure.

    seen: the line of its log that shows its first known failure.
    """
    if ranks < 2 or not first.is_rank:
        return "", ""
    sure = ends.follows(first, seen)
    if sure is None:
        return "likely", tr("it ended first")
    if sure:
        return "guess", tr("it ended first, but its error says that it waited for others")
    return "likely", tr("it ended first, with an error of its own")


def _with_errors(answer: Answer, first: Member, logs: Explained | None) -> Answer:
    found = error_lines.of_logs(logs, first.name) if logs else error_lines.of_folder(first)
    found = [one for one in found if one.ranks] if logs else found
    details = []
    if not found:
        last = next((line for line in reversed(first.log.lines) if line), "")
        details = [tr("it ends: {last}", last=last)] if last else []
    return answer.replace(
        kind=ROOT,
        errors=found,
        details=details,
        next=error_lines.commands(found, first.path, os.path.dirname(first.path)),
    )
