"""The plan of a launch, as scripts/lib/plan.sh reads it: in NUL-terminated words, so a path may hold anything."""

from __future__ import annotations

import os

from hccl_tools.common.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.launch.launch_table import LaunchTable
    from tools.launch.request import Request


class Plan(Record):
    """What will be started, for which Request."""

    request: Request
    run_dir: str
    ranks: list[tuple[int, int]]  # (rank, device), in rank order
    hosts: list[str]  # the host of each rank; empty where all are on this one
    engine: dict[str, str]  # what scripts/lib/engines/ needs to know
    table: LaunchTable | None  # None: a launch without a rank table
    trainer: list[str]  # the command of every rank
    scheduler: list[str]  # the command of MindSpore's scheduler; empty where the launcher starts none
    exports: dict[str, str]  # the part of the environment that all ranks share
    remarks: tuple[str, ...] = ()  # lines for the user once it is sure to start


def words(plan: Plan) -> bytes:
    """The plan as pairs KIND, VALUE."""
    pairs = [("run_dir", plan.run_dir)]
    pairs += [("export", f"{name}={value}") for name, value in plan.exports.items()]
    pairs += [("rank", f"{rank} {device}") for rank, device in plan.ranks]
    pairs += [("host", name) for name in plan.hosts]
    pairs += [("engine", f"{name} {value}") for name, value in plan.engine.items()]
    pairs += [("trainer", word) for word in plan.trainer]
    pairs += [("scheduler", word) for word in plan.scheduler]
    if plan.request.dry_run and plan.table:
        pairs += [("setup", word) for word in plan.table.setup]
    return b"".join(os.fsencode(word) + b"\0" for pair in pairs for word in pair)


def nobody_reads() -> bool:
    """Whether the launcher, which reads the plan from a pipe, has ended or given up."""
    import select  # only a launch that waits needs it

    plan = select.poll()
    plan.register(1, 0)
    return bool(plan.poll(0))
