"""Places the ranks of a launch over all servers of a rank table by one command; mpirun starts them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from hccl_tools.build import from_legacy, merging, parts, rank_lists
from hccl_tools.common import project
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal, misused, refused
from hccl_tools.common.words import clauses, one_line
from hccl_tools.hosts import ask, hostfile
from hccl_tools.machine import addresses, hccn
from hccl_tools.machine.programs import path_word
from hccl_tools.table import device_range, rank_table
from hccl_tools.table.address import family
from tools.launch import record
from tools.launch.devices import excluded
from tools.launch.engines import open_mpi
from tools.launch.engines.facts import Cluster, MpirunFacts
from tools.launch.engines.placement import Placement, all_named, comma
from tools.launch.hosts import network, rank_list_servers, spares, table_servers
from tools.launch.hosts.table_servers import Server
from tools.launch.programs import trainer_command
from tools.launch.request import Request
from tools.launch.tables import table_fit
from tools.launch.tables.launch_table import LaunchTable

_HOSTFILE = "--hostfile"
WITH_SPARES = "hccl_with_spares.json"  # in the folder of a run: the table of all its hosts, those that stand by, too


def place(request: Request, run_dir: str) -> tuple[Placement, LaunchTable | None]:
    """The ranks of all hosts of the hostfile, by mpirun; the table is the one named, or built.  Raises Refusal.

    Ranks on CPU do without a table where this host has no addresses for one.
    """
    open_mpi.require()  # before the hosts are asked
    without = request.device_target == "CPU" and not request.rank_table and not _has_addresses(request)
    if request.attempt:
        return (open_mpi.place(request), None) if without else place_again(request, run_dir)
    path = request.hostfile or ""
    try:
        listed = left(request, hostfile.read(path).hosts, without)
        slots = [(host.login, host.slots) for host in listed]
        marked = [host.login for host in listed if host.spare]
        names = spares.named(request, [name for name, _ in slots], marked)
        if request.rank_table:
            read = table_servers.read_table(request.rank_table, request.chip, slots, _HOSTFILE)
            data, servers = read.data, read.servers
            name = os.path.basename(request.rank_table)
            setup = ["cp", path_word(request.rank_table)]
            if read.is_rewritten:
                name = from_legacy.NAME
                *setup, _ = table_fit.command_to_rewrite(request.rank_table, name)
        else:
            options = build_options(request, slots)
            if without:
                return open_mpi.place(request), None
            asker = table_servers.asker(request)
            asker = asker.replace(logins={host.name: host.login for host in listed})
            built = ask.collect(asker, options, request.chip, lambda _line: None)  # the whole is checked here
            setup = [trainer_command.python(), project.path("hccl_tools", "hccl_tools.py")]
            setup += [f"--ssh={request.ssh}"] if request.ssh else []
            setup += ["--hostfile", path_word(path), *options, "--output"]
            data, servers = rank_table.dump(built).encode("utf-8"), servers_of(built, slots)
            name = merging.file_name(built)
    except hostfile.HostfileError as error:
        raise Refusal(REFUSED, f"{_HOSTFILE} {error}") from error
    except (ask.ClusterError, merging.Refused) as error:
        raise Refusal(REFUSED, *error.lines) from error
    check_hosts(slots, servers)
    if names:
        by_address = {server.address(server.label()): server.name for server in servers}
        standing_by = [by_address[network.address_of(name.rpartition("@")[2], one_line(name))] for name in names]
        return with_part(request, data, servers, standing_by, run_dir)
    written = os.path.join(run_dir, name)
    if request.exclude is not None:  # the hostfile names more hosts
        setup = ["sh", "-c", 'printf %s "$1" >"$2"', "sh", data.decode("utf-8")]
    table = shared_table(written, servers, data, tuple(setup))
    if name == from_legacy.NAME:
        remark = from_legacy.remark(request.rank_table or "", written)
        table = table.replace(remarks=(*table.remarks, remark))
    return placed(request, servers, {}), table


def left(request: Request, hosts: list[hostfile.Host], without_table: bool) -> list[hostfile.Host]:
    """The hosts without those of --exclude; a rank table has the same devices on each.  Raises Refusal."""
    if request.exclude is None or without_table:
        return hosts
    if request.rank_table:
        raise misused(
            "--exclude with --rank_table: the table already defines the hosts and devices; leave out "
            "--rank_table, and the launch builds one"
        )
    remedy = tr(
        "a rank table has the same devices on every host; exclude the whole host, or choose devices for all hosts "
        "with --devices"
    )
    out = excluded.whole_hosts(request, [host.login for host in hosts], remedy)
    return [host for host in hosts if host.login not in out]


def _has_addresses(request: Request) -> bool:
    """Whether this host tells the address of a card; then a rehearsal on CPU has the table of the launch on NPUs."""
    try:
        hccn.addresses([0], request.hccn_conf or hccn.DEFAULT_CONF)
    except hccn.AddressError:
        return request.hccn_conf is not None
    return True


def place_again(request: Request, run_dir: str) -> tuple[Placement, LaunchTable]:
    """The same for a restart, after the loss of hosts: the table is a part of the one of all hosts.  Raises Refusal."""
    document = record.read(run_dir)
    kept = document.get("rank_table")
    names = document.get("spares", [])  # checked by elastic.py
    if not isinstance(kept, dict):
        raise refused("{path} has no rank table; go on with --resume", path=one_line(record.path(run_dir)))
    whole = str(kept.get("whole") or kept.get("file"))
    hosts = None
    if rank_list_servers.is_list(rank_table.read(whole)[0]):  # the others report themselves where their ranks are
        hosts = [(host.login, host.slots) for host in left(request, hostfile.read(request.hostfile or "").hosts, False)]
    data, servers, _ = table_servers.read_table(whole, request.chip, hosts, _HOSTFILE)
    folder = os.path.join(run_dir, f"restart_{request.attempt}")
    placement, table = with_part(request, data, servers, names, folder)
    return placement, table.replace(whole=(whole, None))


def with_part(
    request: Request, data: bytes, servers: list[Server], names: list[str], folder: str
) -> tuple[Placement, LaunchTable]:
    """The ranks of the `servers` that still have some, by a table of only these in `folder`.  Raises Refusal.

    data: the table of all of them; names: those that were spare at the start.
    """
    by_name = [(server.name, server) for server in servers]
    active, standing_by = spares.split(by_name, names, spares.lost(request))
    if not active:
        raise Refusal(REFUSED, spares.none_left())
    part = part_of(json.loads(data), [server for _, server in active], request.chip)
    text = rank_table.dump(part)
    written = os.path.join(folder, merging.file_name(part))
    whole = os.path.join(folder, WITH_SPARES), data.decode("utf-8")
    setup = ("sh", "-c", 'printf %s "$1" >"$2"', "sh", text, written)
    found = servers_of(part, [(server.name, len(server.ranks)) for _, server in active])
    table = shared_table(written, found, text.encode("utf-8"), setup).replace(whole=whole)
    return placed(request, found, dict(standing_by)), table


def part_of(whole: JsonObject, servers: list[Server], generation: str | None) -> JsonObject:
    """The table of these servers alone, whose ranks begin with 0.  Raises Refusal."""
    if rank_list_servers.is_list(whole):
        return rank_lists.only(whole, {rank for server in servers for rank, _ in server.ranks})
    try:
        return parts.only(whole, [server.server_id for server in servers], generation)
    except merging.Refused as error:
        raise Refusal(REFUSED, *error.lines) from error


def servers_of(table: JsonObject, hosts: Sequence[rank_list_servers.Slots]) -> list[Server]:
    """The servers of a valid table; in version 2.0 they are these hosts.  Raises Refusal."""
    if not rank_list_servers.is_list(table):
        return table_servers.servers_of(table)
    each = len(rank_lists.in_order(table)) // len(hosts)  # of hosts without slots: all were asked for the same devices
    counted = [(name, slots or each) for name, slots in hosts]
    return list(map(Server, rank_list_servers.of(table, counted, tr("the rank table"), _HOSTFILE)))


def placed(request: Request, servers: list[Server], standing_by: dict[str, Server]) -> Placement:
    """Ranks on the `servers`, in their order.  Raises Refusal."""
    ranks = [pair for server in servers for pair in server.ranks]
    names = [server.name for server in servers]
    others = network.others(names)
    mpi = open_mpi.installed(request, bool(others or network.others(standing_by)))
    hosts, map_by = host_order(servers, others, mpi.version)
    devices = [device for _, device in servers[0].ranks]
    return Placement(
        ranks=ranks,
        world=len(ranks),
        hosts=[server.name for server in servers for _ in server.ranks],
        engine=MpirunFacts(mpi=mpi, ranks=len(ranks), hosts=hosts, map_by=map_by, devices=devices, named=True),
        cluster=Cluster(scheduler_host=network.own_address_towards(others or names[:1])),
        spares={name: [device for _, device in server.ranks] for name, server in standing_by.items()},
    )


def shared_table(path: str, servers: list[Server], data: bytes, setup: tuple[str, ...]) -> LaunchTable:
    """The table with the bytes `data`, to be written to `path` on every host.  Raises Refusal."""
    faults = table_fit.path_faults(path)
    if faults:
        raise Refusal(REFUSED, *faults)
    ranks = [pair for server in servers for pair in server.ranks]
    text = data.decode("utf-8")
    return table_servers.shared(path, ranks, data, text=text, setup=(*setup, path) if path not in setup else setup)


def build_options(request: Request, slots: list[tuple[str, int | None]]) -> list[str]:
    """The options with which hccl_tools.py builds the table of every host.  Raises Refusal."""
    rest = [f"--hccn_conf={os.path.abspath(request.hccn_conf)}"] if request.hccn_conf else []
    rest += [f"--generation={request.generation}"] if request.generation else []
    if request.devices is not None:
        return [f"--devices={request.devices}", *rest]
    try:
        counts = {count for _, count in open_mpi.with_slots(slots, "--hostfile")}
    except Refusal as refusal:
        raise refused('{text}, or give --devices "[0,8)"', text=refusal.lines[0]) from refusal
    if len(counts) > 1:
        numbers = ", ".join(map(str, sorted(counts)))
        text = tr("the hosts have different numbers of slots ({numbers})", numbers=numbers)
        raise Refusal(
            REFUSED, clauses(f"--hostfile: {text}", tr("a job has the same number of devices on every server"))
        )
    every = f"[0,{counts.pop()})"
    devices = all_named(request, every)  # those that a variable leaves: mpirun gives it to all hosts
    return [f"--devices={every if devices == device_range.parse(every) else comma(devices)}", *rest]


def check_hosts(slots: list[tuple[str, int | None]], servers: list[Server]) -> None:
    """The hosts of the hostfile are the servers of the table, which have the same devices.  Raises Refusal."""
    faults = ((each.label(), hostfile.fault_of_host(each.name)) for each in servers)
    unfit = [tr("server {name} of the rank table: {fault}", name=name, fault=fault) for name, fault in faults if fault]
    if unfit:
        raise Refusal(REFUSED, *unfit)  # mpirun and ssh get these names
    found = addresses.of([*(name for name, _ in slots), *(each.name for each in servers)])
    hosts = {
        found[name] or network.address_of(name, f"--hostfile: {one_line(name)}"): one_line(name) for name, _ in slots
    }
    six = [name for address, name in hosts.items() if family(address) == family("::1")]
    if six:
        text = tr(
            "--hostfile: {names} have only IPv6 addresses, which mpirun does not accept in a list of hosts",
            names=", ".join(six),
        )
        raise Refusal(
            REFUSED, clauses(text, tr("give them IPv4, or type the command on each host, with the rank table"))
        )
    table: dict[str, Server] = {}
    lines = []
    for each in servers:
        address = found[each.name] or each.address(tr("server {name}", name=each.label()))
        first = table.setdefault(address, each)
        if first is not each:
            text = tr(
                "the servers {first} and {second} of the rank table are one host",
                first=first.label(),
                second=each.label(),
            )
            lines.append(clauses(text, tr("mpirun cannot start the ranks of both; list it once, with all its devices")))
    foreign = [
        tr("{host} is not a server of the rank table; add it there, or remove it here", host=f"{name} ({address})")
        for address, name in hosts.items()
        if address not in table
    ]
    lines += [f"--hostfile: {line}" for line in foreign]
    for address, server in table.items():
        if address not in hosts:
            what = tr("server {name} of the rank table is not in the hostfile", name=server.label())
            lines.append(tr("{what}; add it: {line}", what=what, line=f"{address} slots={len(server.ranks)}"))
    devices = [[device for _, device in server.ranks] for server in servers]
    if any(ids != devices[0] for ids in devices):
        text = tr("the servers of the rank table have different devices")
        lines.append(clauses(text, tr("type run_cluster.sh on each host instead")))
    if lines:
        raise Refusal(REFUSED, *lines)


def host_order(servers: list[Server], others: list[str], version: str) -> tuple[list[str], str]:
    """(the words of mpirun's -H, its --map-by), so that it numbers ranks in the order of the servers.  Raises Refusal.

    Open MPI 4 begins with this host, in whatever order it gets them, unless it gets a name for every rank.
    """
    first = servers[0].name
    if not version.startswith("4.") or first not in others or len(others) == len(servers):
        return [f"{server.name}:{len(server.ranks)}" for server in servers], "slot"
    hosts = [server.name for server in servers for _ in server.ranks]
    if len(",".join(hosts)) > open_mpi.LONGEST_WORD:
        text = tr("Open MPI 4 begins with this host, the rank table with {host}", host=one_line(first))
        raise Refusal(REFUSED, clauses(text, tr("type the command there")))
    return hosts, "seq"
