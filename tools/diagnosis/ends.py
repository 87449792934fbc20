"""How the members of a job ended: their last lines, with members that are alike combined."""

from __future__ import annotations

import os

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record, Row
from hccl_tools.common.words import count, named, one_line, short_path, size_of
from tools.logs import aftermath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.diagnosis.job_logs import Explained
    from tools.diagnosis.run import Member
    from tools.logs.findings import PythonException

_MOST_OTHERS = 2  # other last words that are shown
_MORE = 2  # further lines of a message


class End(Record):
    """The last lines of a member: an exception, or what the trainer printed under its own name."""

    name: str  # of the member; its log where that is not known
    who: str
    rank: int | None
    path: str
    row: int | None
    first: str  # line
    more: list[str]
    exception: PythonException | None = None

    @property
    def raised(self) -> str:
        """Where its exception was raised."""
        return raised_at(self.exception) if self.exception else ""


class Other(Row):
    """How members other than the one in the answer ended; equal ends are combined."""

    who: str
    text: str
    raised: str = ""
    same: bool = False  # as the one that the answer is about


def of_logs(logs: Explained) -> list[End]:
    """The ends of the logs that end with an exception, by rank."""
    process_of = {id(one): process for process in logs.job.processes for one in process.findings}
    starters = {id(one) for witness in logs.job.witnesses for one in witness.findings}
    found = []
    for one in logs.reading.findings:
        # what started the ranks only says at its end that one of them failed
        if one.exception and not (id(one) in starters and aftermath.follows(one.exception.text)):
            process = process_of.get(id(one))
            rank = process.rank if process else one.owner.rank
            name = one_line(os.path.basename(one.path)) if rank is None else tr("rank {rank}", rank=rank)
            found.append(_of_exception(name, name, rank, one.path, one.exception, one.exception.row + 1))
    return sorted(found, key=lambda end: (end.rank is None, end.rank or 0))


def of_members(members: list[Member]) -> list[End]:
    """The ends of members of a run of ours, the first to fail first."""
    found = []
    for member in members:
        raised, rank = member.exception, int(member.name) if member.is_rank else None
        if raised:
            row = raised.row + 1 if member.log.whole else None
            found.append(_of_exception(member.name, who(member), rank, member.path, raised, row))
        elif member.refusal:
            first, *more = member.refusal
            found.append(
                End(name=member.name, who=who(member), rank=rank, path=member.path, row=None, first=first, more=more)
            )
    return found


def _of_exception(name: str, who: str, rank: int | None, path: str, raised: PythonException, row: int | None) -> End:
    first, *more = raised.text.split("\n")
    return End(name=name, who=who, rank=rank, path=path, row=row, first=first, more=more[:_MORE], exception=raised)


def raised_at(raised: PythonException) -> str:
    """``raised at train.py:11 in __getitem__``; of a crash ``in cv2 (imread), called at train.py:11 in load``."""
    place = f"{near(raised.file)}:{raised.line}"
    if raised.within and raised.function:
        within, function = one_line(raised.within), one_line(raised.function)
        return tr("in {package}, called at {place} in {function}", package=within, place=place, function=function)
    if raised.hides:
        return tr(
            "raised at {place}, a file that hides Python's own module {module}; rename it",
            place=place,
            module=raised.hides,
        )
    if raised.function:
        return tr("raised at {place} in {function}", place=place, function=one_line(raised.function))
    return tr("raised at {place}", place=place)


def told(all_ends: list[End], shown: End | None, own: Iterable[str] = ()) -> list[Other]:
    """How the others ended; members with the same text share a line, and those with the text of `shown` have none.

    own: the logs of the root, which may have said more at its end.
    """
    paths = set(own)
    groups = grouped((end.first, end) for end in all_ends)
    found = []
    same = [end for end in groups.pop(shown.first, []) if end is not shown] if shown else []
    if same:
        found.append(Other(_names(same), tr("the same"), same=True))
    others = list(groups.values())
    for group in others[:_MOST_OTHERS]:
        raised = "" if shown and group[0].raised == shown.raised else group[0].raised
        mine = all(end.path in paths for end in group)
        found.append(Other(tr("it ended with") if mine else _names(group), group[0].first, raised))
    rest = sum(map(len, others[_MOST_OTHERS:]))
    if rest:
        found.append(Other(tr("{count} more", count=rest), tr("other exceptions")))
    return found


def ended_first(member: Member, all_ends: list[End]) -> Other:
    """The member that ended first and is not the root."""
    end = next((one for one in all_ends if one.name == member.name), None)
    what = end.first if end else tr("exit status {status}", status=member.status)
    return Other(tr("{who} ended first", who=who(member)), what)


def _names(group: list[End]) -> str:
    ranks = [end.rank for end in group if end.rank is not None]
    if ranks and len(ranks) == len(group):
        return named("rank", ranks)
    return group[0].who if len(group) == 1 else count(len(group), "log")


def follows(member: Member, seen: str = "") -> bool | None:
    """Whether its last lines follow from a wait for others; None: it has none.

    seen: the line of its first known failure, which counts where the exception itself does not state a reason.
    """
    if member.exception:
        text = member.exception.text
        states_none = not member.exception.message or aftermath.wraps(text)
        return aftermath.follows(text) or (states_none and aftermath.follows(seen))
    return False if member.refusal else None


def who(member: Member) -> str:
    """``rank 2 (host node1, device 0)``, as far as launch.json states it."""
    parts = [tr("host {host}", host=one_line(member.host))] if member.host else []
    parts += [tr("device {device}", device=member.device)] if member.device is not None else []
    return f"{short_who(member)} ({', '.join(parts)})" if parts else short_who(member)


def short_who(member: Member) -> str:
    """The member without its place."""
    if member.name == "scheduler":
        return tr("MindSpore's scheduler")
    return tr("rank {rank}", rank=int(member.name)) if member.is_rank else one_line(member.name)  # or an engine


def not_read(logs: Explained) -> str:
    """What was left unread at the end of a launch, because it was too much."""
    return tr("{size} of logs are not read yet: python tools/diagnose.py RUN reads them", size=size_of(logs.left_out))


def near(path: str) -> str:
    """The shortest name of a file, seen from the current folder."""
    short = short_path(path)
    with_dots = short
    if os.path.isabs(short):
        try:
            with_dots = os.path.relpath(short)
        except (OSError, ValueError):  # the current folder is gone
            with_dots = short
    return one_line(min(short, with_dots, key=len))
