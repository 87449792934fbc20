"""--metrics :PORT: the pages of the process beside the launcher, /metrics and /healthz.

The monitor gives them what each of its looks has found; the server's thread only hands it out.
"""

from __future__ import annotations

import json
import time

from tools.launch.monitored import MARK
from tools.monitor import formats
from tools.monitor.health import Health
from tools.monitor.http_server import TEXT, Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

    from tools.monitor.http_server import Page
    from tools.monitor.metrics import Family
    from tools.progress.ranks import RankProgress

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
        """What the monitor has seen of the logs."""
        now = time.monotonic()
        self._health.look(now, ranks, grown)
        self._told = self._health.told()

    def take(self, families: list[Family]) -> None:
        """The metrics from now on."""
        self._metrics = formats.prometheus(self._run, families).encode("utf-8", "replace")

    def page(self, path: str) -> Page | None:
        """What is at this path; in the server's thread."""
        if path == "/metrics":
            return 200, PROMETHEUS, self._metrics
        if path == "/healthz":
            status, told, looked = self._told
            ago = round(max(0.0, time.monotonic() - looked), 1)
            document = {**told, "looked_seconds_ago": ago, "run": self._run}
            return status, "application/json", (json.dumps(document) + "\n").encode()
        return (200, TEXT, b"/metrics\n/healthz\n") if path == "/" else None
