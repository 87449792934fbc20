"""DEVICE_NUM of `ascend4p.sh`: its tutorial's 8, although four ranks are on the host."""

from __future__ import annotations

import os
import re

from hccl_tools.common.words import one_line
from tools.launch import trainer_command
from tools.launch.request import Request

_NAME = re.compile(rb"\bDEVICE_NUM\b")
_MOST = 1 << 20  # bytes of a source that are searched


def remarks(request: Request, ranks: int, command: list[str]) -> list[str]:
    """A line for the user where the program of `command` may take the script's number for that of its ranks."""
    if request.device_num in (None, ranks) or "DEVICE_NUM" in os.environ:
        return []
    for path in command[:3]:  # python -u FILE, or the program itself
        if path != trainer_command.python() and os.path.isfile(path) and _names_it(path):
            value = f"names DEVICE_NUM, which is {request.device_num} as in the tutorial of {request.script}"
            return [f"note: {one_line(path)} {value}; if it counts ranks by it: export DEVICE_NUM={ranks}"]
    return []


def _names_it(path: str) -> bool:
    """Whether the file has the variable's name; files that it imports are not searched."""
    try:
        with open(path, "rb") as file:
            return bool(_NAME.search(file.read(_MOST)))
    except OSError:  # a check of the trainer says so
        return False
