"""Determines which line belongs to which rank, in one file with the lines of many ranks.

    [1,3]<stderr>:text                  mpirun --tag-output, horovodrun
    [pod/train-worker-3/main] text      kubectl logs --prefix
    [default3]:text, [rank3]: text      torchrun --tee, PyTorch's tracebacks; both: [default3]:[rank11]: text
    3: text                             srun --label
    [3] text                            mpirun of MPICH and Intel
    trainer-3  | text                   docker compose
    node3: text                         pdsh, deepspeed

The first three forms are unambiguous, so one line is enough.  A line may begin with the others by chance.  They count
only if at least half of the first lines have them, and the same ones again and again.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from functools import cached_property

from hccl_tools.common.record import Record, Row
from tools.logs import line_heads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST = 2000  # voices of one file
_PIECE = 256 << 10  # bytes of one voice that are handed on together
_WAITING = 16 << 20  # bytes of all voices that wait for more
_LEAST = 3  # lines that must have a form that is not clear
_RECORD = 4  # bytes that array("I") takes


class Voice(Row):
    """The source of a line: a rank, a pod, a service or a host."""

    name: str
    rank: int | None


class _Form(Record):
    """How lines begin that state whose they are."""

    source: str  # what comes after the time: an expression that takes `rank`, `name` or `host`
    marks: tuple[bytes, ...] = ()  # one of them is in each block that has the form; none: it is not clear
    whole: bool = True  # each line of a voice has its name; otherwise those without a name may be its own
    local: bool = False  # the number is that of a rank on its host, or of a pod: the lines may say the rank

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """The expression, which also takes the time; it is compiled when a log needs it."""
        return re.compile(rf"(?P<time>(?:{line_heads.TIME})?){self.source}".encode())


def _form(source: str, *marks: bytes, whole: bool = True, local: bool = False) -> _Form:
    return _Form(source=source, marks=marks, whole=whole, local=local)


_FORMS = (
    _form(
        r"(?:\[pod/[\w./-]{1,320}\] ?)?"
        r"\[(?:[^\s\[\],@]{1,200}@)?(?:\d{1,9},)?(?P<rank>\d{1,7})\]<std(?:out|err|diag)>: ?",
        b"]<std",
    ),
    _form(
        r"\[pod/(?P<local>[\w.-]{1,253}/[\w.-]{1,63}\] ?\[default\d{1,7})\]: ?",
        b"] [default",
        b"][default",
        local=True,
    ),
    _form(r"\[pod/(?P<name>[\w.-]{1,253})/[\w.-]{1,63}\] ?", b"[pod/", local=True),
    _form(r"\[default(?P<rank>\d{1,7})\]: ?", b"[default", local=True),
    _form(r"\[[Rr]ank ?(?P<rank>\d{1,7})\]:? ?", b"[rank", b"[Rank", whole=False),
    _form(r"[Rr]ank ?(?P<rank>\d{1,7}): ", b": Traceback", whole=False),
)
_UNCLEAR = (
    _form(r" {0,6}(?P<rank>\d{1,7}):(?: |$)"),
    _form(r"\[(?P<rank>\d{1,7})\] "),
    _form(r"(?P<name>[A-Za-z][\w.-]{0,100}\d) +\| ?"),
    _form(r"[Rr]ank ?(?P<rank>\d{1,7}): "),
    _form(r"(?P<host>[A-Za-z][\w.-]{0,100}\d[\w.-]{0,100}): "),
)
# what a mark with a bracket has: one search of a block instead of one for each mark
_BRACKETED = re.compile(rb"\[(?:pod/|default|[rR]ank)")
_GLOBAL = re.compile(rf"(?:{line_heads.TIME})?\[[Rr]ank ?(\d{{1,7}})\]:".encode())
_MOST_RANKS = 2  # of one voice that are remembered: from two on it has none of its own
_IN_POD = re.compile(r"/.*\[default")
_NUMBER = re.compile(r"(?:rank|worker|replica|master|chief|trainer|task)[-_]?(\d{1,7})(?![A-Za-z])", re.IGNORECASE)
_LAST_NUMBER = re.compile(r"[-_](\d{1,7})$")


def rank_of(name: str) -> int | None:
    """The number of the rank in the name of a pod or a service; None where it has none."""
    found = _NUMBER.search(name) or _LAST_NUMBER.search(name)
    return int(found[1]) if found else None


_RANK_IN: dict[str, Callable[[str], int | None]] = {
    "rank": int,
    "name": rank_of,
    "host": lambda _: None,
    "local": lambda _: None,
}


class Part:
    """The next lines of one voice, and their rows in the file where these do not follow each other."""

    __slots__ = ("block", "rows", "voice")

    def __init__(self, voice: Voice | None, block: bytes, rows: array[int] | None = None) -> None:
        self.voice, self.block, self.rows = voice, block, rows


class _Waiting:
    """Lines of one voice."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.rows = array("I")
        self.size = 0


class Voices:
    """Takes the blocks of a file, and gives the lines of each voice."""

    def __init__(self, named: bool = False, divide: bool = True) -> None:
        """named: the file's name states whose it is, so that what is not clear does not count.

        divide: False, where nothing counts: the file is of one program.
        """
        self._named, self._divides = named, divide
        self._form: _Form | None = None
        self._known: dict[bytes, Voice] = {}
        self._waiting: dict[Voice | None, _Waiting] = {}
        self._said: dict[Voice, set[int]] = {}  # ranks that the lines of a voice name
        self._row = 0
        self.waits = 0  # bytes
        self._first = True

    @property
    def one(self) -> Voice | None:
        """The only voice of a file whose other lines may be its own, too."""
        return next(iter(self._known.values())) if len(self._known) == 1 and not self.split else None

    @property
    def ranked(self) -> bool:
        """Whether the sources are ranks; then the other lines are from the program that has started them."""
        return self.split and (bool(self._said) or any(voice.rank is not None for voice in self._known.values()))

    @property
    def by_chance(self) -> bool:
        """Whether lines of a single source may begin in this way: only their content can decide."""
        return self.split and self._form is not None and (self._form in _UNCLEAR or not self._form.whole)

    def called(self, voice: Voice | None) -> Voice | None:
        """The voice with the rank that its own lines state, where its name has that of a host's rank, or of a pod."""
        if not voice or not self._said:
            return voice
        said = self._said.get(voice)
        if said:
            return voice._replace(rank=next(iter(said)) if len(said) == 1 else None)
        # the number on a host: ranks of one host follow one another
        firsts = {rank - (one.rank or 0) for one, ranks in self._said.items() for rank in ranks}
        known = len(firsts) == 1 and voice.rank is not None
        return voice._replace(rank=(voice.rank or 0) + firsts.pop() if known else None)

    def take(self, block: bytes) -> Iterator[Part]:
        """The parts that are complete; block: whole lines."""
        if self._form is None and self._divides:
            self._form = _clear(block, self._named) or (_unclear(block) if self._first and not self._named else None)
            self._first = False
        if self._form and not self._form.whole:
            self._meet(block)
        if not self.split:
            self._row += block.count(b"\n")
            yield Part(None, block)
            return
        self._divide(block)
        for voice in [voice for voice, waiting in self._waiting.items() if waiting.size > _PIECE]:
            yield self._part(voice)
        if self.waits > _WAITING:
            yield from self.rest()

    def rest(self) -> Iterator[Part]:
        """The lines that wait: the file has ended."""
        for voice in list(self._waiting):
            yield self._part(voice)

    @property
    def split(self) -> bool:
        """Whether it has the lines of several sources, or other lines in addition to those of one."""
        return self._form is not None and (self._form.whole or len(self._known) > 1)

    def _meet(self, block: bytes) -> None:
        """Finds out whether there are several, before the first line is given to one."""
        assert self._form
        for line in block.split(b"\n"):
            found = self._form.pattern.match(line)
            if found:
                self._voice(found)

    def _divide(self, block: bytes) -> None:
        assert self._form
        match = self._form.pattern.match
        for line in block.split(b"\n")[: -1 if block.endswith(b"\n") else None]:
            self._row += 1
            found = match(line)
            if found:
                time = found["time"]
                line = (time.rstrip() + b" " if time else b"") + line[found.end() :]
                voice = self._voice(found)
                if self._form.local and b"ank" in line[:80]:
                    self._hear(voice, line)
            else:
                voice = None
            waiting = self._waiting.get(voice)
            if waiting is None:
                waiting = self._waiting[voice] = _Waiting()
            waiting.lines.append(line)
            waiting.rows.append(self._row)
            size = len(line) + 1 + _RECORD
            waiting.size += size
            self.waits += size

    def _hear(self, voice: Voice | None, line: bytes) -> None:
        """Remembers the rank that PyTorch has put before the line."""
        found = _GLOBAL.match(line)
        said = self._said.setdefault(voice, set()) if found and voice else set()
        if found and len(said) < _MOST_RANKS:
            said.add(int(found[1]))

    def _voice(self, found: re.Match[bytes]) -> Voice | None:
        key = found[2]
        voice = self._known.get(key)
        if voice is None and len(self._known) < MOST:
            name = _IN_POD.sub("/", key.decode())
            voice = self._known[key] = Voice(name, _RANK_IN[found.lastgroup or "host"](name))
        return voice

    def _part(self, voice: Voice | None) -> Part:
        waiting = self._waiting.pop(voice)
        self.waits -= waiting.size
        return Part(voice, b"\n".join(waiting.lines) + b"\n", waiting.rows)


def _clear(block: bytes, named: bool) -> _Form | None:
    bracketed = _BRACKETED.search(block) is not None
    for form in _FORMS:
        if any((bracketed or b"[" not in mark) and mark in block for mark in form.marks):
            split = block.split(b"\n")
            count = sum(1 for line in split if form.pattern.match(line))
            if count and (not named or 2 * count >= len(split)):
                return form
    return None


def _unclear(block: bytes) -> _Form | None:
    """The form that at least half of the lines have, and each name several of them."""
    split = [line for line in block[:_PIECE].split(b"\n") if line.strip()]
    for form in _UNCLEAR:
        names: Counter[bytes] = Counter()
        for line in split:
            found = form.pattern.match(line)
            if found:
                names[found[2]] += 1
        count = sum(names.values())
        alone = len(names) == 1 and count < len(split)  # one name, and other lines without it: it is a word
        if count >= _LEAST and 2 * count >= len(split) and count >= 2 * len(names) and not alone:
            return form
    return None
