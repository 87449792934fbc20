"""A program that ranks run with the user's own arguments: a file, a module, a test file; it has no config."""

from __future__ import annotations

import os
import re

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal, misused, refused
from hccl_tools.common.words import one_line
from hccl_tools.machine import interpreter, programs
from tools.launch import run_folder
from tools.launch.programs import command_words, trainer_command
from tools.launch.request import Request

_IMPORT = re.compile(rb"^[ \t]*(?:import|from)[ \t]+mindspore\b", re.MULTILINE)
_MOST = 1 << 20  # bytes of a source that are looked at


class Program(Record):
    """What every rank runs."""

    words: list[str]  # its command
    source: str | None  # its file of Python, where it is one
    about: str  # what was decided, for --dry_run

    def imports_mindspore(self) -> bool:
        """Whether its own file imports MindSpore; other files that it imports are not read."""
        return bool(self.source and _IMPORT.search(_beginning(self.source, _MOST)))


def find(request: Request, run_dir: str) -> Program:
    """The Program of a request without a config.  Raises Refusal: why it cannot be started."""
    own = list(request.trainer_arguments)
    if request.ranks_file:
        return Program(
            words=["/bin/sh", os.path.join(run_dir, run_folder.RANKS_FILE)],
            source=request.ranks_source or None,
            about=tr("what {script} starts for it", script=one_line(own[0])),
        )
    if request.pytest is not None:
        return _tests(request.pytest, own)
    if not request.program:
        path = trainer_command.trainer(request)
        return _file(path, own, tr("{path} with its own arguments, and no config", path=one_line(path)))
    if own[0] == "-m":
        return _module(own[1:])
    if own[0].endswith(".py"):
        check_file(own[0])
        return _file(own[0], own[1:], tr("the program {path} with its own arguments", path=one_line(own[0])))
    path = _executable(own[0])
    return Program(
        words=[path, *own[1:]],
        source=_source_for(path, own[1:]),
        about=tr("the program {path} with its own arguments", path=one_line(path)),
    )


def _source_for(path: str, words: list[str]) -> str | None:
    """The file of Python that the program is about to run, if it is a Python that is given one."""
    kind, named = command_words.of_python(words) if command_words.is_python(path) else ("", "")
    if kind != "file" or not named.endswith(".py"):
        return None
    check_file(named)
    return named


def _file(path: str, words: list[str], about: str) -> Program:
    return Program(words=[*_python(), programs.path_word(path), *words], source=path, about=about)


def _python() -> list[str]:
    return [trainer_command.python(), "-u"]


def _tests(named: str, words: list[str]) -> Program:
    """The Program for ``FILE`` or ``FILE::TEST``."""
    path, separator, test = named.partition("::")
    if path.endswith((".yaml", ".yml")):
        raise refused("--pytest {path}: is a config, which is not a file of tests; name one", path=one_line(path))
    check_file(path, "--pytest ")
    if _source_of("pytest") is None:
        raise refused(
            "{python} has no pytest; {remedy}", python=trainer_command.python(), remedy=interpreter.remedy_for("pytest")
        )
    command = [*_python(), "-m", "pytest", "-s", programs.path_word(path) + separator + test, *words]
    return Program(words=command, source=path, about=tr("pytest with {path}", path=one_line(named)))


def _module(words: list[str]) -> Program:
    """The Program for ``-m MODULE words``, found as Python would find it, but without any import."""
    if not words:
        raise misused("-m needs a module: -m MODULE arguments")
    name = words[0]
    source = _source_of(name)
    if source is None:
        remedy = tr("correct the name, go to the folder that has it, or name that folder in PYTHONPATH")
        remedy += _near_module(name)
        raise refused(
            "-m {name}: {python} finds no such module; {remedy}",
            name=one_line(name),
            python=trainer_command.python(),
            remedy=remedy,
        )
    return Program(
        words=[*_python(), "-m", *words], source=source or None, about=tr("the module {name}", name=one_line(name))
    )


def _near_module(name: str) -> str:
    """The end of a message about a module that is not there: the file that was meant, or a module nearly so called."""
    from hccl_tools.common import nearly

    path = name if name.endswith(".py") else name.replace(".", os.sep) + ".py"
    if path == name and os.path.isfile(path):
        module = one_line(path[: -len(".py")].replace(os.sep, "."))
        return tr("; did you mean the file {path} without -m, or -m {module}?", path=one_line(path), module=module)
    near = nearly.suggestion(path)
    if near is None or not near.endswith(".py"):
        return ""
    return tr("; did you mean {option}?", option="-m " + one_line(near[: -len(".py")].replace(os.sep, ".")))


def _source_of(name: str) -> str | None:
    """The file that ``python -m NAME`` runs; empty if it is not a file of Python; None if there is none."""
    import sys
    from importlib.machinery import PathFinder

    places = [os.getcwd(), *sys.path[1:]]  # the first one is this project, for the launch itself
    parts, spec = name.split("."), None
    for part in [*parts, "__main__"]:
        if spec is not None:
            if spec.submodule_search_locations is None:
                return (spec.origin or "") if part == "__main__" else None
            places = list(spec.submodule_search_locations)
        spec = PathFinder.find_spec(part, places)
        if spec is None:
            return None
    return spec.origin or "" if spec else None


def check_file(path: str, option: str = "") -> None:
    """Raises Refusal unless Python can read the file."""
    shown = one_line(option + path)
    if os.path.isdir(path):
        raise refused("{path}: is a folder; name the file in it, or a package with -m", path=shown)
    if trainer_command.is_hidden(path):
        raise refused("{path} cannot be read; check its permissions", path=shown)
    if not os.path.isfile(path):
        from hccl_tools.common import nearly

        raise Refusal(
            REFUSED,
            tr("{path}: no such file in {folder}; correct the path", path=shown, folder=one_line(os.getcwd()))
            + nearly.question(path),
        )
    if not os.access(path, os.R_OK):
        raise refused("{path} cannot be read; check its permissions", path=shown)


def _executable(named: str) -> str:
    """The path of a program that the system starts by itself.  Raises Refusal."""
    shown = one_line(named)
    on_path = None if "/" in named else programs.find(named)
    here = named if "/" in named else f"./{named}"
    if on_path and os.path.isfile(here):
        raise misused(
            "{name} is a file in this folder and a program on PATH; type ./{name} or {path}",
            name=shown,
            path=one_line(on_path),
        )
    if on_path:
        return on_path
    check_file(here)
    remedy = tr("start it as: bash {path}", path=shown)
    if not os.access(here, os.X_OK):
        raise refused("{path} is not executable; type: chmod +x {path}, or {remedy}", path=shown, remedy=remedy)
    first = _beginning(here, 4)
    if first[:2] != b"#!" and first != b"\x7fELF":
        raise Refusal(
            REFUSED,
            tr(
                "{path} is executable, but is neither a binary nor begins with #!; {remedy}",
                path=shown,
                remedy=remedy,
            ),
        )
    return here


def _beginning(path: str, size: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(size)
    except OSError as error:
        raise refused("{path} cannot be read: {reason}", path=one_line(path), reason=strerror(error)) from error
