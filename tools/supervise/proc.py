"""Reads what the kernel reports about processes in /proc; for the launcher, the guardian and the agents.

It imports only what Python has loaded at its start: an agent starts on every rank.
"""

from __future__ import annotations

import gc
import os

from hccl_tools.common.record import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
else:
    import _signal  # the module signal imports enum, which takes longer than all the rest

signals = _signal  # for those who signal: no other module needs to know of the two names

QUIET: tuple[int, ...] = (_signal.SIGINT, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGUSR1, _signal.SIGUSR2)
QUIET += (_signal.SIGTTOU, _signal.SIGXFSZ)  # what a process next to the launcher ignores
SHELLS = (b"sh", b"bash", b"dash", b"zsh", b"ksh", b"ash", b"busybox")
HELD = ("T", "t")  # states of a process that SIGSTOP or a debugger holds
SWEEPS, PAUSE = 50, 0.02  # a process may wait in the kernel, so a sweep gives up after a second


def stat(pid: int | str, folder: str = "/proc") -> list[bytes]:
    """proc(5)'s stat from the third field on: state, parent, group ...; empty if the process is gone."""
    try:
        with open(f"{folder}/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()  # the program's name before it may hold anything
    except OSError:
        return []


def state(pid: int, folder: str = "/proc") -> str:
    """The letter of its state; nothing if the process is gone."""
    return b"".join(stat(pid, folder)[:1]).decode("ascii", "replace")


def words(pid: int | str) -> bytes:
    """The words of its command, as proc(5) has them; empty if the process is gone."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


class Fields(Row):
    """What proc(5)'s stat states about a process."""

    name: bytes  # of its program's file, or of the script, cut to 15 bytes
    state: str
    parent: int
    group: int
    session: int


def table(without: Container[str] = ()) -> dict[int, Fields]:
    """All visible processes; without: the ids of those that are left out."""
    found = {}
    for number in numbers():
        if number in without:
            continue
        try:
            with open(f"/proc/{number}/stat", "rb") as file:
                name, _, rest = file.read().partition(b"(")[2].rpartition(b")")
        except OSError:
            continue  # it is gone
        state, parent, group, session = rest.split(None, 4)[:4]
        found[int(number)] = Fields(name, state.decode(), int(parent), int(group), int(session))
    return found


def children(table: Mapping[int, Fields]) -> dict[int, list[int]]:
    """{process: those that it has started}"""
    found: dict[int, list[int]] = {}
    for pid, fields in table.items():
        found.setdefault(fields.parent, []).append(pid)
    return found


def below(pid: int, children: Mapping[int, Sequence[int]]) -> Iterator[int]:
    """The descendants of the process."""
    for child in children.get(pid, ()):
        yield child
        yield from below(child, children)


def name(pid: int) -> bytes:
    """The file of its program, or of the script, without folder, cut to 15 bytes; also when it has just ended."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return file.read().strip()
    except OSError:
        return b""


def is_python(pid: int) -> bool:
    """Whether this process runs Python, or did when it ended and nobody has waited for it."""
    found = name(pid)
    return found.startswith((b"python", b"pypy")) or found.endswith(b".py")


def numbers() -> Iterator[str]:
    """The ids of all processes that we see."""
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit():
                yield entry.name


def living_groups(groups: Iterable[int]) -> set[int]:
    """The process groups among these in which a process runs.

    Zombies do not count, because a container's first process may never reap them.  All of /proc is read once, and only
    for groups that have members at all.
    """
    asked = {group for group in groups if _answers(group)}
    found = {group for group in asked if _runs(stat(group), group)}  # usually the leader itself
    if found == asked:
        return found
    for pid in numbers():
        fields = stat(pid)
        if fields and int(fields[2]) in asked and _runs(fields, int(fields[2])):
            found.add(int(fields[2]))
    return found


def _answers(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # all of them have changed their user
    return True


def _runs(fields: list[bytes], group: int) -> bool:
    return bool(fields) and int(fields[2]) == group and fields[0] not in (b"Z", b"X")


def signal_group(group: int, number: int) -> None:
    """Signals the group; also SIGCONT, because a stopped process handles SIGTERM only when it runs again."""
    for each in (number, _signal.SIGCONT):
        try:
            os.killpg(group, each)
        except OSError:
            return  # nobody is left, or all of them have changed their user


def send(pid: int, number: int) -> bool:
    """Signals one process; False if it is gone."""
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


def ignore(*numbers: int) -> None:
    """Ignores the signals from now on."""
    for number in numbers:
        _signal.signal(number, _signal.SIG_IGN)


def pass_on(pid: int, number: int) -> bool:
    """Signals one process; False: it got SIGTERM instead of SIGUSR1, which would only kill it: it may save on that."""
    if number == _signal.SIGUSR1 and not _heeds(pid, number):
        send(pid, _signal.SIGTERM)
        return False
    send(pid, number)
    return True


def _heeds(pid: int, number: int) -> bool:
    """Whether the process handles or ignores the signal."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return True  # it is gone
    masks = [int(line[8:], 16) for line in lines if line.startswith((b"SigCgt:", b"SigIgn:"))]
    return any(mask >> (number - 1) & 1 for mask in masks)


def marked(job: bytes, rank: bytes = b"") -> list[int]:
    """The processes with the job's mark in their environment, and the rank's if one is given.

    job: the value of LAUNCH_JOB.  A zombie has no environment.
    """
    mark = b"\0LAUNCH_JOB=" + job + b"\0"
    of_rank = b"\0RANK_ID=" + rank + b"\0" if rank else b""
    found = []
    for pid in numbers():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                text = b"\0" + file.read()
        except OSError:
            continue  # it is gone, or another user's
        if mark in text and of_rank in text:
            found.append(int(pid))
    return found


def sweep(job: bytes, sleep: Callable[[float], object], rank: bytes = b"") -> None:
    """SIGKILL to all marked processes until none is left."""
    for _ in range(SWEEPS):
        left = [pid for pid in marked(job, rank) if pid != os.getpid()]
        if not left:
            return
        for pid in left:
            send(pid, _signal.SIGKILL)
        sleep(PAUSE)


def fork_unheard() -> tuple[int, set[int]]:
    """(what os.fork returns, the signals that were held back before); the parent and the child give those to `hear`.

    Until the child has done with its parent's handlers, no signal may reach it: the parent would take it for one of its
    own, and a second Ctrl-C kills at once.  Raises OSError.
    """
    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
    try:
        pid = os.fork()
    except OSError:
        hear(before)
        raise
    if pid:
        hear(before)
    else:
        gc.freeze()  # the collector would write into every object of the parent, and so copy all pages that they share
    return pid, before


def hear(held: set[int]) -> None:
    """Holds back only these signals from now on."""
    _signal.pthread_sigmask(_signal.SIG_SETMASK, held)


def retitle(title: bytes) -> None:
    """Gives this process another command line, as ps and pkill see it; without that right it stays as it is.

    A forked child has its parent's, and ``pkill -f`` with the name of a script would end both.
    """
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end, the 48th and 49th field
        if 0 < start < end:
            with open("/proc/self/mem", "r+b", buffering=0) as memory:
                memory.seek(start)
                memory.write(title[: end - start - 1].ljust(end - start, b"\0"))
    except (OSError, ValueError, IndexError):
        return
