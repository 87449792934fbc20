"""What the hosts of a job must have in common; the first agent of each host reports it once its rank has started.

It reads only a little: the program, the Python files next to it, its configs, and the names of installed packages.
"""

from __future__ import annotations

import os
from binascii import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tools.rank.environment import Environment
    from tools.supervise.world import World

_MOST_FILES, _MOST_BYTES = 200, 1 << 20  # of a folder, and of a file
_MOST_CONFIGS = 8
_PACKAGES = ("mindspore", "numpy")
_CONFIGS = (".yaml", ".yml", ".json")
_VARIABLES = ("PYTHONHASHSEED", "HCCL_DETERMINISTIC", "LCCL_DETERMINISTIC")


def text(words: Sequence[str], found: Environment) -> str:
    """``NAME=VALUE`` of each thing, with tabs between them.

    words: the command of the rank; found: its environment.
    """
    pairs = [*_of_python(words[0]), *_of_program(words), *_of_environment(found)]
    return "\t".join(f"{_plain(name)}={_plain(value)}" for name, value in pairs)


def told_beside(world: World, tell: Callable[..., object], rank: str, words: Sequence[str], found: Environment) -> int:
    """The process that tells it: a folder that does not answer must not hold up the agent; 0: it is not reported."""
    try:
        return world.fork(lambda: tell("has", rank, text(words, found)))
    except OSError:
        return 0


def read(line: str) -> dict[str, str]:
    """Parses the output of `text` to {name: value}."""
    pairs = (part.partition("=") for part in line.split("\t"))
    return {name: value for name, _, value in pairs if name and value}


def _plain(text: str) -> str:
    """Without what would end a name, a value or a line."""
    return "".join("_" if c in "\t\n\r=" else c for c in text)[:200]


def _of_python(python: str) -> Iterator[tuple[str, str]]:
    """The version of Python, and of the packages beside it: by the names of folders, because nothing is started."""
    if not os.path.basename(python).startswith(("python", "pypy")):
        return  # a start script: which Python it takes is not known
    path = next((path for path in _places(python) if os.path.exists(path)), python)
    yield "Python", os.path.basename(os.path.realpath(path))
    libraries = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(path))), "lib")
    names = [
        name
        for version in sorted(_names(libraries))
        if version.startswith("python3")
        for folder in ("site-packages", "dist-packages")
        for name in _names(os.path.join(libraries, version, folder))
    ]
    for package in _PACKAGES:
        versions = sorted(name[len(package) + 1 : -len(".dist-info")] for name in names if _is_of(name, package))
        if versions:
            yield package, versions[0]


def _places(python: str) -> Iterator[str]:
    if "/" in python:
        yield python
    else:
        yield from (os.path.join(folder, python) for folder in os.get_exec_path())


def _is_of(name: str, package: str) -> bool:
    return name.startswith(f"{package}-") and name.endswith(".dist-info")


def _of_program(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Digests of the program, of its configs, and of the Python files next to it."""
    program = next((word for word in words[1:] if word.endswith(".py")), "")
    configs = [word.rpartition("=")[2] for word in words[1:] if word.endswith(_CONFIGS)]
    for path in (*filter(None, [program]), *configs[:_MOST_CONFIGS]):
        yield path, _digest([path])
    if program:
        folder = os.path.dirname(program) or os.curdir
        own = os.path.basename(program)
        others = sorted(name for name in _names(folder) if name.endswith(".py") and name != own)[:_MOST_FILES]
        yield os.path.join(folder, "*.py"), _digest([os.path.join(folder, name) for name in others])


def _digest(paths: Sequence[str]) -> str:
    """A number for the contents of these files, and how many they are."""
    value = 0
    for path in paths:
        try:
            if not os.path.isfile(path):
                return "missing"
            with open(path, "rb") as file:
                value = crc32(file.read(_MOST_BYTES), crc32(os.fsencode(os.path.basename(path)), value))
        except OSError as error:
            return error.strerror or "unreadable"
    return f"{len(paths)} files, digest {value:08x}" if len(paths) > 1 else f"digest {value:08x}"


def _of_environment(found: Environment) -> Iterator[tuple[str, str]]:
    for name in _VARIABLES:
        yield name, os.fsdecode(found.get(name.encode(), b"")) or "not set"


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
