"""Checks whether the next start of Python finds a package's compiled modules (.pyc) or compiles all of them again.

A package is judged by one file that each import of it reads. So a check reads only a few files, and imports nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

from hccl_tools.common.project import ROOT
from hccl_tools.common.record import Row

STANDARD = "Python"  # instead of a module: Python's own
OF_RANKS = ("mindspore", "numpy", "scipy", STANDARD)  # MindSpore imports NumPy and SciPy
_OF_STANDARD = "threading.py"  # every program of this kind imports it, and no Python has it built in
OFF, PREFIX, OPTIMIZED = "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONOPTIMIZE"
NONE, STALE = "none", "stale"  # what a package has; otherwise the tag of another Python, such as cpython-310
_HEAD = 16  # bytes: the magic number, flags, and the time and size of the source or its digest
_MOST_NAMES = 2000  # of a folder that are looked at
_LONGEST_TAG = 40


class Uncompiled(Row):
    """A package whose compiled files the next start does not find.

    name: of the module; folder: what to compile: of the package, or a file.  state: NONE, STALE or the tag of another
    Python.  cache: the folder that would have them; stays: Python will not write them there, either.
    """

    name: str
    folder: str
    state: str
    cache: str
    stays: bool


def look(names: Iterable[str], environment: Mapping[str, str]) -> list[Uncompiled]:
    """The modules that are here and not compiled. environment: of the ranks."""
    found = []
    for name in names:
        folder, source = _place(name)
        if source:
            cache, compiled = _compiled(source, environment)
            state = _state(source, cache, compiled)
            if state:
                stays = OFF in environment and environment[OFF] != ""
                found.append(Uncompiled(name, folder, state, cache, stays or not _can_write(cache)))
    return found


def _place(name: str) -> tuple[str, str]:
    """(the folder or file of a module, a file that its import reads); empty: not here, or not as sources."""
    if name == STANDARD:
        folder = os.path.dirname(os.__file__)
        source = os.path.join(folder, _OF_STANDARD)
        return (folder, source) if os.path.isfile(source) else ("", "")
    for path in sys.path if name.isidentifier() else ():
        if path == ROOT:
            continue
        package = os.path.join(path or os.curdir, name)
        for folder, source in ((package, os.path.join(package, "__init__.py")), (package + ".py", package + ".py")):
            if os.path.isfile(source):
                return folder, source
    return "", ""


def _compiled(source: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """(the folder of its compiled file, the path of that), as Python chooses them."""
    folder, last = os.path.split(os.path.abspath(source))
    prefix = environment.get(PREFIX, "")
    cache = os.path.join(prefix, folder.lstrip("/")) if prefix else os.path.join(folder, "__pycache__")
    level = environment.get(OPTIMIZED, "")
    optimized = f".opt-{level if level.isdigit() else 1}" if level.strip("0") else ""
    return cache, os.path.join(cache, f"{last[:-3]}.{sys.implementation.cache_tag}{optimized}.pyc")


def _state(source: str, cache: str, compiled: str) -> str:
    """What is in the place of a good compiled file of this source; empty: that file."""
    try:
        with open(compiled, "rb") as file:
            return "" if _fits(file.read(_HEAD), source) else STALE
    except OSError:
        return _other(cache, os.path.basename(source)[:-3]) or NONE


def _fits(head: bytes, source: str) -> bool:
    """Whether Python takes the compiled file that begins so."""
    # importlib.util has it from there, and its own imports would take 10 ms on each host of a check.
    from _frozen_importlib_external import MAGIC_NUMBER

    if len(head) < _HEAD or head[:4] != MAGIC_NUMBER:
        return False
    if int.from_bytes(head[4:8], "little"):  # it goes by the digest of the source
        return True
    there = os.stat(source)
    told = (int(there.st_mtime) & 0xFFFFFFFF, there.st_size & 0xFFFFFFFF)
    return told == (int.from_bytes(head[8:12], "little"), int.from_bytes(head[12:16], "little"))


def _other(cache: str, stem: str) -> str:
    """The tag of another Python that has compiled the file; empty: none has."""
    try:
        with os.scandir(cache) as entries:
            for _, entry in zip(range(_MOST_NAMES), entries):
                name, tag, end = (entry.name.rsplit(".", 2) + ["", ""])[:3]
                if (name, end) == (stem, "pyc") and tag != sys.implementation.cache_tag and _is_tag(tag):
                    return tag
    except OSError:
        return ""
    return ""


def _is_tag(text: str) -> bool:
    return len(text) <= _LONGEST_TAG and text.isascii() and text.replace("-", "").isalnum()


def _can_write(cache: str) -> bool:
    """Whether Python can make the folder, and files in it."""
    path = os.path.abspath(cache)
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return os.access(path, os.W_OK | os.X_OK)
