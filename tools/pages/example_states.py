"""Makes invented runs, one for each state that a page can show, for pictures and for tests.

  python -m tools.pages.example_states FOLDER [STATE...]

The runs are always the same. Their files have the form of real ones: launch.json, logs, stacks, environments.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
import time

from hccl_tools.common import utc
from hccl_tools.common.record import Record
from tools.pages.example_run import OUT_OF_MEMORY, diagnosis, table, write_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BEGIN = 1769860800  # 2026-01-31 12:00:00 UTC
_IN_EPOCH = 40
_STOPPED = 143
_TRACEBACK = f"""\
Traceback (most recent call last):
  File "/home/user/project/train.py", line 88, in main
    loss = step(images, labels)
RuntimeError: {OUT_OF_MEMORY}
"""
_STACK = """\
Fatal Python error: Aborted

Current thread 0x00007f9bf91fcb80 (most recent call first):
  File "/home/user/project/{file}", line {line} in {function}
  File "/home/user/project/train.py", line 90 in main
  File "/home/user/project/train.py", line 120 in <module>
"""


class Job(Record):
    """What a run did; times in seconds."""

    name: str
    ranks: int = 8
    hosts: int = 1
    target: str = "Ascend"
    steps: int = 400
    every: int = 2  # steps between two lines
    step: float = 0.1
    begins: float = 12.0  # from the start of a rank to its first step
    slow: tuple[int, ...] = ()  # their data come late
    drifts: tuple[int, ...] = ()
    fails: int | None = None  # which rank, at the end of the steps
    hangs: int | None = None  # that rank waits for its data, the others for it
    restarts: bool = False  # the first attempt failed after half of the steps, the second ended well
    rate: float = 0.1  # the learning rate, which differs between runs that are compared
    speed: float = 1.0  # of the loss's fall

    @property
    def seconds(self) -> float:
        """How long an attempt with all steps took."""
        return self.begins + self.steps * self.step + 2


STATES: dict[str, list[Job]] = {
    "good": [Job(name="mslaunch-20260131T120000Z-100", target="CPU", every=1, steps=120)],
    "failed": [Job(name="ascend8p-20260131T120000Z-101", hosts=2, fails=5)],
    "hang": [Job(name="ascend8p-20260131T120000Z-102", hangs=6)],
    "restarted": [Job(name="run_cluster-20260131T120000Z-103", hosts=2, fails=5, restarts=True)],
    "straggler": [Job(name="run_slurm-20260131T120000Z-104", ranks=64, hosts=8, slow=(41,), drifts=(7,))],
    "many": [Job(name="run_slurm-20260131T120000Z-105", ranks=1024, hosts=128, slow=(700,), fails=333)],
    "compared": [
        Job(name="mslaunch-20260131T120000Z-106", rate=0.1),
        Job(name="mslaunch-20260131T121500Z-107", rate=0.2, speed=1.4),
        Job(name="mslaunch-20260131T123000Z-108", rate=0.4, speed=1.7, ranks=4, fails=2),
    ],
}


def make(state: str, above: str) -> list[str]:
    """Writes the runs of a state into new folders in `above`; returns their paths.  Raises OSError."""
    return [_run(job, above) for job in STATES[state]]


def _run(job: Job, above: str) -> str:
    folder = os.path.join(above, job.name)
    os.makedirs(folder)
    numbers = random.Random(job.name)
    half = job.steps // 2
    last = os.path.join(folder, "restart_1") if job.restarts else folder
    if job.restarts:
        os.makedirs(last)
    for rank in range(job.ranks):
        if job.restarts:
            _log(job, os.path.join(folder, f"rank_{rank}.log"), rank, (1, half), numbers, fails=rank == job.fails)
            _log(job, os.path.join(last, f"rank_{rank}.log"), rank, (half - 19, job.steps), numbers, fails=False)
        else:
            _log(job, os.path.join(folder, f"rank_{rank}.log"), rank, (1, job.steps), numbers, rank == job.fails)
        each = job.ranks // job.hosts
        write_environment(folder, rank, rank % each, rank // each)
        if job.hangs is not None:
            waits = {"file": "data.py", "line": 31, "function": "__getitem__"}
            waits = waits if rank == job.hangs else {"file": "train.py", "line": 88, "function": "step"}
            with open(os.path.join(folder, f"rank_{rank}.stack"), "w", encoding="utf-8") as file:
                file.write(_STACK.format(**waits))
    config = os.path.join(folder, "train.yaml")
    _write(config, {"optimizer": {"lr": job.rate}, "batch_size": 32})
    _write(os.path.join(folder, "launch.json"), _launch(job, folder, config))
    if job.hosts > 1:
        _write(os.path.join(folder, "table.json"), table(job.ranks, job.hosts, 0))
    return folder


def _write(path: str, document: dict[str, Any]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=2)


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(_BEGIN + whole)) + f",{int(1000 * (seconds - whole)):03}"


def _log(job: Job, path: str, rank: int, steps: tuple[int, int], numbers: random.Random, fails: bool) -> None:
    begins = job.begins + numbers.random()
    lines = [f"{_clock(1.5)} - rank {rank} of {job.ranks} begins"]
    at = begins
    for step in range(steps[0], steps[1] + 1, job.every):
        epoch = (step - 1) // _IN_EPOCH + 1
        at = begins + (step - steps[0]) * job.step
        where = f"{_clock(at)} - epoch: {epoch} step: {step}"  # steps count on in the next epoch
        loss = 2.3 * math.exp(-step * job.speed / job.steps * 3) + 0.08 + 0.02 * numbers.random()
        loss += 0.8 * step / job.steps if rank in job.drifts and step > job.steps / 3 else 0.0
        data = (0.35 if rank in job.slow else 0.05) * 1000 * job.step + numbers.random()
        took = 1000 * job.step * (1 + 0.1 * numbers.random())
        lines.append(f"{where}, loss is {loss:.6f}")
        lines.append(
            f"{where}, step time is {took:.1f} ms, {data:.1f} ms of it for data, {32_000 / took:.1f} samples/s"
        )
        if rank == 0 and step + job.every > epoch * _IN_EPOCH:
            accuracy = 97.5 - 60 * math.exp(-job.speed * step / job.steps * 4)
            lines.append(f"epoch: {epoch}, accuracy on held-out data: {accuracy:.2f}%")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n" + (_TRACEBACK if fails else ""))


def _ranks(job: Job) -> list[dict[str, Any]]:
    each = job.ranks // job.hosts
    found: list[dict[str, Any]] = []
    for rank in range(job.ranks):
        host = {"host": f"node{1 + rank // each}"} if job.hosts > 1 else {}
        found.append({"rank": rank, "device": rank % each, "log": f"rank_{rank}.log", **host})
    return found


def _launch(job: Job, folder: str, config: str) -> dict[str, Any]:
    half = job.begins + job.steps // 2 * job.step + 1  # an attempt that failed after half of the steps
    again = half + 20 * job.step + 1  # the other one has the rest of them, and some steps again
    outcome = _outcome(
        job, again if job.restarts else job.seconds, "restart_1" if job.restarts else ".", not job.restarts
    )
    if job.restarts:
        first = _outcome(job, half, ".", True)
        outcome = {**outcome, "ended": _moment(half + 5 + 3 + again), "attempts": [first]}
    if outcome["first_failure"] is not None:
        outcome["diagnosis"] = diagnosis(job.fails or 0, "/home/user/project/train.py")
    script = job.name.partition("-")[0]
    script = script if script == "mslaunch" else f"{script}.sh"
    port = str(20_000 + int(job.name[-3:]))
    return {
        "script": script,
        "version": "1.0.0",
        "typed": f"{script} {os.path.basename(config)}",
        "started": _moment(0),
        "host": "node1",
        "folder": folder,
        "device_target": job.target,
        "run_dir": folder,
        "exports": {"RANK_SIZE": str(job.ranks), "MS_SCHED_PORT": port, "RANK_TABLE_FILE": f"{folder}/table.json"},
        "trainer": ["python", "-u", "tools/train.py", "--config", config],
        "scheduler": [],
        "ranks": _ranks(job),
        "outcome": outcome,
    }


def _moment(seconds: float) -> str:
    return utc.text(_BEGIN + seconds)


def _outcome(job: Job, seconds: float, logs: str, may_fail: bool) -> dict[str, Any]:
    """of one attempt; a rank that is stopped needs a second or, every fifth, the grace time."""
    failed = job.fails if may_fail else None
    seconds += 30 if job.hangs is not None else 0
    members: dict[str, Any] = {}
    for rank in range(job.ranks):
        status, more = 0, rank % 5 / 10
        if job.hangs is not None:
            status, more = 134, 0.0
        elif failed is not None:
            status, more = (1, 0.0) if rank == failed else (_STOPPED, 5.0 if rank % 5 == 2 else 1.2)
        members[str(rank)] = {"status": status, "seconds": round(seconds + more, 1), "pid": 4800 + rank}
    last = max(member["seconds"] for member in members.values())
    return {
        "ended": _moment(last),
        "exit": 124 if job.hangs is not None else 0 if failed is None else 1,
        "logs": logs,
        "first_failure": None if failed is None else str(failed),
        "stopped_by": "hang" if job.hangs is not None else None,
        "members": members,
    }


if __name__ == "__main__":
    for wanted in sys.argv[2:] or STATES:
        print("\n".join(make(wanted, sys.argv[1])))
