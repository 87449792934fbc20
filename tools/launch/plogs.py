"""CANN's own logs of the ranks, the plogs: their folder, which of them stay, and where else logs may be."""

from __future__ import annotations

import os

from hccl_tools.common.record import Record
from hccl_tools.common.refusal import misused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tools.launch.request import Request

FOLDER = "plog"  # in the folder of an attempt's logs
VARIABLE = "ASCEND_PROCESS_LOG_PATH"
# What the caller has set of these changes where logs are, or what is in them.
_OTHERS = (
    VARIABLE,
    "ASCEND_GLOBAL_LOG_LEVEL",
    "ASCEND_SLOG_PRINT_TO_STDOUT",
    "GLOG_log_dir",
    "GLOG_v",
    "MS_RDR_PATH",
)


class Plogs(Record):
    """The ranks' folders for plogs, and how long they stay."""

    keep: str  # "failed", "all" or "none"
    theirs: str | None  # the absolute path of the user's folder; None: it is FOLDER, next to the logs

    def word(self) -> str:
        """The form that tools/rank/places.py reads."""
        return f"{self.keep} {self.theirs}" if self.theirs else self.keep

    def record(self) -> dict[str, str]:
        """What goes into launch.json."""
        return {"folder": self.theirs or FOLDER, "keep": self.keep}


def choose(request: Request) -> Plogs | None:
    """None where no rank uses CANN."""
    if request.device_target != "Ascend":
        return None
    theirs = os.environ.get(VARIABLE)
    return Plogs(keep=request.keep_plogs or "failed", theirs=os.path.abspath(theirs) if theirs else None)


def check(request: Request) -> None:
    """Raises Refusal: a request to watch plogs where nothing writes any."""
    if request.watch_plogs and request.device_target != "Ascend":
        target = request.device_target
        raise misused("--watch_plogs is for Ascend: on {target} nothing writes plogs", target=target)


def of_ranks(launch: dict[str, Any], logs: str) -> dict[int, str]:
    """The folders of the ranks' plogs by the rank's number, of the attempt with these logs; they may not be there."""
    named, ranks = launch.get("plogs"), launch.get("ranks")
    if not isinstance(named, dict) or not isinstance(ranks, list):
        return {}
    told = named.get("folder")
    above = told if isinstance(told, str) and os.path.isabs(told) else os.path.join(logs, FOLDER)
    numbers = [row.get("rank") for row in ranks if isinstance(row, dict)]
    return {rank: os.path.join(above, f"rank_{rank}") for rank in numbers if isinstance(rank, int)}


def make(plogs: Plogs, ranks: Iterable[int], run_dir: str) -> None:
    """Makes the folders of the ranks of this host; a rank whose folder is missing makes it itself, or says why not."""
    above = plogs.theirs or os.path.join(run_dir, FOLDER)
    try:
        for rank in ranks:
            os.makedirs(os.path.join(above, f"rank_{rank}"), exist_ok=True)
    except OSError:
        return


def others() -> dict[str, Any]:
    """Where a reader finds other logs, and the core files of processes that crashed."""
    import resource

    found: dict[str, Any] = {name: os.environ[name] for name in _OTHERS if name in os.environ}
    try:
        with open("/proc/sys/kernel/core_pattern", encoding="utf-8", errors="surrogateescape") as file:
            found["core_pattern"] = file.read().rstrip("\n")
    except OSError:
        found["core_pattern"] = None
    limit = resource.getrlimit(resource.RLIMIT_CORE)[0]
    found["core_limit"] = None if limit == resource.RLIM_INFINITY else limit
    return found
