"""Saves the Python stacks of the ranks of a job that hangs, and prints the innermost frames.

  python tools/diagnosis/stacks.py FOLDER RANK=PID...

The launcher runs it for the ranks of its host, an agent for its own.  FOLDER contains rank_N.log; the stacks go to
rank_N.stack next to it.  If py-spy is installed and allowed, it reads the stacks from outside.  Otherwise SIGABRT makes
the rank write the stacks of its threads to its log, by Python's faulthandler.  The signal also ends the rank, as the
launcher would anyway.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import sys
import time

if not __package__:  # run as a file: see docs/architecture.md
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.record import Row
from hccl_tools.common.words import one_line
from hccl_tools.machine import programs
from tools.logs.findings import in_library
from tools.supervise import proc

SECONDS = 10  # for each of the two ways
_HELD = "State: stopped\n"  # before the stack of a process that did not run

# "    step (train.py:12)" of py-spy, '  File "train.py", line 12 in step' of faulthandler
_PY_SPY = re.compile(r"^ +(?P<function>\S+) \((?P<file>.+):(?P<line>\d+)\)")
_FAULTHANDLER = re.compile(r'^ +File "(?P<file>.+)", line (?P<line>\d+) in (?P<function>.+)')


class Frame(Row):
    """Where a thread is."""

    function: str
    file: str
    line: str

    @property
    def text(self) -> str:
        """The text for a message."""
        return f"{self.function} ({self.file}:{self.line})"


def main(arguments: list[str]) -> int:
    """Saves and prints; returns the exit code."""
    folder, *members = arguments
    print("\n".join(lines(folder, members)))
    return 0


def lines(folder: str, members: list[str]) -> list[str]:
    """Saves the stacks; a line for each place where ranks are."""
    from concurrent.futures import ThreadPoolExecutor  # imports logging: few who import this module ask processes

    pairs = [member.split("=") for member in members]
    with ThreadPoolExecutor(max_workers=len(pairs)) as pool:
        stacks = list(pool.map(lambda pair: save(folder, f"rank_{pair[0]}", int(pair[1])), pairs))
    places = grouped((place(stack), rank) for (rank, _), stack in zip(pairs, stacks))
    return [
        tr("rank {rank}: {where}", rank=ranks[0], where=one_line(where))
        if len(ranks) == 1
        else tr("ranks {ranks}: {where}", ranks=", ".join(ranks), where=one_line(where))
        for where, ranks in places.items()
    ]


def save(folder: str, name: str, pid: int) -> str:
    """Writes the stacks of the process with this log to the file NAME.stack; returns them, empty if there are none."""
    held = _HELD if proc.state(pid) in proc.HELD else ""
    stack = held + (by_py_spy(pid) or by_abort(pid, os.path.join(folder, f"{name}.log")))
    if stack:
        with open(os.path.join(folder, f"{name}.stack"), "w", encoding="utf-8", errors="replace") as file:
            file.write(stack)
    return stack


def by_py_spy(pid: int) -> str:
    """The output of py-spy, or nothing: it is often not installed, or not allowed in a container."""
    if not programs.on_path("py-spy"):
        return ""
    answer = programs.ask(["py-spy", "dump", "--pid", str(pid)], SECONDS)
    return answer.stdout if answer.status == 0 else ""


def by_abort(pid: int, log: str) -> str:
    """What the rank writes to its log when SIGABRT ends it; nothing if faulthandler is off."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            if not re.search(rb"(^|\0)PYTHONFAULTHANDLER=[^\0]", file.read()):
                return ""
        before = os.path.getsize(log)
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, resource.prlimit(pid, resource.RLIMIT_CORE)[1]))
        os.kill(pid, signal.SIGABRT)
    except OSError:  # it has ended meanwhile, or is not ours to ask
        return ""
    with contextlib.suppress(ProcessLookupError):  # it was quick
        os.kill(pid, signal.SIGCONT)  # a stopped process takes signals only now
    deadline = time.monotonic() + SECONDS
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    with open(log, "rb") as file:
        file.seek(before)
        text = file.read().decode("utf-8", "replace")
    return text[text.find("Fatal Python error") :] if "Fatal Python error" in text else ""


def _runs(pid: int) -> bool:
    return proc.state(pid) not in ("", "Z", "X")


def is_held(stack: str) -> bool:
    """Whether SIGSTOP or a debugger held the process of this stack."""
    return stack.startswith(_HELD)


def place(stack: str) -> str:
    """Where the main thread is: its innermost frame, and the innermost one of the user's own code."""
    frames = main_thread(stack)
    if is_held(stack):
        held = tr("stopped by SIGSTOP or a debugger")
        return tr("{held}, in {frame}", held=held, frame=frames[0].text) if frames else held
    if not frames:
        return tr("its stack is unknown; install py-spy, or leave PYTHONFAULTHANDLER=1 set")
    own = [frame for frame in frames if not in_library(frame.file)]
    if own and own[0] != frames[0]:
        return tr("in {frame}, called from {caller}", frame=frames[0].text, caller=own[0].text)
    return tr("in {frame}", frame=frames[0].text)


def main_thread(stack: str) -> list[Frame]:
    """The frames of the main thread, innermost first."""
    spied = "(most recent call first)" not in stack
    start = re.search('"MainThread".*' if spied else "^Current thread.*", stack, re.MULTILINE)
    frames = []
    for line in stack[start.end() if start else 0 :].splitlines()[1:]:
        match = (_PY_SPY if spied else _FAULTHANDLER).match(line)
        if not match:
            break
        frames.append(Frame(**match.groupdict()))
    return frames


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
