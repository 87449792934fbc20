"""Does a program ask MindSpore to cut its network where MindSpore does not?  Its own file is read, and nothing is run.

On CPU every rank would start, and end with a page of traceback.  In PyNative mode MindSpore says nothing, and every
rank trains the whole network by itself.
"""

from __future__ import annotations

import os
import re

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import one_line
from tools.config import modes
from tools.launch.programs.sources import MOST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

_PARALLEL, _CONTEXT = "set_auto_parallel_context", "set_context"
_NAMES_A_MODE = re.compile(rb"auto_parallel", re.IGNORECASE)


def check(path: str, target: str) -> None:
    """Raises Refusal, with one line.  A call that depends on an `if` does not count, nor a mode that is computed."""
    try:
        with open(path, "rb") as file:
            text = file.read(MOST_BYTES)
    except OSError:  # other checks say so
        return
    if not _NAMES_A_MODE.search(text):
        return
    import ast  # only such a program needs these
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python says them, too, when it runs the program
            calls = list(_calls(ast.parse(text), sure=True))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # Python will say so
        return
    asked = [(call, _word(call, "parallel_mode"), sure) for call, name, sure in calls if name == _PARALLEL]
    if not asked or any(mode not in modes.BY_MINDSPORE for _, mode, _ in asked):
        return  # it may choose another one
    for call, mode, sure in asked:
        why = _why_not(mode, target, calls, text) if sure else ""
        if why:
            remedy = tr(
                "use data_parallel, or cut the layers by hand (hybrid_parallel); --no_check starts the program all the "
                "same"
            )
            raise Refusal(REFUSED, f"{one_line(os.path.relpath(path))}:{call.lineno}: {why}; {remedy}")


def _why_not(mode: str, target: str, calls: list[tuple[ast.Call, str, bool]], text: bytes) -> str:
    set_modes = [_word(call, "mode") for call, name, _ in calls if name == _CONTEXT]
    by_function = mode == "auto_parallel" and b"shard" in text  # mindspore.shard() is for PyNative mode
    pynative = set_modes and all(word in ("1", "pynative_mode") for word in set_modes)
    if pynative and not by_function:
        return modes.not_in_pynative(mode)
    return modes.not_on_cpu(mode) if target == "CPU" else ""


def _calls(node: ast.AST, sure: bool) -> Iterator[tuple[ast.Call, str, bool]]:
    """(call, name of what is called, whether it depends on no condition) of every call in the node."""
    import ast

    if isinstance(node, ast.Call):
        yield node, getattr(node.func, "attr", "") or getattr(node.func, "id", ""), sure
    depends = isinstance(node, (ast.If, ast.IfExp, ast.Try, ast.For, ast.While))
    if isinstance(node, ast.If) and "__name__" in ast.dump(node.test):  # if __name__ == "__main__"
        depends = False
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, sure and not depends)


def _word(call: ast.Call, name: str) -> str:
    """The value of an argument as it is written: "auto_parallel" for ParallelMode.AUTO_PARALLEL; else empty."""
    for argument in call.keywords:
        if argument.arg == name:
            attribute = getattr(argument.value, "attr", "")
            value = attribute if attribute.isupper() else getattr(argument.value, "value", "")
            return str(value).lower() if isinstance(value, (str, int)) else ""
    return ""
