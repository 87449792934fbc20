"""The members of a job: its ranks, MindSpore's scheduler, and a process that starts ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hccl_tools.common.words import short

SCHEDULER = "scheduler"
IMPORTS = "imports"  # the parent of ranks that are forks, see tools/forking


class Member:
    """One of them, in one attempt.  Times are those of the supervisor's clock, in seconds.

    name:    a rank's is its number
    rank, device, host: of a rank; host: empty where all ranks are on this host
    log:     the path of its log
    child:   it is a process of ours, whose end the kernel tells us
    pid:     of its first process, on its host
    group:   its process group, while one of its processes lives and we can signal it; otherwise None
    told_host: what its host calls itself, if an agent has told it
    status:  its exit status, 128+N for signal N; None until it has ended
    failed:  it has ended by a failure of its own, before the job was stopped
    lost:    its engine has ended without a report about it
    leaving: it has ended, but processes of its group may live
    left:    the rank's program ended with 0 and left these processes, with which it ends: (process id, group, command)
    left_ended: they were not waited for, because of --leftovers end
    left_failed: the process whose failure is the rank's, as (process id, command); otherwise None
    handed: it has ended while another program had it, see healing.py
    earlier: the same rank before it was started again, from the first start on
    again:   it was started again, so that another member has its place
    imported: the modules that its process had imported before the rank was forked from it
    """

    __slots__ = [
        "again",
        "began",
        "child",
        "device",
        "earlier",
        "ended",
        "failed",
        "gone_since",
        "group",
        "handed",
        "host",
        "imported",
        "leaving",
        "left",
        "left_ended",
        "left_failed",
        "log",
        "lost",
        "name",
        "pid",
        "rank",
        "status",
        "told_host",
    ]

    def __init__(self, name: str, log: str, rank: int | None = None, device: int | None = None, host: str = "") -> None:
        self.name, self.log, self.rank, self.device, self.host = name, log, rank, device, host
        self.child = self.failed = self.lost = self.leaving = self.handed = self.again = False
        self.pid: int | None = None
        self.group: int | None = None
        self.told_host = ""
        self.began: float | None = None
        self.ended: float | None = None
        self.status: int | None = None
        self.gone_since: float | None = None
        self.left: list[tuple[int, int, str]] = []
        self.left_ended = False
        self.left_failed: tuple[int, str] | None = None
        self.earlier: list[Member] = []
        self.imported: list[str] = []

    @property
    def seconds(self) -> str:
        """How long it ran, such as ``1.5``; ``-`` if it did not run, or still runs."""
        if self.began is None or self.ended is None:
            return "-"
        tenths = int((self.ended - self.began) * 10)
        return f"{tenths // 10}.{tenths % 10}"

    def commands_left(self) -> list[tuple[int, str]]:
        """The processes that it has left, for people: (process id, command)."""
        return [(pid, command(words)) for pid, _, words in self.left]


class Members:
    """All members of one attempt, in the order of their start."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets all of them, for the next attempt."""
        self.by_name: dict[str, Member] = {}
        self.ranks_left = 0  # that have not ended
        self.left = 0  # members that have not ended
        self.grouped: dict[str, Member] = {}  # those whose group we can signal

    def __iter__(self) -> Iterator[Member]:
        return iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)

    def get(self, name: str | None) -> Member | None:
        return self.by_name.get(name) if name is not None else None

    def ranks(self) -> list[Member]:
        return [member for member in self if member.rank is not None]

    def add(self, members: Iterable[Member]) -> None:
        for member in members:
            self.by_name[member.name] = member
            self.left += 1
            self.ranks_left += member.rank is not None

    def began(self, member: Member, now: float, pid: int, group: int | None = None, told_host: str = "") -> None:
        """Notes that it runs; group: its process group, if we can signal it."""
        member.began = now if member.ended is None else min(now, member.ended)  # its start may be told after its end
        member.pid = pid
        member.told_host = told_host or member.told_host
        if group is not None:
            member.group = group
            self.grouped[member.name] = member
            member.leaving = member.status is not None  # its engine ended before it began

    def ended(self, member: Member, status: int, now: float) -> None:
        """Notes that it has ended.  The first report counts."""
        if member.status is not None:
            return
        member.status, member.ended, member.gone_since = status, now, None
        member.leaving = member.group is not None
        self.left -= 1
        self.ranks_left -= member.rank is not None

    def started_again(self, old: Member) -> Member:
        """The member that takes the place of one that has ended, with the same number and the same log.

        The old one stays among those that can be signalled, under another name, while a process of its group lives.
        """
        new = Member(old.name, old.log, old.rank, old.device, old.host)
        new.earlier, old.earlier, old.again = [*old.earlier, old], [], True
        self.grouped.pop(old.name, None)
        old.name = f"{old.name}, start {len(new.earlier)}"
        if old.group is not None:
            self.grouped[old.name] = old
        self.add([new])
        return new

    def left_behind(self, member: Member) -> None:
        """No process of its group lives."""
        member.group, member.leaving = None, False
        self.grouped.pop(member.name, None)

    def any(self) -> bool:
        """Whether a member has not ended, or a process of its group lives."""
        return self.left > 0 or bool(self.grouped)


def command(words: str) -> str:
    """The arguments of a command as text in one line, not longer than a message allows."""
    return short(words.rstrip("\0").replace("\0", " "))
