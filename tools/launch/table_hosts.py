"""The ranks of all servers of a rank table, by one command that starts them over mpirun on the hosts of a hostfile."""

from __future__ import annotations

import base64
import os
import zlib

from hccl_tools.build import merging
from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.hosts import ask, hostfile
from hccl_tools.machine.programs import path_word
from hccl_tools.table import rank_table
from tools.launch import network, open_mpi, table_fit, trainer_command
from tools.launch.launch_table import LaunchTable
from tools.launch.placement import Placement, words
from tools.launch.table_servers import Server, read_table, servers_of, shared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.launch.request import Request

_LONGEST_WORD = (1 << 17) - 1  # bytes of one word of a command line, which is Linux's limit


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
        raise Refusal(
            REFUSED,
            tr(
                "--hostfile: the hosts have different numbers of slots ({counts}); a job has the same "
                "number of devices on every server",
                counts=", ".join(map(str, sorted(counts))),
            ),
        )
    return [f"--device_num=[0,{counts.pop()})", *rest]


def check_hosts(slots: list[tuple[str, int | None]], servers: list[Server]) -> None:
    """The hosts of the hostfile are the servers of the table, which have the same devices.  Raises Refusal."""
    faults = {each.name: hostfile.fault_of_host(each.name) for each in servers}
    unfit = [
        tr("server {name} of the rank table: {fault}", name=one_line(name), fault=fault)
        for name, fault in faults.items()
        if fault
    ]
    if unfit:
        raise Refusal(REFUSED, *unfit)  # mpirun and ssh get these names
    hosts = {network.ipv4(name, f"--hostfile: {one_line(name)}"): one_line(name) for name, _ in slots}
    table = {network.ipv4(each.name, f"server {one_line(each.name)}"): each for each in servers}
    lines = [
        tr(
            "--hostfile: {hosts} ({address}) is not a server of the rank table; add it there, or remove it here",
            hosts=hosts[address],
            address=address,
        )
        for address in hosts
        if address not in table
    ]
    lines += [
        tr(
            "server {name} of the rank table is not in the hostfile; add it: {address} slots={ranks}",
            name=one_line(table[address].name),
            address=address,
            ranks=len(table[address].ranks),
        )
        for address in table
        if address not in hosts
    ]
    devices = [[device for _, device in server.ranks] for server in servers]
    if any(found != devices[0] for found in devices):
        lines.append(
            tr("the servers of the rank table have different devices; type run_cluster.sh on each host instead")
        )
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
        raise Refusal(
            REFUSED,
            tr(
                "Open MPI 4 begins with this host, the rank table with {first}; type the command there",
                first=one_line(first),
            ),
        )
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
