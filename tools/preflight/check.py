"""Performs one check: makes the questions, has all hosts queried, and compares their answers."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.machine import cann
from tools.launch.engines import hccl_ports
from tools.preflight import answers, compare, connections, links, rank_table
from tools.preflight.difference import LEVELS
from tools.preflight.facts import environment
from tools.preflight.program_files import Program
from tools.preflight.question import Question
from tools.preflight.words import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from hccl_tools.hosts.ask import Answer
    from tools.preflight.difference import Answer as Taken
    from tools.preflight.rank_table import Table
    from tools.preflight.reach import Way

_SALT = 16  # bytes


class Job(Record):
    """The user's settings for the check: see Question for the fields of the same names."""

    log_dir: str = "logs"
    data: str = ""
    program: Program = Program({}, [])
    devices: Sequence[int] | None = None
    ports: Sequence[int] = ()
    hccl: int | None = None  # None: as the environment here says
    hccn_conf: str = "/etc/hccn.conf"
    table: Table | None = None
    quick: bool = False


def run(way: Way, job: Job) -> Found:
    """Queries the hosts and reports what was found.  Raises Refusal."""
    homes = rank_table.homes(job.table, way.hosts) if job.table else {}
    common = _common(way, job)

    planned = {}
    if not job.quick:
        planned = connections.plan(way.hosts, common.first, job.ports, common.hccl, told=way.addresses)

    def question(name: str) -> object:
        server = homes.get(name)
        return common.replace(
            host=name,
            slots=way.slots.get(name),
            place=rank_table.place(server) if server else None,
            links=links.question(planned, name, common.salt) if name in planned else None,
        ).as_json()

    answered, lines = way.ask(question)
    taken, more = _taken(answered)
    taken = answers.complete(taken, job.program.files)
    found = [*compare.compare(taken), *connections.judge(taken, planned)]
    found.sort(key=lambda each: LEVELS.index(each.level))
    if job.table:
        found = [*rank_table.unmatched(job.table, way.hosts, homes), *found]
    silent = [name for name in way.hosts if name not in taken]
    facts = {name: each.facts for name, each in taken.items()}
    return Found(hosts=way.hosts, differences=found, silent=silent, lines=[*lines, *more], facts=facts)


def _common(way: Way, job: Job) -> Question:
    """What is the same in the questions of all hosts."""
    table = job.table
    return Question(
        host="",
        hosts=len(way.hosts),
        first=table.first if table else way.hosts[0],
        first_at=(way.addresses or {}).get(way.hosts[0], ""),
        folder=os.getcwd(),
        log_dir=os.path.abspath(job.log_dir),
        data=os.path.abspath(job.data) if job.data else "",
        files=job.program.files,
        modules=job.program.modules,
        set_here=environment.watched(os.environ),
        cann=cann.active(),
        devices=job.devices,
        ports=job.ports,
        hccl=hccl_ports.base() if job.hccl is None else job.hccl,
        hccn_conf=os.path.abspath(job.hccn_conf),
        table=(os.path.abspath(table.path), table.digest) if table and table.path != "-" else None,
        salt=os.urandom(_SALT).hex(),
        quick=job.quick,
    )


def _taken(answered: Sequence[Answer]) -> tuple[dict[str, Taken], list[str]]:
    """({host: its Answer}, lines about answers that have another form than ours)."""
    found: dict[str, Taken] = {}
    lines = []
    for each in answered:
        answer = answers.take(each.content)
        if answer:
            found[each.host] = answer
        elif not each.lines:
            text = tr(
                "{host}: its answer cannot be read; install the same version of this project there", host=each.host
            )
            lines.append(text)
    return found, lines
