"""The findings from one log: a few kilobytes, however large it is."""

from __future__ import annotations

import re

from hccl_tools.common.record import Record, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.logs import events
    from tools.logs.owners import Owner

_LIBRARY = re.compile(r"^<|/(?:site|dist)-packages/|/lib(?:64)?/python3[^/]*/")


class Seen(Row):
    """A line of a log."""

    time: float | None
    row: int
    text: str


class Hit(Row):
    """A known failure in a log: the place of its entry in the table, how often, and its first lines."""

    entry: int
    times: int
    seen: list[Seen]


class Findings(Record):
    """The findings in one log."""

    path: str
    kind: str
    owner: Owner
    size: int = 0
    rows: int = 0  # the row of its last line in the file
    first: float | None = None  # time of its first line, and of its last one
    last: float | None = None
    errors: int = 0
    error: Seen | None = None  # its first error that does not follow from a wait
    wrapper: Seen | None = None  # its first error that states only what failed, not why
    pids: tuple[int, ...] = ()
    hits: tuple[Hit, ...] = ()
    events: tuple[events.Event, ...] = ()
    exception: PythonException | None = None  # that ended the program
    trouble: str = ""  # why it could not be read, or not to its end
    loud: tuple[Seen, ...] = ()  # lines that look like errors, where nothing else is found
    end: str = ""  # the last line, where not even these are found


# ---- An exception that ended a program, and the place in its code where that was.


class PythonException(Row):
    """An exception and its place: the innermost frame that is not a library's."""

    type: str
    message: str
    file: str
    line: int
    function: str | None
    row: int  # index of the line of the log that has type and message
    time: float | None = None  # of that line, as `plog.seconds` counts
    within: str = ""  # the package whose native code crashed, and its function
    hides: str = ""  # the module of Python's whose place `file` has taken, because it has that name

    @property
    def text(self) -> str:
        """Type and message as Python prints them."""
        return f"{self.type}: {self.message}".rstrip(": ")


def in_library(file: str) -> bool:
    """Whether a frame in `file` belongs to Python or an installed package, not to the user's own code."""
    return bool(_LIBRARY.search(file))
