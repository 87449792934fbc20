"""The size of the job as a trainer prints it in its first lines: a rank that counts wrong may train alone."""

from __future__ import annotations

import re

from hccl_tools.common.record import Record
from tools.progress import tails

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

FIRST_BYTES = 32 << 10
_FIRST_LINES = 200
_LONGEST = 160  # characters of a line that says it; a longer one prints all of a program's settings
_SIZE = re.compile(
    r"(?<![\w.-])(?:rank_size|world_size|group_size|device_num|ranksize|worldsize)\b[\"']?\s*(?:[:=]|is)\s*(\d{1,6})\b(?!\.\d)",
    re.IGNORECASE,
)
_SETTING = re.compile(r"[\"']?[A-Za-z_][\w.-]*[\"']?\s*[:=]\s*\S")
_MOST_SETTINGS = 4  # in a line that does not print all of them
_ONE_SETTING = re.compile(r"[\"']?[A-Za-z_][\w.-]*[\"']?\s*[:=]\s*[^:=]*")
_BLOCK = 3  # so many lines around it that are one setting each: all settings are printed, one a line
_DUMP = re.compile(r"Namespace\(|\{")


class Said(Record):
    """What a log says of the size."""

    text: str  # as it is there
    line: int  # from 1
    size: int


def of_log(path: str) -> list[Said]:
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


def wrong(said: list[Said], right: Collection[int]) -> Said | None:
    """The first size that cannot be, where none is right; right: the sizes that a rank may have in mind.

    One between 1 and that of the job may be a group's; so many devices may be those of another machine.
    """
    if any(one.size in right for one in said):
        return None
    most = max(right)
    return next((one for one in said if one.size == 1 or (one.size > most and "device" not in one.text.lower())), None)
