"""The children of this process: which member each is, and how it has ended; also what a member has left behind.

If the parent of a process has ended, its nearest ancestor with PR_SET_CHILD_SUBREAPER becomes its parent, see prctl(2).
So the processes that a rank leaves become ours when it has ended, and the kernel reports how they end.
"""

from __future__ import annotations

import os
import time

from hccl_tools.common.record import Row
from tools.launch import member_processes
from tools.supervise import proc

_PR_SET_CHILD_SUBREAPER = 36
NO_CTYPES, REFUSED = "no ctypes", "refused"
FULL_EVERY = 10.0  # seconds


class Process(Row):
    """A process that a member has left, and that is our child now."""

    pid: int
    group: int
    session: int
    words: bytes  # of its command, as proc(5) has them; of the program that it runs, if it is only a shell
    inner: tuple[int, ...] = ()  # the processes that it has started, with all that these have


class Children:
    """members: {child: its member's name}; others: children that are none; ends: of members, not yet asked for;
    left_ends: the same of processes that members have left: (member, process id, status)."""

    def __init__(self) -> None:
        self.members: dict[int, str] = {}
        self.others: set[int] = set()
        self.statuses: dict[int, int] = {}  # child that is not a member -> its exit status, once it has ended
        self.ends: list[tuple[str, int]] = []
        self.early: dict[int, int] | None = None  # while others start members for us: statuses of unknown children
        self.left_ends: list[tuple[str, int, int]] = []
        self.adopts = False  # `adopt` has helped
        self.pythons: set[str] = set()  # members that were Python when they ended
        self._groups: dict[int, str] = {}  # process group -> the member that began it
        self._ranks: dict[str, None] = {}  # members that are ranks, in the order of their starts
        self._names: dict[
            int, bytes
        ] = {}  # process that a member had left and that has ended -> the name of its program
        self._strangers: set[str] = set()  # ids of processes that descend from no member, as of the last full look
        self._looked = 0.0
        self._left: dict[int, str] = {}  # what `left` has found: process -> the member that has left it

    def began(self, pid: int, name: str) -> None:
        """A member runs, in a process group of its own."""
        self.pythons.discard(name)
        self._groups[pid] = name
        if name.isdigit():
            self._ranks[name] = None
        if self.early and pid in self.early:  # it has ended before we knew it
            self.ends.append((name, self.early.pop(pid)))
        else:
            self.members[pid] = name

    def adopt(self) -> str:
        """Makes processes that members leave our children from now on; returns NO_CTYPES or REFUSED if that fails.

        No member has begun, so what runs now is left by none.
        """
        self._strangers, self._looked = set(proc.numbers()), time.monotonic()
        try:
            import _ctypes  # a fifth of the time that ctypes takes
        except ImportError:
            return NO_CTYPES
        call = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
        self.adopts = not _ctypes.call_function(call, (_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
        return "" if self.adopts else REFUSED

    def reap(self) -> None:
        """Takes the exit statuses of all that have ended; a container's first process inherits orphans, too."""
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None or not self._take(found.si_pid):
                return

    def _take(self, pid: int) -> bool:
        """This child has ended; until we have waited for it, the kernel still states what it was."""
        name = self.members.pop(pid, None)
        if name is not None and proc.is_python(pid):
            self.pythons.add(name)
        owner = None if name is not None or pid in self.others else self._left.pop(pid, None) or self._owner(pid)
        if owner is not None:
            self._names[pid] = proc.name(pid)
        ended, code = os.waitpid(pid, os.WNOHANG)
        if not ended:
            return False
        status = exit_code(code)
        if name is not None:
            self.ends.append((name, status))
        elif owner is not None:
            self.left_ends.append((owner, pid, status))
        elif pid in self.others:
            self.others.discard(pid)
            self.statuses[pid] = status
        elif self.early is not None:
            self.early[pid] = status
        return True

    def take_ends(self) -> tuple[list[tuple[str, int]], list[tuple[str, int, int]]]:
        """The ends of members, and those of what they have left, if they were not asked for yet.

        Between the end of a member and theirs, somebody asks what it has left.
        """
        ended, self.ends = self.ends, []
        if ended:
            return ended, []
        left_ended, self.left_ends = self.left_ends, []
        self._names.clear()
        return [], left_ended

    def _owner(self, pid: int) -> str | None:
        try:
            return self._groups.get(os.getpgid(pid))
        except OSError:
            return None

    # ---- what members have left --------------------------------------------------------------------------------------

    def left(self, job: bytes) -> dict[str, list[Process]]:
        """{member: the processes that it has left, and that run}.

        Only where we have a child that we do not know, all processes of this host are looked at.
        job: the value of LAUNCH_JOB, for processes that are in no member's group any more.
        """
        table, ours = self._look() if self._has_unknown() else ({}, {})
        found: dict[str, list[Process]] = {}
        for name, pid, _ in self.left_ends:  # they have ended since, and it was not asked for yet
            found.setdefault(name, []).append(Process(pid, 0, 0, self._names.get(pid, b"")))
        for pid in ours.get(os.getpid(), ()):
            fields = table[pid]
            if pid in self.members or pid in self.others:
                continue
            owner = self._left.get(pid) or self._groups.get(fields.group) or self._marked(pid, job)
            if owner is not None:
                self._left[pid] = owner
                inner = tuple(proc.below(pid, ours))
                found.setdefault(owner, []).append(
                    Process(pid, fields.group, fields.session, _words(pid, inner, table), inner)
                )
        return found

    def _marked(self, pid: int, job: bytes) -> str | None:
        """The rank of this job that the process has in its environment; a script may set that to a rank that is not."""
        rank = member_processes.rank_text(pid, b"LAUNCH_JOB=" + job)
        return rank if rank is None or rank in self._ranks else next(iter(self._ranks), None)

    def _has_unknown(self) -> bool:
        """Whether a child of ours may be no member's first process, and none that we have forked ourselves."""
        try:
            with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
                return not all(int(pid) in self.members or int(pid) in self.others for pid in file.read().split())
        except OSError:
            return True  # this kernel does not list them

    def _look(self) -> tuple[dict[int, proc.Fields], dict[int, list[int]]]:
        """(processes of this host, {process: its children}), with all that descend from us.

        Ranks often end one after the other, and a host may have thousands of processes.  So strangers are not asked
        again for a while; an id of theirs is not given to another process as fast as that.
        """
        now = time.monotonic()
        full = now - self._looked >= FULL_EVERY
        table = proc.table(() if full else self._strangers)
        children = proc.children(table)
        if full:
            self._looked = now
            self._strangers = {str(pid) for pid in table.keys() - {os.getpid(), *proc.below(os.getpid(), children)}}
        return table, children


def _words(pid: int, inner: tuple[int, ...], table: dict[int, proc.Fields]) -> bytes:
    """What it runs: a shell that a script has forked has the words of the script, and not those of its program."""
    for each in (pid, *inner):
        if table[each].name not in proc.SHELLS and table[each].state not in "ZX":
            found = proc.words(each)
            if found and (each == pid or not found.startswith(proc.words(pid))):
                return found
    return proc.words(pid) or table[pid].name


def exit_code(status: int) -> int:
    """The exit code as a shell shows it: 128+N for signal N."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
