"""Whether ranks find the compiled files (.pyc) of MindSpore, of what it imports, and of Python."""

from __future__ import annotations

import os
import sys

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.machine import bytecode
from tools.doctor.page import OK, WARNING, Line

OWN_CACHE = "export PYTHONPYCACHEPREFIX=$HOME/.cache/python-bytecode"


def line() -> Line:
    """The Line about them.  The import of MindSpore by the doctor has written those that Python may write."""
    found = [each for each in bytecode.look(bytecode.OF_RANKS, os.environ) if each.stays]
    is_off = bool(os.environ.get(bytecode.OFF))
    if not found:
        text = tr("nothing is compiled at each start")
        if is_off:
            text = tr("{name} is set: only your own modules are compiled at each start", name=bytecode.OFF)
        return Line(".pyc", OK, text)
    why = tr("{name} is set", name=bytecode.OFF)
    if not is_off:
        why = tr("this user cannot write {folder}", folder=found[0].cache)
    told = ", ".join(f"{each.name} ({state(each.state)})" for each in found)
    text = tr("each rank compiles at each start: {modules}; {why}", modules=told, why=why)
    return Line(".pyc", WARNING, text, _remedy(found, is_off))


def state(found: str) -> str:
    """What a package has in place of good compiled files, for people."""
    if found == bytecode.NONE:
        return tr("no .pyc")
    if found == bytecode.STALE:
        return tr(".pyc of other sources")
    return tr(".pyc of {tag}", tag=found)


def _remedy(found: list[bytecode.Uncompiled], is_off: bool) -> str:
    command = " ".join([quote(sys.executable), "-m compileall -qq", *(quote(each.folder) for each in found)])
    has_prefix = bool(os.environ.get(bytecode.PREFIX))
    if is_off and has_prefix:
        return f"unset {bytecode.OFF}"
    if is_off:
        return tr("{command}; or leave the variable out: unset {name}", command=command, name=bytecode.OFF)
    if has_prefix:
        return tr("name a folder that you can write: {command}", command=OWN_CACHE)
    return tr("its owner: {command}; or you: {own}", command=command, own=OWN_CACHE)
