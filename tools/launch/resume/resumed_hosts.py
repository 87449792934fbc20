"""Asks the other hosts, before the start, which checkpoints they have for a launch by mpirun that continues.

Only names and sizes are compared: the trainer reads the files completely, and takes the newest that all ranks have.
"""

from __future__ import annotations

import os
import shlex

from hccl_tools.common.refusal import refused
from hccl_tools.common.words import one_line
from tools.launch.engines import facts
from tools.launch.engines.placement import Placement
from tools.launch.hosts import host_check, network
from tools.launch.request import Request
from tools.launch.resume.resumption import Resumption
from tools.trainer import checkpoints

_MARK = "launch-resume-check"


def check(request: Request, placed: Placement, found: Resumption) -> Resumption:
    """Checks what the hosts have of it.  Raises Refusal if one has nothing."""
    ranks = _ranks_by_host(placed, found.source)
    if request.engine != "mpirun" or request.no_check or not ranks:
        return found
    names = [os.path.basename(path)[: -len(".ckpt")] for path, _ in found.candidates]
    mpi = facts.of(facts.MpirunFacts, placed.engine).mpi
    answers = host_check.ask(
        request, mpi.version, {host: question(found.source, names, numbers) for host, numbers in ranks.items()}
    )
    lacks = {host: _lacks(answers[host].stdout) for host in ranks}
    left = [item for item, name in zip(found.candidates, names) if not any(name in lack for lack in lacks.values())]
    if left:
        return found.replace(candidates=left)
    host = next(host for host in ranks if names[-1] in lacks[host])
    raise refused(
        "{host}: {folder} has no complete {name}.ckpt of rank {rank}; copy it there, share the folder, or name "
        "another run",
        host=one_line(host),
        folder=one_line(found.source),
        name=one_line(names[-1]),
        rank=lacks[host][names[-1]],
    )


def question(folder: str, names: list[str], ranks: list[int]) -> str:
    """One shell command whose lines "MARK RANK NAME" are the checkpoints that are missing, or not as large as saved."""
    each = " ".join(map(shlex.quote, names))
    whole = '[ -f "$f.ckpt" ] && grep -Eq "\\"bytes\\": $(stat -c %s "$f.ckpt")(,|}|$)" "$f.json" 2>/dev/null'
    return (
        f"cd {shlex.quote(folder)} 2>/dev/null || cd /proc/self; "
        f"for n in {each}; do for r in {' '.join(map(str, ranks))}; do f=rank_$r/$n; "
        f'{whole} || echo {_MARK} "$r" "$n"; done; done'
    )


def _ranks_by_host(placed: Placement, source: str) -> dict[str, list[int]]:
    """{another host: its ranks whose checkpoints cannot be seen from here}."""
    others = set(network.others(placed.hosts)) if placed.hosts else set()
    found: dict[str, list[int]] = {}
    for (rank, _), host in zip(placed.ranks, placed.hosts):
        if host in others and not os.path.isdir(checkpoints.rank_folder(source, rank)):
            found.setdefault(host, []).append(rank)
    return found


def _lacks(said: str) -> dict[str, str]:
    """{name of a checkpoint: a rank that lacks it}."""
    found: dict[str, str] = {}
    for line in said.splitlines():
        if line.startswith(_MARK + " "):
            _, rank, name = line.split(" ", 2)
            found.setdefault(name, rank)
    return found
