"""Finds all logs below folders, in archives, or named one by one, and reads them with one process per processor.

Links in folders are not followed: the sender of a folder may have pointed them anywhere.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
import zlib

from hccl_tools.common import how_far
from hccl_tools.common.language import marked, strerror, tr
from hccl_tools.common.record import Record
from hccl_tools.common.typed import name_of
from hccl_tools.common.words import count, one_line
from hccl_tools.machine import programs
from tools.logs import matcher, owners, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import IO, Any

    from tools.logs.known_failures import KnownFailure
    from tools.logs.scan import Findings

MOST_FILES = 1_000_000
LONG = 2 << 30  # bytes: without hyperscan about 20 s of a core, with it 10 s
SMALL = 8 << 20  # below that, starting processes takes longer than reading
MUCH = 256 << 20  # below that, making hyperscan's automata, 1 to 2 s, takes longer than reading without them
_PACKED = 20  # logs become that much larger when they are unpacked
_PACKED_NAMES = (".gz", ".tgz", ".bz2", ".xz")
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_NOT_REGULAR = marked("it is not a regular file")


class Reading(Record):
    """The result of reading."""

    findings: list[Findings]
    papers: dict[str, bytes]  # files that name ranks and addresses: npu_info, rank tables, launch.json
    size: int
    fast: bool
    links: int  # that were not followed

    @property
    def slow(self) -> bool:
        """Whether hyperscan is missing, and would have been of much use."""
        return self.size > LONG and not self.fast


def read(paths: list[str], entries: list[KnownFailure], alone: bool = False, tables: Iterable[str] = ()) -> Reading:
    """Reads the files, and what is below the folders.  Raises OSError: a path that is not there.

    alone: by this process only, however much it is.  tables: rank tables, whatever their names are.
    """
    scan.use(entries)
    files, links = _files(paths)
    size = sum(file[2] for file in files)
    unpacked = sum(length * (_PACKED if name.endswith(_PACKED_NAMES) else 1) for _, name, length in files)
    fast = unpacked > MUCH and matcher.installed()
    papers = {name: _paper(path) for path, name, length in files if _is_paper(name) and length < (16 << 20)}
    papers.update((path, _paper(path)) for path in tables)
    logs = [(path, name) for path, name, _ in sorted(files, key=lambda file: -file[2]) if name not in papers]
    found: list[Findings] = []
    with how_far.doing(tr("reading {logs}", logs=count(len(logs), "log")), size, in_bytes=True) as work:
        for number, (some, more) in enumerate(_read_all(logs, fast, alone or unpacked <= SMALL, work), 1):
            found += some
            papers.update(more)
            work.about = tr("{number} done", number=number)
    found.sort(key=lambda one: one.path)
    whose = owners.with_masters([one.owner for one in found])
    found = [one.replace(owner=owner) if owner != one.owner else one for one, owner in zip(found, whose)]
    return Reading(findings=found, papers=papers, size=size, fast=fast, links=links)


def _read_all(
    logs: list[tuple[str, str]], fast: bool, alone: bool, work: how_far.Work
) -> Iterator[tuple[list[Findings], dict[str, bytes]]]:
    workers = min(len(os.sched_getaffinity(0)), len(logs))
    if alone or workers < 2:
        yield from (_read_one((path, name, fast)) for path, name in logs)
        return
    import multiprocessing

    with how_far.doing(tr("preparing the search"), len(owners.KINDS)):  # with hyperscan it takes seconds
        for kind in owners.KINDS:
            scan.ready(kind, fast)  # once, before the processes are forked
            how_far.more()
    context = multiprocessing.get_context("fork")
    total = context.Value("Q", 0) if how_far.is_shown() else None
    if total is not None:
        work.counter = lambda: int(total.value)
    with context.Pool(workers, _begin_worker, (total,)) as pool:
        tasks = ((path, name, fast) for path, name in logs)
        yield from pool.imap_unordered(_read_one, tasks, chunksize=1 if len(logs) < 1000 else 8)


def _begin_worker(total: Any) -> None:
    """total: to which it adds the bytes that it reads; None: the progress is not shown."""
    programs.end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for its parent, with which it ends
    how_far.tell(total)


# --- which files ------------------------------------------------------------------------------------------------------


def _files(paths: list[str]) -> tuple[list[tuple[str, str, int]], int]:
    """[(path, its name below what the user named, size)] and the number of links that are left out."""
    found: list[tuple[str, str, int]] = []
    links = 0
    for named in paths:
        if not os.path.isdir(named):
            status = os.stat(named)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(0, _NOT_REGULAR, named)
            name = os.path.basename(named) if len(paths) == 1 else named.lstrip("./")
            found.append((named, name if _is_paper(name) else owners.as_log(name), status.st_size))
            continue
        above = "" if len(paths) == 1 else os.path.basename(os.path.abspath(named))
        for entry in below(named):
            if entry.is_symlink():
                links += 1
            elif entry.is_file(follow_symlinks=False) and len(found) < MOST_FILES:
                name = os.path.join(above, os.path.relpath(entry.path, named))
                found.append((entry.path, name, entry.stat(follow_symlinks=False).st_size))
    return found, links


def _tell(folder: str, error: OSError) -> None:
    how_far.clear()
    print(f"{name_of('diagnose.py')}: {one_line(folder)}: {strerror(error)}", file=sys.stderr)


def below(folder: str, unreadable: Callable[[str, OSError], None] = _tell) -> Iterator[os.DirEntry[str]]:
    """All files below a folder, without its folders; `unreadable` is called with a folder that cannot be read."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        yield entry
        except OSError as error:
            unreadable(here, error)


def _is_paper(name: str) -> bool:
    base = os.path.basename(name)
    if base.startswith("npu_info"):
        return base.endswith(".txt")
    return base.endswith(".json") and ("hccl" in base or "rank" in base or base == "launch.json")


def _paper(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


# --- one file ---------------------------------------------------------------------------------------------------------


def _read_one(task: tuple[str, str, bool]) -> tuple[list[Findings], dict[str, bytes]]:
    path, name, fast = task
    papers: dict[str, bytes] = {}
    found: list[Findings] = []
    try:
        if name.endswith(_ARCHIVES):
            _read_archive(task, found, papers)
        else:
            with open(path, "rb") as file:
                found += _one_log(how_far.counted(file), name, fast, path)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        kind = owners.kind_of(name, b"")
        found.append(scan.Findings(path=path, kind=kind, owner=owners.of_name(name), trouble=reason))
    return found, papers


def _read_archive(task: tuple[str, str, bool], found: list[Findings], papers: dict[str, bytes]) -> None:
    """Adds what is in a tar.  Raises OSError, EOFError and zlib.error: it is damaged; what comes before stays."""
    import tarfile  # not at the top: the end of a launch reads no archives

    path, name, fast = task
    try:
        with open(path, "rb") as file, tarfile.open(fileobj=how_far.counted(file), mode="r|*") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                inside = os.path.normpath("/" + member.name).lstrip("/")
                if content and _is_paper(inside):
                    papers[os.path.join(name, inside)] = content.read(16 << 20)
                elif content:
                    found += _one_log(content, inside, fast, f"{path}:{inside}", again=False)
    except tarfile.TarError as error:
        raise OSError(0, str(error), path) from error


def _one_log(file: IO[bytes], name: str, fast: bool, path: str, again: bool = True) -> list[Findings]:
    if name.endswith(".gz"):
        import gzip

        with gzip.open(file) as unpacked:
            return scan.read_all(unpacked, name, fast, path, again)
    return scan.read_all(file, name, fast, path, again)
