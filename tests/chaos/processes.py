"""Which processes of a launch live, and what each of them is, by the process tree."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterable
from dataclasses import dataclass

MARK = "CHAOS_LAUNCH"  # in the environment of a launch and of all that comes from it


@dataclass(frozen=True)
class Process:
    """What /proc has about a process."""

    pid: int
    parent: int
    group: int
    state: str
    command: str
    environ: bytes

    def __str__(self) -> str:
        wait = _read(f"/proc/{self.pid}/wchan").decode() or "-"
        shown = f"pid {self.pid} parent {self.parent} group {self.group} state {self.state} wchan {wait}"
        return f"{shown}: {self.command[:200]}"


def details(pid: int) -> str:
    """What a process that hangs waits for: its system call, and what its files are."""
    files = [f"{name} {_points_to(pid, int(name))}" for name in _names(f"/proc/{pid}/fd")]
    return f"pid {pid}: system call {_read(f'/proc/{pid}/syscall').decode().strip()}; files: {', '.join(files)}"


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder), key=int)
    except OSError:
        return []


def marked(mark: str, groups: Iterable[int] = ()) -> list[Process]:
    """All processes with the mark in their environment, or in one of the groups; without zombies."""
    word, groups, found = f"{MARK}={mark}\0".encode(), set(groups), []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        environ = _read(f"/proc/{name}/environ")
        if word not in environ and not groups:
            continue
        process = look(int(name), environ)
        if process and process.state not in "ZX" and (word in environ or process.group in groups):
            found.append(process)
    return sorted(found, key=lambda process: process.pid)


def look(pid: int, environ: bytes = b"") -> Process | None:
    """The process, or None if it has ended."""
    fields = _read(f"/proc/{pid}/stat").decode(errors="replace").rpartition(")")[2].split()
    if not fields:
        return None
    command = _read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace")
    return Process(pid, int(fields[1]), int(fields[2]), fields[0], command, environ)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # it has ended
        return b""


def roles(processes: list[Process], launcher: int, ranks: set[int]) -> dict[str, list[int]]:
    """The process ids of each role.  `ranks` are those of the ranks' programs."""
    found: dict[str, list[int]] = {}
    by_pid = {process.pid: process for process in processes}
    for process in processes:
        role = _role(process, launcher, ranks, by_pid)
        found.setdefault(role, []).append(process.pid)
    return found


_LAUNCHER = "tools/launch/main.py script="  # the launcher, and its forked children before they have a title
_AGENTS = ("tools/rank/agent.py ", "tools/forking/agent.py ")  # and their forked children before they have a title
_IMPORTS = b"LAUNCH_IMPORTS="
_TITLES = re.compile(r"mindspore-launch-(\w+)")
_PROGRAMS = {"mindspore_scheduler.py": "scheduler", "chaos/rank.py": "child"}


def _role(process: Process, launcher: int, ranks: set[int], by_pid: dict[int, Process]) -> str:
    """The commands of engine and agent end with the rank's, so both come before the rank."""
    if process.pid == launcher:
        return "launcher"
    if process.pid in ranks:
        return "rank"
    if _IMPORTS in process.environ:  # a rank that is its fork, and has begun, has not
        return "imports"
    parent = by_pid.get(process.parent)
    if title := _TITLES.match(process.command):
        return title[1]  # guardian, console, report, watcher, stacks
    if _is_engine(process):
        return "agent" if parent and _is_engine(parent) else "engine"  # an agent that is being started
    if _LAUNCHER in process.command:
        return "starting"
    if any(name in process.command for name in _AGENTS):
        return "starting" if parent and _is_agent(parent) else "agent"
    if (
        process.group == process.pid
        and parent
        and "chaos/rank.py" in process.command
        and _starts_ranks(parent, launcher)
    ):
        return "rank"  # it has not said so yet
    return next((role for name, role in _PROGRAMS.items() if name in process.command), "other")


def _is_engine(process: Process) -> bool:
    return process.command.startswith(("mpirun ", "prterun "))  # mpirun of Open MPI 5 becomes prterun


def _is_agent(process: Process) -> bool:
    return any(name in process.command for name in _AGENTS) and not _is_engine(process)


def _starts_ranks(process: Process, launcher: int) -> bool:
    return process.pid == launcher or _is_agent(process)


def _points_to(pid: int, descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{descriptor}")
    except OSError:
        return ""


def send(pid: int, number: int) -> bool:
    """Whether the signal could be sent."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def kill(processes: Iterable[Process]) -> None:
    """SIGKILL to each of them."""
    for process in processes:
        send(process.pid, signal.SIGKILL)
