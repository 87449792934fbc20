"""The answer as JSON for programs, in English; schemas/diagnosis.schema.json describes each field."""

from __future__ import annotations

from hccl_tools.common import any_json, typed
from tools.diagnosis import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.diagnosis.answer import Answer, Cause
    from tools.diagnosis.job_logs import Explained
    from tools.diagnosis.processes import Process
    from tools.diagnosis.waits import Target

_EXCEPTION = ("type", "message", "file", "line", "function")
_MOST = 1000  # ranks that are the root, faults, files with trouble


def of_logs(answer: Answer, logs: Explained) -> dict[str, Any]:
    """The JSON for the logs of any job."""
    ranks = [_rank(one) for one in logs.job.processes]
    return {**_answer(answer), "run": None, "ranks": ranks, "read": _read(logs)}


def of_run(answer: Answer, logs: Explained | None, launch: dict[str, Any], folder: str) -> dict[str, Any]:
    """The JSON for a run of ours."""
    ended = any_json.part(launch["outcome"], "members")
    read = {one.rank: one for one in logs.job.processes} if logs else {}
    ranks = []
    for name, place in run.places_of(launch).items():
        status = any_json.number(ended.get(name), "status")
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
