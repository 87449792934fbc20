"""Observes from the scheduler's process which ranks have joined MindSpore's cluster, and which use MindSpore at all.

A rank that calls `init()` keeps connections to the scheduler.  A rank that does not call it has none, and trains alone.
Each observation is a line in the scheduler's log, once for each rank; `read` takes it from there.  Ranks of other hosts
are visible only as connections.
"""

from __future__ import annotations

import os
import re
import time

from hccl_tools.common.record import Record
from hccl_tools.machine import sockets
from tools.launch.member_processes import rank_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Ends = tuple[str, str]  # of a connection, as /proc/net/tcp has them: ADDRESS:PORT in hexadecimal digits

LOADED, CONNECTED = "has loaded MindSpore", "is connected"
_ELSEWHERE = "another process is connected"  # of another host, or one that we do not see
_SAID = rf"(?:rank (\d{{1,9}}) ({LOADED}|{CONNECTED})|({_ELSEWHERE}))"
_LINE = re.compile(rf"^mindspore_scheduler\.py: {_SAID}$", re.MULTILINE)
_LIBRARY = re.compile(rb"/_c_expression\.[^/\n]*so$|/libmindspore_\w+\.so", re.MULTILINE)
_MAPPED = "0000000000000000FFFF0000"  # begins an IPv4 address among those of IPv6
_LONG, _PAUSE = 60.0, 10.0  # seconds: for so long ranks that have not come are looked for at each look, then rarely
_STRANGE = 4  # looks after which a process that is not a rank is not asked again: a rank's may still be starting
_MOST_OF_LOG = 1 << 20  # bytes: MindSpore's own lines may be among ours


class Connections(Record):
    """The established connections at our port."""

    all: int  # our ends of them
    here: set[str]  # the numbers of the other ends of those that begin on this host
    elsewhere: int


def connections(port: int) -> Connections:
    """The connections to `port` in this network namespace."""
    ours: set[Ends] = set()
    others: dict[Ends, str] = {}
    for each in sockets.all_tcp():
        if each.state != sockets.ESTABLISHED:
            continue
        local, remote = _end(each.local), _end(each.remote)
        if sockets.port(local) == port:
            ours.add((local, remote))
        elif sockets.port(remote) == port:
            others[remote, local] = each.inode
    here = {others[ends] for ends in ours if ends in others}
    return Connections(all=len(ours), here=here, elsewhere=len(ours) - len(here))


def _end(text: str) -> str:
    """ADDRESS:PORT; an IPv4 address is the same in both tables."""
    return text[len(_MAPPED) :] if text.startswith(_MAPPED) else text


class Joining:
    """The observations about the ranks of one attempt; a rank that was seen once is not looked for again."""

    def __init__(self, port: int, ranks: int, job: str) -> None:
        """ranks: how many there are on all hosts; job: LAUNCH_JOB of their processes, empty if it is not set."""
        self._port, self._ranks, self._mark = port, ranks, os.fsencode(f"LAUNCH_JOB={job}") if job else b""
        self._loaded: set[int] = set()
        self._connected: set[int] = set()
        self._others = False  # a connection is not one of a rank that we see
        self._known: set[str] = set()  # connections that were looked at
        self._owned: set[str] = set()  # those of ranks
        self._strangers: dict[str, int] = {}  # process: how often it was not a rank
        self._began = self._search_at = time.monotonic()

    def look(self) -> tuple[int, bool]:
        """(number of connections, whether every rank may have one); writes news to the log."""
        found = connections(self._port)
        here = found.here
        others = found.elsewhere > 0
        if self._mark and (here - self._known or self._is_due(here)):
            self._search(here - self._owned)
            others = others or not here & self._known <= self._owned  # it was looked for twice
            self._known |= here
        if others and not self._others:
            self._others = True
            _say(_ELSEWHERE)
        few = self._mark and not self._others and here <= self._owned and len(self._connected) < self._ranks
        return found.all, found.all >= self._ranks and not few

    def _is_due(self, here: set[str]) -> bool:
        is_missing = len(self._loaded | self._connected) < self._ranks or not here <= self._owned
        return is_missing and time.monotonic() >= self._search_at

    def _search(self, unknown: set[str]) -> None:
        """Looks at the processes of the ranks, and for the owners of these sockets."""
        for pid, rank in self._ranks_here():
            if rank not in self._loaded and _has_mindspore(pid):
                self._loaded.add(rank)
                _say(f"rank {rank} {LOADED}")
            owned = _of_process(pid, unknown) if unknown else set()
            self._owned |= owned
            if owned and rank not in self._connected:
                self._connected.add(rank)
                _say(f"rank {rank} {CONNECTED}")
        now = time.monotonic()
        self._search_at = now if now < self._began + _LONG else now + _PAUSE

    def _ranks_here(self) -> Iterator[tuple[str, int]]:
        """(process, its rank) of all processes of this host's ranks."""
        strangers = {}
        for pid in filter(str.isdecimal, os.listdir("/proc")):
            times = self._strangers.get(pid, 0)
            rank = rank_of(pid, self._mark) if times < _STRANGE else None
            if rank is None:
                strangers[pid] = times + 1
            else:
                yield pid, rank
        self._strangers = strangers


def _has_mindspore(pid: str) -> bool:
    """Whether a library of MindSpore is in the process."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            return bool(_LIBRARY.search(file.read()))
    except OSError:
        return False


def _of_process(pid: str, wanted: set[str]) -> set[str]:
    """Those of the sockets that the process has."""
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return set()  # it has ended
    found = set()
    for name in names:
        try:
            place = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue  # it has closed this one meanwhile
        if place.startswith("socket:["):
            found.add(place[len("socket:[") : -1])
    return found & wanted


def _say(text: str) -> None:
    print(f"mindspore_scheduler.py: {text}", flush=True)


class Joined(Record):
    """What the log of a scheduler reports."""

    loaded: set[int]  # ranks of this host that use MindSpore
    connected: set[int]  # ranks of this host that have joined
    others: bool  # another process is connected: a rank of another host, or one that is not seen


def read(log: str) -> Joined:
    """What the log states.  Raises OSError."""
    with open(log, "rb") as file:
        text = file.read(_MOST_OF_LOG).decode("utf-8", "replace")
    seen: dict[str, set[int]] = {LOADED: set(), CONNECTED: set()}
    others = False
    for rank, what, other in _LINE.findall(text):
        if other:
            others = True
        else:
            seen[what].add(int(rank))
    return Joined(loaded=seen[LOADED], connected=seen[CONNECTED], others=others)
