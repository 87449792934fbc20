"""Finds the files of a Python program: its own, and those of its project that it imports; nothing is run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

MOST_FILES = 500
MOST_BYTES = 1 << 20  # of a file

_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(?P<base>[.\w]+)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n]*)"
    rb"|import[ \t]+(?P<plain>[^\n]*))",
    re.MULTILINE,
)
_NAME = re.compile(r"[\w.]+")
_NO_NAME = re.compile(r"\bas\s+\w+|#.*")


def contents(program: str) -> Iterator[tuple[str, bytes]]:
    """(path, text) of the program and of what it imports, at most MOST_FILES; files that cannot be read are left out.

    Imports are looked for in the program's folder, the folder above (trainers in `tools/` add that to `sys.path`), the
    current one, and those in PYTHONPATH.  So what is installed for Python is not searched.
    """
    folder = os.path.dirname(os.path.realpath(program))
    roots = [folder] if folder == os.getcwd() else [folder, os.path.dirname(folder), os.getcwd()]
    roots += filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    waiting, known = [program], {os.path.realpath(program)}
    for path in waiting:
        try:
            with open(path, "rb") as file:
                text = file.read(MOST_BYTES)
        except OSError:  # a check of the trainer reports it
            continue
        yield path, text
        for found in _imported(path, text, roots):
            real = os.path.realpath(found)
            if real not in known and len(known) < MOST_FILES:
                known.add(real)
                waiting.append(found)


def names_in(match: re.Match[bytes]) -> list[str]:
    """The names in a statement that a pattern with the groups `names` and `plain` has found."""
    return _NAME.findall(_NO_NAME.sub("", (match["names"] or match["plain"]).decode("utf-8", "replace")))


def _imported(path: str, text: bytes, roots: list[str]) -> Iterator[str]:
    """The files of the modules that this text imports, as far as they are below `roots`."""
    for match in _IMPORT.finditer(text):
        base = (match["base"] or b"").decode("utf-8", "replace")
        names = names_in(match)
        module = base.lstrip(".")
        places = roots
        if base.startswith("."):
            folder = os.path.dirname(path) or "."
            places = [os.path.join(folder, *[os.pardir] * (len(base) - len(module) - 1))]
        for place in places:
            yield from _files(place, module.split(".") if module else [], names)


def _files(place: str, parts: list[str], names: list[str]) -> Iterator[str]:
    """The files of `import NAME`, or of `from PARTS import NAME`, where the module is in the folder `place`."""
    folder = place
    for part in parts:
        yield from _module(folder, part)
        folder = os.path.join(folder, part)
    for name in names:
        inner = folder
        for part in name.split("."):
            yield from _module(inner, part)
            inner = os.path.join(inner, part)


def _module(folder: str, name: str) -> Iterator[str]:
    for path in (os.path.join(folder, f"{name}.py"), os.path.join(folder, name, "__init__.py")):
        if os.path.isfile(path):
            yield path
