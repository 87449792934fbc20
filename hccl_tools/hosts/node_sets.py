"""Expands sets of hosts as Slurm and pdsh write them: node[001-128], node[1-3,7], r[1-2]n[1-4]-ib."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hccl_tools.common.language import tr
from hccl_tools.common.words import short, some

MOST = 1 << 16  # hosts of one word: as many as a job has ranks
_SET = re.compile(r"\[([^\[\]]*)\]")
_PART = re.compile(r"(?:\[[^\[\]]*\]|[^,\n\r])+")  # reads each character once or twice, however long the list is
_WORD = re.compile(r"[A-Za-z0-9_.@,\[\]-]+")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_LAST_NUMBER = re.compile(r"(.*?)([0-9]{1,9})([^0-9]*)", re.DOTALL)


class NotASet(ValueError):
    """The word has brackets in which there are no numbers; the message states what is wrong."""


def split(text: str) -> list[str]:
    """The parts between commas and ends of lines, but for commas in brackets; without those that are empty."""
    return [part.strip() for part in _PART.findall(text) if part.strip()]


def expand(word: str) -> list[str]:
    """The hosts of the word, in order; one without a set is itself.  Raises NotASet."""
    if not _WORD.fullmatch(word):  # nor is it a host, as the caller will say
        return [word]
    found = [""]
    end = 0
    for match in _SET.finditer(word):
        numbers = _numbers(match.group(1), word)
        if len(found) * len(numbers) > MOST:
            raise NotASet(tr("{word} has more than {most} hosts", word=short(word), most=MOST))
        found = [f"{before}{word[end : match.start()]}{number}" for before in found for number in numbers]
        end = match.end()
    rest = word[end:]
    if "[" in rest or "]" in rest:
        raise NotASet(tr("{word}: unbalanced brackets; write sets as node[1-4] or node[1,3]", word=short(word)))
    return [before + rest for before in found]


def folded(hosts: Iterable[str], most: int) -> str:
    """The hosts as at most this number of sets, for a message: ``node[1-3,7], login``."""
    sets: dict[tuple[str, str, int], set[int]] = {}
    for host in hosts:
        match = _LAST_NUMBER.fullmatch(host)
        head, digits, tail = match.groups() if match else (host, "", "")
        # Those of a padded range are as long as its first one.  A single 0 has no padding.
        width = len(digits) if digits.startswith("0") and digits != "0" else 0
        numbers = sets.setdefault((head, tail, width), set())
        if digits:
            numbers.add(int(digits))
    return some([_set(*key, sorted(numbers)) for key, numbers in sets.items()], most)


def _set(head: str, tail: str, width: int, numbers: list[int]) -> str:
    if len(numbers) < 2:
        return head + "".join(f"{number:0{width}d}" for number in numbers) + tail
    parts = []
    start = 0
    for end in range(1, len(numbers) + 1):
        if end == len(numbers) or numbers[end] != numbers[end - 1] + 1:
            ends = dict.fromkeys((numbers[start], numbers[end - 1]))
            parts.append("-".join(f"{number:0{width}d}" for number in ends))
            start = end
    return f"{head}[{','.join(parts)}]{tail}"


def _numbers(text: str, word: str) -> list[str]:
    """The numbers of one pair of brackets; those of a range are padded as its first one."""
    found: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        match = _RANGE.fullmatch(part)
        first, last = (match.group(1), match.group(2) or match.group(1)) if match else ("1", "0")
        if int(last) < int(first):
            text = tr(
                "{word}: {part} is neither a number nor a range; write sets as node[1-4] or node[1,3]",
                word=short(word),
                part=short(part),
            )
            raise NotASet(text)
        if int(last) - int(first) + len(found) >= MOST:
            raise NotASet(tr("{word} has more than {most} hosts", word=short(word), most=MOST))
        found += (f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1))
    if not found:
        raise NotASet(tr("{word}: the brackets are empty; write sets as node[1-4] or node[1,3]", word=short(word)))
    return found
