"""Reads one log of any size, in blocks, and keeps what explains a failure: a few kilobytes, however large it is."""

from __future__ import annotations

from array import array
from functools import cache

from tools.logs import aftermath, events, kinds, line_heads, log_tail, matcher, owners, plog, pytest_report, voices
from tools.logs.findings import Findings, Hit, Seen
from tools.logs.line_heads import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from gzip import GzipFile
    from typing import IO

    from tools.logs.known_failures import KnownFailure
    from tools.logs.raised import PythonException
    from tools.logs.wanted import Want

__all__ = ["Findings", "Hit", "Seen", "clean", "read", "read_all", "ready", "use"]
BLOCK = 4 << 20
_LONGEST = matcher.LONGEST  # characters of a line
_SHOWN = 3  # lines of a known failure that are kept
_MOST_EVENTS = 300  # of one log: thousands of ranks have one each
_LEAST_TAIL, _MOST_TAILS = 16 << 10, 32 << 20  # bytes of a log's end that are kept, and those of all ranks of one file
_ERROR, _CRITICAL = b"[ERROR]", b"[CRITICAL]"
_EXCEPTIONS = (b"Traceback (most recent call last)", *pytest_report.MARKS)


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
                for expression in entry.expressions:
                    self._add(expression, number)
        if kind != kinds.HOST:
            for number, form in enumerate(events.FORMS):
                for text in form.texts:
                    self._add(text.encode(), -1 - number)
            for mark in (_ERROR, _CRITICAL, *_EXCEPTIONS):
                self._add_alone(mark)
        self._matcher = matcher.matcher_of(self._wanted, fast)

    def _add(self, want: Want, meaning: int) -> None:
        key = want if isinstance(want, bytes) else want.source
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

    def begin(self) -> list[int]:
        """A new log begins; the result is what `resume` takes."""
        self._matcher.restart()
        return self._matcher.found

    def resume(self, found: list[int]) -> None:
        """One of several logs goes on."""
        self._matcher.found = found

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
        self.found = machine.begin()
        self.hits: dict[int, Hit] = {}
        self.events: list[events.Event] = []
        self.error: Seen | None = None
        self.wrapper: Seen | None = None  # the first that says only what failed
        self.first: float | None = None
        self.last: float | None = None
        self.pids: dict[int, None] = {}
        self.rows = self.size = 0
        self.program = ""  # whose plog it is
        self.end = b""
        self.end_rows = array("I")

    def take(self, block: bytes, rows: array[int] | None = None, tail: int = log_tail.MOST_BYTES) -> None:
        """The next lines of the log.  rows: their numbers, where others' lines are between; tail: bytes to keep."""
        self.machine.resume(self.found)
        counted, row = 0, self.rows
        for begin, end, meanings in self.machine.lines(block):
            row += block.count(b"\n", counted, begin)
            counted = begin
            self._line(block, begin, end, rows[row - self.rows] if rows else row + 1, meanings)
        self.rows += block.count(b"\n")
        self.size += len(block)
        self.end = (self.end + block[-tail:])[-tail:]
        if rows:
            self.end_rows = (self.end_rows + rows)[-self.end.count(b"\n") - 1 :]
        self._times(block)

    def findings(self, path: str, owner: kinds.Owner, size: int, trouble: str) -> Findings:
        """What was found."""
        self.machine.resume(self.found)
        return Findings(
            path=path,
            kind=self.machine.kind,
            owner=owner,
            size=size,
            first=self.first,
            last=self.last,
            errors=self.machine.errors(),
            error=self.error,
            wrapper=self.wrapper,
            pids=tuple(self.pids),
            hits=tuple(sorted(self.hits.values())),
            events=tuple(self.events),
            exception=self._exception(),
            trouble=trouble,
        )

    def _exception(self) -> PythonException | None:
        """The one that ended the program; its row counts from the log's beginning."""
        if not self.machine.raised():
            return None
        told = log_tail.lines_of(self.end)
        found = log_tail.last_exception(told)
        if found is None:
            return None
        time = line_heads.time_of(told[found.row])
        row = self.end_rows[found.row - len(told)] - 1 if self.end_rows else found.row + self.rows - len(told)
        return found._replace(row=row, time=time)

    def _times(self, block: bytes) -> None:
        if self.first is None:
            self.first = line_heads.time_of(block[:400].decode("utf-8", "replace"))
        tail = block[-800:].decode("utf-8", "replace").rstrip("\n").rpartition("\n")[2]
        time = line_heads.time_of(tail)
        self.last = self.last if time is None else time

    def _line(self, block: bytes, begin: int, end: int, row: int, meanings: list[int]) -> None:
        line = clean(block[begin : min(end, begin + _LONGEST)])
        head = plog.parse(line)
        time = head.time if head else line_heads.time_of(line)
        if head and len(self.pids) < 8:
            self.pids[head.pid] = None
            self.program = self.program or head.program
        for meaning in meanings:
            if meaning < 0 and len(self.events) < _MOST_EVENTS:
                event = events.parse(events.FORMS[-1 - meaning], line, time, row)
                if event:
                    self.events.append(event)
        if head and head.level in plog.LOUD and self.error is None and not aftermath.follows(line):
            if not aftermath.wraps(line):
                self.error = Seen(time, row, line[-1000:])
            elif self.wrapper is None:
                self.wrapper = Seen(time, row, line[-1000:])
        if not (head and head.level in plog.QUIET):
            self._known(block, begin, end, row, time, line, sorted(m for m in meanings if m >= 0))

    def _known(
        self, block: bytes, begin: int, end: int, row: int, time: float | None, line: str, entries: list[int]
    ) -> None:
        if not entries or (self.machine.kind == kinds.TRAIN and line_heads.is_source(block, begin, line)):
            return
        record = None
        for number in entries:
            entry = self.machine.entries[number]
            taken = entry.takes(line)
            if not taken and entry.words and self.machine.kind == kinds.TRAIN:
                record = line_heads.around(block, begin, end) if record is None else record
                taken = entry.takes(record)
            if taken:
                hit = self.hits.get(number) or Hit(number, 0, [])
                seen = [*hit.seen, Seen(time, row, line)] if len(hit.seen) < _SHOWN else hit.seen
                self.hits[number] = Hit(number, hit.times + 1, seen)
                return


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
    """What the log says as a whole, see `read_all`: where it is of several ranks, what the first of them says."""
    found = read_all(file, name, fast, path)
    return found[0] if found else None


def read_all(file: IO[bytes] | GzipFile, name: str, fast: bool, path: str = "") -> list[Findings]:
    """What the log says, for each rank whose lines it has; empty, if it is none.

    name: below what the user named, by which it is known whose log it is; path: as a person finds it.
    Raises OSError, EOFError and zlib.error: of a damaged archive.
    """
    head = file.read(BLOCK)
    kind = kinds.kind_of(name, line_heads.bare(head[:4096].decode("latin-1")).encode("latin-1"))
    if kind not in kinds.KINDS:
        return []
    owner = kinds.owner_of(name)
    told = voices.Voices(named=owner.rank is not None)
    readers: dict[voices.Voice | None, _Reader] = {}
    machine = _machine(kind, fast)
    whole = _Whole(file)
    for block in whole.blocks(head):
        for part in told.take(line_heads.without_colours(block)):
            _give(part, readers, machine)
    for part in told.rest():
        _give(part, readers, machine)
    found = []
    for voice, reader in readers.items() or [(None, _Reader(machine))]:
        whose = owners.of_lines(owner, voice or told.one, told.ranked, reader.events, reader.program)
        size = whole.size if len(readers) < 2 else reader.size
        found.append(reader.findings(path or name, whose, size, whole.trouble))
    return found


def _give(part: voices.Part, readers: dict[voices.Voice | None, _Reader], machine: Machine) -> None:
    reader = readers.get(part.voice)
    if reader is None:
        reader = readers[part.voice] = _Reader(machine)
    reader.take(part.block, part.rows, max(_LEAST_TAIL, min(log_tail.MOST_BYTES, _MOST_TAILS // len(readers))))


class _Whole:
    """A file in blocks."""

    def __init__(self, file: IO[bytes] | GzipFile) -> None:
        self._file = file
        self.size = 0
        self.trouble = ""  # why it could not be read to its end

    def blocks(self, block: bytes) -> Iterator[bytes]:
        """Blocks of whole lines; block: the file's first bytes."""
        rest = b""
        while block:
            self.size += len(block)
            cut = block.rfind(b"\n") + 1
            if cut or len(rest) + len(block) > 4 * BLOCK:  # a line of megabytes is cut
                cut = cut or len(block)
                yield rest + block[:cut]
                rest = block[cut:]
            else:
                rest += block
            try:
                block = self._file.read(BLOCK)
            except (OSError, EOFError, ValueError) as error:
                self.trouble, block = str(error), b""
        if rest:
            yield rest
