"""The ranks of a launch over the servers of a rank table; the command is typed on each of them, or once for all.

All that commands share which are typed on each server comes from the table:
the ranks of each server, the host of MindSpore's scheduler (the server of rank 0, at the address that is its
server_id) and the scheduler's port (from the table's digest).
"""

from __future__ import annotations

import base64
import hashlib
import os
import zlib

from hccl_tools.build import merging
from hccl_tools.check import verdict
from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.problem import ERROR
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.hosts import ask, hostfile
from hccl_tools.machine import host
from hccl_tools.machine.programs import path_word
from hccl_tools.table import rank_table
from tools.launch import network, open_mpi, ports, table_fit, trainer_command
from tools.launch.launch_table import LaunchTable
from tools.launch.launchers import Meeting
from tools.launch.placement import Placement, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.launch.request import Request


_LONGEST_WORD = (1 << 17) - 1  # bytes of one word of a command line, which is Linux's limit


class Server:
    """One server of a table: name is its server_id, ranks are (rank, device) in rank order."""

    def __init__(self, entry: rank_table.Server) -> None:
        self.name = entry.server_id
        self.ranks = sorted((int(device.rank_id), int(device.device_id)) for device in entry.devices)
        self.first = self.ranks[0][0]
        self.addresses = entry.device_ips()

    def words(self) -> str:
        """The server for a message."""
        last = self.ranks[-1][0]
        return tr("{name} has ranks {first} to {last}", name=one_line(self.name), first=self.first, last=last)


def place(request: Request, run_dir: str) -> tuple[Placement, LaunchTable]:
    """The ranks that this command starts, and the table that they come from.  Raises Refusal."""
    if request.placement == "server":
        return one_server(request)
    return all_servers(request, run_dir)


def shared(path: str, ranks: list[tuple[int, int]], data: bytes, **written: Any) -> LaunchTable:
    """The table with the bytes `data`, which must be the same on every host."""
    digest = hashlib.sha256(data).hexdigest()
    remark = tr("rank table: {about} (must be the same on every host)", about=f"{one_line(path)}, sha256 {digest[:16]}")
    return LaunchTable(path=path, ranks=ranks, remarks=(remark,), digest=digest, **written)


# ---- typed on each host --------------------------------------------------------------------------


def one_server(request: Request) -> tuple[Placement, LaunchTable]:
    """This host's ranks, if the numbers that were typed fit the table.  Raises Refusal."""
    path = request.rank_table_file or ""
    data, servers = read_table(path, request.chip)
    world = sum(len(server.ranks) for server in servers)
    if request.rank_size != world:
        parts = "; ".join(server.words() for server in servers[:4]) + ("; ..." if len(servers) > 4 else "")
        text = tr("{path} has {world} ranks ({parts}); type {world}", path=one_line(path), world=world, parts=parts)
        raise Refusal(REFUSED, f"RANK_SIZE {request.rank_size}: {text}")
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
        text = tr(
            "this host is not one of its servers ({names}); type the command on those, or build the table again with "
            "hccl_tools/hccl_tools.py --hostfile",
            names=names,
        )
        raise Refusal(REFUSED, f"{one_line(path)}: {text}")
    for server in ours:
        if server.first == start:
            return server
    whose = next((server.name for server in servers if server.first == start), None)
    if whose is None:
        text = tr("RANK_START {start} is the first rank of no server of the table", start=start)
    else:
        text = tr("RANK_START {start} is the first rank of {server}", start=start, server=one_line(whose))
    here = "; ".join(server.words() for server in ours)
    remedy = tr("this host is another: {here}; type {first} here", here=here, first=ours[0].first)
    raise Refusal(REFUSED, f"{text}; {remedy}")


def scheduler(servers: list[Server], digest: str) -> dict[str, str]:
    """Where MindSpore's scheduler is, which follows from the table on every host.  Raises Refusal."""
    first = servers[0].name
    address = network.ipv4(first, tr("server {name}, which has rank 0,", name=one_line(first)))
    if address.startswith("127.") and network.others(server.name for server in servers):
        text = tr("server {name} has rank 0, and the other servers cannot reach that address", name=one_line(first))
        raise Refusal(REFUSED, text)
    port = ports.named() or ports.derived(int(digest, 16))
    return {"scheduler_host": address, "scheduler_port": str(port)}


def check_port(address: str, port: int) -> None:
    """The scheduler can listen there, on the host where it will run.  Raises Refusal."""
    fault = ports.fault(port, address)
    if fault:
        text = tr("MindSpore's scheduler cannot listen at {address} port {port}", address=address, port=port)
        remedy = tr("set MS_SCHED_PORT to another one, the same on every host")
        raise Refusal(REFUSED, f"{text}: {fault}; {remedy}")


# ---- the table -----------------------------------------------------------------------------------


def read_table(path: str, generation: str | None) -> tuple[bytes, list[Server]]:
    """(bytes, Servers in the order of their ranks) of the good table at `path`.  Raises Refusal."""
    try:
        data = rank_table.read_bytes(path)
    except rank_table.NotReadable as error:
        raise Refusal(REFUSED, tr("the rank table {problem}", problem=error)) from error
    table, problems = verdict.check_bytes(data, generation)
    # MindSpore numbers servers in dictionary order, whatever the table says: here that is an error.
    wrong = [problem for problem in problems if problem.severity == ERROR or problem.code == "server-order"]
    lines = [problem._replace(severity=ERROR).line(path) for problem in wrong] + table_fit.path_faults(path)
    if lines:
        raise Refusal(REFUSED, *lines)
    servers = servers_of(table)
    if not servers:
        text = tr("{path} has no server_list; ranks are started from versions 1.0 and 1.2", path=one_line(path))
        raise Refusal(REFUSED, text)
    return data, servers


def servers_of(table: dict[str, Any]) -> list[Server]:
    """The Servers of a good table, in the order of their ranks."""
    return sorted(map(Server, rank_table.servers(table)), key=lambda server: server.first)


# ---- typed once for all hosts --------------------------------------------------------------------


def all_servers(request: Request, run_dir: str) -> tuple[Placement, LaunchTable]:
    """The ranks of all hosts of the hostfile, by mpirun; the table is the one named, or built.  Raises Refusal."""
    use_options(request)
    path = request.hostfile or ""
    try:
        slots = hostfile.slots(path)
        if request.rank_table:
            data, servers = read_table(request.rank_table, request.chip)
            name = os.path.basename(request.rank_table)
            setup = ["cp", path_word(request.rank_table)]
        else:
            options = build_options(request, slots)
            table = ask.collect(path, options, request.chip, lambda _line: None)  # the whole is checked here
            setup = [trainer_command.python(), project.path("hccl_tools", "hccl_tools.py")]
            setup += ["--hostfile", path_word(path), *options, "--output"]
            data, servers = rank_table.dump(table).encode("utf-8"), servers_of(table)
            name = merging.file_name(table)
    except hostfile.HostfileError as error:
        raise Refusal(REFUSED, f"--hostfile {error}") from error
    except (ask.ClusterError, merging.Refused) as error:
        raise Refusal(REFUSED, *error.lines) from error
    check_hosts(slots, servers)
    written = os.path.join(run_dir, name)
    faults = table_fit.path_faults(written)
    if faults:
        raise Refusal(REFUSED, *faults)
    ranks = [pair for server in servers for pair in server.ranks]
    hosts = [server.name for server in servers for _ in server.ranks]
    choice = shared(written, ranks, data, text=data.decode("utf-8"), setup=(*setup, written))
    return Placement(ranks=ranks, world=len(ranks), hosts=hosts, engine=engine_of(request, servers)), choice


def use_options(request: Request) -> None:
    """--ssh and --network hold for the questions to the hosts as well, in Open MPI 4 (OMPI_MCA_) and 5."""
    ssh_names = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent")
    network_names = ("OMPI_MCA_oob_tcp_if_include", "PRTE_MCA_oob_tcp_if_include")
    for value, names in ((request.ssh, ssh_names), (request.network, network_names)):
        if value:
            os.environ.update(dict.fromkeys(names, value))


def build_options(request: Request, slots: list[tuple[str, int | None]]) -> list[str]:
    """The options with which hccl_tools.py builds the table of every host.  Raises Refusal."""
    rest = [f"--hccn_conf={os.path.abspath(request.hccn_conf)}"] if request.hccn_conf else []
    rest += [f"--generation={request.generation}"] if request.generation else []
    if request.devices is not None:
        return [f"--device_num={request.devices}", *rest]
    counts = {count for _, count in open_mpi.with_slots(slots, "--hostfile")}
    if len(counts) > 1:
        numbers = ", ".join(map(str, sorted(counts)))
        text = tr("the hosts have different numbers of slots ({numbers})", numbers=numbers)
        raise Refusal(REFUSED, f"--hostfile: {text}; {tr('a job has the same number of devices on every server')}")
    return [f"--device_num=[0,{counts.pop()})", *rest]


def check_hosts(slots: list[tuple[str, int | None]], servers: list[Server]) -> None:
    """The hosts of the hostfile are the servers of the table, which have the same devices.  Raises Refusal."""
    faults = ((one_line(each.name), hostfile.fault_of_host(each.name)) for each in servers)
    unfit = [tr("server {name} of the rank table: {fault}", name=name, fault=fault) for name, fault in faults if fault]
    if unfit:
        raise Refusal(REFUSED, *unfit)  # mpirun and ssh get these names
    hosts = {network.ipv4(name, f"--hostfile: {one_line(name)}"): one_line(name) for name, _ in slots}
    table = {network.ipv4(each.name, tr("server {name}", name=one_line(each.name))): each for each in servers}
    foreign = [
        tr("{host} is not a server of the rank table; add it there, or remove it here", host=f"{name} ({address})")
        for address, name in hosts.items()
        if address not in table
    ]
    lines = [f"--hostfile: {line}" for line in foreign]
    for address, server in table.items():
        if address not in hosts:
            what = tr("server {name} of the rank table is not in the hostfile", name=one_line(server.name))
            lines.append(tr("{what}; add it: {line}", what=what, line=f"{address} slots={len(server.ranks)}"))
    devices = [[device for _, device in server.ranks] for server in servers]
    if any(found != devices[0] for found in devices):
        text = tr("the servers of the rank table have different devices")
        lines.append(f"{text}; {tr('type run_cluster.sh on each host instead')}")
    if lines:
        raise Refusal(REFUSED, *lines)


def engine_of(request: Request, servers: list[Server]) -> dict[str, str]:
    """What lib/engines/mpirun.sh needs to start all ranks, server by server in the table's order.  Raises Refusal."""
    names = [server.name for server in servers]
    others = network.others(names)
    facts = open_mpi.facts(request, bool(others))
    return {
        **facts,
        "ranks": str(sum(len(server.ranks) for server in servers)),
        **host_order(servers, others, facts["version"]),
        "devices": words([device for _, device in servers[0].ranks]),
        "scheduler_host": network.own_address_towards(others or names[:1]),
    }


def host_order(servers: list[Server], others: list[str], version: str) -> dict[str, str]:
    """The hosts for mpirun, and how it numbers ranks over them: in the order of the servers.  Raises Refusal.

    Open MPI 4 begins with this host, in whatever order it gets them, unless it gets a name for every rank.
    """
    first = servers[0].name
    if not version.startswith("4.") or first not in others or len(others) == len(servers):
        return {"hosts": ",".join(f"{server.name}:{len(server.ranks)}" for server in servers)}
    hosts = ",".join(server.name for server in servers for _ in server.ranks)
    if len(hosts) > _LONGEST_WORD:
        text = tr("Open MPI 4 begins with this host, the rank table with {host}", host=one_line(first))
        raise Refusal(REFUSED, f"{text}; {tr('type the command there')}")
    return {"hosts": hosts, "map": "seq"}


def distribute(request: Request, table: LaunchTable) -> None:
    """Puts the table at its path on every host.  Raises Refusal."""
    data = base64.b64encode(zlib.compress((table.text or "").encode("utf-8"), 9)).decode()
    answers, lines = ask.ask(request.hostfile or "", "commands/place_table.py", [table.path, data])
    lines += [
        tr("{host}: there is another table at {path}; remove it", host=answer.host, path=table.path)
        for answer in answers
        if answer.content not in (None, table.digest)
    ]
    if lines:
        raise Refusal(REFUSED, *lines)
