"""Detects a program that asks MindSpore to cut its network where MindSpore does not, from its own file; nothing is run.

On CPU every rank would start, and end with a page of traceback.  In PyNative mode MindSpore prints nothing, and every
rank trains the whole network by itself.
"""

from __future__ import annotations

import re

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import clauses, one_line, short_path
from tools.config import modes
from tools.launch.programs import program_calls
from tools.launch.programs.program_calls import Called

_PARALLEL, _CONTEXT = "set_auto_parallel_context", "set_context"
_NAMES_A_MODE = re.compile(rb"auto_parallel", re.IGNORECASE)


def check(path: str, target: str) -> None:
    """Raises Refusal, with one line.  A conditional call does not count, nor a computed mode."""
    calls = program_calls.read(path, _NAMES_A_MODE)
    asked = [(call, call.word("parallel_mode")) for call in calls if call.name == _PARALLEL]
    if not asked or any(mode not in modes.BY_MINDSPORE for _, mode in asked):
        return  # it may choose another one
    by_function = b"shard" in program_calls.text_of(path)
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
