"""The lines that explain to a person why a run failed."""

from __future__ import annotations

import re

from hccl_tools.common.language import speaks_chinese, tr
from hccl_tools.common.words import one_line, short_path, size_of
from tools.diagnosis.find import Match
from tools.diagnosis.run import Member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.diagnosis.faults import Fault
    from tools.diagnosis.job_logs import Explained
    from tools.diagnosis.verdict import Verdict
    from tools.logs.known_failures import KnownFailure
    from tools.logs.raised import PythonException

_MOST_SHOWN = 3
_BRIEF_MESSAGE = 2  # lines of an exception's message in a brief explanation
_MOST_TEXT = 300  # characters of a log's line on the screen
_CHINESE = re.compile("[\u4e00-\u9fff]")


def explain(
    members: list[Member], matches: list[Match], logs: Explained | None = None, brief: bool = False
) -> list[str]:
    """The lines about what the first member said at its end, about the root, and about the known failures."""
    lines = _exception_lines(members[0], brief) or _refusal_lines(members[0])
    told = {match.entry.code for match in matches}
    faults = [fault for fault in logs.faults if fault.entry.code not in told] if logs else []
    if logs and logs.verdict and not _says_the_same(logs.verdict, members[0]):
        lines += root_lines(logs.verdict, brief)
        faults = [fault for fault in faults if not fault.entry.vague]
    most = 1 if brief else _MOST_SHOWN
    shown = [match for match in matches if not match.entry.vague][:most] or (matches[:1] if not faults else [])
    for fault in faults[:most]:
        lines += fault_lines(fault)
    for match in shown:
        lines += _match_lines(match)
    rest = [f"{match.entry.code} ({_where(match)})" for match in matches if match not in shown]
    rest += [_seen_at(fault) for fault in faults[most : most + 5]]
    if rest:
        lines.append(tr("also seen: {failures}", failures=", ".join(rest)))
    if logs and logs.left_out:
        lines.append(_not_read(logs))
    return lines or [_nothing_known(members[0])]


def _says_the_same(verdict: Verdict, member: Member) -> bool:
    """Whether the root is the member that failed first, by the exception that is shown already."""
    ranks = [one.rank for one in verdict.roots]
    raised = member.exception
    return bool(raised and verdict.kind == "error" and ranks == [_number(member)] and verdict.text == raised.text)


def _number(member: Member) -> int | None:
    return int(member.name) if member.is_rank else None


def explain_logs(logs: Explained) -> list[str]:
    """The lines about the logs of a job that is not a run of ours."""
    lines = root_lines(logs.verdict) if logs.verdict else []
    raised = [(one.path, one.exception) for one in logs.reading.findings if one.exception]
    for path, exception in raised[:_MOST_SHOWN]:
        first = exception.text.partition("\n")[0]
        lines += [f"{one_line(short_path(path))}:{exception.row + 1}: {_cut(first)}", f"    {_raised_at(exception)}"]
    if len(raised) > _MOST_SHOWN:
        lines.append(tr("{count} more logs end with an exception", count=len(raised) - _MOST_SHOWN))
    shown = [fault for fault in logs.faults if not fault.entry.vague][:5] or logs.faults[:1]
    for fault in shown:
        lines += fault_lines(fault)
    rest = [_seen_at(fault) for fault in logs.faults if fault not in shown]
    if rest:
        lines.append(tr("also seen: {failures}", failures=", ".join(rest[:20])))
    return lines or [
        tr("nothing is known: no error of HCCL, no exception, and no failure of configs/ is in these logs")
    ]


def root_lines(verdict: Verdict, brief: bool = False) -> list[str]:
    """The root, who waited for whom, how sure that is and why, and what to look at next."""
    certainty = {"sure": tr("sure"), "likely": tr("likely"), "guess": tr("a guess")}[verdict.certainty]
    lines = [tr("root: {sentence}", sentence=verdict.sentence)]
    if verdict.chain and not brief:
        lines += [f"    {line}" for line in verdict.chain]
    lines.append("    " + tr("how sure: {certainty}; {why}", certainty=certainty, why=verdict.why))
    lines += ["    " + tr("next: {what}", what=what) for what in verdict.next[: 2 if brief else 4]]
    return lines


def fault_lines(fault: Fault) -> list[str]:
    """A known failure of the logs: where, its line, cause and remedy."""
    where = f"{one_line(short_path(fault.path))}:{fault.seen.row}"
    if fault.rank is not None:
        where = tr("{who}, {where}", who=tr("rank {rank}", rank=fault.rank), where=where)
    times = "" if fault.count == 1 else tr(", {count} times", count=fault.count)
    return [f"{fault.entry.code} ({where}{times}): {_cut(fault.seen.text.strip())}", *_why_lines(fault.entry, "")]


def _seen_at(fault: Fault) -> str:
    if fault.rank is None:
        return f"{fault.entry.code} ({one_line(short_path(fault.path))})"
    return f"{fault.entry.code} ({tr('rank {rank}', rank=fault.rank)})"


def _not_read(logs: Explained) -> str:
    return tr("{size} of logs are not read yet: python tools/diagnose.py RUN reads them", size=size_of(logs.left_out))


def _exception_lines(member: Member, brief: bool) -> list[str]:
    raised = member.exception
    if not raised:
        return []
    first, *more = raised.text.split("\n")
    if brief:
        more = more[: _BRIEF_MESSAGE - 1]
    return [f"{_who(member)}: {_cut(first)}", *(f"    {_cut(line)}" for line in more), f"    {_raised_at(raised)}"]


def _raised_at(raised: PythonException) -> str:
    place = f"{one_line(short_path(raised.file))}:{raised.line}"
    if raised.function:
        return tr("raised at {place} in {function}", place=place, function=one_line(raised.function))
    return tr("raised at {place}", place=place)


def _refusal_lines(member: Member) -> list[str]:
    """What the trainer itself said; it knows best why it ended."""
    return [f"{_who(member)}: {_cut(line)}" for line in member.refusal]


def _match_lines(match: Match) -> list[str]:
    entry, line, raised = match.entry, match.line, match.member.exception
    said = raised.text if raised and match.sure else "\n".join(match.member.refusal)
    repeated = line is None or line.removeprefix("E ").strip() in said  # pytest's E
    where = _where(match)
    if raised and not match.sure:
        where = tr("{where}, earlier than the exception", where=where)
    quoted = "" if line is None or repeated else f": {_cut(line.strip())}"
    return [f"{entry.code} ({where}){quoted}", *_why_lines(entry, line or "")]


def _why_lines(entry: KnownFailure, line: str) -> list[str]:
    chinese = speaks_chinese()
    cause, remedy = entry.zh if chinese and entry.zh else (entry.cause, entry.remedy)
    lines = [f"    {text}" for text in (tr("cause: {cause}", cause=cause), tr("remedy: {remedy}", remedy=remedy))]
    if entry.zh and not chinese and _CHINESE.search(line):  # whoever wrote the line may read Chinese only
        lines += [f"    原因：{entry.zh[0]}", f"    处理：{entry.zh[1]}"]
    return lines


def _where(match: Match) -> str:
    if match.index is None:
        return tr("{who}, exit status {status}", who=_who(match.member), status=match.member.status)
    row = f":{match.row}" if match.row else ""
    return f"{_who(match.member)}, {one_line(short_path(match.member.path))}{row}"


def _nothing_known(member: Member) -> str:
    who, log = _who(member), one_line(short_path(member.path))
    if member.trouble:
        return tr(
            "{who} ended with status {status}; its log {log} {trouble}",
            who=who,
            status=member.status,
            log=log,
            trouble=member.trouble,
        )
    return tr(
        "{who} ended with status {status}; its log {log} has no Python exception and no failure of "
        "configs/diagnoses.yaml, it ends: {last}",
        who=who,
        status=member.status,
        log=log,
        last=_cut(next(line for line in reversed(member.log.lines) if line)),
    )


def _who(member: Member) -> str:
    if member.name == "scheduler":
        return tr("MindSpore's scheduler")
    return tr("rank {name}", name=member.name) if member.is_rank else one_line(member.name)  # or an engine


def _cut(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 3] + "..."
