"""launch.json, the record of a run."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.launch.protocol import Plan


def begin(plan: Plan) -> None:
    """Writes launch.json as it is at the start, into the run's folder.  Raises OSError."""
    import socket
    import time

    from hccl_tools.table import rank_table

    document: dict[str, Any] = {
        "script": plan.request.script,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "host": socket.gethostname(),
        "folder": os.getcwd(),
        "device_target": plan.request.device_target,
        "run_dir": plan.run_dir,
        "exports": plan.exports,
        "trainer": plan.trainer,
        "scheduler": plan.scheduler,
    }
    if plan.table and plan.table.digest:
        document["rank_table"] = {"file": plan.table.path, "sha256": plan.table.digest}
    document["ranks"] = [{"rank": rank, "device": device, "log": f"rank_{rank}.log"} for rank, device in plan.ranks]
    for rank, host in zip(document["ranks"], plan.hosts):
        rank["host"] = host
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    rank_table.write(text, os.path.join(plan.run_dir, "launch.json"))
