"""Notes about the caller's environment before the ranks start: what the launch replaces, and what has an effect."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from tools.rank import environment
from tools.rank.environment import Environment


def of(caller: Environment, exports: Mapping[str, str], in_pod: bool) -> Iterator[str]:
    """The notes, one a line.

    exports: the part of the environment that the launch sets; in_pod: the operator has set variables for the launch.
    """
    replaced = [f"{name}={quote(value)}" for name, value in environment.overridden(caller, exports)]
    if replaced and not in_pod:
        yield tr("note: {names} from your shell is not used; the launch sets its own", names=", ".join(replaced))
    ranks = exports["RANK_SIZE"]
    world = caller.get(b"WORLD_SIZE")
    if world is not None and os.fsdecode(world) != ranks:
        yield tr(
            "note: the ranks get WORLD_SIZE={value} from your shell, but the job has {ranks}; unset it, and they "
            "get the right number",
            value=quote(os.fsdecode(world)),
            ranks=ranks,
        )
    same = [
        f"{name}={quote(os.fsdecode(caller[name.encode()]))}"
        for name in ("RANK", "LOCAL_RANK")
        if name.encode() in caller
    ]
    if same and ranks != "1":
        yield tr(
            "note: all {ranks} ranks get {names} from your shell; unset it, and each rank gets its own number",
            names=", ".join(same),
            ranks=ranks,
        )
