"""Facts for the process that looks after restarts: at its start, and later from the agents of other hosts."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from tools.attempts import saves
from tools.launch.engines import hccl_ports
from tools.supervise import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tools.launch.run import Run


def of(run: Run) -> dict[str, Any]:
    """The facts for restarts_child.main."""
    plan = run.plan
    words = [*plan.trainer, *plan.restart]
    return {
        "folders": saves.folders(words, (plan.checkpoints or {}).get("folder"), plan.run_dir),
        "wanted": _wanted(run) if run.settings.restart_wait else None,
    }


def _wanted(run: Run) -> dict[str, Any]:
    """What the next attempt needs free on this host; agents of mpirun and srun look at the devices of their ranks."""
    plan = run.plan
    here = not run.engine.name or run.engine.tells_ends
    on_npus = plan.request.device_target == "Ascend" and here
    on_gpus = plan.request.device_target == "GPU" and here
    port, host = plan.exports.get("MS_SCHED_PORT", ""), plan.exports.get("MS_SCHED_HOST", "")
    listens = bool(plan.scheduler) or (run.engine.name == "msrun" and plan.request.node_rank in (None, 0))
    hccl = plan.hccl.ranges[0][0] if plan.hccl and plan.hccl.ranges else hccl_ports.base()
    return {
        "mark": run.mark,
        "launcher": os.getpid(),
        "since": held.now(),
        "devices": [device for _, device in plan.ranks] if on_npus or on_gpus else [],
        "gpus": on_gpus,
        "scheduler": [host, int(port)] if listens and port.isdigit() and host else None,
        "hccl": hccl if on_npus and len(plan.ranks) > 1 else None,
    }


class Busy:
    """The reports of agents about their hosts before a restart.  A host's agents agree, except about their own device.

    seconds: --restart_wait; held: why there can be no other restart, "" if there can.
    """

    def __init__(self, say: Callable[[str], object], seconds: int) -> None:
        self._say, self._seconds = say, seconds
        self._told: set[str] = set()
        self.held = ""

    def again(self) -> None:
        """Another attempt begins."""
        self._told.clear()

    def take(self, host: str, word: str, text: str) -> None:
        """A line of an agent: waits, held or free, see tools/rank/free.py."""
        where = f"{host}: {text}" if host else text
        key = f"{word} {host}" if word == "free" else where
        if word == "held":
            self.held = tr("after {seconds} s (--restart_wait) {what}", seconds=self._seconds, what=where)
        elif key not in self._told:
            self._told.add(key)
            self._say(
                tr("{host} is free after {seconds} s", host=host, seconds=text)
                if word == "free"
                else waits(where, self._seconds)
            )


def waits(what: str, seconds: int) -> str:
    """What a restart waits for."""
    return tr("the restart waits, at most {seconds} s: {what}", seconds=seconds, what=what)
