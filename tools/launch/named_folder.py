"""A folder that the user names; the launch makes it if it is missing."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal, refused
from hccl_tools.common.words import one_line


def check(option: str, named: str) -> str:
    """The absolute path of the folder, if it can be made and written.  Raises Refusal."""
    path = existing = os.path.abspath(named)
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        words = tr("{path} is not a folder; name another one", path=one_line(existing))
        raise Refusal(REFUSED, f"--{option} {one_line(path)}: {words}")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise refused(
            "--{option} {folder} cannot be written; name another one with --{option}",
            option=option,
            folder=one_line(path),
        )
    return path
