"""The state while one log, or one rank's lines in it, is read."""

from __future__ import annotations

from array import array

from tools.logs import aftermath, events, line_heads, log_tail, loud, matcher, owners, plog
from tools.logs.findings import Findings, Hit, Seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.logs.findings import PythonException
    from tools.logs.scan import Machine

_LONGEST = matcher.LONGEST  # characters of a line
_SHOWN = 3  # lines of a known failure that are kept
_MOST_EVENTS = 300  # of one log: thousands of ranks have one each
_MOST_RANKS = 1 << 17  # such events of one log as each rank has


class Reader:
    """The findings so far."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.found = machine.begin()
        self.hits: dict[int, Hit] = {}
        self.events: list[events.Event] = []
        self.ranks = 0  # of the events those that each rank has
        self.told: dict[int, int] = {}  # of these the last row, by the number of the form
        self.error: Seen | None = None
        self.wrapper: Seen | None = None  # the first that states only what failed
        self.first: float | None = None
        self.last: float | None = None
        self.pids: dict[int, None] = {}
        self.rows = self.size = 0
        self.program = ""  # whose plog it is
        self.head = self.end = b""
        self.head_rows, self.end_rows = array("I"), array("I")

    def take(self, block: bytes, rows: array[int] | None = None, tail: int = log_tail.MOST_BYTES) -> None:
        """The next lines of the log.  rows: their numbers, where others' lines are between; tail: bytes to keep."""
        self.machine.resume(self.found)
        counted, row = 0, self.rows
        for begin, end, meanings in self.machine.lines(block):
            row += block.count(b"\n", counted, begin)
            counted = begin
            self._line(block, begin, end, rows[row - self.rows] if rows else row + 1, meanings)
        for text, meaning in self.machine.crowds():
            self._crowd(block, rows, text, meaning)
        self.rows += block.count(b"\n")
        self._keep_head(block, rows, tail)
        self.size += len(block)
        self.end = (self.end + block[-tail:])[-tail:]
        if rows:
            self.end_rows = (self.end_rows + rows)[-self.end.count(b"\n") - 1 :]
        self._times(block)

    def findings(self, path: str, owner: owners.Owner, size: int, trouble: str) -> Findings:
        """What was found."""
        self.machine.resume(self.found)
        loud_lines = () if self.hits else self._loud()
        return Findings(
            path=path,
            kind=self.machine.kind,
            owner=owner,
            size=size,
            rows=self.end_rows[-1] if self.end_rows else self.rows,
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
            loud=loud_lines,
            end="" if self.hits or loud_lines else self._last_line(),
        )

    def raised(self) -> bool:
        """Whether an exception of the program itself, not of another process, has ended it."""
        self.machine.resume(self.found)
        found = self._exception()
        return found is not None and not aftermath.wraps(found.text) and not aftermath.follows(found.text)

    def says_why(self) -> bool:
        """Whether it has anything that may be a cause."""
        return bool(self.error or self.wrapper or self.hits or self.events or self.raised())

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

    def _keep_head(self, block: bytes, rows: array[int] | None, most: int) -> None:
        """Keeps the log's first lines; most: bytes."""
        if self.size < most:
            more = block[: min(most, loud.MOST_BYTES) - self.size]
            self.head += more
            self.head_rows += rows[: more.count(b"\n") + 1] if rows else array("I")

    def _loud(self) -> tuple[Seen, ...]:
        """What looks like errors at the beginning and at the end."""
        found = []
        for row, data in loud.of_log(self.head, self.end, self.rows, whole=self.size == len(self.head)):
            line = line_heads.clean(data)
            found.append(Seen(line_heads.time_of(line), self._row(row), line))
        return tuple(found)

    def _last_line(self) -> str:
        """The last one that is not blank."""
        lines = log_tail.lines_of(self.end[-loud.LONGEST :])
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def _row(self, row: int) -> int:
        """The row in the file of one of this rank's lines, the first or the last ones; row: counted from 1."""
        if not self.end_rows:
            return row
        return self.head_rows[row - 1] if row <= len(self.head_rows) else self.end_rows[row - 1 - self.rows]

    def _times(self, block: bytes) -> None:
        if self.first is None:
            self.first = line_heads.time_of(block[:400].decode("utf-8", "replace"))
        tail = block[-800:].decode("utf-8", "replace").rstrip("\n").rpartition("\n")[2]
        time = line_heads.time_of(tail)
        self.last = self.last if time is None else time

    def _line(self, block: bytes, begin: int, end: int, row: int, meanings: list[int]) -> None:
        line = line_heads.clean(block[begin : min(end, begin + _LONGEST)])
        head = plog.parse(line)
        time = head.time if head else line_heads.time_of(line)
        if head and len(self.pids) < 8:
            self.pids[head.pid] = None
            self.program = self.program or head.program
        for meaning in meanings:
            if meaning < 0:
                self._event(meaning, line, time, row)
        if head and head.level in plog.LOUD and self.error is None and not aftermath.follows(line):
            if not aftermath.wraps(line):
                self.error = Seen(time, row, line[-1000:])
            elif self.wrapper is None:
                self.wrapper = Seen(time, row, line[-1000:])
        if not (head and head.level in plog.QUIET):
            self._known(block, begin, end, row, time, line, sorted(m for m in meanings if m >= 0))

    def _event(self, meaning: int, line: str, time: float | None, row: int) -> None:
        form = events.FORMS[-1 - meaning]
        each = form.kind in events.OF_EACH_RANK
        if (self.ranks >= _MOST_RANKS) if each else (len(self.events) - self.ranks >= _MOST_EVENTS):
            return
        event = events.parse(form, line, time, row)
        if event:
            self.events.append(event)
            if each:
                self.ranks += 1
                self.told[meaning] = row

    def _crowd(self, block: bytes, rows: array[int] | None, text: bytes, meaning: int) -> None:
        """The lines that each rank has, where there are more than the search has told."""
        counted, row, place = 0, 0, block.find(text)
        while place >= 0 and self.ranks < _MOST_RANKS:
            row += block.count(b"\n", counted, place)
            counted = place
            begin, end = block.rfind(b"\n", 0, place) + 1, block.find(b"\n", place)
            end = len(block) if end < 0 else end
            number = rows[row] if rows else self.rows + row + 1
            if number > self.told.get(meaning, 0):
                line = line_heads.clean(block[begin : min(end, begin + _LONGEST)])
                head = plog.parse(line)
                self._event(meaning, line, head.time if head else line_heads.time_of(line), number)
            place = block.find(text, end)

    def _known(
        self, block: bytes, begin: int, end: int, row: int, time: float | None, line: str, entries: list[int]
    ) -> None:
        if not entries or (self.machine.kind == owners.TRAIN and _is_no_failure(block, begin, line)):
            return
        record = None
        for number in entries:
            entry = self.machine.entries[number]
            taken = entry.takes(line)
            if not taken and entry.words and self.machine.kind == owners.TRAIN:
                record = line_heads.around(block, begin, end) if record is None else record
                taken = entry.takes(record)
            if taken:
                hit = self.hits.get(number) or Hit(number, 0, [])
                seen = [*hit.seen, Seen(time, row, line)] if len(hit.seen) < _SHOWN else hit.seen
                self.hits[number] = Hit(number, hit.times + 1, seen)
                return


def _is_no_failure(block: bytes, begin: int, line: str) -> bool:
    return line_heads.is_source(block, begin, line) or plog.is_harmless(line)
