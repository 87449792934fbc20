"""launch.json, the record of a run: its plan, and once it has ended its outcome."""

from __future__ import annotations

import json
import os

from hccl_tools.common import documents

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
    rank_table.write(text, path(plan.run_dir))


def path(run_dir: str) -> str:
    """The file, in the run's folder."""
    return os.path.join(run_dir, "launch.json")


def read(run_dir: str) -> dict[str, Any]:
    """The document.  Raises OSError, and ValueError if it is none."""
    document = documents.read_json(path(run_dir), errors="surrogateescape")
    if not isinstance(document, dict):
        raise ValueError("it is not an object")
    return document


def write(run_dir: str, document: dict[str, Any]) -> None:
    """Replaces the document, whole or not at all.  Raises OSError, and ValueError if it has too many levels."""
    try:
        text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    except RecursionError as error:
        raise ValueError(documents.TOO_DEEP) from error
    part = path(run_dir) + ".part"
    with open(part, "w", encoding="utf-8", errors="backslashreplace") as file:  # \udcff is JSON
        file.write(text)
    os.chmod(part, os.stat(path(run_dir)).st_mode & 0o777)
    os.replace(part, path(run_dir))


def finish(run_dir: str, attempts: list[dict[str, Any]]) -> None:
    """Adds the outcome: that of the last attempt, with those of the earlier ones in it.  Raises OSError, ValueError."""
    *earlier, last = attempts
    write(run_dir, {**read(run_dir), "outcome": {**last, "attempts": earlier} if earlier else last})
