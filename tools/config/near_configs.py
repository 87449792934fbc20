"""Suggests the configs that a person may have meant by the path of a missing one."""

from __future__ import annotations

import os
from collections.abc import Iterator

from hccl_tools.common import nearly, project
from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line, short_path

_ENDINGS = (".yaml", ".yml")
_LEAST = 3  # letters of a name that others can begin with
_MOST_SHOWN = 3
_MOST_LOOKED_AT = 2000  # files
_MOST_DEEP = 4  # folders below configs/


def question(path: str) -> str:
    """``; did you mean CONFIG?`` for the end of a message about `path`; empty if no config is nearly the same.

    In its folder, configs whose names begin alike count, and in configs/, here or of the project, those of its name.
    """
    near = nearly.question(path)
    if near or not path.endswith(_ENDINGS):
        return near
    folder, name = os.path.split(path)
    stem = os.path.splitext(name)[0].lower()
    found = sorted(other for other in _in(folder or ".") if _begins_alike(stem, other))
    if not found:
        below = [other for root in ("configs", project.path("configs")) for other in _below(root)]
        same = [other for other in below if _stem(other) == stem]
        found = same or [other for other in below if _begins_alike(stem, other)]
    shown = [one_line(short_path(other)) for other in dict.fromkeys(map(os.path.normpath, found))][:_MOST_SHOWN]
    if not shown:
        return ""
    *others, last = shown
    listed = tr("{items} or {last}", items=", ".join(others), last=last) if others else last
    return tr("; did you mean {path}?", path=listed)


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0].lower()


def _begins_alike(stem: str, other: str) -> bool:
    """Whether one of the names begins with the other, as lenet and lenet5_mnist do."""
    short, long = sorted((stem, _stem(other)), key=len)
    return len(short) >= _LEAST and long.startswith(short)


def _in(folder: str) -> Iterator[str]:
    """The configs in the folder."""
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(_MOST_LOOKED_AT), entries):
                if entry.name.endswith(_ENDINGS):
                    yield os.path.join(folder, entry.name)
    except (OSError, ValueError):  # there is no such folder, or nobody may list it; a NUL in its name
        return


def _below(root: str) -> Iterator[str]:
    """The configs in the folder and below it, in order."""
    for folder, folders, _ in os.walk(root):
        if folder[len(root) :].count(os.sep) >= _MOST_DEEP:
            folders.clear()
        folders.sort()
        yield from sorted(_in(folder))
