"""An exception that ended a program, and the place in its code where that was."""

from __future__ import annotations

import re

from hccl_tools.common.record import Row

_LIBRARY = re.compile(r"^<|/(?:site|dist)-packages/|/lib(?:64)?/python3[^/]*/")


class PythonException(Row):
    """An exception and its place: the innermost frame that is not a library's."""

    type: str
    message: str
    file: str
    line: int
    function: str | None
    row: int  # index of the line of the log that has type and message
    time: float | None = None  # of that line, as `plog.seconds` counts

    @property
    def text(self) -> str:
        """Type and message as Python prints them."""
        return f"{self.type}: {self.message}".rstrip(": ")


def in_library(file: str) -> bool:
    """Whether a frame in `file` belongs to Python or an installed package, not to the user's own code."""
    return bool(_LIBRARY.search(file))
