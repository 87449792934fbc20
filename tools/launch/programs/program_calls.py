"""Checks what a program asks for: the variables and the calls in its own file, which is parsed and not run."""

from __future__ import annotations

import os
import re

from hccl_tools.common.language import tr
from hccl_tools.common.record import Row
from hccl_tools.common.refusal import REFUSED, Refusal, refused
from hccl_tools.common.words import clauses, one_line, short_path
from tools.config import modes
from tools.launch.programs import sources, trainer_command
from tools.launch.programs.sources import MOST_BYTES
from tools.launch.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator
    from re import Pattern

_DATA_PATH = rb"""["']DATA_PATH["']"""
_READS_IT = re.compile(rb"^[^#\n]*\benviron\[" + _DATA_PATH + rb"\]", re.MULTILINE)
# what a program has that can do without the variable, or sets it
_MAY_DO_WITHOUT = re.compile(
    _DATA_PATH + rb"(?:\] *=[^=]| +(?:not +)?in\b)|(?:get|setdefault|getenv)\(" + _DATA_PATH + rb"|^ *try:", re.M
)
_PARALLEL, _CONTEXT = "set_auto_parallel_context", "set_context"
_NAMES_A_MODE = re.compile(rb"auto_parallel", re.IGNORECASE)
_NAMES_ONE = re.compile(rb"""(?:device_target\s*=|set_device\()\s*["'](?:Ascend|GPU)""", re.IGNORECASE)
_OTHERS = {"ascend": "Ascend", "gpu": "GPU"}
_DEVICE_NUM = re.compile(rb"\bDEVICE_NUM\b")


class Called(Row):
    """A call; sure: it depends on no condition."""

    node: ast.Call
    name: str  # of the function, without its module
    sure: bool

    def word(self, name: str) -> str:
        """The value of an argument as it is written: "auto_parallel" for ParallelMode.AUTO_PARALLEL; else empty."""
        return next((_word(argument.value) for argument in self.node.keywords if argument.arg == name), "")

    def first(self) -> str:
        """The same of the first argument that has no name."""
        return _word(self.node.args[0]) if self.node.args else ""


def text_of(path: str) -> bytes:
    """The beginning of the file; empty if it cannot be read: other checks report that."""
    try:
        with open(path, "rb") as file:
            return file.read(MOST_BYTES)
    except OSError:
        return b""


def read(path: str, worth: Pattern[bytes]) -> list[Called]:
    """The calls in a file with the pattern; none if Python cannot parse the file: Python reports that when it runs."""
    text = text_of(path)
    if not worth.search(text):
        return []
    import ast  # only such a program needs these
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python reports them, too, when it runs the program
            return list(_calls(ast.parse(text), sure=True))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _calls(node: ast.AST, sure: bool) -> Iterator[Called]:
    import ast

    if isinstance(node, ast.Call):
        yield Called(node, getattr(node.func, "attr", "") or getattr(node.func, "id", ""), sure)
    depends = isinstance(node, (ast.If, ast.IfExp, ast.Try, ast.For, ast.While))
    if isinstance(node, ast.If) and "__name__" in ast.dump(node.test):  # if __name__ == "__main__"
        depends = False
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, sure and not depends)


def _word(node: ast.expr) -> str:
    attribute = getattr(node, "attr", "")
    value = attribute if attribute.isupper() else getattr(node, "value", "")
    return str(value).lower() if isinstance(value, (str, int)) else ""


def check_data(path: str, request: Request) -> None:
    """Raises Refusal, with one line, for a program that reads DATA_PATH, which is not set: all ranks fail."""
    if request.data_path is not None or os.environ.get("DATA_PATH"):
        return
    text = text_of(path)
    found = _READS_IT.search(text)
    if found and not _MAY_DO_WITHOUT.search(text):
        line = text.count(b"\n", 0, found.end()) + 1
        raise refused(
            "{place}: the program reads DATA_PATH, and nothing sets it; name the folder of the data: as the "
            "argument DATA_PATH of a script that has it, or by: export DATA_PATH=FOLDER; --no_check starts the "
            "program all the same",
            place=f"{one_line(short_path(path))}:{line}",
        )


def check_parallel(path: str, target: str) -> None:
    """Raises Refusal, with one line, for a program that asks MindSpore to cut its network where MindSpore does not.

    On CPU every rank would start, and end with a page of traceback.  In PyNative mode MindSpore prints nothing, and
    every rank trains the whole network by itself.  A conditional call does not count, nor a computed mode.
    """
    calls = read(path, _NAMES_A_MODE)
    asked = [(call, call.word("parallel_mode")) for call in calls if call.name == _PARALLEL]
    if not asked or any(mode not in modes.BY_MINDSPORE for _, mode in asked):
        return  # it may choose another one
    by_function = b"shard" in text_of(path)
    for call, mode in asked:
        why = _why_not(mode, target, calls, by_function) if call.sure else ""
        if why:
            remedy = tr(
                "use data_parallel, or cut the layers by hand (hybrid_parallel); --no_check starts the program all the "
                "same"
            )
            raise Refusal(REFUSED, clauses(f"{one_line(short_path(path))}:{call.node.lineno}: {why}", remedy))


def _why_not(mode: str, target: str, calls: list[Called], by_function: bool) -> str:
    """by_function: the program may use mindspore.shard(), which is for PyNative mode."""
    set_modes = [call.word("mode") for call in calls if call.name == _CONTEXT]
    pynative = set_modes and all(word in ("1", "pynative_mode") for word in set_modes)
    if pynative and not (mode == "auto_parallel" and by_function):
        return modes.not_in_pynative(mode)
    return modes.not_on_cpu(mode) if target == "CPU" else ""


def check_target(path: str, target: str) -> None:
    """Raises Refusal, with one line, for a program that is for NPUs or GPUs only, in a launch on CPU.

    Every rank would start, and end with a page of traceback; or use NPUs that the launch did not take.  A call that
    depends on an `if` does not count, nor a target that is computed.
    """
    if target != "CPU":
        return
    named = [(call, _target(call)) for call in read(path, _NAMES_ONE)]
    named = [(call, word) for call, word in named if word is not None]
    if not named or any(word not in _OTHERS for _, word in named):
        return  # it may choose another one
    for call, word in named:
        if call.sure:
            place = f"{one_line(short_path(path))}:{call.node.lineno}"
            raise refused(
                '{place}: the program itself asks for device_target "{target}", but this launch is on CPU; write '
                '"CPU" there, or leave it out: MindSpore then uses what this machine has; --no_check starts the '
                "program all the same",
                place=place,
                target=_OTHERS[word or ""],
            )


def _target(call: Called) -> str | None:
    """The hardware that the call names, in small letters; empty: one that is computed; None: it names none."""
    if call.name == "set_context" and any(argument.arg == "device_target" for argument in call.node.keywords):
        return call.word("device_target")
    if call.name == "set_device":
        return call.first() or call.word("device_target")
    return None


def device_num_remarks(request: Request, ranks: int, command: list[str]) -> list[str]:
    """A line for the user if the program of `command` may take DEVICE_NUM for the number of its ranks.

    For `ascend4p.sh` it is 8 as in its tutorial, although four ranks are on the host.
    """
    if "DEVICE_NUM" in os.environ:
        return []
    for program in command[:3]:  # python -u FILE, or the program itself
        if program == trainer_command.python() or not os.path.isfile(program) or trainer_command.is_own(program):
            continue
        for path, text in sources.contents(program):
            if _DEVICE_NUM.search(text):
                remark = tr(
                    "note: {path} names DEVICE_NUM, which is {number} as in the tutorial of {script}; if it counts "
                    "ranks by it: export DEVICE_NUM={ranks}",
                    path=one_line(os.path.relpath(path)),
                    number=request.device_num,
                    script=request.script,
                    ranks=ranks,
                )
                return [remark]
    return []
