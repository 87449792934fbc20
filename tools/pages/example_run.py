"""Makes an invented run that is always the same, for the picture of its page and for tests.

  python -m tools.pages.example_run FOLDER

The run has eight ranks on two hosts: rank 3 waits for its data, the loss of rank 6 drifts away, rank 5 ends twice.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
from datetime import timedelta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "run_cluster-20260131T120000Z-4711"
_RANKS, _STEPS, _IN_EPOCH = 8, 1200, 300
_SLOW, _DRIFTS, _FAILS = 3, 6, 5
OUT_OF_MEMORY = "Malloc for kernel input failed, Memory isn't enough, node:Default/Conv2D-op12"
_TRACEBACK = f"""\
Traceback (most recent call last):
  File "/home/user/project/tools/train.py", line 88, in main
    loss = step(images, labels)
RuntimeError: {OUT_OF_MEMORY}
"""


def make(above: str) -> str:
    """Writes the run into a new folder in `above`; returns its path.  Raises OSError."""
    folder = os.path.join(above, NAME)
    os.makedirs(os.path.join(folder, "restart_1"))
    numbers = random.Random(20)
    for rank in range(_RANKS):
        _log(os.path.join(folder, f"rank_{rank}.log"), rank, 1, 700, numbers)
        _log(os.path.join(folder, "restart_1", f"rank_{rank}.log"), rank, 601, _STEPS, numbers)
        write_environment(folder, rank, rank % 4, rank // 4, HCCL_IF_IP=f"10.0.0.{1 + rank // 4}")
    with open(os.path.join(folder, "table.json"), "w", encoding="utf-8") as file:
        json.dump(table(_RANKS, 2, 100), file)
    with open(os.path.join(folder, "launch.json"), "w", encoding="utf-8") as file:
        json.dump(_launch(), file, indent=2)
    return folder


def _log(path: str, rank: int, first: int, last: int, numbers: random.Random) -> None:
    second = 9 + numbers.randrange(4)
    lines = [f"2026-01-31 12:00:00 - rank {rank} begins", f"2026-01-31 12:00:{second:02} - compiled"]
    clock = float(second)
    for number in range(first + 1, last + 1, 2):
        epoch, step = (number - 1) // _IN_EPOCH + 1, (number - 1) % _IN_EPOCH + 1
        drift = 0.0006 * (number - 500) if rank == _DRIFTS and number > 500 else 0.0
        loss = 2.3 * math.exp(-number / 350) + 0.08 + 0.03 * numbers.random() + drift
        data = (19 if rank == _SLOW else 3) + numbers.random()
        time = 61 + 3 * numbers.random() + (25 if number % 300 == 2 else 0)
        speed = 64_000 / time
        left = timedelta(seconds=int((_STEPS - number) * 0.085))
        clock += 0.34  # two steps, as long as the attempts were
        head = f"2026-01-31 12:{int(clock) // 60:02}:{int(clock) % 60:02} - epoch: {epoch} step: {step}"
        lines.append(f"{head}, loss is {loss:.6f}")
        lines.append(
            f"{head}, step time is {time:.1f} ms, {data:.1f} ms of it for data, {speed:.1f} samples/s, ends in {left}"
        )
        if step == _IN_EPOCH and rank == 0:
            lines.append(f"epoch: {epoch}, accuracy on held-out data: {97.5 - 60 * math.exp(-epoch):.2f}%")
    text = "\n".join(lines) + "\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + (_TRACEBACK if rank == _FAILS else ""))


def table(ranks: int, hosts: int, subnet: int) -> dict[str, Any]:
    """The rank table of a job.  subnet: the third number in the addresses of the first host's devices."""
    each = ranks // hosts
    servers = []
    for server in range(hosts):
        devices = [
            {
                "device_id": str(device),
                "device_ip": f"192.168.{subnet + server}.{device + 1}",
                "rank_id": str(server * each + device),
            }
            for device in range(each)
        ]
        servers.append({"server_id": f"10.0.0.{server + 1}", "device": devices})
    return {"version": "1.0", "server_count": str(hosts), "server_list": servers, "status": "completed"}


def write_environment(folder: str, rank: int, device: int, host: int, **more: object) -> None:
    """The rank's file of variables: the second host has another CANN.  more: other variables."""
    names = {
        "RANK_ID": rank,
        "DEVICE_ID": device,
        "OMP_NUM_THREADS": 24,
        **more,
        "ASCEND_HOME_PATH": "/usr/local/Ascend/latest" if host != 1 else "/usr/local/Ascend/8.0.RC2",
        "WANDB_API_KEY": "0123456789abcdef",
    }
    with open(os.path.join(folder, f"rank_{rank}.env"), "w", encoding="utf-8") as file:
        file.writelines(f'declare -x {name}="{value}"\n' for name, value in names.items())


def diagnosis(rank: int, file: str) -> dict[str, Any]:
    """The diagnosis in launch.json for a rank without free memory; file: where that was raised, in its line 88."""
    return {
        "exception": {"type": "RuntimeError", "message": OUT_OF_MEMORY, "file": file, "line": 88},
        "matches": [
            {
                "code": "out-of-device-memory",
                "rank": rank,
                "line": f"RuntimeError: {OUT_OF_MEMORY}",
                "row": 85,
                "cause": "the network needs more memory than the device has",
                "remedy": "lower batch_size or the image size; use recomputation or more devices",
            }
        ],
    }


def _launch() -> dict[str, Any]:
    ranks = [
        {"rank": rank, "device": rank % 4, "log": f"rank_{rank}.log", "host": f"node{1 + rank // 4}"}
        for rank in range(_RANKS)
    ]
    config = "configs/mnist/lenet5_mnist.yaml"
    first = {
        "ended": "2026-01-31T12:02:24Z",
        "exit": 1,
        "logs": ".",
        "first_failure": str(_FAILS),
        "stopped_by": None,
        "members": _members(132.4),
    }
    return {
        "script": "run_cluster.sh",
        "typed": f"scripts/run_cluster.sh --hostfile hosts --max_restarts 1 {config}",
        "started": "2026-01-31T12:00:00Z",
        "host": "node1",
        "folder": "/home/user/project",
        "device_target": "Ascend",
        "run_dir": f"/home/user/project/logs/{NAME}",
        "exports": {"RANK_SIZE": "8", "RANK_TABLE_FILE": f"/home/user/project/logs/{NAME}/table.json"},
        "trainer": ["python", "-u", "tools/train.py", "--config", config],
        "scheduler": [],
        "ranks": ranks,
        "outcome": {
            **first,
            "diagnosis": diagnosis(_FAILS, "/home/user/project/tools/train.py"),
            "ended": "2026-01-31T12:04:31Z",
            "logs": "restart_1",
            "members": _members(118.2),
            "attempts": [first],
        },
    }


def _members(seconds: float) -> dict[str, Any]:
    """Rank 2 needs the whole grace time; the others end soon."""
    found: dict[str, Any] = {}
    for rank in range(_RANKS):
        more = 0.0 if rank == _FAILS else 10.0 if rank == 2 else 1.2 + rank / 10
        ended = 1 if rank == _FAILS else 137 if rank == 2 else 143
        found[str(rank)] = {"status": ended, "seconds": round(seconds + more, 1), "pid": 4800 + rank}
    return found


if __name__ == "__main__":
    print(make(sys.argv[1]))
