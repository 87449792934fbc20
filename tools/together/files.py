"""Detects a weights file that two ranks write, from open files or MindSpore's log; and the sizes that ranks print."""

from __future__ import annotations

import os
import re

from hccl_tools.common.record import Record
from tools.launch.member_processes import rank_of
from tools.progress import tails
from tools.together import findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tools.together.findings import Row

FIRST_BYTES = 32 << 10
_FIRST_LINES = 200
_LONGEST = 160  # characters of a line that states it; a longer one prints all of a program's settings
_SIZE = re.compile(
    r"(?<![\w.-])(?:rank_size|world_size|group_size|device_num|ranksize|worldsize)\b[\"']?\s*(?:[:=]|is)\s*(\d{1,6})\b(?!\.\d)",
    re.IGNORECASE,
)
_SETTING = re.compile(r"[\"']?[A-Za-z_][\w.-]*[\"']?\s*[:=]\s*\S")
_MOST_SETTINGS = 4  # in a line that does not print all of them
_ONE_SETTING = re.compile(r"[\"']?[A-Za-z_][\w.-]*[\"']?\s*[:=]\s*[^:=]*")
_BLOCK = 3  # so many lines around it that are one setting each: all settings are printed, one a line
_DUMP = re.compile(r"Namespace\(|\{")
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


# ---- The size of the job as a trainer prints it in its first lines: a rank that counts wrong may train alone.


class Said(Record):
    """What a log states about the size."""

    text: str  # as it is there
    line: int  # from 1
    size: int


def sizes_of(path: str) -> list[Said]:
    """What the first lines of the log say.  Raises OSError."""
    with open(path, "rb") as file:
        lines = tails.plain(file.read(FIRST_BYTES), cut=False).split("\n")[:_FIRST_LINES]
    found = []
    for number, line in enumerate(lines):
        if len(line) <= _LONGEST and (match := _SIZE.search(line)) and not _is_listed(lines, number):
            found.append(Said(text=match[0].strip(), line=number + 1, size=int(match[1])))
    return found


def _is_listed(lines: list[str], number: int) -> bool:
    """Whether the line is one of a list of settings, which may be changed before they are used."""
    if len(_SETTING.findall(lines[number])) > _MOST_SETTINGS or _DUMP.search(lines[number]):
        return True
    around = [*lines[max(0, number - _BLOCK) : number], *lines[number + 1 : number + 1 + _BLOCK]]
    return sum(bool(_ONE_SETTING.fullmatch(line.strip())) for line in around) >= _BLOCK


def wrong_size(said: list[Said], right: Collection[int]) -> Said | None:
    """The first size that cannot be, where none is right; right: the sizes that a rank may have in mind.

    One between 1 and that of the job may be a group's; so many devices may be those of another machine.
    """
    if any(one.size in right for one in said):
        return None
    most = max(right)
    return next((one for one in said if one.size == 1 or (one.size > most and "device" not in one.text.lower())), None)
