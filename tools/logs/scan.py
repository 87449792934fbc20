"""Reads one log of any size in blocks, and keeps a few kilobytes that explain a failure."""

from __future__ import annotations

from functools import cache

from tools.logs import crash, events, line_heads, log_tail, matcher, owners, pytest_report, voices
from tools.logs.findings import Findings, Hit, Seen
from tools.logs.reader import Reader
from tools.logs.wanted import MOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from gzip import GzipFile
    from typing import IO

    from tools.logs.known_failures import KnownFailure
    from tools.logs.wanted import Want

__all__ = ["Findings", "Hit", "Seen", "read", "read_all", "ready", "use"]
BLOCK = 4 << 20
_LEAST_TAIL, _MOST_TAILS = 16 << 10, 32 << 20  # bytes of a log's end that are kept, and those of all ranks of one file
_ERROR, _CRITICAL = b"[ERROR]", b"[CRITICAL]"
_EXCEPTIONS = (b"Traceback (most recent call last)", b'  File "', crash.MARK, *pytest_report.MARKS)


class Machine:
    """The search patterns for the logs of one kind."""

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
        if kind != owners.HOST:
            for number, form in enumerate(events.FORMS):
                for text in form.texts:
                    self._add(text.encode(), -1 - number)
            for mark in (_ERROR, _CRITICAL, *_EXCEPTIONS):
                self._add_alone(mark)
        self._matcher = matcher.matcher_of(self._wanted, fast)
        self._of_each_rank = [
            (text.encode(), -1 - number)
            for number, form in enumerate(events.FORMS)
            if form.kind in events.OF_EACH_RANK and kind != owners.HOST
            for text in form.texts
        ]

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
        """Continues with one of several logs."""
        self._matcher.found = found

    def errors(self) -> int:
        """How many errors the log has had so far."""
        return sum(self._matcher.found[self._numbers[text]] for text in (_ERROR, _CRITICAL) if text in self._numbers)

    def raised(self) -> bool:
        """Whether the log has a traceback or a report of pytest so far."""
        return any(self._matcher.found[self._numbers[mark]] for mark in _EXCEPTIONS if mark in self._numbers)

    def crowds(self) -> list[tuple[bytes, int]]:
        """(text, meaning) of lines that each rank has, and that came more often than the search reports."""
        return [pair for pair in self._of_each_rank if self._matcher.found[self._numbers[pair[0]]] > MOST]

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
    """The findings of the whole log, see `read_all`; in a log of several ranks, those of the first one."""
    found = read_all(file, name, fast, path)
    return found[0] if found else None


def read_all(file: IO[bytes] | GzipFile, name: str, fast: bool, path: str = "", again: bool = True) -> list[Findings]:
    """The findings for each rank with lines in the log; empty, if it is not a log.

    name: below what the user named, by which it is known whose log it is; path: as a person finds it; again: the file
    can be read a second time.
    Raises OSError, EOFError and zlib.error: of a damaged archive.
    """
    head = file.read(BLOCK)
    in_docker = line_heads.is_docker(head)
    begin = line_heads.undockered(head[:4096]) if in_docker else head[:4096]
    of_kernel = owners.is_of_kernel(name, begin)
    begin = line_heads.bare(begin.decode("latin-1")).encode("latin-1")
    kind = owners.kind_of(name, begin)
    kind = owners.HOST if kind == owners.TRAIN and of_kernel else kind
    if kind not in owners.KINDS:
        return []
    owner = owners.of_name(name)
    if kind == owners.HOST:
        owner = owner._replace(role=owners.SYSTEM)
    elif owners.is_of_pod(begin):
        owner = owner._replace(role=owners.ENGINE, rank=None)
    told = voices.Voices(named=owner.rank is not None)
    whole, readers = _Whole(file, in_docker), _Readers(_machine(kind, fast))
    readers.read(whole.blocks(head), told)
    if again and told.by_chance and readers.only_others_failed():
        file.seek(0)
        told = voices.Voices(divide=False)
        whole, readers = _Whole(file, in_docker), _Readers(readers.machine)
        readers.read(whole.blocks(file.read(BLOCK)), told)
    return readers.findings(path or name, owner, told, whole)


class _Readers:
    """One for each voice of a file."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._of: dict[voices.Voice | None, Reader] = {}

    def read(self, blocks: Iterator[bytes], told: voices.Voices) -> None:
        """Gives each its lines."""
        for block in blocks:
            for part in told.take(line_heads.without_colours(block)):
                self._give(part)
        for part in told.rest():
            self._give(part)

    def _give(self, part: voices.Part) -> None:
        reader = self._of.get(part.voice)
        if reader is None:
            reader = self._of[part.voice] = Reader(self.machine)
        most = max(_LEAST_TAIL, min(log_tail.MOST_BYTES, _MOST_TAILS // len(self._of)))
        reader.take(part.block, part.rows, most)

    def only_others_failed(self) -> bool:
        """Whether only lines without a name say what failed: a program whose own lines begin with names by chance."""
        others = self._of.get(None)
        named = (one for voice, one in self._of.items() if voice)
        return others is not None and others.raised() and not any(one.says_why() for one in named)

    def findings(self, path: str, owner: owners.Owner, told: voices.Voices, whole: _Whole) -> list[Findings]:
        """The findings of each."""
        found = []
        for voice, reader in self._of.items() or [(None, Reader(self.machine))]:
            voice = told.called(voice) or told.one
            whose = owners.of_lines(owner, voice, told.ranked, reader.events, reader.program)
            size = whole.size if len(self._of) < 2 else reader.size
            found.append(reader.findings(path, whose, size, whole.trouble))
        return found


class _Whole:
    """A file in blocks."""

    def __init__(self, file: IO[bytes] | GzipFile, in_docker: bool) -> None:
        self._file = file
        self._in_docker = in_docker
        self.size = 0
        self.trouble = ""  # why it could not be read to its end

    def blocks(self, block: bytes) -> Iterator[bytes]:
        """Blocks of whole lines, as they were printed; block: the file's first bytes."""
        return map(line_heads.undockered, self._blocks(block)) if self._in_docker else self._blocks(block)

    def _blocks(self, block: bytes) -> Iterator[bytes]:
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
