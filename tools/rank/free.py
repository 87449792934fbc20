"""Waits, before a rank of a restart starts on its host, until the last attempt has left nothing there.

The launcher looks at its own host (restarts_child.py). Agents look at their hosts, and at the device of their rank.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hccl_tools.common.words import clauses, some
from hccl_tools.machine import npu_use
from tools.rank import device
from tools.rank.told import Told
from tools.supervise import held
from tools.supervise.held import Held

MOMENT, OFTEN = 1.0, 1.0  # seconds, as in restarts_child.py
SHOWN = 4


def wait(told: Told, engine: int, pause: Callable[[float], bool], tell: Callable[[str, str], object]) -> bool:
    """Whether the rank may start.

    engine: the process of the engine on this host, which has begun with this attempt; pause: waits, False: the agent is
    to stop.  tell: gets "waits", "free" or "held", and a text.
    """
    seconds, begun, told_of = told.number("RESTART"), time.monotonic(), ""
    while found := look(told, engine):
        waited = time.monotonic() - begun
        what = some([one.what for one in found], SHOWN)
        if waited >= seconds:
            tell("held", clauses(what, held.remedy(found)))
            return False
        if waited >= MOMENT and what != told_of:
            told_of = what
            tell("waits", what)
        if not pause(min(OFTEN, max(0.1, seconds - waited))):
            return False
    if told_of:
        tell("free", f"{time.monotonic() - begun:.0f}")
    return True


def look(told: Told, engine: int) -> list[Held]:
    """Everything that is held; ends processes of an earlier attempt."""
    found = [held.end(pid) for pid in (held.earlier(told.job, engine) if told.away_host else ())]
    if found or not told["TARGET"].startswith("Ascend") or told.is_scheduler:
        return found
    own = device.physical(told)[told.local_rank]
    return [held.device(one) for one in held.holders(npu_use.look(), [own])]
