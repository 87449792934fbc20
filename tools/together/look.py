"""Takes one look at a job, in a forked child of the launcher: at its logs, its processes and its files.

Of many ranks only some are examined, and of long logs only parts. A look takes a tenth of a second, with many ranks and
long logs two seconds.
"""

from __future__ import annotations

import json
import os

from hccl_tools.common.record import Record
from tools.together import findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tools.progress.series import Series
    from tools.together.findings import Row

_MOST_LOGS = 256
_MOST_OF_ALL = 16 << 20  # bytes of all logs: they take 1.6 s
_MOST_OF_LOG, _LEAST_OF_LOG = 4 << 20, 64 << 10
_END = 64 << 10  # bytes of the end of a log, in which lines of MindSpore are looked for


class Job(Record):
    """What a look needs to know."""

    logs: str  # the folder of the attempt's logs
    ranks: list[int]  # those whose logs may be there
    sizes: list[int]  # ranks of each host of the job
    mark: str  # LAUNCH_JOB of the job's processes
    words: list[str]  # the command of every rank
    runs: bool  # it still runs
    watches: float = 0.0  # seconds for which it may watch who saves weights
    since: float = 0.0  # when the attempt began, in seconds since 1970
    lifeline: int = -1  # a pipe that ends with the launcher; -1: none


def chosen(ranks: Sequence[int]) -> list[int]:
    """Ranks at even distances: of one that is not among them nothing is found."""
    stride = max(1.0, len(ranks) / _MOST_LOGS)
    return [ranks[int(number * stride)] for number in range(int(len(ranks) / stride))]


def tell(tells: int, job: Job) -> None:
    """Writes a line for each finding, as JSON, one that says whether a log has a loss, and one with a number of saves.

    Each is written when it is known: a reader may not wait for all of them.
    """
    for said in look(job):
        data = f"{json.dumps(said)}\n".encode()
        while data:
            data = data[os.write(tells, data) :]


def look(job: Job) -> Iterator[Row | bool | int]:
    """What is found; then whether a rank has printed a loss; then, later, who saves weights.

    Raises OSError and Refusal.
    """
    from tools.together import files, losses, programs

    ranks = chosen(job.ranks)
    if job.runs:
        yield from files.open_by_two(job.mark)
    yield from files.lost({rank: _end_of(job, rank) for rank in ranks})
    yield from _sizes(job, ranks)
    found = losses.of_logs(_read(job, ranks))
    yield from losses.find(found, lambda: programs.prints_own_losses(job.words))
    yield bool(found)
    if job.watches:
        yield from _saves(job)


def _saves(job: Job) -> Iterator[Row | int]:
    """Who saves weights below the current folder, and how many were saved; the run's own folder is left out."""
    from tools.together import saves

    places = saves.folders(os.curdir, os.path.abspath(job.logs), job.since)
    if places:
        yield from saves.watch(places, job.mark, job.watches, job.lifeline)


def _path(job: Job, rank: int) -> str:
    return os.path.join(job.logs, f"rank_{rank}.log")


def _read(job: Job, ranks: Sequence[int]) -> dict[int, Series]:
    """The numbers of the logs that are here."""
    from tools.progress import lines
    from tools.progress.series import Reader

    reader = Reader(lines.load())
    most = min(_MOST_OF_LOG, max(_LEAST_OF_LOG, _MOST_OF_ALL // max(1, len(ranks))))
    found = {}
    for rank in ranks:
        try:
            found[rank] = reader.read(_path(job, rank), most)
        except (OSError, ValueError):
            continue  # it is on another host
    return found


def _sizes(job: Job, ranks: Sequence[int]) -> list[Row]:
    """Ranks that print another size of the job, those with the same words in one row."""
    from tools.together import files

    world = sum(job.sizes)
    right = {world, *job.sizes}
    same: dict[str, tuple[files.Said, list[int]]] = {}
    for rank in ranks:
        try:
            said = files.wrong_size(files.sizes_of(_path(job, rank)), right)
        except OSError:
            continue
        if said:
            same.setdefault(said.text, (said, []))[1].append(rank)
    return [
        findings.row("world-size", who, said=said.text, size=said.size, line=said.line, number=world)
        for said, who in same.values()
    ]


def _end_of(job: Job, rank: int) -> str:
    try:
        with open(_path(job, rank), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _END))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
