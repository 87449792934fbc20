"""The outcome of a launch: what launch.json records about each attempt that has ended."""

from __future__ import annotations

import time

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import Refusal
from tools.launch import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tools.supervise.members import Member


def of_attempt(
    members: Iterable[Member], first: Member | None, *, status: int, stopped_by: str, logs: str
) -> dict[str, Any]:
    """The outcome of an attempt that has ended now.

    first: failed first; status: the exit code if the job ended now; stopped_by: what else has ended it, or "";
    logs: the folder of its logs, relative to that of the run.
    """
    members = list(members)
    found: dict[str, Any] = {
        "ended": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "exit": status,
        "logs": logs,
        "first_failure": first.name if first else None,
        "stopped_by": stopped_by or None,
        "members": {member.name: _of_member(member) for member in members},
    }
    failed = [member.name for member in members if member.failed and member is not first]
    return {**found, "also_failed": failed} if failed else found


def _of_member(member: Member) -> dict[str, Any]:
    seconds = None if member.seconds == "-" else float(member.seconds)
    found: dict[str, Any] = {"status": member.status, "seconds": seconds, "pid": member.pid}
    if member.left:
        found["left"] = [{"pid": pid, "command": words} for pid, words in member.commands_left()]
        found["left_ended"] = member.left_ended
    if member.earlier:
        found["earlier"] = [_of_member(one) for one in member.earlier]
    if member.left_failed:
        found["left_failed"] = member.left_failed[0]
    return found


def save(run_dir: str, attempts: list[dict[str, Any]]) -> str:
    """Writes the outcome of these attempts into launch.json; returns why it is not in it, or ""."""
    try:
        record.finish(run_dir, attempts)
    except Refusal as error:
        return str(error)
    except (OSError, ValueError) as error:
        return tr(
            "{path}: cannot be written: {reason}",
            path=record.path(run_dir),
            reason=getattr(error, "strerror", None) or error,
        )
    return ""
