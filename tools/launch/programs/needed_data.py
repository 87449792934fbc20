"""Detects a program that reads DATA_PATH although it is not set, from the program's own file; nothing is run.

Every rank would start, and end with KeyError: 'DATA_PATH'.
"""

from __future__ import annotations

import os
import re

from hccl_tools.common.refusal import refused
from hccl_tools.common.words import one_line, short_path
from tools.launch.programs import program_calls
from tools.launch.request import Request

_NAME = rb"""["']DATA_PATH["']"""
_READ = re.compile(rb"^[^#\n]*\benviron\[" + _NAME + rb"\]", re.MULTILINE)
# what a program has that can do without the variable, or sets it
_MAY = re.compile(_NAME + rb"(?:\] *=[^=]| +(?:not +)?in\b)|(?:get|setdefault|getenv)\(" + _NAME + rb"|^ *try:", re.M)


def check(path: str, request: Request) -> None:
    """Raises Refusal, with one line, for a program that can only fail."""
    if request.data_path is not None or os.environ.get("DATA_PATH"):
        return
    text = program_calls.text_of(path)
    found = _READ.search(text)
    if found and not _MAY.search(text):
        line = text.count(b"\n", 0, found.end()) + 1
        raise refused(
            "{place}: the program reads DATA_PATH, and nothing sets it; name the folder of the data: as the "
            "argument DATA_PATH of a script that has it, or by: export DATA_PATH=FOLDER; --no_check starts the "
            "program all the same",
            place=f"{one_line(short_path(path))}:{line}",
        )
