"""Selects and orders the files of a bundle: the most informative first, because some may not fit."""

from __future__ import annotations

import os
import re
import stat

from hccl_tools.common import documents, utc
from hccl_tools.common.language import marked
from hccl_tools.common.record import Record, Row
from tools.diagnosis import job_logs, run
from tools.diagnosis.bundle import cut
from tools.logs import owners, sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# What a file is: how its secrets are found.
LOG, ENVIRONMENT, DOCUMENT, TABLE, ARCHIVE = "log", "environment", "document", "table", "archive"
# The order.
PAPERS, FAILED, ERRORS, RANKS, OTHERS, EARLIER = range(6)

_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_PAPER = re.compile(r"(?:npu_info|hccl|jobstart_hccl).*\.(?:json|txt)")
_OF_RUN = re.compile(r".*\.(?:log|stack|env|txt|out)")
_ATTEMPT = re.compile(r"attempt_\d{1,6}")
MOST_FILES = 50_000
_SLACK = 3600  # seconds by which clocks of hosts may differ

LINK = marked("a link; links are not followed")
NO_LOG = marked("it is not a log")
_TOO_MANY = marked("there are too many files")
_OLD = marked("it is older than the run")


class Item(Record):
    """A file that may go into the bundle."""

    path: str
    name: str  # in the bundle
    kind: str
    order: int
    seen: os.stat_result | None  # None: the user named it
    size: int
    mtime: float


class LeftOut(Row):
    """A file that is not in the bundle, and why; the reason is for `tr`."""

    name: str
    reason: str


class Collection:
    """The files of a job."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.left_out: list[LeftOut] = []

    def add(self, entry: os.DirEntry[str], name: str, kind: str, order: int, since: float = 0.0) -> None:
        """A file that was found in a folder; not a link, a pipe, or a file that was written last before `since`."""
        try:
            seen = entry.stat(follow_symlinks=False)
        except OSError as error:
            self.left_out.append(LeftOut(name, error.strerror or str(error)))
            return
        if stat.S_ISREG(seen.st_mode) and seen.st_mtime >= since:
            self._keep(entry.path, name, kind, order, seen, named=False)
        else:
            reason = LINK if stat.S_ISLNK(seen.st_mode) else cut.NOT_REGULAR
            self.left_out.append(LeftOut(name, _OLD if stat.S_ISREG(seen.st_mode) else reason))

    def add_named(self, path: str, name: str, kind: str, order: int) -> None:
        """A file that the user named."""
        try:
            seen = os.stat(path)
        except OSError as error:
            self.left_out.append(LeftOut(name, error.strerror or str(error)))
            return
        if stat.S_ISREG(seen.st_mode):
            self._keep(path, name, kind, order, seen, named=True)
        else:
            self.left_out.append(LeftOut(name, cut.NOT_REGULAR))

    def _keep(self, path: str, name: str, kind: str, order: int, seen: os.stat_result, named: bool) -> None:
        if len(self.items) >= MOST_FILES:
            self.left_out.append(LeftOut(name, _TOO_MANY))
            return
        size, mtime = seen.st_size, seen.st_mtime
        known = None if named else seen
        self.items.append(Item(path=path, name=name, kind=kind, order=order, seen=known, size=size, mtime=mtime))

    def below(self, folder: str) -> Iterator[os.DirEntry[str]]:
        """All files below a folder; a folder that cannot be read is left out."""

        def leave_out(here: str, error: OSError) -> None:
            self.left_out.append(LeftOut(os.path.relpath(here, folder), error.strerror or str(error)))

        return sources.below(folder, leave_out)

    def sort(self, room: int) -> None:
        """The most important first; logs are read for errors only where not everything has room."""
        if sum(min(item.size, cut.MOST) for item in self.items) > room:
            self.items = [
                item.replace(order=ERRORS) if item.order == OTHERS and _has_errors(item) else item
                for item in self.items
            ]
        self.items.sort(key=lambda item: (item.order, item.order in (ERRORS, OTHERS, EARLIER) and -item.mtime))


def _has_errors(item: Item) -> bool:
    try:
        with os.fdopen(cut.open_regular(item.path, item.seen), "rb") as file:
            head, tail, _ = cut.of_file(file)
    except (OSError, cut.NotRead):
        return False
    return b"[ERROR]" in head or b"[ERROR]" in tail or b"[CRITICAL]" in tail


# --- a run of ours ----------------------------------------------------------------------------------------------------


def of_run(folder: str, launch: dict[str, Any]) -> Collection:
    """What a run has left: its folder, the user's folder of plogs, the rank table."""
    found = Collection()
    outcome = documents.part(launch, "outcome")
    failed = {str(name) for name in [outcome.get("first_failure"), *documents.entries(outcome, "also_failed")]}
    last = os.path.normpath(str(outcome.get("logs") or "."))
    for entry in _entries(folder, found):
        if entry.is_dir(follow_symlinks=False):
            if _ATTEMPT.fullmatch(entry.name) or entry.name == "plog":
                _add_folder(found, folder, entry.name, failed if entry.name == last else None)
        elif entry.name == "launch.json":
            found.add(entry, entry.name, DOCUMENT, PAPERS)
        else:
            _add_file(found, entry, entry.name, failed if last == "." else None)
    _add_plogs_of_user(found, folder, launch)
    _add_table(found, launch)
    return found


def _entries(folder: str, found: Collection) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: _number(entry.name))
    except OSError as error:
        found.left_out.append(LeftOut(os.path.basename(folder), error.strerror or str(error)))
        return []


def _number(name: str) -> tuple[int, str]:
    digits = re.search(r"\d{1,9}", name)
    return (int(digits[0]) if digits else -1, name)


def _add_folder(found: Collection, folder: str, name: str, failed: set[str] | None) -> None:
    """The folder of an attempt's logs, or that of plogs."""
    for entry in found.below(os.path.join(folder, name)):
        shown = os.path.relpath(entry.path, folder)
        if "plog" in shown.split(os.sep)[:2]:
            found.add(entry, shown, LOG, OTHERS if failed is not None or name == "plog" else EARLIER)
        else:
            _add_file(found, entry, shown, failed)


def _add_file(found: Collection, entry: os.DirEntry[str], name: str, failed: set[str] | None) -> None:
    """A file next to the logs of ranks; failed: the members that failed by themselves, None in an earlier attempt."""
    if not _OF_RUN.fullmatch(entry.name):
        return
    member = os.path.splitext(entry.name)[0]
    member = member[len("rank_") :] if member.startswith("rank_") else member
    order = EARLIER if failed is None else FAILED if member in failed else RANKS
    found.add(entry, name, ENVIRONMENT if entry.name.endswith(".env") else LOG, order)


def _add_plogs_of_user(found: Collection, folder: str, launch: dict[str, Any]) -> None:
    own = os.path.realpath(folder) + os.sep
    started = utc.seconds(launch.get("started")) or 0.0
    safe = launch if isinstance(launch.get("outcome") or {}, dict) else {**launch, "outcome": {}}
    for ranks in job_logs.plog_folders(safe, folder):
        if not os.path.realpath(ranks).startswith(own):
            for entry in found.below(ranks):
                name = os.path.join("plog", os.path.basename(ranks), os.path.relpath(entry.path, ranks))
                found.add(entry, name, LOG, OTHERS, since=started - _SLACK)


def _add_table(found: Collection, launch: dict[str, Any]) -> None:
    path = run.table_of(launch)
    if not path or "\0" in path:
        return
    base = os.path.basename(path)
    name = base if _PAPER.fullmatch(base) else "hccl_rank_table.json"
    found.add_named(os.path.join(documents.text(launch, "folder") or "", path), name, TABLE, PAPERS)


# --- any other logs ---------------------------------------------------------------------------------------------------


def of_paths(paths: list[str]) -> Collection:
    """The logs in folders, in archives, and those that the user named."""
    found = Collection()
    for path in paths:
        if not os.path.isdir(path):
            name = os.path.basename(path) if len(paths) == 1 else path
            found.add_named(path, name, _kind(name), _order(name))
            continue
        above = "" if len(paths) == 1 else os.path.basename(os.path.abspath(path))
        for entry in sorted(found.below(path), key=lambda entry: entry.path):
            name = os.path.join(above, os.path.relpath(entry.path, path))
            if is_log(name):
                found.add(entry, name, _kind(name), _order(name))
            else:
                found.left_out.append(LeftOut(name, LINK if entry.is_symlink() else NO_LOG))
    return found


def is_log(name: str) -> bool:
    """Whether a file of that name is a log, or states who is who in logs."""
    base = os.path.basename(name)
    if base == "launch.json" or base.endswith((".stack", *_ARCHIVES)) or _PAPER.fullmatch(base):
        return True
    return bool(re.fullmatch(r"(?:rank_\d+|scheduler)\.env", base)) or owners.kind_of(name, b"") in owners.KINDS


def _kind(name: str) -> str:
    base = os.path.basename(name)
    if base.endswith(_ARCHIVES):
        return ARCHIVE
    if base.endswith(".env"):
        return ENVIRONMENT
    return DOCUMENT if base == "launch.json" else LOG


def _order(name: str) -> int:
    base = os.path.basename(name)
    if base.endswith(".json") or _PAPER.fullmatch(base):
        return PAPERS
    return OTHERS if owners.kind_of(name, b"") in (owners.PLOG, owners.DEVICE) else RANKS
