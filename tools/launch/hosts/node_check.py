"""Checks in one srun step whether the other nodes of a launch have this project, in the same version."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from hccl_tools.hosts import node_sets
from hccl_tools.machine import programs
from tools.launch.engines.facts import OF_SBATCH
from tools.launch.hosts import host_check
from tools.launch.request import Request

_SECONDS = 60  # for a few nodes; Slurm starts a step within one second, unless it is busy
_MOST_NAMED = 8  # nodes, or sets of them, in one line
_MARK = "launch-node-check"


def problems(request: Request, others: list[str]) -> tuple[list[str], bool]:
    """(a line for each problem of several nodes, whether one may have this project in another folder).

    On a restart no node is asked: the nodes were, and one of them may be lost.
    """
    nodes = [name for name in others if name != os.environ.get("SLURMD_NODENAME")]
    if not nodes:
        return [], False
    if request.attempt:
        return [], True
    ended = programs.ask(command(nodes), _SECONDS + len(nodes) // 4)
    told = answers(ended.stdout)
    silent = [name for name in nodes if name not in told]
    lines, elsewhere = host_check.versions({name: told[name] for name in nodes if name in told})
    return ([_no_answer(silent, ended)] if silent else []) + lines, elsewhere


def command(nodes: list[str]) -> list[str]:
    """The srun command that queries each node once; it does not use sbatch's numbers of tasks."""
    text = f'echo "{_MARK} $SLURMD_NODENAME" $({host_check.project_question()})'
    return [*step(nodes, "none"), "/bin/sh", "-c", text]


def step(nodes: list[str], stdin: str) -> list[str]:
    """srun and its options before a command that each node runs once; stdin: "none", or "all" get srun's."""
    return [
        *("env", *(word for name in OF_SBATCH for word in ("-u", name)), "srun"),
        *(f"--nodes={len(nodes)}", f"--ntasks={len(nodes)}", "--ntasks-per-node=1", f"--nodelist={','.join(nodes)}"),
        *("--wait=0", "--kill-on-bad-exit=0", "--cpu-bind=none", "--mpi=none", "--overlap", "--export=ALL"),
        *(f"--input={stdin}", "--output=all", "--error=all", "--chdir=/"),
    ]


def answers(stdout: str) -> dict[str, str]:
    """{node: its answer}; srun may put a label before each line."""
    found = {}
    for line in stdout.splitlines():
        _, mark, said = line.partition(_MARK + " ")
        name, _, answer = said.partition(" ")
        if mark and name:
            found[name] = answer
    return found


def _no_answer(nodes: list[str], ended: programs.Ended) -> str:
    return tr(
        "{nodes}: no answer by srun: {reason}; try: srun --overlap -w {node} true, or leave the check out: --no_check",
        nodes=node_sets.folded(nodes, _MOST_NAMED),
        reason=one_line(programs.said(ended)),
        node=one_line(nodes[0]),
    )
