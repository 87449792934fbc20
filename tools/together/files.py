"""A file of weights that two ranks write: seen while both have it open, or in what MindSpore says about it."""

from __future__ import annotations

import os
import re

from tools.launch.member_processes import rank_of
from tools.together import findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.together.findings import Row

ENDS = (".ckpt", ".safetensors", ".tmp")  # MindSpore writes NAME.tmp, and renames it
_CACHE = re.compile(r"kernel_meta|cache", re.IGNORECASE)  # compilers share those, and lock them
_WRITES = 0o3  # the part of open(2)'s flags that is not 0 where a file can be written
# What MindSpore 2.10 says, and its traceback where a file that it has just found is gone.
_LOST = re.compile(
    r"Rename failed, can't find (\S{1,200}), it is possible that multiple processes|"
    r"in _exec_save\n +os\.(?:remove|chmod|rename)\(.*\n(?: *[~^]+\n)?"
    r"FileNotFoundError: \[Errno 2\] [^:\n]*: '(.{1,200}?)'"
)


def processes(job: str) -> Iterator[tuple[str, int]]:
    """(process, its rank) of all of this host's.  job: their LAUNCH_JOB."""
    mark = os.fsencode(f"LAUNCH_JOB={job}")
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        rank = rank_of(pid, mark)
        if rank is not None:
            yield pid, rank


def open_by_two(job: str) -> list[Row]:
    """Files that processes of two ranks of the job have open for writing now."""
    ranks: dict[str, set[int]] = {}
    for pid, rank in processes(job):
        for path in written(pid):
            ranks.setdefault(path, set()).add(rank)
    return [findings.row("one-file", who, path=path) for path, who in sorted(ranks.items()) if len(who) > 1]


def written(pid: str) -> list[str]:
    """The weights that the process has open for writing; the name stays when another process has removed the file."""
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return []  # the process is gone
    found = []
    for number in numbers:
        try:
            path = os.readlink(f"/proc/{pid}/fd/{number}")
            path = path[: -len(" (deleted)")] if path.endswith(" (deleted)") else path
            if path.startswith("/") and path.endswith(ENDS) and not _CACHE.search(path):
                found += [path] if _is_for_writing(pid, number) else []
        except OSError:
            continue  # it has closed this one meanwhile
    return found


def _is_for_writing(pid: str, number: str) -> bool:
    with open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii") as file:
        words = file.read().split()
    return bool(int(words[words.index("flags:") + 1], 8) & _WRITES)


def lost(texts: dict[int, str]) -> list[Row]:
    """Files that a rank has saved, and that were gone before it was done; texts: the ends of the ranks' logs."""
    ranks: dict[str, set[int]] = {}
    for rank, text in texts.items():
        for match in _LOST.finditer(text):
            ranks.setdefault(match[1] or match[2], set()).add(rank)
    return [findings.row("lost-file", who, path=path) for path, who in sorted(ranks.items())][:1]
