"""Queries the nodes of a Slurm allocation as the hosts of a check, all of them in one step of srun."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from hccl_tools.common import project
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from hccl_tools.hosts import answering, ask, elsewhere, node_sets, together
from hccl_tools.hosts.ask import Answer
from hccl_tools.hosts.ssh import Call
from hccl_tools.machine import programs
from hccl_tools.machine.programs import Ended
from tools.launch.engines import slurm
from tools.launch.hosts import host_check
from tools.preflight import probe
from tools.preflight.reach import Way

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_START = 20  # seconds for Slurm to start a step of a few nodes
_MOST_NAMED = 8  # nodes, or sets of them, in one line
_VARIABLE = "SLURMD_NODENAME"
# As srun names a node on which it could not start the step.
_FAILED = re.compile(r"Task launch for \S+ failed on node ([A-Za-z0-9_.-]+): (.*)")
_MOST_EACH, _MOST = 1 << 17, 1 << 27  # bytes of output that are kept: for each host, and of all


def is_allocation() -> bool:
    """Whether this command runs inside a Slurm job."""
    return "SLURM_JOB_ID" in os.environ and programs.on_path("srun")


def over_srun(nodes: Sequence[str], slots: Mapping[str, int]) -> Way:
    """The nodes, by srun.  Nodes that Slurm has lost are named, and the others asked all the same."""

    def ask_all(question: Callable[[str], Any]) -> tuple[list[Answer], list[str]]:
        lost = slurm.lost_nodes(list(nodes))
        up = [name for name in nodes if name not in lost]
        lines = [tr("{host}: no answer; {reason}", host=name, reason=why) for name, why in lost.items()]
        answers, more = _asked(up, question) if up else ([], [])
        return answers, [*lines, *more]

    return Way(hosts=list(nodes), slots=slots, ask=ask_all, slurm=True)


def _asked(nodes: list[str], question: Callable[[str], Any]) -> tuple[list[Answer], list[str]]:
    """(answers, lines).  Where one node stops the step for all, the others are asked once more without it."""
    answers, lines, silent, said = _step(nodes, question)
    failed = {name: one_line(why) for name, why in _FAILED.findall(said) if name in silent}
    left = [name for name in silent if name not in failed]
    if failed and left:
        more, others, left, said = _step(left, question)
        answers, lines = [*answers, *more], [*lines, *others]
    lines += [tr("{host}: no answer; {reason}", host=name, reason=why) for name, why in failed.items()]
    if left:
        text = tr(
            "{nodes}: no answer by srun: {reason}; try: srun --overlap -w {node} true",
            nodes=node_sets.folded(left, _MOST_NAMED),
            reason=one_line(said),
            node=one_line(left[0]),
        )
        lines.append(text)
    return answers, lines


def _step(nodes: list[str], question: Callable[[str], Any]) -> tuple[list[Answer], list[str], list[str], str]:
    """(answers, lines, nodes without one, what srun said) of one step."""
    words = [project.path("tools", "preflight", "probe.py")]
    starter = host_check.step(nodes, "all")
    questions = {name: question(name) for name in nodes}
    seconds = probe.SECONDS + _START + len(nodes) // 16
    answers, lines, silent, ended = run_step(starter, _VARIABLE, words, questions, seconds)
    return answers, lines, silent, ended.stderr if _FAILED.search(ended.stderr) else programs.said(ended)


def run_step(
    starter: Sequence[str],
    variable: str,
    words: Sequence[str],
    questions: Mapping[str, JsonObject],
    seconds: float,
) -> tuple[list[Answer], list[str], list[str], Ended]:
    """(the Answers of the hosts, lines about other versions, hosts without an answer, how the command has ended).

    starter: the words before a command that runs on every host; variable: has the name of the host there.
    words: as for ask.ask.  questions: {host: what it is asked}.
    """
    nonce, here = os.urandom(8).hex(), elsewhere.own()
    common, own = _parts_of(questions)
    asked = {"nonce": nonce, "variable": variable, "version": here.words(), "common": common, "own": own}
    most = min(_MOST, _MOST_EACH * len(questions))
    call = Call([*starter, "/bin/sh", "-c", ask.command(words)], answering.packed(asked) + b"\n", most)
    ended = together.run([variable], lambda _: call, seconds)[variable]
    frames = answering.joined_pieces(ended.stdout.encode(), nonce)
    found = {name: ask.unframed(frames[name], nonce, name) for name in questions if name in frames}
    versions = {name: elsewhere.version_of(each.version) for name, each in found.items() if each}
    others = {name: version for name, version in versions.items() if version != here}
    answers = [each for name, each in found.items() if each and name not in others]
    lines = [f"{each.host}: {line}" for each in answers for line in each.lines if each.content is None]
    silent = [name for name in questions if not found.get(name)]
    return answers, lines + elsewhere.differ(others), silent, ended


def _parts_of(questions: Mapping[str, JsonObject]) -> tuple[JsonObject, dict[str, JsonObject]]:
    """(what is the same in all of them, {host: the rest})."""
    first = next(iter(questions.values()), {})
    common = {
        key: value
        for key, value in first.items()
        if all(key in each and each[key] == value for each in questions.values())
    }
    own = {name: {key: value for key, value in each.items() if key not in common} for name, each in questions.items()}
    return common, own
