"""The lines of a log that look like errors, for an unknown failure: a few from its beginning and its end."""

from __future__ import annotations

import re

MOST_BYTES = 64 << 10  # of the beginning, and of the end: what a log of gigabytes costs here is some ms
_MOST = 6  # lines of each
LONGEST = 1000  # bytes of a line
_SOUNDS = re.compile(
    rb"ERROR|CRITICAL|FATAL|[Ee]rror\b|[Ff]atal\b|\b[Ff]ail(?:ed|ure)\b|Traceback|\bpanic\b|[Kk]illed\b"
    rb"|\b[Aa]bort(?:ed|ing)?\b|core dumped|Segmentation fault|Bus error|\bSIG(?:SEGV|BUS|KILL|ABRT|ILL|FPE)\b"
    rb"|\bsignal \d|exit(?:ed)? (?:with )?(?:code|status)\b|[Cc]annot\b|[Cc]ould not\b|[Nn]o such\b|not found\b"
    rb"|\b(?:[A-Z]\w*)?Exception(?=:|\s*$)|\b[Bb]ad substitution\b"
    rb"|\b[Dd]enied\b|\b[Rr]efused\b|\bnot permitted\b|[Tt]imed? ?out\b|\b[Ii]nvalid\b|[Uu]nable to\b"
    rb"|\b[Uu]nexpected\b|\b[Ii]nsufficient\b|Warning  +[A-Z]|unschedul|Evicted|OOMKilled|Pressure\b|BackOff\b"
)
_TEXTS = tuple(
    b"error|critical|fatal|fail|traceback|panic|killed|abort|core dumped|segmentation fault|sigsegv|sigbus|sigkill"
    b"|sigabrt|sigill|sigfpe|signal |exit|cannot|could not|no such|not found|not permitted|denied|refused"
    b"|timed out|timeout|time out|invalid|unable to|unexpected|insufficient|exception|bad substitution|warning  "
    b"|unschedul|evicted|pressure|backoff".split(b"|")
)
# Levels below an error, and counts of errors that are zero.
_IS_QUIET = re.compile(
    rb"\b(?:INFO|DEBUG|WARNING|EVENT|TRACE)\b|\b(?:0|[Nn]o) (?:errors?|fail(?:ed|ures?))\b"
    rb"|(?:[Ee]rrors?|[Ff]ail(?:ed|ures?)|status|code)[\"']?[:=]? ?0\b"
)
# Of a part of MindSpore's messages, and of a traceback: its last line says more, and one that was cut off says nothing.
# A source line, which a traceback shows, says nothing either.
_IS_HEADING = re.compile(
    rb"\s*-\s?[\w' +-]{1,60}:?(?:\s*\(For [\w ]{1,40}\))?\s*|.{0,200}Traceback \(most recent call last\):\s*"
    rb"|(?:.{0,120}[\]):])?\s{2,}raise [A-Za-z_].*"
)
_IS_LOUD = re.compile(rb"\b(?:ERROR|CRITICAL|FATAL)\b")


def of_log(head: bytes, end: bytes, rows: int, *, whole: bool) -> list[tuple[int, bytes]]:
    """[(row, line)] of the first few and the last few; rows count from 1.

    head, end: the first and the last bytes of the log; rows: how many line ends it has; whole: `head` is all of it.
    """
    covered = len(head) if whole else head.rfind(b"\n") + 1
    found = _lines(head[:covered], 0)
    if not whole:
        seen = head.count(b"\n")
        end = end[-MOST_BYTES:]
        end = end[end.find(b"\n") + 1 :]
        last = _lines(end, max(0, rows - end.count(b"\n")))
        return found[:_MOST] + [pair for pair in last if pair[0] > seen][-_MOST:]
    return found if len(found) <= 2 * _MOST else found[:_MOST] + found[-_MOST:]


def _lines(data: bytes, before: int) -> list[tuple[int, bytes]]:
    """before: how many rows come before the data."""
    found, counted, row = [], 0, before + 1
    for begin, end in _places(data):
        row += data.count(b"\n", counted, begin)
        counted = begin
        line = data[begin : min(end, begin + LONGEST)]
        if not _SOUNDS.search(line) or _IS_HEADING.fullmatch(line):
            continue
        if _IS_LOUD.search(line) or not _IS_QUIET.search(line):
            found.append((row, line))
    return found


def _places(data: bytes) -> list[tuple[int, int]]:
    """(begin, end) of the lines that may sound like an error: a search for texts is faster than the expression."""
    lower = data.lower()
    found = {}
    for text in _TEXTS:
        place = lower.find(text)
        while place >= 0:
            end = lower.find(b"\n", place)
            end = len(data) if end < 0 else end
            found[lower.rfind(b"\n", 0, place) + 1] = end
            place = lower.find(text, end)
    return sorted(found.items())
