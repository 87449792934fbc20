"""Finds the distributions that Python sees here, from one scan of the folders of sys.path and their metadata.

importlib.metadata scans all folders for each name, and its import takes longer than all other facts of a host.

Also checks whether the next start of Python finds a package's compiled modules (.pyc) or compiles all of them again.  A
package is judged by one file that each import of it reads.  So a check reads only a few files, and imports nothing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping

from hccl_tools.common.grouping import grouped
from hccl_tools.common.project import ROOT
from hccl_tools.common.record import Row

_WHEEL, _EGG = ".dist-info", ".egg-info"
_OF_EGG = "EGG-INFO"  # in a folder of sys.path that is a distribution itself
_FILES = ("METADATA", "PKG-INFO", "")  # of a wheel, of an egg; an old egg-info is the file itself
_MOST_BYTES = 1 << 16  # of metadata that are read: names and versions are in the first lines
_MOST_FILES = 1000  # of a package that are looked at
_CODE = (".py", ".pyc", ".so", ".pyd")
STANDARD = "Python"  # instead of a module: Python's own
OF_RANKS = ("mindspore", "numpy", "scipy", STANDARD)  # MindSpore imports NumPy and SciPy
_OF_STANDARD = "threading.py"  # every program of this kind imports it, and no Python has it built in
OFF, PREFIX, OPTIMIZED = "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONOPTIMIZE"
NONE, STALE = "none", "stale"  # what a package has; otherwise the tag of another Python, such as cpython-310
_HEAD = 16  # bytes: the magic number, flags, and the time and size of the source or its digest
_MOST_NAMES = 2000  # of a folder that are looked at
_LONGEST_TAG = 40

# The same for another host's Python, which need not have this project.
_QUESTION = """\
import os, sys
for folder in (folder or "." for folder in sys.path):
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) and os.access(folder, os.R_OK) else ():
        stem, kind = os.path.splitext(name)
        path = os.path.join(folder, name, "METADATA" if kind == ".dist-info" else "PKG-INFO")
        if kind in (".dist-info", ".egg-info") and stem.split("-")[0].lower() == NAME and os.path.isfile(path):
            sys.exit(print(*[line[9:] for line in open(path, errors="replace") if line.startswith("Version: ")][:1]))
"""


def question(name: str) -> str:
    """A Python program, in one line, that prints the version of the distribution; its name is in small letters."""
    return f"exec({json.dumps(_QUESTION.replace('NAME', json.dumps(name)))})"


class Distributions:
    """The distributions in the folders: the first one of a name counts, as for an import."""

    def __init__(self, folders: Iterable[str] | None = None) -> None:
        self._paths = grouped(
            (_key(_named(path)), path) for path in _metadata(sys.path if folders is None else folders)
        )

    def find(self, name: str) -> tuple[str, str] | None:
        """(its name, its version) as its metadata has them; None: not there, or only leftovers without metadata."""
        return next(filter(None, map(_read, self._paths.get(_key(name), ()))), None)

    def owners(self, modules: Iterable[str]) -> dict[str, tuple[str, str]]:
        """{module: (name, version)} of those of the modules that a distribution states it has."""
        wanted, found = set(modules), dict[str, tuple[str, str]]()
        for paths in self._paths.values():
            for path in paths:
                for module in wanted.intersection(_text(os.path.join(path, "top_level.txt")).split()):
                    if module not in found and (read := _read(path)):
                        found[module] = read
        return found


def _metadata(folders: Iterable[str]) -> Iterator[str]:
    """The paths of metadata: folders, or files of old eggs."""
    for folder in folders:
        if folder.endswith(".egg"):
            yield os.path.join(folder, _OF_EGG)
        try:
            names = os.listdir(folder or os.curdir)
        except OSError:  # a zip file, or one that is not there
            continue
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith((_WHEEL, _EGG)))


def _named(path: str) -> str:
    """The distribution's name in that of its metadata: NAME-VERSION.dist-info, NAME-VERSION-py3.9.egg-info."""
    last = os.path.basename(os.path.dirname(path) if path.endswith(_OF_EGG) else path)
    return last.rpartition(".")[0].partition("-")[0]


def _key(name: str) -> str:
    """One spelling: in names - and _ and . are the same, and so are large letters and small ones."""
    return "-".join(filter(None, name.lower().replace("_", "-").replace(".", "-").split("-")))


def _read(path: str) -> tuple[str, str] | None:
    """(name, version) of the metadata at the path; None if there is none."""
    text = next(filter(None, (_text(os.path.join(path, name) if name else path) for name in _FILES)), "")
    fields: dict[str, str] = {}
    for line in text.splitlines():
        if not line:
            break  # the description follows
        name, colon, value = line.partition(":")
        if colon and name[:1].strip():
            fields.setdefault(name.lower(), value.strip())
    return (fields.get("name") or _named(path), fields.get("version", "")) if fields else None


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def is_module(name: str) -> bool:
    """Whether Python finds a module of this name; a folder without code, left by a removed package, does not count."""
    from importlib.util import find_spec

    try:
        spec = find_spec(name)
    except (ImportError, ValueError):  # ValueError: a module without a specification
        return False
    if spec is None:
        return False
    return spec.origin is not None or any(map(_has_code, spec.submodule_search_locations or ()))


def _has_code(folder: str) -> bool:
    looked = 0
    for _, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        if any(name.endswith(_CODE) for name in names):
            return True
        looked += len(names)
        if looked > _MOST_FILES:
            break
    return False


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
