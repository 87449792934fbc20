"""Writes our commands in the form that this user types; no other module knows that form.

In a checkout a command is a file: ``python tools/diagnose.py``, ``bash scripts/launch.sh``.  After installation, all of
them are subcommands of mslaunch: ``mslaunch diagnose``, ``mslaunch``.  The code and the translated texts use the form
of a checkout.  `as_typed` converts them before the user sees them, and `command` builds a complete command.
"""

from __future__ import annotations

import os
import sys

from hccl_tools.common import language, project
from hccl_tools.common.quoting import quote
from hccl_tools.common.words import short_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

FRONT = "mslaunch"
# {file of the project: the words for it after mslaunch}; a script that is not here has its own name, without .sh
WORDS = {
    "scripts/launch.sh": "",
    "scripts/doctor.sh": "doctor",
    "tools/preflight/main.py": "check",  # before the script, which starts it
    "scripts/preflight.sh": "check",
    "hccl_tools/check_network.py": "network",  # likewise
    "scripts/check_network.sh": "network",
    "hccl_tools/hccl_tools.py": "table build",
    "hccl_tools/validate_hccl.py": "table check",
    "hccl_tools/merge_hccl.py": "table merge",
    "hccl_tools/show_hccl.py": "table show",
    "hccl_tools/convert_hccl.py": "table convert",
    "hccl_tools/diff_hccl.py": "table diff",
    "tools/watch.py": "watch",
    "tools/report.py": "report",
    "tools/runs.py": "runs",
    "tools/diagnose.py": "diagnose",
    "tools/plot_log.py": "plot",
    "tools/convert_ckpt.py": "ckpt",
    "tools/eval.py": "eval",
    "tools/predict.py": "predict",
    "tools/export.py": "export",
    "tools/strategy.py": "strategy",
    "tools/prepare_cifar10.py": "prepare cifar10",
    "tools/prepare_digits.py": "prepare digits",
    "tools/prepare_text.py": "prepare text",
}
_FORMS = (
    r"(sbatch [^;()\n]*?)(scripts/[a-z_]+\.sh)|"  # which runs a file of a shell
    r"(make data\b)|"  # a checkout has a Makefile
    r"(?<![\w./-])(?:(bash|python) )?"
    r"(scripts/[a-z0-9_]+\.sh|(?:tools|hccl_tools)/[a-z0-9_]+\.py|docs/(?:zh/)?[a-z_]+\.md)(?![\w/])"
)


class _Typed:
    """What this process knows of its user's command; `use` sets it."""

    is_front = False  # mslaunch was typed
    front: tuple[str, ...] | None = None  # the words that mean mslaunch; None: find out
    name: str | None = None  # of this command, for its messages; None: that of its file


def use(program: str, words: Sequence[str]) -> None:
    """Notes that the user typed mslaunch, whose file is `program`, then `words`, which select the command."""
    _Typed.is_front = True
    _Typed.front = _of_program(program)
    _Typed.name = " ".join((FRONT, *words))


def name_of(program: str) -> str:
    """The name of a command before its messages: `program`, or ``mslaunch watch`` where that was typed."""
    return _Typed.name or program


def is_front() -> bool:
    """Whether commands are words of mslaunch, and no files of a checkout."""
    return _Typed.is_front or project.is_installed()


def front() -> tuple[str, ...]:
    """The words that start mslaunch here: its name if the shell finds it, otherwise those for its Python."""
    if _Typed.front is None:
        _Typed.front = _of_program(os.path.join(os.path.dirname(sys.executable), FRONT))
    return _Typed.front


def _of_program(program: str) -> tuple[str, ...]:
    folders = (os.path.join(folder, FRONT) for folder in os.get_exec_path() if folder)
    on_path = next((path for path in folders if os.access(path, os.X_OK)), "")
    try:
        found = bool(on_path) and os.path.samefile(on_path, program)
    except OSError:  # the program is gone
        found = False
    return (FRONT,) if found else (sys.executable, "-m", project.PACKAGE)


def words(file: str) -> list[str]:
    """The words that start the command whose file in the project is `file`, such as ``tools/diagnose.py``."""
    if not is_front() or not _is_command(file):
        return ["bash" if file.endswith(".sh") else "python", short_path(project.path(file))]
    return [*front(), *after_front(file).split()]


def command(file: str, *arguments: str) -> str:
    """The same with its arguments, as a line for a shell."""
    return " ".join(map(quote, (*words(file), *arguments)))


def starter(start: str) -> str:
    """The text before the first word of a kept command line: ``bash `` before a script, which is kept without it."""
    return "bash " if start.endswith(".sh") else ""


def as_typed(text: str, is_form: bool = False) -> str:
    """The text with our commands, and our pages, as this user types them.

    text: ours, before values are put in: a path of the user's may look like one of our files.
    is_form: it goes to str.format, for which a brace in the path of the project is doubled.
    """
    if not is_front() and _here() == project.ROOT:
        return text
    import re  # the launch path needs it only for such texts

    def replaced(found: re.Match[str]) -> str:
        new = _replaced(found)
        return new.replace("{", "{{").replace("}", "}}") if is_form else new

    return re.sub(_FORMS, replaced, text)


def _here() -> str:
    try:
        return os.path.realpath(os.getcwd())
    except OSError:
        return ""  # the current folder is gone


def _replaced(found: re.Match[str]) -> str:
    batch, batch_file, make, interpreter, file = found.groups()
    if make:
        return command("tools/prepare_digits.py", "data/digits") if is_front() else make
    if batch:
        return f"{batch}{_placed(batch_file)}"
    if file.startswith("docs/"):
        return " ".join((*front(), "help", file[:-3].rpartition("/")[2])) if is_front() else _placed(file)
    if _is_command(file):
        return command(file)
    return f"{interpreter} {_placed(file)}" if interpreter else file


def _placed(file: str) -> str:
    """The file as the user can name it; one that this project does not have is another project's."""
    return quote(short_path(project.path(file))) if os.path.exists(project.path(file)) else file


def _is_command(file: str) -> bool:
    return file in WORDS or (file.startswith("scripts/") and os.path.exists(project.path(file)))


def after_front(file: str) -> str:
    """The words after mslaunch for the command that is this file in a checkout."""
    return WORDS.get(file, os.path.basename(file)[: -len(".sh")])


language.rewrite_by(as_typed)
