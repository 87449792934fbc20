"""Queries all hosts with one command that starts ours on each, as srun does; the answers arrive mixed on its stdout.

Every host gets the same text on stdin: the common part of the questions, and the individual part of each.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from hccl_tools.common.documents import JsonObject
from hccl_tools.hosts import answering, ask, elsewhere, together
from hccl_tools.hosts.ask import Answer
from hccl_tools.hosts.running import Call
from hccl_tools.machine.programs import Ended

_EACH, _MOST = 1 << 17, 1 << 27  # bytes of output that are kept: for each host, and of all


def run(
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
    common, own = _split(questions)
    asked = {"nonce": nonce, "variable": variable, "version": here.words(), "common": common, "own": own}
    most = min(_MOST, _EACH * len(questions))
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


def _split(questions: Mapping[str, JsonObject]) -> tuple[JsonObject, dict[str, JsonObject]]:
    """(what is the same in all of them, {host: the rest})."""
    first = next(iter(questions.values()), {})
    common = {
        key: value
        for key, value in first.items()
        if all(key in each and each[key] == value for each in questions.values())
    }
    own = {name: {key: value for key, value in each.items() if key not in common} for name, each in questions.items()}
    return common, own
