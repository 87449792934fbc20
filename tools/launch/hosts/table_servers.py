"""Places the ranks of a launch over the servers of a rank table; the command is typed on each of them.

If it is typed once for all of them, all_servers.py does this.

Everything that these commands share comes from the table: the ranks of each server, the host of MindSpore's scheduler
and the scheduler's port. The host is the server of rank 0, at its host_ip, or at the address that is its server_id. The
port follows from the table's digest.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

from hccl_tools.build import from_legacy
from hccl_tools.check import verdict
from hccl_tools.commands import boundary
from hccl_tools.common.language import marked, tr
from hccl_tools.common.problem import ERROR
from hccl_tools.common.record import Row
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal, misused, refused
from hccl_tools.common.words import clauses, one_line
from hccl_tools.hosts import ask, hostfile, ssh
from hccl_tools.machine import addresses, host
from hccl_tools.table import rank_table
from hccl_tools.table.address import family, is_loopback
from tools.launch.engines import ports
from tools.launch.engines.facts import Cluster, LocalFacts
from tools.launch.engines.placement import Placement
from tools.launch.hosts import network, rank_list_servers
from tools.launch.hosts.launchers import Meeting
from tools.launch.request import Request
from tools.launch.tables import table_fit
from tools.launch.tables.launch_table import LaunchTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_HOW_TO_NAME = marked(
    'write it into the table as "host_ip" next to server_id, the same table on every host, or make the name '
    "known to all hosts (/etc/hosts)"
)


class Server:
    """One server of a table: ranks are (rank, device) in rank order.

    server_id: its name in the table; name: that of its host, for sockets, ssh and mpirun; names: all by which it may
    be known.
    """

    def __init__(self, entry: rank_table.Server) -> None:
        self.server_id = entry.server_id
        self.name = entry.host
        self.names = entry.names
        self.ranks = sorted((int(device.rank_id), int(device.device_id)) for device in entry.devices)
        self.first = self.ranks[0][0]
        self.addresses = entry.device_ips()

    def label(self) -> str:
        """The server for a message: its server_id, and its host where that is another name."""
        name, host_name = one_line(self.server_id), one_line(self.name)
        return name if name == host_name else f"{name} ({host_name})"

    def words(self) -> str:
        """The server and its ranks, for a message."""
        last = self.ranks[-1][0]
        return tr("{name} has ranks {first} to {last}", name=self.label(), first=self.first, last=last)

    def address(self, what: str) -> str:
        """Its address.  Raises Refusal, whose text begins with `what`."""
        known = [name for name in (self.name, *self.names) if family(name) is not None]
        return network.address_of(known[0] if known else self.name, what, tr(_HOW_TO_NAME))


class Table(Row):
    """A table that was read: its bytes, its servers in the order of their ranks, and whether it was a legacy one."""

    data: bytes
    servers: list[Server]
    is_rewritten: bool


def shared(path: str, ranks: list[tuple[int, int]], data: bytes, **written: Any) -> LaunchTable:
    """The table with the bytes `data`, which must be the same on every host."""
    digest = hashlib.sha256(data).hexdigest()
    remark = tr("rank table: {about} (must be the same on every host)", about=f"{one_line(path)}, sha256 {digest[:16]}")
    return LaunchTable(path=path, ranks=ranks, remarks=(remark,), digest=digest, **written)


# ---- typed on each host --------------------------------------------------------------------------


def place(request: Request, run_dir: str) -> tuple[Placement, LaunchTable]:
    """This host's ranks, if the numbers that were typed fit the table.  Raises Refusal."""
    path = request.rank_table_file or ""
    if request.exclude is not None:
        raise misused(
            "--exclude: the rank table defines the devices; build one without them, such as by "
            "hccl_tools/hccl_tools.py --device_num 0,1,2, or leave out hosts with --hostfile"
        )
    hosts = rank_list_servers.given(request.table_hosts) if request.table_hosts else None
    read = read_table(path, request.chip, hosts)
    servers = read.servers
    world = sum(len(server.ranks) for server in servers)
    if request.rank_size not in (None, world):
        parts = clauses(*(server.words() for server in servers[:4]), *(["..."] if len(servers) > 4 else []))
        text = tr("{path} has {world} ranks ({parts}); type {world}", path=one_line(path), world=world, parts=parts)
        raise Refusal(REFUSED, f"RANK_SIZE {request.rank_size}: {text}")
    own = own_server(servers, request.rank_start, path)
    table = shared(os.path.abspath(path), own.ranks, read.data)
    if read.is_rewritten:
        table = rewritten(table, path, os.path.join(run_dir, from_legacy.NAME), read.data)
    cluster = scheduler(servers, table.digest or "")
    if own is not servers[0]:
        cluster = cluster.replace(scheduler_node=servers[0].name)
    else:
        if request.device_target == "CPU":
            check_port(cluster.scheduler_host, cluster.scheduler_port)
        cluster = cluster.replace(scheduler_is_shared=len(servers) > 1)
    job = [len(server.ranks) for server in servers]
    meeting = None
    if len(servers) > 1:
        meeting = Meeting(
            hosts=[server.name for server in servers],
            number=servers.index(own),
            address=cluster.scheduler_host,
            scheduler_port=cluster.scheduler_port,
            job=table.digest or "",
        )
    placed = Placement(ranks=own.ranks, world=world, engine=LocalFacts(), cluster=cluster, job=job, meeting=meeting)
    return placed, table


def rewritten(table: LaunchTable, path: str, written: str, data: bytes) -> LaunchTable:
    """Converts the `table` of a legacy format at `path` to the file `written`.  Raises Refusal."""
    if faults := table_fit.path_faults(written):
        raise Refusal(REFUSED, *faults)
    return table.replace(
        path=written,
        text=data.decode("utf-8"),
        remarks=(*table.remarks, from_legacy.remark(path, written)),
        setup=table_fit.command_to_rewrite(path, written),
    )


def own_server(servers: list[Server], start: int | None, path: str) -> Server:
    """The Server that is this host, whose ranks begin with `start`.  Raises Refusal."""
    ours = [servers[place] for place in host.servers_here([(server.names, server.addresses) for server in servers])]
    if not ours and len(servers) == 1 and host.may_be_here(servers[0].names, servers[0].addresses):
        ours = servers
    if not ours:
        names = ", ".join(server.label() for server in servers[:8]) + (", ..." if len(servers) > 8 else "")
        text = tr(
            "this host is not one of its servers ({names}); type the command on those, or build the table again with "
            "hccl_tools/hccl_tools.py --hostfile",
            names=names,
        )
        raise Refusal(REFUSED, f"{one_line(path)}: {text}")
    for server in ours:
        if server.first == start or (start is None and len(ours) == 1):
            return server
    if start is None:
        parts = clauses(*(server.words() for server in ours[:4]), *(["..."] if len(ours) > 4 else []))
        text = tr("{path}: several of its servers are this host ({parts})", path=one_line(path), parts=parts)
        remedy = tr("bash scripts/run_cluster.sh takes RANK_START, the first rank of the server that is meant")
        raise Refusal(REFUSED, clauses(text, remedy))
    whose = next((server.label() for server in servers if server.first == start), None)
    if whose is None:
        text = tr("RANK_START {start} is not the first rank of any server in the table", start=start)
    else:
        text = tr("RANK_START {start} is the first rank of {server}", start=start, server=whose)
    here = clauses(*(server.words() for server in ours))
    remedy = tr("this host is a different server: {here}; type {first} here", here=here, first=ours[0].first)
    raise Refusal(REFUSED, clauses(text, remedy))


def scheduler(servers: list[Server], digest: str) -> Cluster:
    """The host of MindSpore's scheduler, which follows from the table on every host.  Raises Refusal."""
    port = ports.named() or ports.derived(int(digest, 16))
    first = servers[0]
    if len(servers) == 1 and family(first.name) is None:  # the name of a job, say: nobody else needs its address
        return Cluster(scheduler_host=addresses.of([first.name])[first.name] or host.LOOPBACK, scheduler_port=port)
    address = first.address(tr("server {name}, which has rank 0,", name=first.label()))
    if is_loopback(address) and network.others(server.name for server in servers):
        raise refused("server {name} has rank 0, and the other servers cannot reach that address", name=first.label())
    return Cluster(scheduler_host=address, scheduler_port=port)


def check_port(address: str, port: int) -> None:
    """The scheduler can listen there, on the host where it will run.  Raises Refusal."""
    fault = ports.fault(port, address)
    if fault:
        text = tr("MindSpore's scheduler cannot listen at {address} port {port}", address=address, port=port)
        remedy = tr("set MS_SCHED_PORT to another one, the same on every host")
        raise Refusal(REFUSED, clauses(f"{text}: {fault}", remedy))


# ---- the table -----------------------------------------------------------------------------------


def read_table(
    path: str,
    generation: str | None,
    hosts: Sequence[rank_list_servers.Slots] | None = None,
    option: str = rank_list_servers.OPTION,
) -> Table:
    """The good table at `path`; one of a legacy format as version 1.0.  Raises Refusal.

    hosts: those of a table of version 2.0, which the option has named.
    """
    try:
        data = rank_table.read_bytes(path)
    except rank_table.NotReadable as error:
        raise refused("the rank table {problem}", problem=error) from error
    table, problems = verdict.check_bytes(data, generation)
    legacy = from_legacy.converted(table)
    if legacy:  # the generation's rules have looked at it as it was
        table, problems = legacy, [*problems, *verdict.check(legacy)]
        data = rank_table.dump(legacy).encode("utf-8")
    # MindSpore numbers servers in dictionary order, whatever the table says: here that is an error.
    wrong = [problem for problem in problems if problem.severity == ERROR or problem.code == "server-order"]
    lines = [problem._replace(severity=ERROR).line(path) for problem in wrong]
    lines += table_fit.path_faults(path) if table is not None else []
    if lines:
        raise Refusal(REFUSED, *lines)
    if rank_list_servers.is_list(table):
        if hosts is None:
            raise rank_list_servers.needed(path)
        return Table(data, list(map(Server, rank_list_servers.of(table, hosts, path, option))), False)
    if hosts is not None and option == rank_list_servers.OPTION:
        text = tr("{path} says on which hosts its ranks are; leave the option out", path=one_line(path))
        raise Refusal(USAGE, f"{option}: {text}")
    servers = servers_of(table)
    if not servers:
        raise Refusal(REFUSED, table_fit.without_servers(path))
    return Table(data, servers, legacy is not None)


def servers_of(table: dict[str, Any]) -> list[Server]:
    """The Servers of a good table, in the order of their ranks."""
    return sorted(map(Server, rank_table.servers(table)), key=lambda server: server.first)


def asker(request: Request) -> ask.Asker:
    """Asks the hosts of the hostfile.  Raises HostfileError and Refusal."""
    return ask.Asker(
        logins=hostfile.logins(request.hostfile or ""),
        agent=ssh.agent(request.ssh),
        news=lambda line: boundary.say(request.script, line),
    )


def distribute(request: Request, table: LaunchTable, servers: Sequence[str]) -> None:
    """Puts the table at its path on the hosts of the `servers`.  Raises Refusal."""
    question = [table.path, table.text or ""]
    try:
        all_hosts = asker(request)
        found = addresses.of([*all_hosts.logins, *servers])
        wanted = {found[name] or name for name in servers}
        some = {name: login for name, login in all_hosts.logins.items() if (found[name] or name) in wanted}
        answers, lines = ask.ask(all_hosts.replace(logins=some), ["commands/place_table.py"], lambda _name: question)
    except hostfile.HostfileError as error:
        raise Refusal(REFUSED, f"--hostfile {error}") from error
    except ask.ClusterError as error:
        raise Refusal(REFUSED, *error.lines) from error
    lines += [
        tr("{host}: there is another table at {path}; remove it", host=answer.host, path=table.path)
        for answer in answers
        if answer.content not in (None, table.digest)
    ]
    if lines:
        raise Refusal(REFUSED, *lines)
