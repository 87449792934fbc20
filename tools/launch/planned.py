"""The plan of a launch as a record, and the check that it can be executed as written."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import refused
from hccl_tools.common.words import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from tools.launch.devices.binding import Binding
    from tools.launch.engines.facts import Cluster, EngineFacts
    from tools.launch.engines.hccl_ports import HcclPorts
    from tools.launch.hosts.launchers import Agreement
    from tools.launch.plogs import Plogs
    from tools.launch.pods.pod_table import WatchedTable
    from tools.launch.programs.import_once import Imports
    from tools.launch.request import Request
    from tools.launch.resume.resuming import Resumption
    from tools.launch.tables.launch_table import LaunchTable


class Checked(Record):
    """The findings of --preflight; tools/preflight/before_launch.py makes them.

    told:    for launch.json; None: nobody was asked.  remarks: lines for the user.
    changed: what has changed since the last job that ended well, for the report of one that fails; empty: nothing.
    kept:    the text that the file `path` gets if this job ends well.
    """

    told: dict[str, Any] | None = None
    remarks: Sequence[str] = ()
    changed: str = ""
    kept: str = ""
    path: str = ""


class Plan(Record):
    """What will be started, and the Request that it is for."""

    request: Request
    run_dir: str
    ranks: list[tuple[int, int]]  # (rank, device), in rank order
    hosts: list[str]  # the host of each rank; empty where all are on this one
    sizes: list[int]  # the number of ranks of each host of the job, in the order of the ranks
    engine: EngineFacts  # what the file of the engine in tools/engines/ needs to know
    cluster: Cluster  # where the ranks meet
    table: LaunchTable | None  # None: a launch without a rank table
    about: str  # what that is, for people
    trainer: list[str]  # the command of every rank
    scheduler: list[str]  # the command of MindSpore's scheduler; empty where the launcher starts none
    exports: dict[str, str]  # the part of the environment that all ranks share
    binding: Binding | None = None  # the cores of the ranks, with --bind_core and --bind_numa
    hccl: HcclPorts | None = None  # where HCCL listens; None: the ranks do not use it
    plogs: Plogs | None = None  # where CANN logs; None: the ranks do not use it
    checkpoints: dict[str, Any] | None = None  # where our trainer saves, and of which network, for launch.json
    resumed: Resumption | None = None  # what it goes on from
    restart: list[str] = []  # the command of every rank from the second attempt on; empty: the same
    agreement: Agreement | None = None  # with the launchers of other hosts; None: this one decides alone
    watched_table: WatchedTable | None = None  # the operator's, in a pod; None: a table that does not change
    rank_files: list[str] | None = None  # what each rank's folder gets; None: ranks run where the command was typed
    imports: Imports | None = None  # what all ranks import once; None: each imports for itself
    spares: list[str] = []  # the hosts that stand by
    preflight: Checked | None = None  # of the first plan of a job
    lost: list[str] = []  # "HOST REASON" of those that this job has lost
    remarks: tuple[str, ...] = ()  # lines for the user once it is sure to start


def check(plan: Plan) -> None:
    """Raises Refusal for a word that no command and no environment can hold, or that would be read as another one."""
    for kind, value in _words(plan):
        if not _fits(kind, value):
            raise refused(
                'the {kind} "{value}" cannot be a word of the plan; it comes from {origin}: correct it there',
                kind=kind,
                value=one_line(value),
                origin=_origin(kind),
            )


def _words(plan: Plan) -> Iterator[tuple[str, str]]:
    """(kind, value) of everything that comes from outside."""
    yield "run_dir", plan.run_dir
    for name, value in plan.exports.items():
        yield "export", f"{name}={value}"
    for name in dict.fromkeys(plan.hosts):
        yield "host", name
    for name, value in (*_texts(plan.engine), *_texts(plan.cluster)):
        yield "engine", f"{name} {value}"
    if plan.watched_table:
        yield "engine", f"watch_table {plan.watched_table.path}"
    for kind in ("trainer", "restart", "scheduler", "lost"):
        for word in getattr(plan, kind):
            yield kind, word


def _texts(facts: Record) -> Iterator[tuple[str, str]]:
    """(name, value) of the fields that hold text; numbers and flags fit anywhere."""
    for name, value in facts.as_dict().items():
        if isinstance(value, Record):
            yield from _texts(value)
        elif isinstance(value, str):
            yield name, value
        elif isinstance(value, list):
            yield name, ",".join(map(str, value))


def _fits(kind: str, value: str) -> bool:
    try:
        word = os.fsencode(value)
    except UnicodeEncodeError:  # half a character, which JSON can hold
        return False
    if b"\0" in word or (kind == "run_dir" and not value):
        return False
    if kind == "export":
        return value.partition("=")[0].isidentifier() and value.partition("=")[0].isascii()
    if kind == "host":
        return bool(value) and not value.startswith("-") and value.isprintable() and " " not in value
    return True


def _origin(kind: str) -> str:
    """Where the words of this kind come from."""
    return {
        "run_dir": "--log_dir",
        "export": tr("the environment of the ranks"),
        "host": tr("the hostfile, HOSTS, the rank table or Slurm"),
        "engine": tr("the options"),
        "lost": tr("launch.json, Slurm or ssh"),
        "trainer": tr("PYTHON, --train_script, the config or the arguments after --"),
        "restart": "--restart_args",
        "scheduler": tr("PYTHON, or the path of this project"),
    }[kind]
