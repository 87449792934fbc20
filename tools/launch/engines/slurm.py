"""Places ranks that Slurm's srun starts, the same number on each node of the allocation."""

from __future__ import annotations

import os
import re

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.refusal import REFUSED, Refusal, refused
from hccl_tools.common.words import clauses, one_line
from hccl_tools.hosts import hostfile
from hccl_tools.machine import programs
from tools.launch.engines import placement, ports
from tools.launch.engines.facts import Cluster, SrunFacts
from tools.launch.hosts import network, spares
from tools.launch.request import MAX_RANKS, Request

_KILL_WAIT, _MOST_KILL_WAIT = 30, 65535  # seconds; Slurm's default, and the most that slurm.conf takes


def place(request: Request) -> placement.Placement:
    """--ntasks_per_node ranks on each node; MindSpore's scheduler is on the first.  Raises Refusal."""
    nodes, standing_by = nodes_in_use(request)
    each = request.ntasks_per_node or shared(request.n, len(nodes)) or tasks_per_node()
    address, kill_wait = facts(nodes[0])
    cluster = Cluster(
        scheduler_host=address,
        scheduler_port=ports.derived(job_id()),  # no two of 20,000 successive jobs have one port
        scheduler_node=nodes[0] if os.environ.get("SLURMD_NODENAME") != nodes[0] else "",
    )
    engine = SrunFacts(nodes=nodes, per_node=each, kill_wait=kill_wait)
    placed = placement.spread(request, [(node, each) for node in nodes], each * len(nodes), engine)
    return placed.replace(cluster=cluster, spares={name: list(range(each)) for name in standing_by})


def nodes_in_use(request: Request) -> tuple[list[str], list[str]]:
    """(the nodes with ranks, those that stand by).  Raises Refusal."""
    allocated = [(name, None) for name in allocated_nodes()]
    if request.exclude is not None:
        from tools.launch.devices import excluded

        remedy = tr("Slurm gives each node its devices; leave out the node, or request fewer devices with --gres")
        out = excluded.whole_hosts(request, [name for name, _ in allocated], remedy)
        allocated = [(name, None) for name, _ in allocated if name not in out]
    names = spares.named(request, [name for name, _ in allocated])
    nodes, standing_by = spares.split(allocated, names, spares.lost(request))
    if not nodes:
        raise Refusal(REFUSED, spares.none_left())
    return [name for name, _ in nodes], [name for name, _ in standing_by]


def lost_nodes(names: list[str]) -> dict[str, str]:
    """{node of `names` that Slurm has lost: why, for a message}."""
    known = set(names)
    answer = programs.ask(["sinfo", "--noheader", "--Node", "--nodes", ",".join(names), "--format", "%N|%T|%E"], 20)
    found = {}
    for line in answer.stdout.splitlines():
        name, state, reason = [word.strip() for word in (line + "||").split("|", 2)]
        if name in known and (state.startswith(("down", "fail", "unknown")) or state.endswith("*")):
            said = tr("Slurm says: {state}, {reason}", state=one_line(state), reason=one_line(reason.rstrip("|")))
            found[name] = said
    return found


def shared(ranks: int | None, nodes: int) -> int | None:
    """How many ranks each node has, of this total; None: the number of ranks is unknown.  Raises Refusal."""
    if ranks is None:
        return None
    if ranks % nodes:
        text = tr("-n {ranks}: each of the {nodes} nodes gets the same number of ranks", ranks=ranks, nodes=nodes)
        more = ranks + nodes - ranks % nodes
        raise Refusal(REFUSED, clauses(text, tr("type -n {number}, or --ntasks_per_node N", number=more)))
    return ranks // nodes


def tasks_per_node() -> int:
    """The number of tasks per node in the allocation; 1 if Slurm's variables do not state it.  Raises Refusal."""
    text = os.environ.get("SLURM_NTASKS_PER_NODE") or os.environ.get("SLURM_TASKS_PER_NODE", "1")
    counts = {part.partition("(")[0] for part in text.split(",")}
    remedy = tr("ask for them with sbatch --ntasks-per-node, or give --ntasks_per_node")
    if len(counts) != 1:
        raise refused("the nodes have different numbers of tasks: {text}; {remedy}", text=one_line(text), remedy=remedy)
    count = whole_number(counts.pop(), 1, MAX_RANKS)
    if count is None:
        raise refused(
            "Slurm's number of tasks for a node is not a number: {text}; {remedy}", text=one_line(text), remedy=remedy
        )
    return count


def job_id() -> int:
    """The number of the job that we are in.  Raises Refusal."""
    text = os.environ["SLURM_JOB_ID"]
    number = whole_number(text)
    if number is None:
        raise refused("SLURM_JOB_ID {text} is not the number of a job; do not set it yourself", text=one_line(text))
    return number


def allocated_nodes() -> list[str]:
    """The names of the nodes of the allocation that we are in, in Slurm's order.  Raises Refusal."""
    if "SLURM_JOB_ID" not in os.environ:
        raise refused(
            "not inside a Slurm job: SLURM_JOB_ID is not set; submit the script, such as: "
            "sbatch -N 2 --ntasks-per-node=8 scripts/run_slurm.sh CONFIG (or get the nodes with salloc first)"
        )
    for program in ("srun", "scontrol"):
        if not programs.on_path(program):
            raise refused(
                "{program} is not on PATH; load Slurm's environment, or install slurm-client", program=program
            )
    nodes = os.environ.get("SLURM_JOB_NODELIST", "")
    if nodes.startswith("-"):
        raise refused(
            "SLURM_JOB_NODELIST {nodes} is not a list of nodes; do not set it yourself", nodes=one_line(nodes)
        )
    answer = programs.ask(["scontrol", "show", "hostnames", nodes], 20)
    names: list[str] = answer.stdout.split()
    if answer.status or not names:
        reason = one_line(answer.stderr.strip())
        raise refused("scontrol does not know the nodes {nodes}: {reason}", nodes=one_line(nodes), reason=reason)
    unfit = [fault for fault in map(hostfile.fault_of_host, names) if fault]
    if unfit:
        raise Refusal(
            REFUSED, *(tr("SLURM_JOB_NODELIST, as scontrol reads it: {fault}", fault=fault) for fault in unfit)
        )
    return names


def facts(node: str) -> tuple[str, int]:
    """(the address of `node`, as Slurm reaches it; seconds from scancel's SIGTERM to SIGKILL)."""
    questions = {"node": ["scontrol", "show", "node", "--oneliner", node], "config": ["scontrol", "show", "config"]}
    answers = programs.ask_all(questions, 20)
    found = re.search(r"\bNodeAddr=(\S+)", answers["node"].stdout)
    name = found.group(1) if found else node
    kill_wait = re.search(r"^KillWait\s*= *([0-9]+)", answers["config"].stdout, re.MULTILINE)
    seconds = whole_number(kill_wait.group(1), 0, _MOST_KILL_WAIT) if kill_wait else None
    address = network.address_of(name, tr("node {node}: its address {name}", node=node, name=one_line(name)))
    return address, _KILL_WAIT if seconds is None else seconds
