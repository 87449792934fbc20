"""The lines that explain to a person why a run failed."""

from __future__ import annotations

import os
import re

from hccl_tools.common.language import speaks_chinese, tr
from hccl_tools.common.words import one_line
from tools.diagnosis.find import Match
from tools.diagnosis.run import Member

_MOST_SHOWN = 3
_MOST_TEXT = 300  # characters of a log's line on the screen
_CHINESE = re.compile("[\u4e00-\u9fff]")


def explain(members: list[Member], matches: list[Match]) -> list[str]:
    """The lines about what the first member said at its end, and about the known failures."""
    lines = _exception_lines(members[0]) or _refusal_lines(members[0])
    shown = [match for match in matches if not match.entry.vague][:_MOST_SHOWN] or matches[:1]
    for match in shown:
        lines += _match_lines(match)
    rest = [f"{match.entry.code} ({_where(match)})" for match in matches if match not in shown]
    if rest:
        lines.append(tr("also seen: {failures}", failures=", ".join(rest)))
    return lines or [_nothing_known(members[0])]


def _exception_lines(member: Member) -> list[str]:
    raised = member.exception
    if not raised:
        return []
    first, *more = raised.text.split("\n")
    place = f"{one_line(_short(raised.file))}:{raised.line}"
    raised_at = tr("raised at {place}", place=place)
    if raised.function:
        raised_at = tr("raised at {place} in {function}", place=place, function=one_line(raised.function))
    return [f"{_who(member)}: {_cut(first)}", *(f"    {_cut(line)}" for line in more), f"    {raised_at}"]


def _refusal_lines(member: Member) -> list[str]:
    """What the trainer itself said; it knows best why it ended."""
    return [f"{_who(member)}: {_cut(line)}" for line in member.refusal]


def _match_lines(match: Match) -> list[str]:
    entry, line, raised = match.entry, match.line, match.member.exception
    said = raised.text if raised and match.sure else "\n".join(match.member.refusal)
    repeated = line is None or line in said
    where = _where(match)
    if raised and not match.sure:
        where = tr("{where}, earlier than the exception", where=where)
    quoted = "" if line is None or repeated else f": {_cut(line.strip())}"
    chinese = speaks_chinese()
    cause, remedy = entry.zh if chinese and entry.zh else (entry.cause, entry.remedy)
    lines = [f"{entry.code} ({where}){quoted}"]
    lines += [f"    {text}" for text in (tr("cause: {cause}", cause=cause), tr("remedy: {remedy}", remedy=remedy))]
    if entry.zh and not chinese and _CHINESE.search(line or ""):  # whoever wrote the line may read Chinese only
        lines += [f"    原因：{entry.zh[0]}", f"    处理：{entry.zh[1]}"]
    return lines


def _where(match: Match) -> str:
    if match.index is None:
        return tr("{who}, exit status {status}", who=_who(match.member), status=match.member.status)
    row = f":{match.row}" if match.row else ""
    return f"{_who(match.member)}, {one_line(_short(match.member.path))}{row}"


def _nothing_known(member: Member) -> str:
    who, log = _who(member), one_line(_short(member.path))
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


def _short(path: str) -> str:
    """`path` as it can be named from here."""
    try:
        below = os.getcwd() + os.sep
    except OSError:  # the current folder is gone; the launcher names everything from the root
        return path
    path = os.path.join(below, path)
    return path[len(below) :] if path.startswith(below) else path


def _cut(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 3] + "..."
