"""Prints ``mslaunch --completion bash``: the shell's part of TAB, with the words that request an answer."""

from __future__ import annotations

import shlex
import sys

from hccl_tools.common import project

SHELLS = ("bash", "zsh")


def text(shell: str) -> str:
    """The script for one of SHELLS.

    Its Python is this one, by its path: TAB starts no program because of its name in a command line.  By -I and -S
    neither variables nor packages of the user steer it, and it starts in half of the time.
    """
    ask = (sys.executable, "-I", "-S", project.path("tools", "front", "tab", "answer.py"))
    with open(project.path("tools", "front", "tab", f"tab.{shell}"), encoding="utf-8") as file:
        return f"_mslaunch_ask=({shlex.join(ask)})\n{file.read()}"
