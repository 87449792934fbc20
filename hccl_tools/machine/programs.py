"""Finds programs of the host by name, and runs them without a shell, each with a time limit."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from hccl_tools.common.language import tr
from hccl_tools.common.record import Row
from hccl_tools.common.words import short

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from typing import TypeVar

    Key = TypeVar("Key")
    Process = subprocess.Popen[bytes]


class Ended(Row):
    """How a program ended; status 124 is a timeout and 127 a program that could not be started, as in a shell."""

    status: int
    stdout: str
    stderr: str


def end_with_parent() -> None:
    """Makes the kernel end this process by SIGKILL when its parent has ended in any way."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG of <linux/prctl.h>


def said(ended: Ended) -> str:
    """The first line that it printed, and its exit code or signal, for a message about a program that has failed."""
    first = (ended.stderr.strip() or ended.stdout.strip() or "no output").splitlines()[0]
    end = f"exit {ended.status}" if ended.status >= 0 else f"signal {-ended.status}"
    return f"{short(first, 200)} ({end})"


def on_path(name: str) -> bool:
    """Whether the shell would find the program `name`."""
    return find(name) is not None


def find(name: str) -> str | None:
    """The path of the program that the shell would run as `name`; shutil.which takes 2 ms to import."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep) if os.sep not in name else [""]
    paths = (os.path.join(folder, name) for folder in folders)
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def path_word(path: str) -> str:
    """The path as a word of a command: one that begins with a dash would be an option there."""
    return os.path.join(".", path) if path.startswith("-") else path


def ask(command: Sequence[str], seconds: float) -> Ended:
    """Runs one command, which is stopped after `seconds`."""
    return ask_all({None: command}, seconds)[None]


def ask_all(commands: Mapping[Key, Sequence[str]], seconds: float) -> dict[Key, Ended]:
    """Runs all `commands`, {key: command}, at the same time; those still running after `seconds` are stopped."""
    running = {key: _start(command) for key, command in commands.items()}
    deadline = time.monotonic() + seconds
    try:
        return {key: _finish(process, deadline, seconds) for key, process in running.items()}
    except KeyboardInterrupt:  # they run in sessions of their own and did not get the signal
        for process in running.values():
            _kill(process)
        raise


def _start(command: Sequence[str]) -> Process | OSError:
    import subprocess  # 5 ms that a launch with hccn.conf need not spend

    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # so that _kill also ends what the program started
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
    except OSError as error:
        return error


# Where a Python finds what is installed.
_OF_PYTHON = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE"),
    *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),
)


def environment() -> dict[str, str]:
    """The environment of a program whose answer we read.

    The tools of the driver count physical devices and must not see a list that renumbers them.  A Python must not be
    told to print more, to wait at its end, or to write in another encoding.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON") or name in _OF_PYTHON}
    kept.pop("ASCEND_RT_VISIBLE_DEVICES", None)
    return {**kept, "LC_ALL": "C"}


def _finish(process: Process | OSError, deadline: float, seconds: float) -> Ended:
    import subprocess

    if isinstance(process, OSError):
        return Ended(127, "", process.strerror or str(process))
    try:
        stdout, stderr = process.communicate(timeout=max(0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        _kill(process)
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a process that hangs in the driver does not die
            process.wait(timeout=1)
        return Ended(124, "", tr("no answer within {seconds} s", seconds=seconds))
    return Ended(process.returncode, stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"))


def _kill(process: Process | OSError) -> None:
    if not isinstance(process, OSError):
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.killpg(process.pid, signal.SIGKILL)
