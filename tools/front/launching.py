"""Builds the launcher's arguments for a launch that was typed as mslaunch, with or without a script's name."""

from __future__ import annotations

import os
import signal
import sys

from hccl_tools.common import project, typed
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.typed import FRONT
from hccl_tools.common.words import clauses
from tools.front import presets
from tools.output.voice import Voice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)  # Python itself ignores these


def run(program: str, script: str, words: Sequence[str]) -> int:
    """Runs the launch; returns its exit code.

    program: the file of mslaunch; script: such as ``scripts/ascend4p.sh``, or empty; words: those after its name.
    """
    try:
        declaration = _declaration(script, words)
    except Refusal as refusal:
        for line in refusal.lines:
            Voice(FRONT).say(line)
        return refusal.status
    told = [f"script={project.path(script) if script else FRONT}", f"caller=set/{os.environ.get('SHELLOPTS', '')}"]
    told.append(f"ignored={_ignored():x}")
    if any(name.startswith("PYTHON") for name in os.environ):  # it may steer us, and should steer only the ranks
        told += [f"front={program}", f"preset={_preset(script)}", *declaration, "--", *words]
        python = os.environ.get("PYTHON") or sys.executable
        try:
            os.execvp(python, [python, "-E", "-s", project.path("tools", "launch", "main.py"), *told])
        except OSError as error:
            remedy = tr("set it to a Python of 3.9 or later, or unset it")
            Voice(FRONT).say(clauses(f"PYTHON={quote(python)}: {strerror(error)}", remedy))
            return REFUSED
    from tools.launch import launcher

    return launcher.main([*told, *declaration, "--", *words])


def _declaration(script: str, words: Sequence[str]) -> list[str]:
    """The words that a script would have declared.  Raises Refusal."""
    if script:
        return presets.chosen(os.path.basename(script), list(words))
    from tools.front import where

    place = where.find(words, os.environ)
    return [f"name={FRONT}", f"note={place.why}", *where.DECLARED[place.engine], *place.words]


def _ignored() -> int:
    """The mask of the signals that the caller ignores, without those that Python ignores for itself."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        mask = next(int(line.split()[1], 16) for line in file if line.startswith("SigIgn:"))
    for number in _BY_PYTHON:
        mask &= ~(1 << (number - 1))
    return mask


def _preset(script: str) -> str:
    return typed.WORDS.get(script, os.path.basename(script)[: -len(".sh")]) if script else ""
