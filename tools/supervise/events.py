"""The events of a job: each is a row, and supervise/loop.py decides what it means."""

from __future__ import annotations

from hccl_tools.common.record import Row


class Began(Row):
    """Members that an engine has started: (name, process id, what their host calls itself) of each."""

    rows: list[tuple[str, int, str]]


class Ended(Row):
    """Members have ended: (name, exit status) of each.

    judged: False where the engine has ended them, so that no status is a failure of their own.
    """

    rows: list[tuple[str, int]]
    judged: bool = True


class Handed(Row):
    """The engine has given the ranks to another program, which may kill them and start them again."""

    to: str = "TaskD"


class LeftEnded(Row):
    """Processes that members have left behind, and that were our children, have ended: (name, process id, status)."""

    rows: list[tuple[str, int, int]]


class Left(Row):
    """A rank has ended with 0, and the job waits for processes that it has left: (process id, group, command)."""

    name: str
    rows: list[tuple[int, int, str]]
    ends: str = ""  # why they are not waited for, but ended: see leftovers.py


class LeftFailed(Row):
    """A process that this rank has left has failed, which is the rank's failure; its end comes next."""

    name: str
    pid: int
    words: str  # its command; empty: it was not seen before its end


class Signalled(Row):
    """A signal came to the launcher."""

    number: int


class Warned(Row):
    """SIGUSR1 has come to a rank from the engine itself; or its agent has sent SIGTERM to the rank in its place."""

    name: str = ""  # of the rank that got SIGTERM


class Cancelled(Row):
    """The engine itself ends the ranks, and kills what is left after these seconds; reason: a line for the user."""

    seconds: int
    reason: str


class LogGrew(Row):
    """A log that the launcher cannot see has grown."""

    name: str


class StackTold(Row):
    """Where a rank is in its code, from its agent."""

    name: str
    place: str


class Heard(Row):
    """A line for a feature: from a process next to the launcher that it has started, or from an agent."""

    feature: str
    line: str
