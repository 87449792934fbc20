"""NCCL's lines of several processes in one file: each names its host, process and device, but hardly ever its rank."""

from __future__ import annotations

from hccl_tools.common.language import tr
from tools.diagnosis.processes import Job, Process
from tools.diagnosis.verdict import LIKELY, Verdict, said, who


def of_one_file(job: Job) -> Verdict | None:
    """The first process whose card failed, or had no memory left, where others in the file only lost their peer."""
    for process in [*job.processes, *job.witnesses]:
        if process.rank is not None:
            continue
        event = next((event for event in process.events if event.kind == "own" and event.values.get("pid")), None)
        if event is None:
            continue
        one = Process("", int(event.values["pid"]))
        one.host, one.device = event.values["host"], int(event.values["device"])
        return Verdict(
            kind="error",
            roots=[one],
            sentence=tr("{who} failed first: {text}", who=who(one), text=said(event.text)),
            certainty=LIKELY,
            why=tr("its line names the process, and no other one has an error that does not follow from a wait"),
            text=event.text,
            time=event.time,
        )
    return None
