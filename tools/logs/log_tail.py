"""Reads the end of a rank's log: its lines, and the Python exception that ended the rank.

A log may contain anything: colours, progress bars, bytes that are not UTF-8, half a line, nothing at all.
"""

from __future__ import annotations

import os
import re
import sys

from hccl_tools.common import documents
from hccl_tools.common.record import Row
from tools.logs import aftermath, crash, pytest_report
from tools.logs.findings import PythonException, in_library
from tools.logs.line_heads import bare, untimed

MOST_BYTES = 256 << 10
MOST_COLUMNS = 4000  # per line: keeps a regular expression from searching 256 KiB again and again
_MOST_MESSAGE = 12  # lines of an exception's message
_MOST_CHAIN = 8  # exceptions that led to each other
_MOST_FRAMES = 400  # lines of a traceback
_LAST_WORDS = 20  # lines at the end of a log in which a trainer reports why it ends

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+")
_HEADER = re.compile(r"^(?P<prefix>.*?)(?:Exception Group )?Traceback \(most recent call last\):\s*$")
_FRAME = re.compile(r'\s*File "(?P<file>.+?)", line (?P<line>\d+)(?:, in (?P<function>.+))?')
_RAISED = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: ?(?P<message>.*))?$")
_JOINS = re.compile("During handling of the above exception|The above exception was the direct cause")
_SYNTAX = re.compile(r"^(?:SyntaxError|IndentationError|TabError): ")
# A traceback whose head is missing may be followed by any line.  Python writes the module before all names but its own,
# which have these ends.
_SURELY_RAISED = re.compile(
    r"(?=(?:\w+\.)+[A-Z]\w*(?::|$)|[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Iteration)(?::|$))" + _RAISED.pattern[1:]
)
# MindSpore's own sections, log records, a crash, groups of exceptions
_NOT_MESSAGE = re.compile(r"^(?:-{10,}|\[(?:ERROR|WARNING|CRITICAL|INFO)\]|Fatal Python error: |[ |]*\+[-+])")
# The head of MindSpore's first section, between two lines of hyphens; a stack of calls gives no reason.
_SECTION = re.compile(r"\s*-{10,} *\n- (?!C\+\+ Call Stack|Python Call Stack)[^\n]+\n-{10,} *\n\s*(?:\[ERROR\] )?")
_STARTS = re.compile(r"runpy|importlib")
_REFERS = re.compile(r"\b[Rr]efer to '[\w ]{1,80}'")


class RankLog(Row):
    """The last lines of a log, as text without colours."""

    lines: list[str]
    whole: bool  # they are the whole log, so an index + 1 is a line number


def read(path: str, most: int = MOST_BYTES) -> RankLog:
    """The last bytes of the file `path`, 256 KiB or `most`.  Raises OSError."""
    documents.refuse_special(path)
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - most))
        data = file.read(most)
    return RankLog(lines_of(data), whole=size <= most)


def lines_of(data: bytes) -> list[str]:
    """The lines of the end of a log, as text without colours."""
    lines = data.decode("utf-8", errors="replace").split("\n")
    if not lines[-1]:
        del lines[-1]
    return [_plain(line) for line in lines]


def _plain(line: str) -> str:
    # A progress bar draws its line again and again after \r: a terminal shows the last drawing.  One of blanks only
    # erases the one before it, as in tools/output/lines.py.
    line = _ESCAPES.sub("", line).rstrip("\r ").rpartition("\r")[2]
    return _CONTROLS.sub("", line)[:MOST_COLUMNS]


def without_source(lines: list[str]) -> list[str]:
    """`lines` with those of tracebacks' frames emptied: `raise ValueError("no space left")` is code, not an event.

    What others have put before a line is not in the result, so that expressions for the beginning of a line take it.
    """
    found, after_frame = [], False
    lines = list(map(bare, lines))
    for line in lines:
        if after_frame and line[:1].isspace() and not _FRAME.search(line):
            found.append("")
            after_frame = bool(set(line.strip()) - set("^~ "))  # the next line may underline this one
            continue
        after_frame = 'File "' in line and bool(_FRAME.search(line))
        found.append("" if after_frame else line)
    for row in pytest_report.source_rows(lines):
        found[row] = ""
    return found


def last_refusal(lines: list[str], trainer: str) -> list[str]:
    """The last lines that the trainer wrote under its own name, such as ``train.py: c.yaml:4: ...``."""
    found: list[str] = []
    for line in reversed(lines[-_LAST_WORDS:]):
        if line.startswith(f"{trainer}: "):
            found.insert(0, line)
        elif found:
            break
    return found[-_MOST_MESSAGE:]


# --- exceptions -------------------------------------------------------------------------------------------------------


def last_exception(lines: list[str]) -> PythonException | None:
    """The exception of the last traceback, or of pytest's report where that comes after it."""
    plain = list(map(bare, lines))
    raised = _of_chain(list(map(untimed, lines))) or _without_head(plain) or crash.exception(plain)
    reported = pytest_report.exception(plain)
    return reported if reported and (raised is None or raised.row < reported.row) else raised


def _of_chain(lines: list[str]) -> PythonException | None:
    """The exception of the last traceback; of those that led to each other the one that states why the program ended.

    That is the last one.  But if one only reports that a wait or the program was ended, what was
    raised after it follows from it, and what was raised before it has led to it.
    """
    last = one = _last_traceback(lines)
    for _ in range(_MOST_CHAIN):
        above = one and _joined(lines, one.row)
        one = _last_traceback(lines[:above]) if above else None
        if one is None or last is None:
            break
        if aftermath.follows(one.text) != aftermath.follows(last.text) and not aftermath.wraps(one.text):
            return one
    return last


def _joined(lines: list[str], row: int) -> int:
    """The row that joins the traceback of the exception in `row` to the one before it; 0: it is the first."""
    for index in range(row, max(0, row - _MOST_FRAMES), -1):
        if "Traceback (most recent call last)" in lines[index]:
            return next((above for above in range(index - 1, max(0, index - 4), -1) if _JOINS.search(lines[above])), 0)
    return 0


def _last_traceback(lines: list[str]) -> PythonException | None:
    """Those that Python prints at its end ("Exception ignored in") do not count: they are not why the rank ended."""
    for index in range(len(lines) - 1, -1, -1):
        header = _HEADER.match(lines[index]) if "Traceback" in lines[index] else None
        if header and not (index and "Exception ignored in" in lines[index - 1]):
            found = _exception(lines, index, header["prefix"])
            if found:
                return found
    return _syntax_error(lines)


def _syntax_error(lines: list[str]) -> PythonException | None:
    """The error in a trainer that Python could not even read: it has no traceback, only a place."""
    for index in range(len(lines) - 1, -1, -1):
        if _SYNTAX.match(lines[index]):
            frames = [frame for frame in map(_FRAME.match, lines[max(0, index - 4) : index]) if frame]
            if frames:
                kind, _, message = lines[index].partition(": ")
                return PythonException(kind, message, frames[-1]["file"], int(frames[-1]["line"]), None, index)
    return None


def _without_head(lines: list[str]) -> PythonException | None:
    """The exception of the last traceback whose first lines are missing, as where a person copied a log's end."""
    for index in range(len(lines) - 1, 0, -1):
        raised = _SURELY_RAISED.match(lines[index]) if lines[index - 1][:1].isspace() else None
        frames = _frames_above(lines, index) if raised else []
        if raised and frames:
            return _raised(raised, frames, _message(raised["message"] or "", lines[index + 1 :], ""), index)
    return None


def _frames_above(lines: list[str], row: int) -> list[re.Match[str]]:
    """The frames right above; none where a heading begins them, which says that they are of something else."""
    found: list[re.Match[str]] = []
    for line in reversed(lines[max(0, row - _MOST_FRAMES) : row]):
        if not line[:1].isspace():
            return [] if "(most recent call " in line else found
        frame = _FRAME.match(line)
        if frame and frame["function"]:
            found.insert(0, frame)
    return found


def _raised(raised: re.Match[str], frames: list[re.Match[str]], message: str, row: int) -> PythonException:
    """What was raised in the last of the frames that are not a library's."""
    own = [frame for frame in frames if not in_library(frame["file"])]
    file, line, function = (own or frames)[-1].group("file", "line", "function")
    return PythonException(raised["type"], message, file, int(line), function, row, hides=_hidden(frames, file))


def _hidden(frames: list[re.Match[str]], file: str) -> str:
    """The module that a library wanted to import when Python ran `file` instead, such as queue for /job/queue.py.

    Where the file's own folder is first on the import path, its name wins.  What starts programs or imports by a text
    may mean the file.
    """
    name = os.path.splitext(os.path.basename(file))[0]
    if name not in getattr(sys, "stdlib_module_names", ()):  # Python 3.9 does not know them
        return ""
    for importer, frame in zip(frames, frames[1:]):
        if frame["file"] == file and frame["function"] == "<module>":
            imports = in_library(importer["file"]) and not _STARTS.search(importer["file"])
            return name if imports else ""
    return ""


def _exception(lines: list[str], index: int, prefix: str) -> PythonException | None:
    """The exception of the traceback whose header is lines[index]; None where the log breaks off before it."""
    if prefix.endswith("+ "):  # an exception group draws its frames behind a bar
        prefix = prefix[:-2] + "| "
    body = lines[index + 1 :]
    if prefix and not (body and body[0].startswith(prefix)):
        prefix = _margin(body[0]) if body else ""  # only the header follows a log record's text on its line
    frames = []
    for number, line in enumerate(body):
        if "Traceback (most recent call last)" in line:
            return None  # another one begins; reading on behind each of thousands would take for ever
        if line and prefix.isspace() and not line.startswith(prefix):
            return None
        line = line[len(prefix) :] if line.startswith(prefix) else line
        frame = _FRAME.match(line)
        if frame:
            frames.append(frame)
        elif line and not line[0].isspace():
            raised = _RAISED.match(line)
            if raised and frames:
                message = _message(raised["message"] or "", body[number + 1 :], prefix)
                return _raised(raised, frames, message, index + 1 + number)
    return None


def _margin(frame: str) -> str:
    """What is before a traceback that was indented, as torchrun does in its table."""
    found = _FRAME.match(frame)
    return " " * max(0, len(frame) - len(frame.lstrip(" ")) - 2) if found else ""


def _message(first: str, lines: list[str], prefix: str) -> str:
    """The whole message; lines: those after its first one."""
    message = "\n".join([first, *_rest(lines, prefix)]).strip()
    if not message or _REFERS.search(message):
        message = f"{message}\n{_section(lines, prefix)}".strip()
    return message


def _section(lines: list[str], prefix: str) -> str:
    """The text of MindSpore's first section, such as "Kernel error", for a message that is empty or refers to it."""
    text = "\n".join(line[len(prefix) :] for line in lines[: 2 * _MOST_MESSAGE])
    head = _SECTION.match(text)
    return "\n".join(_rest(text[head.end() :].split("\n"), "")) if head else ""


def _rest(lines: list[str], prefix: str) -> list[str]:
    """The further lines of a message: up to an empty one, or one that clearly belongs to something else."""
    found = []
    for line in lines[: _MOST_MESSAGE - 1]:
        if prefix and not line.startswith(prefix):
            break
        line = line[len(prefix) :]
        if not line.strip() or _NOT_MESSAGE.match(line) or _HEADER.match(line):
            break
        found.append(line)
    return found
