"""The answer as JSON for programs, in English (see schemas/diagnosis.schema.json), and as lines for log collectors."""

from __future__ import annotations

import json
import sys
import time as clock

from hccl_tools.common import documents, typed
from tools.diagnosis import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tools.diagnosis.answer import Answer, Cause
    from tools.diagnosis.job_logs import Explained
    from tools.diagnosis.processes import Process
    from tools.diagnosis.run import Member
    from tools.diagnosis.waits import Target

_EXCEPTION = ("type", "message", "file", "line", "function")
_MOST = 1000  # ranks that are the root, faults, files with trouble


def of_logs(answer: Answer, logs: Explained) -> dict[str, Any]:
    """The JSON for the logs of any job."""
    ranks = [_rank(one) for one in logs.job.processes]
    return {**_answer(answer), "run": None, "ranks": ranks, "read": _read(logs)}


def of_run(answer: Answer, logs: Explained | None, launch: dict[str, Any], folder: str) -> dict[str, Any]:
    """The JSON for a run of ours."""
    ended = documents.part(launch["outcome"], "members")
    read = {one.rank: one for one in logs.job.processes} if logs else {}
    ranks = []
    for name, place in run.places_of(launch).items():
        status = documents.number(ended.get(name), "status")
        process = read.get(int(name))
        known = _rank(process) if process else {"pid": None, "logs": [], "errors": 0}
        ranks.append({**known, "rank": int(name), **place, "status": status})
    return {**_answer(answer), "run": folder, "ranks": ranks, "read": _read(logs) if logs else None}


def _answer(answer: Answer) -> dict[str, Any]:
    root = {
        "certainty": answer.certainty or None,
        "why": answer.why or None,
        "ranks": answer.ranks[:_MOST],
        "places": [_place(one) for one in answer.roots[:_MOST]],
        "chain": answer.chain,
    }
    raised = answer.exception
    evidence = {"file": answer.path, "row": answer.row, "line": answer.quoted}
    causes = [_cause(cause) for cause in answer.causes[:_MOST]]
    first = causes[0] if causes else None
    if not answer.path and first and first["line"]:
        evidence = {name: first[name] for name in ("file", "row", "line")}
    return {
        "answer": answer.sentence,
        "found": answer.found,
        "kind": answer.kind,
        "root": root if answer.roots or answer.ranks or answer.certainty else None,
        "exception": raised and {name: getattr(raised, name) for name in _EXCEPTION},
        "evidence": evidence if evidence["file"] else None,
        "cause": first and {name: first[name] for name in ("code", "cause", "remedy")},
        "faults": causes,
        "next": answer.next,
        "others": [{"who": one.who, "line": one.text} for one in answer.others],
        "errors": [
            {
                "line": one.text,
                "file": one.path,
                "row": one.row or None,
                "ranks": list(one.ranks[:_MOST]),
                "logs": one.logs,
                "times": one.times,
            }
            for one in answer.errors[:20]
        ],
    }


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "code": cause.entry.code,
        "cause": cause.entry.cause,
        "remedy": typed.as_typed(cause.entry.remedy),
        "vague": cause.entry.vague,
        "rank": cause.rank,
        "file": cause.path,
        "row": cause.row,
        "line": cause.line,
        "times": cause.times,
    }


def _place(one: Process | Target) -> dict[str, Any]:
    host = getattr(one, "host", None) or getattr(one, "server", None)
    return {"rank": one.rank, "host": host, "device": one.device, "address": one.address}


def _rank(process: Process) -> dict[str, Any]:
    return {
        "rank": process.rank,
        "host": process.host or process.server,
        "device": process.device,
        "pid": process.pid,
        "logs": [one.path for one in process.findings],
        "errors": process.errors,
        "status": None,
    }


def _read(logs: Explained) -> dict[str, Any]:
    reading = logs.reading
    return {
        "bytes": reading.size,
        "logs": len(reading.findings),
        "processes": len(logs.job.processes),
        "hosts": sorted(logs.job.hosts()),
        "other_jobs": logs.job.others,
        "links": reading.links,
        "bytes_left": logs.left_out,
        "trouble": [{"file": one.path, "why": one.trouble} for one in reading.findings if one.trouble][:_MOST],
    }


def events_of_job(logs: Explained | None, members: list[Member]) -> list[dict[str, Any]]:
    """The root first, then the known failures by time, then the ends of ranks that failed by themselves."""
    found: list[dict[str, Any]] = []
    if logs and logs.recorded:
        verdict = logs.recorded
        roots: list[object] = [*verdict.roots] or [None]
        for one in roots:
            found.append(
                {
                    **_event("root", verdict.time, getattr(one, "rank", None)),
                    "host": getattr(one, "host", None),
                    "device": getattr(one, "device", None),
                    "code": f"root-{verdict.kind}",
                    "cause": verdict.sentence,
                    "certainty": verdict.certainty,
                }
            )
    for fault in sorted(logs.faults, key=lambda one: one.seen.time or 0.0) if logs else ():
        found.append(
            {
                **_event("fault", fault.seen.time, fault.rank),
                "host": fault.process.host if fault.process else None,
                "device": fault.process.device if fault.process else None,
                "code": fault.entry.code,
                "cause": fault.entry.cause,
                "file": fault.path,
                "row": fault.seen.row,
                "line": fault.seen.text,
            }
        )
    for member in members:
        row = _event("end", None, int(member.name) if member.is_rank else None)
        found.append({**row, "member": member.name, "status": member.status})
    return found


def _event(event: str, time: float | None, rank: int | None) -> dict[str, Any]:
    # local time of the host that wrote the log, which names no zone
    said = None if time is None else clock.strftime("%Y-%m-%dT%H:%M:%S", clock.gmtime(time)) + f".{time % 1:.3f}"[2:]
    return {"event": event, "time": said, "rank": rank}


def write_events(path: str, rows: Iterable[dict[str, Any]]) -> None:
    """Appends the lines to the file, so that a collector that follows it loses nothing; -: stdout.  Raises OSError."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if path == "-":
        sys.stdout.write(text)
        return
    with open(path, "a", encoding="utf-8", errors="replace") as file:
        file.write(text)
