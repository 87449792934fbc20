"""Finds likely errors in the logs of an unknown failure: similar lines once, the most informative first."""

from __future__ import annotations

import os
import re
import shlex

from hccl_tools.common import documents, typed
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import listed, named, one_line
from tools.diagnosis.ends import near
from tools.logs import line_heads, loud, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tools.diagnosis.job_logs import Explained
    from tools.diagnosis.run import Member
    from tools.logs.scan import Seen

MOST = 5
_MOST_ENDS = 3  # logs
_MOST_FILES = 64  # other ranks' logs: enough to see what only one of them printed
_NAME = re.compile(r"rank_\d{1,7}\.log")
# A line that says only that something failed: another one says what.
_ONLY_FAILED = re.compile(
    r"(?:hit|raised|with) an (?:exception|error)|\ban (?:unexpected )?(?:exception|error) (?:has )?occurred"
    r"|failed to start|(?:see|check) (?:the )?(?:logs?|errors?|traceback|stack trace|root cause)\b.{0,40}",
    re.IGNORECASE,
)


class Alike(Record):
    """Lines that differ in numbers, addresses and times only."""

    text: str  # the first one
    path: str
    row: int
    ranks: tuple[int, ...]  # that printed it, as far as they are known
    logs: int
    times: int

    @property
    def where(self) -> str:
        """``ranks 1-3, rank_1.log:12``: whose they are, and where the first one is."""
        parts = [named("rank", self.ranks)] if self.ranks else []
        if not parts and self.logs > 1:
            parts = [tr("{count} logs", count=self.logs)]
        if self.times > self.logs:
            parts.append(tr("{count} times", count=self.times))
        return listed([*parts, f"{near(self.path)}:{self.row}"])


class _Line(Record):
    seen: Seen
    path: str
    rank: int | None


def of_logs(logs: Explained, failed: str = "") -> list[Alike]:
    """The error lines of all logs that were read; failed: the rank that ended first, if it is known."""
    rank_of = {id(one): process.rank for process in logs.job.processes for one in process.findings}
    lines = []
    for one in logs.reading.findings:
        rank = rank_of.get(id(one), one.owner.rank)
        known = {seen.row for seen in one.loud}
        seen_lines = [*([one.error] if one.error and one.error.row not in known else []), *one.loud]
        lines += [_Line(seen=seen, path=one.path, rank=rank) for seen in seen_lines]
    return _grouped(lines, failed)


def of_folder(member: Member) -> list[Alike]:
    """The error lines of the logs next to that of the member, which failed first."""
    folder, own = os.path.split(member.path)
    try:
        names = sorted(name for name in os.listdir(folder or ".") if _NAME.fullmatch(name) and name != own)
    except (OSError, ValueError):  # ValueError: a name that cannot be one
        names = []
    lines = []
    for name in [own, *names[:_MOST_FILES]]:
        digits = re.sub(r"\D", "", name) if _NAME.fullmatch(name) else ""
        path = os.path.join(folder, name)
        lines += [_Line(seen=seen, path=path, rank=int(digits) if digits else None) for seen in _of_file(path)]
    return _grouped(lines, member.name)


def _of_file(path: str) -> Iterator[Seen]:
    """Rows are those of the file where it is small; otherwise those of its end are 0."""
    try:
        documents.refuse_special(path)
        with open(path, "rb") as file:
            head = file.read(loud.MOST_BYTES)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - loud.MOST_BYTES))
            end = file.read(loud.MOST_BYTES)
    except (OSError, ValueError):
        return
    near_rows = head.count(b"\n")
    for row, line in loud.of_log(head, end, near_rows + end.count(b"\n"), whole=size <= loud.MOST_BYTES):
        yield scan.Seen(None, row if row <= near_rows + 1 else 0, line_heads.clean(line))


def _grouped(lines: Iterable[_Line], failed: str) -> list[Alike]:
    groups: dict[str, list[_Line]] = {}
    for line in lines:
        text = line.seen.text.strip()
        if text:
            groups.setdefault(line_heads.pattern_of(text)[:300], []).append(line)
    rows = []
    for place, group in enumerate(groups.values()):
        first = group[0]
        ranks = tuple(sorted({line.rank for line in group if line.rank is not None}))
        logs = len({line.path for line in group})
        alike = Alike(
            text=first.seen.text.strip(), path=first.path, row=first.seen.row, ranks=ranks, logs=logs, times=len(group)
        )
        mine = failed in map(str, ranks)
        few = 0 if failed else logs
        alone = not (mine and len(ranks) == 1)
        empty = any(found.end() >= len(alike.text.rstrip(". !:")) for found in _ONLY_FAILED.finditer(alike.text))
        rows.append(((alone, bool(failed) and not mine, few, empty, first.seen.time or 0.0, place), alike))
    return [alike for _, alike in sorted(rows, key=lambda row: row[0])]


def last_lines(logs: Explained) -> list[str]:
    """How the first few logs end, where no line looks like an error: the reason may be there all the same."""
    return [
        tr("{where} ends with: {line}", where=near(one.path), line=one_line(one.end))
        for one in logs.reading.findings[:_MOST_ENDS]
        if one.end
    ]


def commands(errors: list[Alike], path: str = "", folder: str = "") -> list[str]:
    """What to look at next.  path: the log that has no such line; folder: where the logs are."""
    found = [] if errors else [tr("whether the kernel killed it, on its host: dmesg -T | tail -n 50")]
    if path and not errors and os.path.isfile(path) and path.isprintable():
        found.append(f"tail -n 50 {shlex.quote(near(path))}")
    if folder and os.path.exists(folder) and folder.isprintable():
        command = typed.command("tools/diagnose.py", "--bundle", "bundle.tar.gz", near(folder))
        found.append(tr("pack the logs for someone who can help: {command}", command=command))
    return found


def folder_of(logs: Explained) -> str:
    """The folder that has all logs."""
    paths = {os.path.dirname(os.path.abspath(one.path)) for one in logs.reading.findings}
    return os.path.commonpath(paths) if paths else ""
