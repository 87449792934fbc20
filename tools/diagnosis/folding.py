"""Long texts on lines of limited length: cut between clauses, and never within a command in quotes."""

from __future__ import annotations

import re

from hccl_tools.common.words import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.logs.known_failures import KnownFailure

_STRONG = re.compile(r"; |\. |；|。")  # between clauses
_WEAK = re.compile(r", |，|: |：| \(| ")
_LONGEST_WORD = 40
_INDENT = "        "


def cut(text: str, room: int) -> str:
    """The text in one line of at most so many characters."""
    text = one_line(text[: 4 * max(room, 0) + 100])
    return text if len(text) <= room else text[: max(0, room - 3)] + "..."


def folded(line: str, columns: int) -> list[str]:
    """The line, or two: the second is indented more, and ends with ... where something is left out."""
    if len(line) <= columns:
        return [line]
    place = _place(line, columns)
    if not place:
        return [line[: columns - 3] + "..."]
    rest = _INDENT + line[place:].strip()
    if len(rest) > columns:
        end = _place(rest, columns - 4, whole=True)
        rest = rest[:end].rstrip(" ;；,，:：") + " ..." if end else rest[: columns - 3] + "..."
    return [line[:place].rstrip(), rest]


def _place(line: str, columns: int, whole: bool = False) -> int:
    """Where the line may be broken, so that so much fits; 0: nowhere.  whole: between clauses, if that is possible."""
    for pattern, least in ((_STRONG, len(_INDENT) + 1 if whole else columns // 3), (_WEAK, columns // 3)):
        places = [found.end() for found in pattern.finditer(line, len(_INDENT) + 1, columns + 1)]
        places = [place for place in places if least <= place <= columns and not _is_quoted(line, place)]
        if places:
            return places[-1]
    return 0


def _is_quoted(line: str, place: int) -> bool:
    return line.count('"', 0, place) % 2 == 1 or line.count("`", 0, place) % 2 == 1


def window(text: str, entry: KnownFailure, room: int) -> str:
    """The part of a long line that the known failure is about."""
    if len(text) <= room or room < 40:
        return text
    found = [match for match in (pattern.search(text) for pattern in entry.patterns) if match]
    begins = [match.start() for match in found] or [text.find(words[0]) for words in entry.words if words[0] in text]
    begin = min(begins, default=0)
    if begin < room // 2:
        return text
    begin -= room // 4
    word = text.rfind(" ", max(0, begin - _LONGEST_WORD), begin) + 1  # names of pods and hosts are whole
    return "..." + text[word or begin :]
