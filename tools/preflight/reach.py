"""The hosts of a check, and the ways to reach them: over ssh those of a list or of a rank table; else only this host.

A way is a function that queries all hosts at once. by_srun.py has the one for Slurm's srun, pods/hub.py the one for
pods.  A host is asked about its own server of the rank table.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable, Mapping, Sequence

from hccl_tools.check import verdict
from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.problem import errors
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal, misused
from hccl_tools.common.words import some
from hccl_tools.hosts import ask, cards_collect, hostfile, ssh
from hccl_tools.hosts.ask import Answer, Asker
from hccl_tools.machine import addresses
from hccl_tools.table import rank_table
from tools.launch.hosts import rank_list_servers
from tools.preflight import probe
from tools.preflight.difference import BLOCKS, Difference, Group
from tools.preflight.facts.files import DIGITS
from tools.preflight.question import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from hccl_tools.table.rank_table import Server

    Ask = Callable[[Callable[[str], object]], tuple[list[Answer], list[str]]]

_POD = "KUBERNETES_SERVICE_HOST"
_OF_JOBS = (
    "MS_SCHED_HOST",
    "JOB_COMPLETION_INDEX",
    "VC_TASK_INDEX",
    "VK_TASK_INDEX",
    "MA_NUM_HOSTS",
    "RANK_TABLE_FILE",
)
_MOST_NAMED = 5


class Way(Record):
    """The hosts, and the function that queries them.

    slots: {host: its ranks}, as far as a list states it.
    logins: {host: [user@]host}, where they are reached over ssh.
    addresses: {host: its address}, where the hosts have told it; otherwise their names are looked up.
    ask:   takes a function that makes the question of a host; (answers, lines about hosts without one).
    """

    hosts: Sequence[str]
    slots: Mapping[str, int]
    ask: Ask
    logins: Mapping[str, str] = {}
    addresses: Mapping[str, str] | None = None
    slurm: bool = False


def over_ssh(
    logins: Mapping[str, str],
    slots: Mapping[str, int],
    command: str | None,
    say: Callable[[str], None],
    version: str | None = None,
) -> Way:
    """The hosts {name: [user@]host}; this host among them is asked without ssh.  Raises Refusal.

    command: as --ssh.  version: of the Open MPI that starts the ranks, see ssh.agent.
    """
    asker = Asker(logins=logins, agent=ssh.agent(command, version), news=say)

    def ask_all(question: Callable[[str], object]) -> tuple[list[Answer], list[str]]:
        try:
            return ask.ask(asker, [project.path("tools", "preflight", "probe.py")], question, probe.SECONDS)
        except ask.ClusterError as error:
            raise Refusal(REFUSED, *error.lines) from error

    return Way(hosts=list(logins), slots=slots, ask=ask_all, logins=logins)


def listed(hosts: Sequence[hostfile.Host]) -> tuple[dict[str, str], dict[str, int]]:
    """({host: how ssh takes it}, {host: its slots}) of a list."""
    logins = {host.name: host.login for host in hosts}
    return logins, {host.name: host.slots for host in hosts if host.slots is not None and not host.spare}


def words(text: str) -> list[hostfile.Host]:
    """The hosts of -H.  Raises Refusal."""
    try:
        return hostfile.parse_words(text)
    except ValueError as fault:
        raise Refusal(USAGE, f"-H: {fault}") from fault


def of_table(table: Table) -> dict[str, str]:
    """{name: itself} of the servers of a rank table.  Raises Refusal if one cannot be reached so."""
    names = [server.host for server in table.servers]
    for name in names:
        if fault := hostfile.fault_of_host(name):
            raise misused(
                "{fault}; the rank table does not say how this server is reached: name the hosts by -H or --hostfile",
                fault=fault,
            )
    return {name: name for name in names}


def this_host() -> dict[str, str]:
    """{its name: itself}"""
    name = socket.gethostname()
    return {name: name}


def is_pod_of_job() -> bool:
    """Whether this is one of the pods of a job: no ssh leads to the others."""
    return _POD in os.environ and any(map(os.environ.get, _OF_JOBS))


class Table(Record):
    """A rank table: its servers, and the beginning of its file's SHA-256."""

    path: str
    servers: Sequence[Server]
    digest: str

    @property
    def first(self) -> str:
        """The server of rank 0, as other hosts reach it."""
        owners = (server for server in self.servers for device in server.devices if device.rank_id == "0")
        return next(owners, self.servers[0]).host


def read_table(path: str, hosts: Sequence[rank_list_servers.Slots] = ()) -> Table:
    """The table at `path`, or of - on stdin.  Raises Refusal if it cannot be read or is bad.

    hosts: those of the job, as far as they are listed: a table of version 2.0 does not name them.
    """
    data = rank_table.bytes_of(path)
    try:
        servers = _listed(data, rank_table.shown_name(path), hosts) or cards_collect.servers_in(
            data, rank_table.shown_name(path)
        )
    except Refusal as error:
        raise Refusal(REFUSED, *error.lines) from error
    return Table(path=path, servers=servers, digest=hashlib.sha256(data).hexdigest()[:DIGITS])


def _listed(data: bytes, shown: str, hosts: Sequence[rank_list_servers.Slots]) -> Sequence[Server]:
    """The servers of a good table of version 2.0, which are these hosts; none of another one.  Raises Refusal."""
    table, problems = verdict.check_bytes(data)
    if not rank_list_servers.is_list(table) or errors(problems):
        return ()
    if not hosts:
        raise rank_list_servers.needed(shown, "-H")
    found = rank_list_servers.of(table, hosts, shown, "-H")
    known = addresses.of([server.server_id for server in found])
    names = ([known[server.server_id] or server.server_id, *server.names] for server in found)
    return [server._replace(names=list(dict.fromkeys(each))) for server, each in zip(found, names)]


def homes(table: Table, hosts: Sequence[str]) -> dict[str, Server]:
    """{host: its server}, by the names and the addresses of the hosts."""
    by_name = {name: server for server in reversed(table.servers) for name in server.names}
    found = {name: by_name[name] for name in hosts if name in by_name}
    unknown = addresses.of([name for name in hosts if name not in found])
    found.update({name: by_name[address] for name, address in unknown.items() if address in by_name})
    return found


def place_of(server: Server) -> Place:
    """The part of a question that is about the server."""
    return Place(names=list(server.names), devices={str(device): ip for device, ip in server.device_ips().items()})


def unmatched(table: Table, hosts: Sequence[str], found: Mapping[str, Server]) -> Iterator[Difference]:
    """Hosts that the table does not have, and servers of it that are not among the hosts."""
    foreign = [name for name in hosts if name not in found]
    if foreign:
        text = tr("the rank table does not have this host")
        remedy = tr("build the table again, or take them out of the list of hosts")
        yield Difference(key="table", level=BLOCKS, groups=[Group(hosts=foreign, text=text)], remedy=remedy)
    taken = {server.pointer for server in found.values()}
    missing = [server.host for server in table.servers if server.pointer not in taken]
    if missing:
        text = tr("this server of the rank table is not among the hosts")
        remedy = tr("add to the list of hosts: {hosts}", hosts=some(missing, _MOST_NAMED))
        yield Difference(key="table", level=BLOCKS, groups=[Group(hosts=missing, text=text)], remedy=remedy)
