"""Reads what faulthandler prints about a crash in native code: the package that Python was in, and the user's line.

    Fatal Python error: Segmentation fault

    Current thread 0x00007f2a1b7fe700 (most recent call first):
      File "/usr/lib/python3.11/site-packages/cv2/data.py", line 88 in imread
      File "/home/me/train.py", line 12 in load

An abort does not count as a crash: the watchdog of a wait that others ended prints one, too.
"""

from __future__ import annotations

import re
from itertools import takewhile

from tools.logs.findings import PythonException, in_library

MARK = b"Fatal Python error: "
_CRASHED = re.compile(r"(Fatal Python error): ((?:Segmentation|Bus|Illegal|Floating)[ \w]+)$")
_FRAME = re.compile(r'\s*File "(?P<file>.+?)", line (?P<line>\d+) in (?P<function>.+)')
_PACKAGE = re.compile(r"/(?:site|dist)-packages/(\w+)")
_MOST_LINES = 400  # other threads come first


def exception(lines: list[str]) -> PythonException | None:
    """The last crash, and where the user's code called what crashed; None without one, or without its frames.

    lines: without times and ranks before them.
    """
    for row in range(len(lines) - 1, -1, -1):
        crashed = _CRASHED.match(lines[row])
        if crashed:
            frames = _frames(lines[row + 1 : row + 1 + _MOST_LINES])
            return _at(crashed, frames, row) if frames else None
    return None


def _frames(lines: list[str]) -> list[re.Match[str]]:
    """Those of the thread that crashed, the innermost first."""
    begin = next((row for row, line in enumerate(lines, 1) if line.startswith("Current thread ")), len(lines))
    return list(filter(None, takewhile(bool, map(_FRAME.match, lines[begin:]))))


def _at(crashed: re.Match[str], frames: list[re.Match[str]], row: int) -> PythonException:
    own = next((frame for frame in frames if not in_library(frame["file"])), frames[0])
    package = _PACKAGE.search(frames[0]["file"])
    within = f"{package[1]} ({frames[0]['function']})" if package else ""
    return PythonException(crashed[1], crashed[2], own["file"], int(own["line"]), own["function"], row, within=within)
