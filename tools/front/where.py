"""Decides where a launch without a placement runs: what starts its ranks, and why."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.typed import FRONT
from hccl_tools.common.words import count
from hccl_tools.machine import programs
from tools.command import defaults, mpirun_words, parse, table
from tools.command.declaration import Declaration
from tools.command.line import Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# {engine: what mslaunch declares for it}, as the scripts do
LOCAL = ["local", "CONFIG", "options=n zoo engine preflight", "device_target="]
DECLARED = {
    "local": LOCAL,
    "server": ["local", "CONFIG", "placement=server", "options=engine table_hosts preflight", "device_target=Ascend"],
    "mpirun": ["mpirun", "CONFIG", "options=hostfile no_sink engine", "device_target=Ascend"],
    "srun": ["srun", "CONFIG", "options=n engine", "device_target=Ascend"],
    "msrun": ["msrun", "CONFIG", "options=engine", "device_target="],
    "pod": [
        "local",
        "CONFIG",
        "placement=pod",
        "grace=25",
        "device_target=Ascend",
        "options=engine worker_num local_worker_num master_addr master_port node_rank table_dir pod_wait preflight",
    ],
}
_ENGINES = ("local", "mpirun", "srun", "msrun", "pod")
# Variables that only the pods of a job of several have: tools/launch/pods/pod_job.py reads them.
_OF_PODS = (
    "MS_SCHED_HOST",
    "JOB_COMPLETION_INDEX",
    "VC_TASK_INDEX",
    "VK_TASK_INDEX",
    "MA_NUM_HOSTS",
    "RANK_TABLE_FILE",
)
_POD = "KUBERNETES_SERVICE_HOST"


class Place(Record):
    """Where a launch runs: a key of DECLARED, and one line for the user that states why; empty for this machine."""

    engine: str
    why: str = ""
    words: tuple[str, ...] = ()  # further words of the declaration


def find(words: Sequence[str], environ: Mapping[str, str]) -> Place:
    """The place of the launch that these words of the user are.  Raises Refusal."""
    line = _read(words, environ)
    return _quickly(line, environ) or _of_table(line, environ) or Place(engine="local")


def without_table(words: Sequence[str], environ: Mapping[str, str]) -> Place:
    """The same, without a look into a rank table, which may be large.  Raises Refusal."""
    return _quickly(_read(words, environ), environ) or Place(engine="local")


def _quickly(line: Line, environ: Mapping[str, str]) -> Place | None:
    asked = line.value("engine")
    if asked:
        if asked not in _ENGINES:
            choices = ", ".join(_ENGINES)
            raise Refusal(USAGE, tr("--engine {name}: write one of {choices}", name=quote(asked), choices=choices))
        return Place(engine=asked)
    if line.given("hostfile") or line.given("hosts"):
        return Place(engine="mpirun", why=tr("the options name hosts: Open MPI starts the ranks"))
    return _of_pod(environ) or _of_slurm(environ)


def _read(words: Sequence[str], environ: Mapping[str, str]) -> Line:
    """What is known of the words as far as they are right: the launch itself reports what is not."""
    names = " ".join(key.partition(" ")[0] for key in table.NAMED)
    every = Declaration.from_words([f"script={FRONT}", *DECLARED["mpirun"], f"options={names}"])
    line = Line(every.replace(without=()), environ)
    line.others.append(mpirun_words.take)
    try:
        for _ in parse.steps(line, words):
            pass
        defaults.add(line)
    except Refusal:
        return line
    return line


def _of_pod(environ: Mapping[str, str]) -> Place | None:
    """A pod that is one of a job's; a notebook in a pod is a machine like any other."""
    named = next((name for name in _OF_PODS if environ.get(name)), "")
    if not environ.get(_POD) or not named:
        return None
    why = tr("this is a pod of a job ({variable} is set); --engine local: this pod alone", variable=named)
    return Place(engine="pod", why=why)


def _of_slurm(environ: Mapping[str, str]) -> Place | None:
    job = environ.get("SLURM_JOB_ID", "")
    if not job.isdigit() or not programs.on_path("srun"):
        return None
    nodes = environ.get("SLURM_JOB_NUM_NODES", "")
    why = tr(
        "in Slurm's allocation {job}: srun starts the ranks on {nodes}; --engine local: this machine alone",
        job=job,
        nodes=count(int(nodes), "node") if nodes.isdigit() else tr("its nodes"),
    )
    return Place(engine="srun", why=why)


def _of_table(line: Line, environ: Mapping[str, str]) -> Place | None:
    """A rank table of several servers; one that is wrong is for the plan to refuse."""
    path = line.value("rank_table") or environ.get("RANK_TABLE_FILE", "")
    if not path or not os.path.isfile(path):
        return None
    from hccl_tools.table import rank_table

    try:
        found = rank_table.read(path)[0]
    except rank_table.NotReadable:
        return None
    servers = count(len(rank_table.servers(found)), "server")
    if line.given("table_hosts") or _repeats_devices(found):  # version 2.0
        servers = tr("the ranks of several hosts")
    elif len(rank_table.servers(found)) < 2:
        return None
    why = tr(
        "{path} has {servers}: this host starts its own ranks; type the command on each of them",
        path=quote(path),
        servers=servers,
    )
    return Place(engine="server", why=why, words=(f"rank_table_file={os.path.abspath(path)}",))


def _repeats_devices(document: object) -> bool:
    """Whether a table of version 2.0 has a device twice: that of another host."""
    from hccl_tools.table.view import objects

    numbers = [str(rank.get("device_id")) for _, rank in objects(document, "rank_list")]
    return len(set(numbers)) < len(numbers)
