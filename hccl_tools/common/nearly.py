"""Suggests the file that a person may have meant by the name of a missing one."""

from __future__ import annotations

import os
from collections import Counter

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line

_ALIKE = 0.75  # of two names without their endings, as difflib measures it
_MOST_NAMES = 2000  # of a folder: one with more of them has data in it
_LONGEST = 64  # characters of a name: to compare longer ones takes long
_MOST_COMPARED = 50  # of the names that have nearly the same letters
_MOST_ALIKE = 4  # folders that are looked into
_LOGS = (".log", ".out", ".err")  # they have the name of what wrote them, and a person seldom means them
_MANY_DIGITS = 5  # fewer are the number of a file, which differs from the next one's by a digit
_DIGITS = str.maketrans("", "", "0123456789")


def suggestion(path: str) -> str | None:
    """The path of an existing file that is nearly `path`, which does not exist; as it was typed, but for the mistake.

    The mistake may be in the name of a folder above it.  None if nothing there is nearly the same, or `path` exists.
    """
    path = os.fspath(path)
    try:
        return None if not path or os.path.exists(path) else _nearest(path.rstrip(os.sep))
    except (OSError, ValueError):  # a folder that may not be listed; a NUL in the name
        return None


def question(path: str) -> str:
    """``; did you mean FILE?`` for the end of a message about `path`; empty without a suggestion."""
    near = suggestion(path)
    return tr("; did you mean {path}?", path=one_line(near)) if near else ""


def _nearest(path: str) -> str | None:
    """The same for a path whose last name, or one above it, is wrong: the first that is missing is replaced."""
    rest: list[str] = []
    while True:
        folder, name = os.path.split(path)
        if not name:
            return None
        if os.path.isdir(folder or os.curdir):
            break
        path = folder
        rest.insert(0, name)
    for near in _alike(name, folder, bool(rest)):
        found = os.path.join(folder, near, *rest)
        if os.path.exists(found):
            return found
        if rest and (deeper := _nearest(found)):
            return deeper
    return None


def _alike(name: str, folder: str, is_folder: bool) -> list[str]:
    """The names in `folder` that are nearly `name`, the nearest first: of folders, or of files."""
    from difflib import SequenceMatcher  # 2 ms that only a missing file costs

    if len(name) > _LONGEST:
        return []
    near = []
    matcher = SequenceMatcher(autojunk=False)
    stem, ending = os.path.splitext(name.lower())
    matcher.set_seq2(stem)
    with os.scandir(folder or os.curdir) as entries:
        for _, entry in zip(range(_MOST_NAMES), entries):
            if len(entry.name) > _LONGEST or entry.is_dir() != is_folder or _is_numbered(name, entry.name):
                continue
            matcher.set_seq1(os.path.splitext(entry.name.lower())[0])
            if matcher.real_quick_ratio() >= _ALIKE and (most := matcher.quick_ratio()) >= _ALIKE:
                near.append((-most, entry.name))
    found = []
    for _, other in sorted(near)[:_MOST_COMPARED]:
        start, other_ending = os.path.splitext(other.lower())
        matcher.set_seq1(start)
        if (alike := matcher.ratio()) >= _ALIKE:
            found.append((-alike, ending != other_ending, other_ending in _LOGS, other))
    return [other for *_, other in sorted(found)[:_MOST_ALIKE]]


def _is_numbered(name: str, other: str) -> bool:
    """Whether the names are of a series, as rank_0.log and rank_1.log are: then one is not the other mistyped.

    Digits in another order are a mistake, and one of many digits that is too much or missing.
    """
    if name.translate(_DIGITS).lower() != other.translate(_DIGITS).lower():
        return False
    short, long = sorted((name, other), key=len)
    missing = Counter(filter(str.isdigit, long)) - Counter(filter(str.isdigit, short))
    several = sum(map(str.isdigit, short)) >= _MANY_DIGITS
    return sum(missing.values()) > int(several and len(short) < len(long))
