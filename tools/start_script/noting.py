"""Runs a start script with stand-ins for python, mpirun and msrun, and returns what it starts; see stand_in.py."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import shutil
import signal
import sys
import tempfile
import time

from hccl_tools.common import project
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import refused
from hccl_tools.common.words import one_line
from hccl_tools.machine import programs
from tools.launch.programs import launchers, trainer_command
from tools.supervise import proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from tools.rank.environment import Environment

STAND_IN = project.path("tools", "start_script", "stand_in.py")
# What the stand-in counts as; each of the names is a file of its own in a folder that comes first on PATH.
NAMES = {**launchers.BY_ZOO, "taskset": "taskset", "tail": "tail"}
_PYTHON = re.compile(r"python[23]?(\.[0-9]+)?")
PATIENCE = 30.0  # seconds after the script's end until the last stand-in has noted its command; a busy host is slow


class Start(Record):
    """A command that the script has started."""

    tool: str  # mpirun, msrun, or the name of the Python
    program: str  # the path of that program; empty: it is not on PATH
    words: list[str]  # without the program
    folder: str
    environ: dict[str, str]
    cores: list[int]


def of_script(words: Sequence[str], caller: Environment, line: str, options: Sequence[str] = ()) -> list[Start]:
    """What ``bash OPTIONS SCRIPT WORDS`` starts, in order; `line`: for files that would have the output.

    Raises Refusal.
    """
    folder = stand_ins(caller, line)
    try:
        path = os.fsencode(f"{folder}/bin:") + caller.get(b"PATH", os.fsencode(os.defpath))
        status, left = run([*options, *words], {**caller, b"PATH": path}, f"{folder}/stdin")
        starts = list(read(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    shown = one_line(words[0])
    if left:
        raise refused(
            "{script} has left {command} running, which the launch could not note: it is not python, mpirun or msrun,"
            " or the script has changed PATH; it was ended. Activate an environment before the launch and not in the"
            " script, or leave out --zoo",
            script=shown,
            command=one_line(left),
        )
    if not starts and status:
        raise refused(
            "{script} ended with {status} before it started a training; what it printed is above",
            script=shown,
            status=status,
        )
    return starts


def stand_ins(caller: Environment, line: str) -> str:
    """A new folder with files of the programs' names in bin/.  Raises Refusal."""
    try:
        folder = tempfile.mkdtemp(prefix="launch-zoo-")
        make_stand_ins(folder, caller, line)
        if os.access(f"{folder}/bin/python", os.X_OK):
            return folder
        reason = tr("nothing in it can be run (mounted noexec)")  # a shell would take the real programs instead
        shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        reason = strerror(error)
    raise refused(
        "--zoo needs a folder for temporary files, but {folder} cannot be used: {reason}; name another one in TMPDIR",
        folder=one_line(tempfile.gettempdir()),
        reason=reason,
    )


def make_stand_ins(folder: str, caller: Environment, line: str) -> None:
    """Files with the names of the programs, in FOLDER/bin."""
    os.mkdir(f"{folder}/bin")
    try:
        own = os.fstat(1)
        stdout = f"{own.st_dev}:{own.st_ino}"
    except OSError:
        stdout = ""
    folders = os.fsdecode(caller.get(b"PATH", os.fsencode(os.defpath))).split(os.pathsep)
    found = {"python": trainer_command.python(), **dict.fromkeys(NAMES, "")}
    for each in reversed(folders):
        try:
            names = os.listdir(each or ".")
        except OSError:
            continue
        paths = {name: os.path.join(each, name) for name in names if name in NAMES or _PYTHON.fullmatch(name)}
        found.update((name, path) for name, path in paths.items() if os.path.isfile(path) and os.access(path, os.X_OK))
    for name, path in found.items():
        words = [sys.executable, "-E", "-s", STAND_IN, folder, stdout, line, NAMES.get(name, name), path]
        with open(f"{folder}/bin/{name}", "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        os.chmod(f"{folder}/bin/{name}", 0o755)


def run(words: Sequence[str], environ: Environment, stdin: str) -> tuple[int, str]:
    """Runs the script to its end.  Returns its status, and the command of a process that it has left; such are ended.

    It is in a process group of its own.  It obeys Ctrl-C even if we do not, and `stdin` is an empty file: by that the
    stand-ins see what it starts with &.  All its processes have the end of a pipe, so we see when the last has ended.
    """
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    pid = os.posix_spawn(
        bash(),
        ["bash", *words],
        environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY | os.O_CREAT, 0o600)],
        setpgroup=0,
        setsigmask=(),
        setsigdef=(signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE),
    )
    os.close(writing)
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        all_ended = select.select([reading], [], [], PATIENCE)[0]
        return (status if status >= 0 else 128 - status), "" if all_ended else in_group(pid)
    finally:
        os.close(reading)
        end_group(pid)


def bash() -> str:
    """The bash on PATH, which is there: it has started us."""
    return programs.find("bash") or "/bin/bash"


def in_group(group: int) -> str:
    """The command of a process in the group."""
    for pid in proc.numbers():
        fields = proc.stat(pid)
        if fields and int(fields[2]) == group and fields[0] != b"Z":
            return os.fsdecode(proc.words(pid).replace(b"\0", b" ").strip())
    return "?"


def end_group(group: int) -> None:
    """Ends what is left of the script: it may be in the middle when Ctrl-C comes."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        proc.signal_group(group, number)
        deadline = time.monotonic() + 1
        while proc.living_groups([group]):
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
        else:
            return


def read(folder: str) -> Iterator[Start]:
    """The records of the stand-ins."""
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json"):
            with open(os.path.join(folder, name), encoding="ascii") as file:
                found: dict[str, Any] = json.load(file)
            yield Start(**found)
