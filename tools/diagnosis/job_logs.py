"""Reads the logs of a whole job, from our launcher or another one, and determines which rank is the root.

A run of ours has its plogs in its folder, or where the user's ASCEND_PROCESS_LOG_PATH pointed.  Any other folder,
archive or file is read as it is: a colleague's ascend/log, a download, the files of a cluster's scheduler.
"""

from __future__ import annotations

import os
from contextlib import suppress

from hccl_tools.common import documents, typed
from hccl_tools.common.language import in_english, speaks_chinese, tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import count, one_line, short_path, size_of
from tools.diagnosis import faults, processes, root, run
from tools.diagnosis.bundle import names as bundle_names
from tools.launch import plogs
from tools.logs import owners, plog, scan, sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.diagnosis.faults import Fault
    from tools.diagnosis.processes import Job
    from tools.diagnosis.verdict import Verdict
    from tools.logs.known_failures import KnownFailure
    from tools.logs.scan import Findings
    from tools.logs.sources import Reading

MOST_AT_END = 256 << 20  # bytes that the report of a launch reads: more would keep the user waiting
_BY_HAND = 1 << 62
_A_DAY = 86400  # seconds: names of plogs have local time, launch.json has UTC


class Explained(Record):
    """The explanation that the logs of a job give."""

    reading: Reading
    job: Job
    verdict: Verdict | None
    recorded: Verdict | None  # the same in English, for programs
    faults: list[Fault]
    left_out: int = 0  # bytes that were not read


def of_paths(
    paths: list[str], entries: list[KnownFailure], launch: dict[str, Any] | None = None, alone: bool = False
) -> Explained:
    """Reads files and folders; alone: by this process only.  Raises OSError: one is not there."""
    reading = _without_pages(sources.read(paths, entries, alone, _tables(launch or {})))
    job = processes.job_of(reading.findings, reading.papers, launch)
    verdict = recorded = root.verdict_of(job)
    if speaks_chinese():
        with in_english():
            recorded = root.verdict_of(job)
    found = faults.faults_of(entries, reading.findings, job, verdict)
    return Explained(reading=reading, job=job, verdict=verdict, recorded=recorded, faults=found)


def get_ready(entries: list[KnownFailure]) -> None:
    """Prepares what takes time and does not depend on the logs: expressions, and what to look for."""
    scan.use(entries)
    for kind in (owners.PLOG, owners.TRAIN):
        scan.ready(kind, fast=False)


def _without_pages(reading: Reading) -> Reading:
    """Without the pages of a bundle, which state again what its logs state."""
    names = {one.path.replace(":", os.sep): one.path for one in reading.findings}  # archive.tar.gz:contents.txt
    pages = {path for name, path in names.items() if bundle_names.is_page(name, names.keys())}
    return reading.replace(findings=[one for one in reading.findings if one.path not in pages]) if pages else reading


def of_run(launch: dict[str, Any], folder: str, entries: list[KnownFailure], at_end: bool) -> Explained | None:
    """The plogs of a run and what its ranks printed; None, where there are no plogs.

    at_end: the launch has just ended, and the report is waited for: no more than MOST_AT_END bytes.
    """
    own = plog_folders(launch, folder)
    if not own:
        return None
    paths, size, left_out = [], 0, 0
    limit = MOST_AT_END if at_end else _BY_HAND
    for path in [*own, *_rank_logs(launch, folder)]:
        length = _size(path)
        if size + length > limit:
            left_out += length
            continue
        size += length
        paths.append(path)
    if not paths:
        return None
    return of_paths(paths, entries, launch, alone=at_end).replace(left_out=left_out)


def plog_folders(launch: dict[str, Any], folder: str) -> list[str]:
    """rank_N of each rank below the run's folder of plogs and the user's own; otherwise the files of its processes."""
    named = launch.get("plogs")
    if not isinstance(named, dict):
        return []
    above = [os.path.normpath(os.path.join(folder, run.logs_of(launch.get("outcome")), plogs.FOLDER))]
    told = documents.text(named, "folder")
    if told and os.path.isabs(told):
        above.append(told)
    found = [path for one in above for path in _ranks_below(one)]
    return found or _by_process(launch)


def _ranks_below(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(
                entry.path
                for entry in entries
                if entry.name.startswith("rank_") and entry.is_dir(follow_symlinks=False)
            )
    except (OSError, ValueError):  # ValueError: a name that cannot be one
        return []


def _by_process(launch: dict[str, Any]) -> list[str]:
    """The plogs of the ranks' processes in CANN's own folder, where a rank could not get one of its own."""
    folder = documents.text(launch.get("other_logs"), plogs.VARIABLE)
    folder = os.path.join(os.path.expanduser("~"), "ascend", "log") if folder is None else folder
    folder = os.path.join(str(launch.get("folder") or ""), folder)
    members = documents.part(launch.get("outcome"), "members").values()
    pids = {row.get("pid") for row in members if isinstance(row, dict)}
    begun = plog.seconds(str(launch.get("started") or "")) or 0.0
    found = []
    for kind in ("debug", "run"):
        try:
            names = os.listdir(os.path.join(folder, kind, "plog"))
        except (OSError, ValueError):  # ValueError: a name that cannot be one
            continue
        for name in sorted(names):
            owner = owners.of_name(name)
            if owner.pid in pids and (owner.begun or begun) > begun - _A_DAY:
                found.append(os.path.join(folder, kind, "plog", name))
    return found


def _rank_logs(launch: dict[str, Any], folder: str) -> list[str]:
    logs = run.logs_of(launch.get("outcome"))
    names = (documents.text(row, "log") for row in documents.objects(launch, "ranks"))
    paths = [
        os.path.normpath(os.path.join(folder, logs, name)) for name in names if name is not None and os.sep not in name
    ]
    return [path for path in paths if os.path.isfile(path) and not os.path.islink(path)]


def _tables(launch: dict[str, Any]) -> list[str]:
    table = documents.text(launch.get("exports"), "RANK_TABLE_FILE")
    return [table] if table and os.path.isfile(table) else []


def tables(launch: dict[str, Any]) -> dict[str, bytes]:
    """The rank table of a run, by its path; empty where it has none."""
    found = {}
    for path in _tables(launch):
        with suppress(OSError), open(path, "rb") as file:
            found[path] = file.read(16 << 20)
    return found


def _size(path: str) -> int:
    if not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(entry.stat(follow_symlinks=False).st_size for entry in sources.below(path) if not entry.is_symlink())


# --- what was read, as text ------------------------------------------------------------------------------------------


def command(run_dir: str) -> str:
    """The command that reads all logs of a run, as a person can paste it."""
    return typed.command("tools/diagnose.py", short_path(run_dir))


def summary(explained: Explained) -> list[str]:
    """What was read, and what was not."""
    reading, job = explained.reading, explained.job
    hosts = len(job.hosts())
    text = tr("read {size} in {logs}", size=size_of(reading.size), logs=count(len(reading.findings), "log"))
    if job.processes:
        text = tr("{text} of {processes}", text=text, processes=_processes(job))
    if hosts:
        text = tr("{text} on {hosts}", text=text, hosts=count(hosts, "host"))
    lines = [text]
    if job.others:
        text = tr(
            "{logs} of earlier jobs are left out: they end long before the others begin", logs=count(job.others, "log")
        )
        lines.append(text)
    if reading.links:
        lines.append(tr("{links} not followed", links=count(reading.links, "link")))
    if reading.slow:
        lines.append(tr("this takes long without the package hyperscan: python -m pip install hyperscan"))
    lines += [f"{one_line(short_path(one.path))}: {one_line(tr(one.trouble))}" for one in _troubled(reading.findings)]
    return lines


def _processes(job: Job) -> str:
    number = len(job.processes)
    return tr("1 process") if number == 1 else tr("{count} processes", count=number)


def _troubled(findings: list[Findings]) -> list[Findings]:
    return [one for one in findings if one.trouble][:10]
