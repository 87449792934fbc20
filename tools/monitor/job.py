"""What launch.json says of the job, and one attempt of it: whatever the document holds."""

from __future__ import annotations

import os

from hccl_tools.common import any_json, utc
from tools.progress.ranks import Ranks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.progress.tails import Patterns


class Job:
    """The job as the plan in force has it."""

    def __init__(self, run_dir: str, document: dict[str, Any]) -> None:
        self.run_dir, self.run = run_dir, os.path.basename(run_dir)
        self.script = _text(document.get("script"))
        self.host = _text(document.get("host"))
        self.device_target = _text(document.get("device_target"))
        self.started = utc.seconds(document.get("started"))
        self.places = {  # rank: its device and host
            row["rank"]: (_text(row.get("device")), _text(row.get("host")) or self.host)
            for row in any_json.objects(document, "ranks")
            if type(row.get("rank")) is int
        }

    @property
    def host_of(self) -> dict[int, str]:
        """The host of each rank."""
        return {rank: host for rank, (_, host) in self.places.items()}

    def device(self, rank: int) -> int:
        """The number of a rank's device."""
        text = self.places[rank][0]
        return int(text) if text.isdecimal() and len(text) < 10 else 0

    def ranks(self, attempt: int, patterns: Patterns) -> Ranks:
        """The logs of an attempt; 0 is the first."""
        folder = os.path.join(self.run_dir, f"restart_{attempt}") if attempt else self.run_dir
        return Ranks(((rank, os.path.join(folder, f"rank_{rank}.log")) for rank in self.places), patterns)


def _text(value: object) -> str:
    return str(value) if isinstance(value, (str, int)) else ""
