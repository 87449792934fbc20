"""Queries every host of a hostfile: ssh starts one of our commands once on each, and we collect the answers.

This is how we build a cluster's table and check its network.  All hosts are queried at the same time, see together.py;
this host is queried without ssh.  The command on a host gets the question as one line on its stdin.  It ends when its
stdin ends, because nothing waits for the answer then.  It prints one frame on stdout, with or without a result:

    <<hccl_tools NONCE CRC DATA>>

NONCE distinguishes the frames of this run from all other output of a host.  DATA is base64 of deflated JSON, CRC its
checksum.  Damaged frames are ignored.  The code that runs on the host is in answering.py.
"""

from __future__ import annotations

import os
import re
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence

from hccl_tools.common import how_far, project
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import speaks_chinese, tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import BAD, Refusal
from hccl_tools.common.words import count, one_line
from hccl_tools.hosts import answering, elsewhere, node_sets, ssh, together
from hccl_tools.hosts.ssh import Call
from hccl_tools.machine import host, programs
from hccl_tools.machine.programs import Ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECONDS = 300  # for each host
_MOST_NAMED = 5  # hosts, or sets of them, in one line
# Where the file $1 is, as here, the words of elsewhere.question are left out: a Python less to start.
_USUAL = 'file=$1; shift; test -r "$file" && shift 5; exec "$@"'


class Asker(Record):
    """The hosts to query, and the way to do it.

    logins: {host: [user@]host, as ssh takes it}.
    agent:  the words before the name of a host, see ssh.agent.
    news:   gets words about hosts that are slow.
    """

    logins: Mapping[str, str]
    agent: Sequence[str]
    news: Callable[[str], None]


class Answer(Record):
    """The answer of one host.

    host:    its line of the hostfile, without the user.
    content: its result, as JSON; None if it has none.
    lines:   remarks, or why there is no content.
    version: the words of its elsewhere.Version; empty: it does not state it.
    """

    host: str
    content: Any
    lines: list[str]
    version: list[str] = []


class ClusterError(Refusal):
    """Not every host has answered with a result; one line per problem."""


def collect(asker: Asker, forwarded: Sequence[str], generation: str | None, tell: Callable[[str], None]) -> JsonObject:
    """The merged table of the hosts, checked by merging.merge.

    forwarded: the options of hccl_tools.py that every host gets.  generation: as for verdict.check.
    tell is called with each line that a host reports.
    Raises ClusterError and merging.Refused.
    """
    from hccl_tools.build import merging  # the other commands merge nothing

    answers, lines = ask(asker, ["hccl_tools.py", *forwarded], lambda _name: None)
    lines += _without_address(answers)
    if lines:
        raise ClusterError(BAD, *lines)
    for answer in answers:
        for line in answer.lines:
            tell(f"{answer.host}: {line}")
    return merging.merge([merging.Named(name=answer.host, table=answer.content) for answer in answers], generation)


def ask(
    asker: Asker, words: Sequence[str], question: Callable[[str], object], seconds: int = SECONDS
) -> tuple[list[Answer], list[str]]:
    """(the Answers of the hosts, in their order; lines about hosts without a good answer).

    words: a command in the folder hccl_tools, or the path of another one of ours, with its options.  question: what a
    host is asked, as JSON, made when its turn comes.  seconds: the limit of each host.  Raises ClusterError.
    """
    logins, agent = asker.logins, asker.agent
    own = set(filter(host.owns, logins))
    if len(own) < len(logins) and not programs.find(agent[0]):
        install = tr("install an ssh client: apt install openssh-client (Debian), yum install openssh-clients (others)")
        raise ClusterError(BAD, tr("{program} is not on PATH; {remedy}", program=one_line(agent[0]), remedy=install))
    nonce = os.urandom(8).hex()
    there, here = command(words), elsewhere.own()

    def call(name: str) -> Call:
        asked = {"nonce": nonce, "host": name, "version": here.words(), "question": question(name)}
        sent = answering.packed(asked) + b"\n"
        if name in own:
            return Call(["/bin/sh", "-c", there], sent)
        return Call(ssh.words(agent, logins[name], there, listens=True), sent)

    def news(silent: list[str]) -> None:
        counts = {"number": len(silent), "all": len(logins)}
        asker.news(tr("waiting for {number} of {all} hosts: {names}", **counts, names=names(silent)))

    with how_far.doing(tr("asking {hosts}", hosts=count(len(logins), "host")), len(logins)):
        ended = together.run(logins, call, seconds, news)
    answers, lines, silent, others = [], [], {}, {}
    for name, end in ended.items():
        answer = unframed(end.stdout.encode(), nonce, name)
        if answer and (version := elsewhere.version_of(answer.version)) != here:
            others[name] = version
        elif answer:
            answers.append(answer)
            lines += [f"{name}: {line}" for line in answer.lines if answer.content is None]
        else:
            silent[name] = end
    return answers, lines + elsewhere.differ(others) + _about_silent(silent)


def names(hosts: Sequence[str]) -> str:
    """The first of them, for a message."""
    return node_sets.folded(hosts, _MOST_NAMED)


def command(words: Sequence[str]) -> str:
    """The shell command that queries a host: one of ours, in the project's folder there, with our PATH and language."""
    carried = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    carried["LAUNCH_LANG"] = "zh" if speaks_chinese() else "en"
    program = project.path("hccl_tools", words[0])
    looks = elsewhere.command([sys.executable, program, "--answer", *words[1:]])
    return ssh.command("/", ["/bin/sh", "-c", _USUAL, "sh", program, *looks], carried)


def _about_silent(ended: Mapping[str, Ended]) -> list[str]:
    """Why hosts have not answered: one line for each reason, however many hosts have it."""
    reasons = grouped((_reason(name, end), name) for name, end in ended.items())
    return [tr("{hosts}: no answer; {reason}", hosts=names(hosts), reason=why) for why, hosts in reasons.items()]


def _reason(name: str, ended: Ended) -> str:
    """What ssh printed, with HOST in the place of the host's name, and what to do."""
    said = [line.strip() for line in ended.stderr.splitlines() if line.strip()]
    text = (
        re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w])", "HOST", one_line(said[-1]))
        if said
        else tr("it printed nothing")
    )
    return tr("{said} (exit {status}){hint}", said=text, status=ended.status, hint=_hint(ended))


def _hint(ended: Ended) -> str:
    """What to do, as the end of a message."""
    if ended.status in (1, 2, 78, 126, 127):  # of the shell there, of env, of Python, or of finder.py
        paths = {"project": one_line(project.ROOT), "python": one_line(sys.executable)}
        return tr(
            "; that host needs Python at {python}, as on this host, with this project in it or at {project}", **paths
        )
    return ssh.hint(ended.stderr)


def _without_address(answers: Sequence[Answer]) -> list[str]:
    """Tables of several hosts with an address that only the host itself can reach, one line each."""
    if len(answers) < 2:
        return []
    return [
        tr(
            "{host}: its name does not resolve to an address that other hosts can reach; write its address in the "
            "hostfile",
            host=answer.host,
        )
        for answer in answers
        if answer.content and [each["server_id"] for each in answer.content.get("server_list", ())] == [host.LOOPBACK]
    ]


def unframed(stdout: bytes, nonce: str, name: str) -> Answer | None:
    """The Answer of the host `name` in its output; None if there is none, or if our version there differs."""
    found = re.findall(rb"<<hccl_tools %s ([0-9]{1,10}) ([A-Za-z0-9+/=]+)>>" % nonce.encode(), stdout)
    data = next((data for crc, data in found if zlib.crc32(data) == int(crc)), b"")
    try:
        answer = Answer(host=name, **answering.unpacked(data))
        return answer.replace(lines=[one_line(line) for line in answer.lines])
    except (ValueError, TypeError, zlib.error, RecursionError):
        return None
