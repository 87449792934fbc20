"""The servers of a rank table, and the ranks of the one on which the command is typed; table_hosts.py has all hosts.

All that commands share which are typed on each server comes from the table:
the ranks of each server, the host of MindSpore's scheduler (the server of rank 0, at the address that is its
server_id) and the scheduler's port (from the table's digest).
"""

from __future__ import annotations

import hashlib
import os

from hccl_tools.check import verdict
from hccl_tools.common.language import tr
from hccl_tools.common.problem import ERROR
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.machine import host
from hccl_tools.table import rank_table
from tools.launch import network, ports, table_fit
from tools.launch.launch_table import LaunchTable
from tools.launch.launchers import Meeting
from tools.launch.placement import Placement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.launch.request import Request


class Server:
    """One server of a table: name is its server_id, ranks are (rank, device) in rank order."""

    def __init__(self, entry: rank_table.Server) -> None:
        self.name = entry.server_id
        self.ranks = sorted((int(device.rank_id), int(device.device_id)) for device in entry.devices)
        self.first = self.ranks[0][0]
        self.addresses = entry.device_ips()

    def words(self) -> str:
        """The server for a message."""
        return tr(
            "{name} has ranks {first} to {ranks}", name=one_line(self.name), first=self.first, ranks=self.ranks[-1][0]
        )


def shared(path: str, ranks: list[tuple[int, int]], data: bytes, **written: Any) -> LaunchTable:
    """The table with the bytes `data`, which must be the same on every host."""
    digest = hashlib.sha256(data).hexdigest()
    remark = tr(
        "rank table: {path}, sha256 {digest} (must be the same on every host)", path=one_line(path), digest=digest[:16]
    )
    return LaunchTable(path=path, ranks=ranks, remarks=(remark,), digest=digest, **written)


# ---- typed on each host --------------------------------------------------------------------------


def one_server(request: Request) -> tuple[Placement, LaunchTable]:
    """This host's ranks, if the numbers that were typed fit the table.  Raises Refusal."""
    path = request.rank_table_file or ""
    data, servers = read_table(path, request.chip)
    world = sum(len(server.ranks) for server in servers)
    if request.rank_size != world:
        parts = "; ".join(server.words() for server in servers[:4]) + ("; ..." if len(servers) > 4 else "")
        text = tr(
            "RANK_SIZE {rank_size}: {path} has {world} ranks ({parts}); type {world}",
            rank_size=request.rank_size,
            path=one_line(path),
            world=world,
            parts=parts,
        )
        raise Refusal(REFUSED, text)
    own = own_server(servers, request.rank_start, path)
    table = shared(os.path.abspath(path), own.ranks, data)
    engine = scheduler(servers, table.digest or "")
    if own is not servers[0]:
        engine["scheduler_node"] = servers[0].name
    else:
        if request.device_target == "CPU":
            check_port(engine["scheduler_host"], int(engine["scheduler_port"]))
        if len(servers) > 1:
            engine["scheduler_is_shared"] = "yes"
    job = [len(server.ranks) for server in servers]
    meeting = None
    if len(servers) > 1:
        meeting = Meeting(
            hosts=[server.name for server in servers],
            number=servers.index(own),
            address=engine["scheduler_host"],
            scheduler_port=int(engine["scheduler_port"]),
            job=table.digest or "",
        )
    return Placement(ranks=own.ranks, world=world, engine=engine, job=job, meeting=meeting), table


def own_server(servers: list[Server], start: int | None, path: str) -> Server:
    """The Server that is this host, whose ranks begin with `start`.  Raises Refusal."""
    ours = [servers[place] for place in host.servers_here([(server.name, server.addresses) for server in servers])]
    if not ours:
        names = ", ".join(one_line(server.name) for server in servers[:8]) + (", ..." if len(servers) > 8 else "")
        raise Refusal(
            REFUSED,
            tr(
                "{path}: this host is not one of its servers ({names}); type the command on those, "
                "or build the table again with hccl_tools/hccl_tools.py --hostfile",
                path=one_line(path),
                names=names,
            ),
        )
    for server in ours:
        if server.first == start:
            return server
    whose = next((one_line(server.name) for server in servers if server.first == start), tr("no server of the table"))
    here = "; ".join(server.words() for server in ours)
    raise Refusal(
        REFUSED,
        tr(
            "RANK_START {start} is the first rank of {whose}; this host is another: {here}; type {first} here",
            start=start,
            whose=whose,
            here=here,
            first=ours[0].first,
        ),
    )


def scheduler(servers: list[Server], digest: str) -> dict[str, str]:
    """Where MindSpore's scheduler is, which follows from the table on every host.  Raises Refusal."""
    first = servers[0].name
    address = network.ipv4(first, tr("server {first}, which has rank 0,", first=one_line(first)))
    if address.startswith("127.") and network.others(server.name for server in servers):
        raise Refusal(
            REFUSED,
            tr("server {first} has rank 0, and the other servers cannot reach that address", first=one_line(first)),
        )
    port = ports.named() or ports.derived(int(digest, 16))
    return {"scheduler_host": address, "scheduler_port": str(port)}


def check_port(address: str, port: int) -> None:
    """The scheduler can listen there, on the host where it will run.  Raises Refusal."""
    fault = ports.fault(port, address)
    if fault:
        text = tr(
            "MindSpore's scheduler cannot listen at {address} port {port}: {fault}",
            address=address,
            port=port,
            fault=fault,
        )
        raise Refusal(REFUSED, tr("{text}; set MS_SCHED_PORT to another one, the same on every host", text=text))


# ---- the table -----------------------------------------------------------------------------------


def read_table(path: str, generation: str | None) -> tuple[bytes, list[Server]]:
    """(bytes, Servers in the order of their ranks) of the good table at `path`.  Raises Refusal."""
    try:
        data = rank_table.read_bytes(path)
    except rank_table.NotReadable as error:
        raise Refusal(REFUSED, tr("the rank table {error}", error=error)) from error
    table, problems = verdict.check_bytes(data, generation)
    # MindSpore numbers servers in dictionary order, whatever the table says: here that is an error.
    wrong = [problem for problem in problems if problem.severity == ERROR or problem.code == "server-order"]
    lines = [problem._replace(severity=ERROR).line(path) for problem in wrong] + table_fit.path_faults(path)
    if lines:
        raise Refusal(REFUSED, *lines)
    servers = servers_of(table)
    if not servers:
        raise Refusal(
            REFUSED, tr("{path} has no server_list; ranks are started from versions 1.0 and 1.2", path=one_line(path))
        )
    return data, servers


def servers_of(table: dict[str, Any]) -> list[Server]:
    """The Servers of a good table, in the order of their ranks."""
    return sorted(map(Server, rank_table.servers(table)), key=lambda server: server.first)
