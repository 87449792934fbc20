"""Reads one log of any size, in blocks, and keeps what explains a failure: a few kilobytes, however large it is."""

from __future__ import annotations

import re
from functools import cache

from hccl_tools.common.record import Record, Row
from tools.logs import events, kinds, log_tail, loud, matcher, plog, pytest_report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from gzip import GzipFile
    from typing import IO

    from tools.logs.known_failures import KnownFailure
    from tools.logs.matcher import Want
    from tools.logs.raised import PythonException

BLOCK = 4 << 20
_LONGEST = 4000  # characters of a line
_SHOWN = 3  # lines of a known failure that are kept
_AROUND = 8  # lines of a record
_MOST_EVENTS = 300  # of one log: thousands of ranks have one each
_SOURCE = re.compile(r'\s*File "[^"]+", line \d+')
_ERROR, _CRITICAL = b"[ERROR]", b"[CRITICAL]"
_EXCEPTIONS = (b"Traceback (most recent call last)", *pytest_report.MARKS)
_CLEAN = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]|[\x00-\x08\x0b-\x1f\x7f]+"
)


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
    """What one log says."""

    path: str
    kind: str
    owner: kinds.Owner
    size: int = 0
    first: float | None = None  # time of its first line, and of its last one
    last: float | None = None
    errors: int = 0
    error: Seen | None = None  # its first error that does not follow from a wait
    pids: tuple[int, ...] = ()
    hits: tuple[Hit, ...] = ()
    events: tuple[events.Event, ...] = ()
    exception: PythonException | None = None  # that ended the program
    trouble: str = ""  # why it could not be read, or not to its end
    loud: tuple[Seen, ...] = ()  # lines that look like errors, where nothing else is found


class Machine:
    """What is looked for in the logs of one kind."""

    def __init__(self, entries: list[KnownFailure], kind: str, fast: bool) -> None:
        self.kind = kind
        self._of: list[list[int]] = []  # by what is wanted: the entries; -1 - N: the form N of events
        self._wanted: list[Want] = []
        self._numbers: dict[bytes | str, int] = {}
        self.entries = entries
        for number, entry in enumerate(entries):
            if kind in entry.logs:
                for words in entry.words:
                    self._add(max(words, key=len).encode(), number)
                for pattern in entry.patterns:
                    self._add(pattern, number)
        if kind != kinds.HOST:
            for number, form in enumerate(events.FORMS):
                for text in form.texts:
                    self._add(text.encode(), -1 - number)
            for mark in (_ERROR, _CRITICAL, *_EXCEPTIONS):
                self._add_alone(mark)
        self._matcher = matcher.matcher_of(self._wanted, fast)

    def _add(self, want: Want, meaning: int) -> None:
        key = want if isinstance(want, bytes) else want.pattern
        if key not in self._numbers:
            self._numbers[key] = len(self._wanted)
            self._wanted.append(want)
            self._of.append([])
        self._of[self._numbers[key]].append(meaning)

    def _add_alone(self, want: bytes) -> None:
        self._numbers.setdefault(want, len(self._wanted))
        if self._numbers[want] == len(self._wanted):
            self._wanted.append(want)
            self._of.append([])

    def begin(self) -> None:
        """A new log begins."""
        self._matcher.restart()

    def errors(self) -> int:
        """How many errors the log has had so far."""
        return sum(self._matcher.found[self._numbers[text]] for text in (_ERROR, _CRITICAL) if text in self._numbers)

    def raised(self) -> bool:
        """Whether the log has a traceback or a report of pytest so far."""
        return any(self._matcher.found[self._numbers[mark]] for mark in _EXCEPTIONS if mark in self._numbers)

    def lines(self, block: bytes) -> Iterator[tuple[int, int, list[int]]]:
        """(begin, end, meanings) of each line of the block in which something was found, in order."""
        begin = end = -1
        meanings: list[int] = []
        for place, number in self._matcher.find(block):
            if place >= end:
                if end >= 0:
                    yield begin, end, meanings
                begin = block.rfind(b"\n", 0, place) + 1
                end = block.find(b"\n", place)
                end = len(block) if end < 0 else end
                meanings = []
            meanings += (meaning for meaning in self._of[number] if meaning not in meanings)
        if end >= 0:
            yield begin, end, meanings


class _Reader:
    """The state while one log is read."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.hits: dict[int, Hit] = {}
        self.events: list[events.Event] = []
        self.error: Seen | None = None
        self.first: float | None = None
        self.last: float | None = None
        self.pids: dict[int, None] = {}
        self.rows = 0
        self.end = b""

    def take(self, block: bytes) -> None:
        """The next lines of the log."""
        counted, row = 0, self.rows
        for begin, end, meanings in self.machine.lines(block):
            row += block.count(b"\n", counted, begin)
            counted = begin
            self._line(block, begin, end, row + 1, meanings)
        self.rows += block.count(b"\n")
        self.end = (block if len(block) >= log_tail.MOST_BYTES else self.end + block)[-log_tail.MOST_BYTES :]
        self._times(block)

    def exception(self) -> PythonException | None:
        """The one that ended the program; its row counts from the log's beginning."""
        if not self.machine.raised():
            return None
        lines = log_tail.lines_of(self.end)
        found = log_tail.last_exception(lines)
        return found and found._replace(row=found.row + self.rows - len(lines))

    def loud(self, head: bytes) -> tuple[Seen, ...]:
        """What looks like errors at the beginning, `head`, and at the end."""
        lines = [(row, clean(line)) for row, line in loud.of_log(head, self.end, self.rows)]
        return tuple(Seen(plog.seconds(line[:80]), row, line) for row, line in lines)

    def _times(self, block: bytes) -> None:
        if self.first is None:
            self.first = plog.seconds(block[:400].decode("utf-8", "replace"))
        tail = block[-800:].decode("utf-8", "replace").rstrip("\n").rpartition("\n")[2]
        time = plog.seconds(tail)
        self.last = self.last if time is None else time

    def _line(self, block: bytes, begin: int, end: int, row: int, meanings: list[int]) -> None:
        line = clean(block[begin : min(end, begin + _LONGEST)])
        head = plog.parse(line)
        time = head.time if head else plog.seconds(line[:80])
        if head and len(self.pids) < 8:
            self.pids[head.pid] = None
        for meaning in meanings:
            if meaning < 0 and len(self.events) < _MOST_EVENTS:
                event = events.parse(events.FORMS[-1 - meaning], line, time, row)
                if event:
                    self.events.append(event)
        if head and head.level in plog.LOUD and self.error is None and not events.FOLLOWS.search(line):
            self.error = Seen(time, row, line[-1000:])
        if not (head and head.level in plog.QUIET):
            self._known(block, begin, end, row, time, line, sorted(m for m in meanings if m >= 0))

    def _known(
        self, block: bytes, begin: int, end: int, row: int, time: float | None, line: str, entries: list[int]
    ) -> None:
        if not entries or (self.machine.kind == kinds.TRAIN and _is_source(block, begin, line)):
            return
        record = None
        for number in entries:
            entry = self.machine.entries[number]
            taken = entry.takes(line)
            if not taken and entry.words and self.machine.kind == kinds.TRAIN:
                record = _around(block, begin, end) if record is None else record
                taken = entry.takes(record)
            if taken:
                hit = self.hits.get(number) or Hit(number, 0, [])
                seen = [*hit.seen, Seen(time, row, line)] if len(hit.seen) < _SHOWN else hit.seen
                self.hits[number] = Hit(number, hit.times + 1, seen)
                return


def clean(line: bytes) -> str:
    """A line without what moves a terminal's cursor; bytes that are not UTF-8 become replacement characters."""
    return _CLEAN.sub("", line.decode("utf-8", "replace"))


def _is_source(block: bytes, begin: int, line: str) -> bool:
    """Whether the line is the source code that a traceback shows: it is not an event."""
    if _SOURCE.match(line):
        return True
    before = block[max(0, block.rfind(b"\n", 0, max(0, begin - 1)) + 1) : max(0, begin - 1)]
    return line[:1].isspace() and bool(_SOURCE.match(before[:_LONGEST].decode("utf-8", "replace")))


def _around(block: bytes, begin: int, end: int) -> str:
    for _ in range(_AROUND):
        begin = max(0, block.rfind(b"\n", 0, max(0, begin - 1)) + 1)
        following = block.find(b"\n", end + 1)
        end = len(block) if following < 0 else following
    return clean(block[begin : min(end, begin + 8 * _LONGEST)].replace(b"\n", b"\t")).replace("\t", "\n")


@cache
def _machine(kind: str, fast: bool) -> Machine:
    return Machine(_ENTRIES, kind, fast)


_ENTRIES: list[KnownFailure] = []


def use(entries: list[KnownFailure]) -> None:
    """The table of known failures, for all logs from now on."""
    if entries != _ENTRIES:
        _ENTRIES[:] = entries
        _machine.cache_clear()


def ready(kind: str, fast: bool) -> None:
    """Prepares to read logs of this kind: processes that are forked later have it, too."""
    _machine(kind, fast)


def read(file: IO[bytes] | GzipFile, name: str, fast: bool, path: str = "") -> Findings | None:
    """What the log says; None, if it is none.  Raises OSError, EOFError and zlib.error: of a damaged archive.

    name: below what the user named, by which it is known whose log it is; path: as a person finds it.
    """
    owner = kinds.owner_of(name)
    block = file.read(BLOCK)
    kind, head = kinds.kind_of(name, block[:4096]), block[: loud.MOST_BYTES]
    if kind not in kinds.KINDS:
        return None
    machine = _machine(kind, fast)
    machine.begin()
    reader = _Reader(machine)
    size, rest, trouble = 0, b"", ""
    while block:
        size += len(block)
        cut = block.rfind(b"\n") + 1
        if cut or len(rest) + len(block) > 4 * BLOCK:  # a line of megabytes is cut
            cut = cut or len(block)
            reader.take(rest + block[:cut])
            rest = block[cut:]
        else:
            rest += block
        try:
            block = file.read(BLOCK)
        except (OSError, EOFError, ValueError) as error:
            trouble, block = str(error), b""
    if rest:
        reader.take(rest)
    return Findings(
        path=path or name,
        kind=kind,
        owner=owner,
        size=size,
        first=reader.first,
        last=reader.last,
        errors=machine.errors(),
        error=reader.error,
        pids=tuple(reader.pids),
        hits=tuple(sorted(reader.hits.values())),
        events=tuple(reader.events),
        exception=reader.exception(),
        trouble=trouble,
        loud=() if reader.hits else reader.loud(head),
    )
