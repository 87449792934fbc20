"""--metrics :PORT: the pages of the process next to the launcher, /metrics and /healthz.

The monitor provides the findings of each look; the server's thread only delivers them.
"""

from __future__ import annotations

import json
import time

from tools.launch.monitored import MARK
from tools.monitor import formats
from tools.monitor.http_server import TEXT, Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable
    from typing import Any

    from tools.monitor.http_server import Page
    from tools.monitor.metrics import Family
    from tools.progress.ranks import RankProgress

STARTS = 3  # times the limit: before the first step, and for lines without a step
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class Served:
    """run: the name of the run's folder; limit: the --stall_timeout in seconds."""

    def __init__(self, listener: socket.socket, run: str, limit: float) -> None:
        self._run = run
        self._health = Health(limit, time.monotonic())
        self._metrics = f"{MARK}, run {run}: no rank has started\n".encode("utf-8", "replace")
        self._told = self._health.told()
        Server(listener, self.page).start()

    def begin(self) -> None:
        """The ranks of an attempt begin, or one of them begins again."""
        self._health.begin(time.monotonic())
        self._told = self._health.told()

    def look(self, ranks: Iterable[RankProgress], grown: bool) -> None:
        """Takes the monitor's findings from the logs."""
        now = time.monotonic()
        self._health.look(now, ranks, grown)
        self._told = self._health.told()

    def take(self, families: list[Family]) -> None:
        """The metrics from now on."""
        self._metrics = formats.prometheus(self._run, families).encode("utf-8", "replace")

    def page(self, path: str) -> Page | None:
        """The page at this path; runs in the server's thread."""
        if path == "/metrics":
            return 200, PROMETHEUS, self._metrics
        if path == "/healthz":
            status, told, looked = self._told
            ago = round(max(0.0, time.monotonic() - looked), 1)
            document = {**told, "looked_seconds_ago": ago, "run": self._run}
            return status, "application/json", (json.dumps(document) + "\n").encode()
        return (200, TEXT, b"/metrics\n/healthz\n") if path == "/" else None


class Health:
    """Whether a job moves: the basis of /healthz.

    limit: seconds, the --stall_timeout.  Times are seconds of a monotonic clock.

    The job does not move when no rank has written for so long after its first step.  Before that it may take STARTS
    times as long, because graphs are compiled; and a job that writes lines, but does no step, may, too: it evaluates.
    """

    def __init__(self, limit: float, now: float) -> None:
        self._limit = limit
        self.begin(now)

    def begin(self, now: float) -> None:
        """The ranks begin, or one of them begins again."""
        self._wrote = self._stepped = now
        self._has_stepped = self._stalls = False
        self._steps_before: int | None = None
        self._looked = now
        self._begun = False

    def look(self, now: float, ranks: Iterable[RankProgress], grown: bool) -> None:
        """grown: whether a log has grown since the last look."""
        steps = sum(one.steps_done for one in ranks)
        if grown:
            self._wrote = now
        if self._steps_before is not None and steps != self._steps_before:
            self._stepped = self._wrote = now
            self._has_stepped = True
        self._steps_before, self._looked, self._begun = steps, now, True
        quiet = now - self._wrote
        late = self._has_stepped and (quiet > self._limit or now - self._stepped > STARTS * self._limit)
        self._stalls = late or quiet > STARTS * self._limit

    def told(self) -> tuple[int, dict[str, Any], float]:
        """(the status of HTTP, what to say, when it was looked), as the last look has found it."""
        state = "starting" if not self._begun else "stalled" if self._stalls else "running"
        if state == "running" and not self._has_stepped:
            state = "no step yet"
        return (
            503 if self._stalls else 200,
            {
                "state": state,
                "progress_age_seconds": round(self._looked - self._wrote, 1),
                "step_age_seconds": round(self._looked - self._stepped, 1) if self._has_stepped else None,
                "stall_timeout_seconds": self._limit,
            },
            self._looked,
        )
