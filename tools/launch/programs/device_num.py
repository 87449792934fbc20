"""DEVICE_NUM of `ascend4p.sh`: 8 as in its tutorial, although four ranks are on the host."""

from __future__ import annotations

import os
import re

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.launch.programs import sources, trainer_command
from tools.launch.request import Request

_NAME = re.compile(rb"\bDEVICE_NUM\b")


def remarks(request: Request, ranks: int, command: list[str]) -> list[str]:
    """A line for the user if the program of `command` may take the script's number for the number of its ranks."""
    if "DEVICE_NUM" in os.environ:
        return []
    for program in command[:3]:  # python -u FILE, or the program itself
        if program == trainer_command.python() or not os.path.isfile(program) or trainer_command.is_own(program):
            continue
        for path, text in sources.contents(program):
            if _NAME.search(text):
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
