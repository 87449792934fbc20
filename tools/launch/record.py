"""launch.json, the record of a run: its plan, and its outcome once it has ended."""

from __future__ import annotations

import itertools
import json
import os
import time

from hccl_tools.common import documents, version
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import one_line, ranges
from tools.launch import rank_folders
from tools.launch.programs import rank_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tools.launch.planned import Plan
    from tools.supervise.members import Member


def begin(plan: Plan) -> None:
    """Writes launch.json as it is at the start, into the run's folder.  Raises OSError."""
    import time

    document: dict[str, Any] = {
        "script": plan.request.script,
        "version": version.number(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "host": os.uname().nodename,
        "folder": os.getcwd(),
        "device_target": plan.request.device_target,
        "run_dir": plan.run_dir,
        **of_plan(plan),
    }
    if plan.request.typed:
        document["typed"] = plan.request.typed
    if plan.request.defaults:
        document["defaults"] = plan.request.defaults
    if plan.spares:
        document["spares"] = plan.spares
    if plan.preflight and plan.preflight.told:
        document["preflight"] = plan.preflight.told
    _save(plan.run_dir, document, None)


def of_plan(plan: Plan) -> dict[str, Any]:
    """The document's part about a plan; a run that loses hosts has several plans."""
    document: dict[str, Any] = {"exports": plan.exports, "trainer": plan.trainer, "scheduler": plan.scheduler}
    if plan.restart:
        document["restart"] = plan.restart
    if plan.checkpoints:
        document["checkpoints"] = plan.checkpoints
    if plan.resumed:
        document["resumed"] = plan.resumed.record()
    if plan.table and plan.table.digest:
        document["rank_table"] = {"file": plan.table.path, "sha256": plan.table.digest}
        if plan.table.whole:
            document["rank_table"]["whole"] = plan.table.whole[0]
    if plan.hccl:
        document["hccl"] = plan.hccl.record()
    if plan.plogs:
        from tools.launch import plogs

        document["plogs"] = plan.plogs.record()
        document["other_logs"] = plogs.others()
    document["ranks"] = _ranks(plan)
    return document


def _ranks(plan: Plan) -> list[dict[str, Any]]:
    """The row of every rank."""
    rows: list[dict[str, Any]] = [
        {"rank": rank, "device": device, "log": f"rank_{rank}.log"} for rank, device in plan.ranks
    ]
    for row, host in zip(rows, plan.hosts):
        row["host"] = host
    for row in rows if plan.rank_files is not None else ():
        row["folder"] = os.path.relpath(rank_folders.of_rank(plan.run_dir, row["rank"]), plan.run_dir)
    for row, (_, words) in zip(rows, rank_words.own(plan)):
        row["words"] = words
    bound = {"cores": plan.binding.cores, "memory": plan.binding.memory} if plan.binding else {}
    for name, of_ranks in bound.items():
        for row in rows:
            if of_ranks.get(row["rank"]):
                row[name] = ranges(of_ranks[row["rank"]])
    return rows


def path(run_dir: str) -> str:
    """The file, in the run's folder."""
    return os.path.join(run_dir, "launch.json")


def read(run_dir: str) -> dict[str, Any]:
    """The document.  Raises Refusal with the reason if there is none."""
    try:
        document = documents.read_json(path(run_dir), errors="surrogateescape")
    except FileNotFoundError:
        reason = tr("no such file")
    except OSError as error:
        reason = tr("cannot be read: {reason}", reason=strerror(error))
    except ValueError as error:
        reason = tr("is not JSON: {reason}", reason=one_line(error))
    else:
        if isinstance(document, dict):
            return document
        reason = tr("is JSON, but not an object")
    raise Refusal(USAGE, f"{one_line(path(run_dir))}: {reason}")


def who(row: Mapping[str, Any]) -> str:
    """A rank by its row of launch.json: ``rank 3 (device 7 of node1)``."""
    rank, device, host = row.get("rank"), row.get("device"), row.get("host")
    if host:
        return tr("rank {rank} (device {device} of {host})", rank=rank, device=device, host=host)
    return tr("rank {rank} (device {device})", rank=rank, device=device)


def write(run_dir: str, document: dict[str, Any]) -> None:
    """Replaces the document, whole or not at all.  Raises OSError, and ValueError if it has too many levels."""
    _save(run_dir, document, os.stat(path(run_dir)).st_mode & 0o777)


def _save(run_dir: str, document: dict[str, Any], mode: int | None) -> None:
    parts = itertools.chain(json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(document), ["\n"])
    try:
        documents.write_whole(parts, path(run_dir), mode=mode, errors="backslashreplace")  # \udcff is JSON
    except RecursionError as error:
        raise ValueError(documents.TOO_DEEP) from error


def again(document: dict[str, Any], plan: Plan, until: int) -> None:
    """Replaces the plan in the `document` of a run by the one of a restart, and keeps what was true until the attempt
    number `until`, from 0 on.  Raises OSError."""
    old = {name: document[name] for name in ("exports", "rank_table", "ranks") if name in document}
    earlier = [*document.get("earlier_plans", ()), {"until": until, **old}]
    write(plan.run_dir, {**document, **of_plan(plan), "earlier_plans": earlier})


def finish(run_dir: str, attempts: list[dict[str, Any]]) -> None:
    """Adds the outcome: that of the last attempt, with the earlier ones in it.

    Raises OSError, ValueError and Refusal.
    """
    write(run_dir, {**read(run_dir), "outcome": outcome(attempts)})


def outcome(attempts: list[dict[str, Any]]) -> dict[str, Any]:
    """The outcome of a run with these attempts."""
    *earlier, last = attempts
    return {**last, "attempts": earlier} if earlier else last


def outcome_of_attempt(
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


def save_outcome(run_dir: str, attempts: list[dict[str, Any]]) -> str:
    """Writes the outcome of these attempts into launch.json; returns why it is not in it, or ""."""
    try:
        finish(run_dir, attempts)
    except Refusal as error:
        return str(error)
    except (OSError, ValueError) as error:
        return tr(
            "{path}: cannot be written: {reason}",
            path=path(run_dir),
            reason=strerror(error),
        )
    return ""
