"""The files of a job on the asking host: the program, what it imports of its project, the config; installed modules."""

from __future__ import annotations

import ast
import os
import sys
import sysconfig

from hccl_tools.common.record import Row
from hccl_tools.common.refusal import misused
from hccl_tools.common.words import one_line
from tools.launch.programs import sources
from tools.preflight.facts import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST_BYTES = 1 << 21  # of all texts that are searched for imports
_MOST_MODULES = 100
_MINDSPORE = "mindspore"  # has a fact of its own


class Program(Row):
    """{absolute path: digest} of the files that must be the same on all hosts, and the modules that are installed."""

    files: dict[str, str]
    modules: list[str]


def of(program: str, config: str) -> Program:
    """The files of a Python program and of a config; either may be empty.  Raises Refusal if one cannot be read."""
    texts = list(sources.contents(program)) if program else []
    named = [*filter(None, [program, config])]
    found = {os.path.abspath(path): files.digest(path) for path in [*named, *(path for path, _ in texts)]}
    for path in named:
        if found[os.path.abspath(path)] is None:
            raise misused("{path} cannot be read; name a file", path=one_line(path))
    return Program({path: digest for path, digest in found.items() if digest}, _modules(texts))


def _modules(texts: Iterable[tuple[str, bytes]]) -> list[str]:
    """The modules that these files import, but for those of Python and their own."""
    names: set[str] = set()
    paths, left = [], _MOST_BYTES
    for path, text in texts:
        paths.append(path)
        left -= len(text)
        if left > 0:
            names.update(_imported(text))
    own = {part for path in paths for part in (_stem(path), os.path.basename(os.path.dirname(os.path.abspath(path))))}
    return sorted(name for name in names - own - {_MINDSPORE} if not _is_of_python(name))[:_MOST_MODULES]


def _imported(text: bytes) -> Iterator[str]:
    """The first parts of the names of modules in the text; nothing if it is not Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # ranks will state what is wrong
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def _is_of_python(name: str) -> bool:
    known = getattr(sys, "stdlib_module_names", None)  # from Python 3.10 on
    if known is not None:
        return name in known
    folder = sysconfig.get_path("stdlib")
    paths = (os.path.join(folder, name + end) for end in ("", ".py"))
    return name in sys.builtin_module_names or any(map(os.path.exists, paths))
