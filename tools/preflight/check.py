"""Performs one check: makes the questions, has all hosts queried, and compares their answers and their links."""

from __future__ import annotations

import collections
import contextlib
import os
import threading

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.machine import addresses, driver, host
from hccl_tools.table.address import is_loopback
from tools.launch.engines import hccl_ports
from tools.launch.hosts import network
from tools.preflight import compare, links, reach
from tools.preflight.difference import LEVELS, Difference, Group
from tools.preflight.facts import files
from tools.preflight.links.pairs import Ports
from tools.preflight.program_files import Program
from tools.preflight.question import Question
from tools.preflight.words import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.hosts.ask import Answer
    from tools.preflight.difference import Answer as Taken
    from tools.preflight.links.pairs import Plan
    from tools.preflight.reach import Table, Way

_SALT = 16  # bytes
_AT_ONCE, _LOOK_UP = 32, 3.0  # look-ups of names, and the seconds for all of them


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
    homes = reach.homes(job.table, way.hosts) if job.table else {}
    common = _common(way, job)
    planned = {}
    if not job.quick:
        planned = plan_links(way.hosts, common.first, job.ports, common.hccl, told=way.addresses)

    def question(name: str) -> object:
        server = homes.get(name)
        return common.replace(
            host=name,
            slots=way.slots.get(name),
            place=reach.place_of(server) if server else None,
            links=links.question(planned, name, common.salt) if name in planned else None,
        ).as_json()

    answered, lines = way.ask(question)
    taken, more = _taken(answered)
    taken = compare.completed(taken, job.program.files)
    found = [*compare.compare(taken), *judge_links(taken, planned)]
    found.sort(key=lambda each: LEVELS.index(each.level))
    if job.table:
        found = [*reach.unmatched(job.table, way.hosts, homes), *found]
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
        set_here=files.watched(os.environ),
        cann=driver.active_cann(),
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
        answer = compare.taken(each.content)
        if answer:
            found[each.host] = answer
        elif not each.lines:
            text = tr(
                "{host}: its answer cannot be read; install the same version of this project there", host=each.host
            )
            lines.append(text)
    return found, lines


def plan_links(
    hosts: Sequence[str],
    first: str,
    scheduler: Sequence[int],
    base: int = hccl_ports.BASE,
    told: Mapping[str, str] | None = None,
) -> Plan:
    """Who connects to whom; empty for a single host.  A name that only ssh knows has no address, and no links.

    first: the host of MindSpore's scheduler, which listens at the ports `scheduler`; base: the first port of HCCL.
    told: the addresses that hosts have told; None: the names are looked up.
    """
    found = dict(told) if told is not None else _reached(hosts)
    known = [name for name in hosts if name in found]
    if len(known) < 2:
        return {}
    wanted = Ports(ours=(base, base + hccl_ports.LAST_DEVICE), scheduler=tuple(scheduler))
    return links.plan(known, found, wanted, first if first in found else None)


def _reached(hosts: Sequence[str]) -> dict[str, str]:
    """{host: the address of its name}; of this host, the one at which the others reach it."""
    found = {name: address for name, address in _looked_up(hosts).items() if address}
    here = [name for name, address in found.items() if is_loopback(address) and host.owns(name)]
    others = [name for name in found if name not in here]
    if here and others:
        found.update(dict.fromkeys(here, network.own_address_towards(others)))
    return found


def _looked_up(hosts: Sequence[str]) -> dict[str, str | None]:
    """{host: its address} of those known in time: a name server without an answer must not delay a check."""
    found: dict[str, str | None] = {}
    left, done = collections.deque(hosts), threading.Event()

    def look_up() -> None:
        while left and not done.is_set():
            with contextlib.suppress(IndexError):  # another thread has taken the last one
                found.update(addresses.of([left.popleft()]))
        if len(found) == len(hosts):
            done.set()

    for _ in range(min(_AT_ONCE, len(hosts))):
        threading.Thread(target=look_up, daemon=True).start()
    done.wait(_LOOK_UP)
    done.set()
    return dict(found)


def judge_links(answers: Mapping[str, Taken], planned: Plan) -> list[Difference]:
    """Finds what is wrong with the links between hosts that have answered."""
    told = {name: answer.links for name, answer in answers.items() if answer.links is not None}
    return [
        Difference(
            key=f"link:{each.key}",
            level=each.level,
            groups=[Group(hosts=each.hosts, text=each.text)],
            remedy=each.remedy,
        )
        for each in links.judge(told, planned)
    ]
