"""The lines that explain to a person why a run failed."""

from __future__ import annotations

import os
import re

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
        lines.append("also seen: " + ", ".join(rest))
    return lines or [_nothing_known(members[0])]


def _exception_lines(member: Member) -> list[str]:
    raised = member.exception
    if not raised:
        return []
    first, *more = raised.text.split("\n")
    inside = f" in {raised.function}" if raised.function else ""
    lines = [f"{_who(member)}: {_cut(first)}"] + [f"    {_cut(line)}" for line in more]
    return [*lines, f"    raised at {one_line(_short(raised.file))}:{raised.line}{one_line(inside)}"]


def _refusal_lines(member: Member) -> list[str]:
    """What the trainer itself said; it knows best why it ended."""
    return [f"{_who(member)}: {_cut(line)}" for line in member.refusal]


def _match_lines(match: Match) -> list[str]:
    entry, line, raised = match.entry, match.line, match.member.exception
    said = raised.text if raised and match.sure else "\n".join(match.member.refusal)
    repeated = line is None or line in said
    early = ", earlier than the exception" if raised and not match.sure else ""
    quoted = "" if line is None or repeated else f": {_cut(line.strip())}"
    lines = [f"{entry.code} ({_where(match)}{early}){quoted}"]
    lines += [f"    cause: {entry.cause}", f"    remedy: {entry.remedy}"]
    if entry.zh and (_chinese_reader() or _CHINESE.search(line or "")):
        lines += [f"    原因：{entry.zh[0]}", f"    处理：{entry.zh[1]}"]
    return lines


def _where(match: Match) -> str:
    if match.index is None:
        return f"{_who(match.member)}, exit status {match.member.status}"
    row = f":{match.row}" if match.row else ""
    return f"{_who(match.member)}, {one_line(_short(match.member.path))}{row}"


def _nothing_known(member: Member) -> str:
    log = f"its log {one_line(_short(member.path))}"
    ended = f"{_who(member)} ended with status {member.status}"
    if member.trouble:
        return f"{ended}; {log} {member.trouble}"
    last = next(line for line in reversed(member.log.lines) if line)
    return f"{ended}; {log} has no Python exception and no failure of configs/diagnoses.yaml, it ends: {_cut(last)}"


def _who(member: Member) -> str:
    if member.name == "scheduler":
        return "MindSpore's scheduler"
    return f"rank {member.name}" if member.is_rank else one_line(member.name)  # an engine, such as mpirun


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


def _chinese_reader() -> bool:
    """Whether the locale asks for messages in Chinese.  The first of the three that is set decides."""
    set_ones = (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return next(filter(None, set_ones), "").startswith("zh")
