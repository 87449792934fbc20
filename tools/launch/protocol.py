"""The plan of a launch, as scripts/lib/plan.sh reads it: in NUL-terminated words, so a path may hold anything."""

from __future__ import annotations

import itertools
import os
import re

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.launch.devices.binding import Binding
    from tools.launch.plogs import Plogs
    from tools.launch.request import Request
    from tools.launch.resume.resumption import Resumption
    from tools.launch.tables.launch_table import LaunchTable


class Plan(Record):
    """What will be started, for which Request."""

    request: Request
    run_dir: str
    ranks: list[tuple[int, int]]  # (rank, device), in rank order
    hosts: list[str]  # the host of each rank; empty where all are on this one
    engine: dict[str, str]  # what scripts/lib/engines/ needs to know
    table: LaunchTable | None  # None: a launch without a rank table
    about: str  # what that is, for people
    trainer: list[str]  # the command of every rank
    scheduler: list[str]  # the command of MindSpore's scheduler; empty where the launcher starts none
    exports: dict[str, str]  # the part of the environment that all ranks share
    binding: Binding | None = None  # the cores of the ranks, with --bind_core and --bind_numa
    plogs: Plogs | None = None  # where CANN logs; None: the ranks do not use it
    checkpoints: dict[str, Any] | None = None  # where our trainer saves, and of which network, for launch.json
    resumed: Resumption | None = None  # what it goes on from
    restart: list[str] = []  # the command of every rank from the second attempt on; empty: the same
    spares: list[str] = []  # the hosts that stand by
    lost: list[str] = []  # "HOST REASON" of those that this job has lost
    remarks: tuple[str, ...] = ()  # lines for the user once it is sure to start


# KIND -> what its words look like.  In most of them anything but NUL may be.
_KINDS = {
    "run_dir": ".+",
    "export": "[A-Za-z_][A-Za-z0-9_]*=.*",
    "rank": "[0-9]+ [0-9]+( [0-9]+ [0-9]+)*",  # RANK DEVICE of many ranks, because bash reads a pipe byte by byte
    "host": r"[0-9]+ (?!-)\S+",  # of so many ranks
    "engine": "[a-z_]+ .*",
    "lost": r"(?!-)\S+ .+",
    "about": ".+",
    "trainer": ".*",
    "restart": ".*",
    "scheduler": ".*",
    "plogs": "(failed|all|none)( /.*)?",
    "bind": "(core|numa) [A-Za-z]+( [0-9]+=[0-9]+(,[0-9]+)*)*",
    "setup": ".*",
    "convert": ".*",
    "end": "[0-9]+",
}


def _origin(kind: str) -> str:
    """Where the words of this kind come from."""
    return {
        "run_dir": "--log_dir",
        "export": tr("the environment of the ranks"),
        "rank": tr("the rank table, or the number of ranks"),
        "host": tr("the hostfile, HOSTS, the rank table or Slurm"),
        "engine": tr("the options"),
        "lost": tr("launch.json, Slurm or ssh"),
        "about": tr("the program, or the trainer and its config"),
        "trainer": tr("PYTHON, --train_script, the config or the arguments after --"),
        "restart": "--restart_args",
        "scheduler": tr("PYTHON, or the path of this project"),
        "plogs": "ASCEND_PROCESS_LOG_PATH",
        "bind": tr("--bind_core or --bind_numa"),
        "setup": tr("the options for the rank table"),
        "convert": tr("PYTHON, the path of this project, --resume or --log_dir"),
        "end": tr("the number of pairs"),
    }[kind]


def words(plan: Plan) -> bytes:
    """The plan as pairs KIND, VALUE; the last one has the number of those before it.  Raises Refusal."""
    pairs = [("run_dir", plan.run_dir)]
    pairs += [("export", f"{name}={value}") for name, value in plan.exports.items()]
    ranks = [f"{rank} {device}" for rank, device in plan.ranks]
    pairs += [("rank", " ".join(ranks[start : start + 500])) for start in range(0, len(ranks), 500)]
    pairs += [("host", f"{len(list(group))} {name}") for name, group in itertools.groupby(plan.hosts)]
    pairs += [("engine", f"{name} {value}") for name, value in plan.engine.items()]
    pairs += [("trainer", word) for word in plan.trainer]
    pairs += [("restart", word) for word in plan.restart]
    pairs += [("scheduler", word) for word in plan.scheduler]
    pairs += [("lost", words) for words in plan.lost]
    if plan.plogs:
        pairs.append(("plogs", plan.plogs.word()))
    if plan.binding:
        pairs.append(("bind", plan.binding.word()))
    if plan.request.dry_run:
        about = plan.about
        if plan.resumed:
            about = tr("{about}; it goes on {where}", about=about, where=plan.resumed.where())
        pairs.append(("about", about))
        pairs += [("setup", word) for word in (plan.table.setup if plan.table else ())]
        pairs += [("convert", word) for word in (plan.resumed.convert if plan.resumed else ())]
    pairs.append(("end", str(len(pairs))))
    return b"".join(_pair(kind, value) for kind, value in pairs)


def _pair(kind: str, value: str) -> bytes:
    """One pair as bytes.  Raises Refusal if bash would read another word than this one."""
    pattern = _KINDS[kind]
    try:
        word = os.fsencode(value)
    except UnicodeEncodeError:  # half a character, which JSON can hold
        word = b"\0"
    if b"\0" in word or not re.fullmatch(pattern, value, re.DOTALL) or kind == "host" and not value.isprintable():
        text = tr(
            'the {kind} "{value}" cannot be a word of the plan; it comes from {origin}: correct it there',
            kind=kind,
            value=one_line(value),
            origin=_origin(kind),
        )
        raise Refusal(REFUSED, text)
    return b"%s\0%s\0" % (kind.encode(), word)


def heed_launcher() -> None:
    """Raises Refusal if the launcher, which reads the plan from a pipe, has ended or given up."""
    import select  # only a launch that waits needs it

    plan = select.poll()
    plan.register(1, 0)
    if plan.poll(0):
        raise Refusal(REFUSED, tr("the launcher has ended, so this launch waits no longer"))
