"""Finds the rank that ended first, from the output of the programs that start ranks: msrun, torchrun, mpirun, srun."""

from __future__ import annotations

import os
import re
import signal as signals

from hccl_tools.common.record import Record
from tools.diagnosis.processes import Job, Process
from tools.diagnosis.waits import Target
from tools.logs import aftermath, plog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.logs.events import Event
    from tools.logs.findings import Findings, Seen

KILLED, TERMINATED = 9, 15
_SIGNALS = {"Killed": 9, "Out Of Memory": 9, "Segmentation fault": 11, "Bus error": 7, "Aborted": 6}
_SIGNALS.update({"Illegal instruction": 4, "Floating point exception": 8})
_CRASHES = (4, 7, 8, 11)  # each of several that end so has failed by itself; an abort or SIGKILL may follow
_MOST_TASKS = 4096  # of one line
_END_OF_STEP = re.compile(r"\*\*\* STEP \S+ ON \S+ CANCELLED|srun: error: \S+ task 0: (?:Killed|Terminated)")
_SHELL = 128  # a shell adds it to the number of the signal that ended its command
_TABLE = 8  # lines of torchrun's table about one rank, before its traceback
_TRACEBACK = 200  # lines of the table until the exception
_CODE = 4  # lines until mpirun has said how the process ended
_KILLED_IN_TABLE = re.compile(r"exitcode +: -9 |Signal 9 \(SIGKILL\)")
_PATIENCE = 25  # seconds: torchrun sends SIGKILL 30 s after SIGTERM, and its table has whole seconds
_STARTERS = frozenset(("worker_ended", "first_failure", "started"))


class Death(Record):
    """The end of a rank, as others report it."""

    rank: Process | Target | None
    pid: int | None
    signal: int  # 0: not told, or none
    code: int
    event: Event
    raised: str = ""  # the exception that ended it
    others: list[Process | Target] = []  # that ended alike
    by_place: bool = False  # its number is that on its host: the rank, where the job has one host
    unclear: bool = False  # others ended with the same code, and no times tell which was first

    @property
    def is_stopped(self) -> bool:
        """Whether others ended it."""
        return self.signal in (2, TERMINATED)


def first(job: Job) -> Death | None:
    """The first rank that ended; None: this is not reported.

    torchrun's table names it, on each host another one: the earliest of these counts.  Whom others stopped is none.
    """
    tables = [death for witness in job.witnesses for death in _of_tables(job, witness)]
    if tables:
        return min(tables, key=lambda death: (death.is_stopped, death.event.time is None, death.event.time or 0.0))
    of_pid = {pid: process for process in reversed(job.processes) for one in process.findings for pid in one.pids}
    of_pid.update((process.pid, process) for process in job.processes if process.pid is not None)
    # srun's tasks are not ranks where each of them starts some
    nested = any(
        event.kind in _STARTERS and "task" not in event.values for one in job.witnesses for event in one.events
    )
    found = [death for witness in job.witnesses for death in _of_lines(job, witness, of_pid, nested)]
    return min(found, key=lambda death: death.is_stopped) if found else None


def _of_tables(job: Job, witness: Process) -> list[Death]:
    """What the last part of each table states."""
    found = []
    for one in witness.findings:
        parts: list[tuple[Event, dict[str, dict[str, str]]]] = []
        for event in sorted(one.events, key=lambda event: event.row):
            if event.kind == "first_failure":
                parts.append((event, {}))
            elif parts and event.row <= parts[-1][0].row + _TABLE:
                parts[-1][1].setdefault(event.kind, event.values)
        found += [
            _of_part(job, head, rows, _raised_in(one, head.row) if head is parts[-1][0] else "")
            for head, rows in parts
            if "ended_rank" in rows
        ]
    return found


def _of_part(job: Job, head: Event, rows: dict[str, dict[str, str]], raised: str) -> Death:
    said = rows.get("ended_code", {})
    return Death(
        rank=_of_number(job, int(rows["ended_rank"]["rank"]), rows.get("ended_host", {}).get("host")),
        pid=int(said["pid"]) if "pid" in said else None,
        signal=_signal(said),
        code=max(0, int(said.get("code", "0"))),
        event=head._replace(time=_when(rows.get("ended_time", {}))),
        raised=raised,
    )


def _when(said: dict[str, str]) -> float | None:
    """The time in a row of the table."""
    return plog.seconds(said.get("when", "").replace("_", " "))


def _raised_in(one: Findings, row: int) -> str:
    """The exception of the part of the table that begins at the row, counted from 1."""
    raised = one.exception
    if raised is None or not row <= raised.row < row + _TRACEBACK or aftermath.follows(raised.text):
        return ""
    return raised.text


def _of_lines(job: Job, witness: Process, of_pid: dict[int, Process], nested: bool) -> list[Death]:
    """The first one of the witness that was not stopped, otherwise the first one."""
    # the rank of a place on its host, as torchrun lists them
    ranks = {event.values["local"]: event.values["rank"] for event in witness.events if event.kind == "ended_rank"}
    started = {event.values["pid"]: event.values["rank"] for event in witness.events if _tells_pid(event)}
    found = []
    events = [event for event in witness.events if event.kind in ("worker_ended", "ended_code")]
    for event, after in zip(events, [*events[1:], None]):
        said = dict(event.values)
        if event.kind != "worker_ended" or (nested and "task" in said) or is_beside(event.text, witness):
            continue
        if after is not None and after.kind == "ended_code" and after.row <= event.row + _CODE:
            said = {**after.values, **said}
        number = said.get("rank") or ranks.get(said.get("local", "")) or started.get(said.get("pid", ""))
        by_place = number is None and "local" in said and len(job.hosts()) < 2 and len(job.witnesses) < 2
        numbers = _listed(said["task"]) if "task" in said else [number or said["local"]] if number or by_place else []
        pid = int(said["pid"]) if "pid" in said else None
        process = of_pid.get(pid) if pid is not None else None
        all_ranks = [_of_number(job, int(one), said.get("host")) for one in numbers if process is None]
        rank = process or (all_ranks[0] if all_ranks else None)
        if rank is not None or pid is not None:
            code = max(0, int(said.get("code", "0")))
            one = Death(rank=rank, pid=pid, signal=_signal(said), code=code, event=event)
            found.append(one.replace(others=all_ranks[1:], by_place=by_place and process is None))
    return _with_alike(found)


def _with_alike(found: list[Death]) -> list[Death]:
    """The first that was not stopped, otherwise the first one; with those that crashed as it did."""
    first = next((one for one in found if not one.is_stopped), found[0] if found else None)
    if first is None:
        return []
    same = [one for one in found if one is not first and (one.signal, one.code) == (first.signal, first.code)]
    if first.signal in _CRASHES:
        more = [rank for one in same for rank in [one.rank, *one.others] if rank is not None]
        known = {id(one) for one in (first.rank, *first.others)}
        return [first.replace(others=[*first.others, *(rank for rank in more if id(rank) not in known)])]
    return [first.replace(unclear=bool(first.code and not first.signal and same and "task" in first.event.values))]


def _listed(text: str) -> list[str]:
    """srun's lists of tasks: ``8-15,18``."""
    found: list[str] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += map(str, range(int(first), min(int(last or first), int(first) + _MOST_TASKS) + 1))
    return found[:_MOST_TASKS]


def _signal(said: dict[str, str]) -> int:
    code = int(said.get("code", "0"))
    if _SHELL < code < _SHELL + 65:
        return code - _SHELL
    how = said.get("how", "")
    named = _SIGNALS.get(how, 0) or int(getattr(signals, how, 0) if how.startswith("SIG") else 0)
    return int(said.get("signal", "0")) or named or max(0, -code)


def is_beside(text: str, witness: Process) -> bool:
    """Whether Slurm says how the step of MindSpore's scheduler ended: its task 0 is not a rank, and ends after all."""
    return bool(_END_OF_STEP.search(text)) and any(
        os.path.basename(one.path).startswith("scheduler") for one in witness.findings
    )


def is_later(seen: Seen, one: Findings, death: Death | None) -> bool:
    """Whether torchrun's table states that it killed a rank, because another one had failed long enough before.

    A rank that was killed at about the same time may be why the other one failed.
    """
    if death is None or death.event.kind != "first_failure" or not _KILLED_IN_TABLE.search(seen.text):
        return False
    first, rows = death.event.time, range(seen.row - _TABLE, seen.row)
    times = [_when(event.values) for event in one.events if event.kind == "ended_time" and event.row in rows]
    return first is not None and bool(times) and (times[-1] or 0.0) - first >= _PATIENCE


def _tells_pid(event: Event) -> bool:
    return event.kind == "own_rank" and "pid" in event.values


def _of_number(job: Job, rank: int, host: str | None) -> Process | Target:
    known = job.by_rank.get(rank)
    if known is not None:
        known.host = known.host or host
    return known or Process.absent(rank, host)
