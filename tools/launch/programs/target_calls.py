"""Detects a program that selects hardware that this launch is not for, from its own file; nothing is run.

In a launch on CPU every rank would start, and end with a page of traceback; or use NPUs that the launch did not take.
"""

from __future__ import annotations

import re

from hccl_tools.common.refusal import refused
from hccl_tools.common.words import one_line, short_path
from tools.launch.programs import program_calls
from tools.launch.programs.program_calls import Called

_NAMES_ONE = re.compile(rb"""(?:device_target\s*=|set_device\()\s*["'](?:Ascend|GPU)""", re.IGNORECASE)
_OTHERS = {"ascend": "Ascend", "gpu": "GPU"}


def check(path: str, target: str) -> None:
    """Raises Refusal, with one line, for a program that is for NPUs or GPUs only, in a launch on CPU.

    A call that depends on an `if` does not count, nor a target that is computed.
    """
    if target != "CPU":
        return
    named = [(call, _target(call)) for call in program_calls.read(path, _NAMES_ONE)]
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
