"""Reads the numbers of a whole log, step by step: one Series per rank, from logs of any size.

Of a large log only parts are read: its beginning, its end, and blocks in between.
"""

from __future__ import annotations

import os

from hccl_tools.common import documents, how_far
from hccl_tools.common.record import Record
from tools.logs import plog
from tools.progress.counting import Counting
from tools.progress.lines import Kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from tools.progress.counting import Counted, Place
    from tools.progress.lines import Values

FIELDS = ("loss", "lr", "step_ms", "data_ms", "before_ms", "samples_per_s")
_BLOCK = 1 << 20
_LONGEST = 16 << 10  # bytes of a line: more of it is left out
_END = 800  # bytes of a block in which its last lines are
_MOST_METRICS = 8
_MOST_PLACES = 1 << 20  # steps of one log
_LINES_A_TIME = 16  # lines with numbers: reading a time takes as long as reading them


class Series(Record):
    """The numbers of one log.  The places are in order; a column has a value for each of them, or None."""

    places: list[Place]
    columns: dict[str, list[float | None]]  # by FIELDS; without those of which the log has no number
    metrics: dict[str, dict[Place, float]]  # measurements on held-out data, by name; those in percent end with " %"
    counted: Counted
    size: int  # bytes of the log
    read: int  # bytes of it that were read
    first: float | None  # times that lines have, as tools/logs/plog.seconds reads them: of the first line,
    first_step: float | None  # of the first line with a number,
    last: float | None  # and of the last line, or of the one before it
    times: tuple[tuple[Place, float], ...] = ()  # of some places, the same kind of times


class Reader(Kinds):
    """Reads logs with one table of lines.  What kind a line is, is remembered from log to log."""

    def read(self, path: str, most: int) -> Series:
        """The Series of the file `path`, of at most about `most` bytes of it.  Raises OSError."""
        documents.refuse_special(path)
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            log = _Log()
            places = _places(size, most)
            for start, length in places:
                file.seek(start)
                for block, follows in _lines_of(file, start, length):
                    log.take(block, follows, self)
        return log.series(size, sum(length for _, length in places))

    def of_lines(self, text: Iterable[str]) -> Series:
        """The Series of a log that is in memory."""
        block, log = "\n".join(line.rstrip("\n") for line in text).encode("utf-8", "replace"), _Log()
        log.take(block, True, self)
        return log.series(len(block), len(block))


def _places(size: int, most: int) -> list[tuple[int, int]]:
    """(start, length) of what is read of a log: all, or of a large one its two ends, and blocks between them."""
    if size <= most:
        return [(0, size)]
    half, between = most // 4, most // 2
    number = max(1, between // _BLOCK)
    stride = (size - 2 * half) // number
    length = min(_BLOCK, between // number)
    return [(0, half), *((half + stride * place, length) for place in range(number)), (size - half, half)]


def _lines_of(file: BinaryIO, start: int, length: int) -> Iterator[tuple[bytes, bool]]:
    """(whole lines, whether they follow those before them) of a part of a log."""
    rest, cut, follows = b"", start > 0, start == 0
    while length > 0:
        block = file.read(min(_BLOCK, length))
        if not block:
            break
        length -= len(block)
        how_far.more(len(block))
        block = (rest + block).replace(b"\r", b"\n")  # each drawing of a progress bar is a line
        if cut:  # the first line has lost its beginning
            block = block.partition(b"\n")[2]
            cut = not block
        whole, end, rest = block.rpartition(b"\n")
        rest = rest[-_LONGEST:]
        if end:
            yield whole, follows
            follows = True
    if rest:
        yield rest, follows


class _Log:
    """The state while one log is read."""

    def __init__(self) -> None:
        self._said: dict[Place, Values] = {}
        self._metrics: dict[str, dict[Place, float]] = {}
        self._last: Place | None = None
        self._counting = Counting()
        self._has_steps = False
        self._first: float | None = None
        self._first_step: float | None = None
        self._last_time: float | None = None
        self._numbers = 0  # lines that had one
        self._times: dict[Place, float] = {}

    def take(self, block: bytes, follows: bool, reader: Reader) -> None:
        """The next lines; without `follows` some lines before them were left out."""
        if not follows:
            self._last = None
            self._counting.cut()
        if self._first is None:
            self._first = _time_of(block[:400])
        line = None
        for line, values in reader.of_block(block):
            self._add(values)
            if self._numbers % _LINES_A_TIME == 0:
                self._timed(line)
            self._numbers += 1
        if line is not None:
            self._timed(line)  # the last one: the clock of a short log needs it
        *_, before, last = [b"", *block[-_END:].split(b"\n")]
        ends = [_time_of(line) for line in (last, before)]  # a line without a time came with the one before it
        self._last_time = next((end for end in ends if end is not None), self._last_time)

    def _timed(self, line: bytes) -> None:
        """Notes when a line with a number was written."""
        moment = _time_of(line)
        if self._numbers == 0:
            self._first_step = moment  # also of a log whose lines have no place
        if moment is not None and self._last is not None:
            self._times.setdefault(self._last, moment)

    def _add(self, said: Values) -> None:
        if "step" in said:
            self._has_steps = True
            self._go_to(said, int(said["step"]))
        elif "epoch" in said and not self._has_steps:  # a trainer with a line for each epoch
            self._go_to(said, 1)
        place = self._last
        if place is None:
            return
        there = self._said.get(place)
        if there is None:
            if len(self._said) < _MOST_PLACES:
                self._said[place] = said
        elif "step" in said:
            there.update(said)
        else:  # a line without a step, such as TimeMonitor's, belongs to the last step before it
            self._said[place] = {**said, **there}
        if "percent" in said or "value" in said:
            self._measured(said, place)

    def _go_to(self, said: Values, step: int) -> None:
        before = self._last
        epoch = before[0] if before else 1
        if "epoch" in said:
            epoch = int(said["epoch"])
        elif before and step < before[1]:  # a progress bar of each epoch, without its number
            epoch += 1
        self._last = epoch, step
        self._counting.take(self._last, said)

    def _measured(self, said: Values, place: Place) -> None:
        value = said["percent"] if "percent" in said else said["value"]
        name = str(said.get("metric", "metric"))[:60] + (" %" if "percent" in said else "")
        if name in self._metrics or len(self._metrics) < _MOST_METRICS:
            self._metrics.setdefault(name, {})[place] = float(value)

    def series(self, size: int, read: int) -> Series:
        """The result of all lines, from a log of `size` bytes of which `read` were read."""
        places = sorted(self._said)
        every = [self._said[place] for place in places]
        columns: dict[str, list[float | None]] = {}
        for field in FIELDS:
            column = [_number(said.get(field)) for said in every]
            if field == "step_ms" and not any(value is not None for value in column):
                column = [_step_ms(said) for said in every]
            if any(value is not None for value in column):
                columns[field] = column
        return Series(
            places=places,
            columns=columns,
            metrics=self._metrics,
            counted=self._counting.said(),
            size=size,
            read=read,
            first=self._first,
            first_step=self._first_step,
            last=self._last_time,
            times=tuple(self._times.items()),
        )


def _number(value: float | str | None) -> float | None:
    return None if value is None else float(value)


def _step_ms(said: Values) -> float | None:
    """The time of a step, where a line has it in seconds or as steps a second."""
    if "step_s" in said:
        return float(said["step_s"]) * 1000
    speed = float(said.get("steps_per_s", 0))
    return 1000 / speed if speed else None


def _time_of(line: bytes) -> float | None:
    return plog.seconds(line[:120].decode("utf-8", "replace"))
