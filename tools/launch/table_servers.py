"""The ranks of a launch over the servers of a rank table, typed on each of them or once for all.

Separately typed commands share what they need without talking to each other, because all of it comes
from the table: who has which ranks, where MindSpore's scheduler runs (on the server of rank 0, at the
address that is its server_id) and at which port (from the table's digest).
"""

import base64
import hashlib
import os
import socket
import sys
import zlib

from hccl_tools.build import merging
from hccl_tools.check import verdict
from hccl_tools.common.problem import ERROR
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.hosts import ask, hostfile
from hccl_tools.machine import hccn, host
from hccl_tools.table import rank_table
from tools.launch import engines, launch_table

MAX_RANKS = 1 << 16


class Server:
    """One server of a table: name is its server_id, ranks are (rank, device) in rank order."""

    def __init__(self, entry):
        self.name = entry.server_id
        self.ranks = sorted((int(device.rank_id), int(device.device_id)) for device in entry.devices)
        self.first = self.ranks[0][0]
        self.addresses = {int(device.device_id): device.device_ip for device in entry.devices}

    def words(self):
        """The server for a message."""
        return f"{one_line(self.name)} has ranks {self.first} to {self.ranks[-1][0]}"


class Table(launch_table.Choice):
    """The table of the launch; `digest` is its SHA-256, which must be the same on every host."""

    def __init__(self, path, ranks, data, text=None, setup=()):
        self.digest = hashlib.sha256(data).hexdigest()
        remark = f"rank table: {one_line(path)}, sha256 {self.digest[:16]} (must be the same on every host)"
        super().__init__(path, ranks, [remark], text, setup)


# ---- typed on each host --------------------------------------------------------------------------


def own_part(asked):
    """(this host's Server, all Servers, the Table) for the words that were typed here.  Raises Refusal."""
    path = asked["rank_table_file"]
    size = whole_number("RANK_SIZE", asked["rank_size"], 1)
    start = whole_number("RANK_START", asked["rank_start"], 0)
    data, servers = read_table(path, asked)
    world = sum(len(server.ranks) for server in servers)
    if size != world:
        parts = "; ".join(server.words() for server in servers[:4]) + ("; ..." if len(servers) > 4 else "")
        raise Refusal(REFUSED, f"RANK_SIZE {size}: {one_line(path)} has {world} ranks ({parts}); type {world}")
    server = own_server(servers, start, path)
    return server, servers, Table(os.path.abspath(path), server.ranks, data)


def whole_number(name, text, least):
    """The number that was typed for the argument `name`.  Raises Refusal."""
    if not (text.isascii() and text.isdigit() and least <= int(text[:9]) <= MAX_RANKS):
        raise Refusal(USAGE, f"{name} {one_line(text)} is not a number from {least} to {MAX_RANKS}")
    return int(text)


def own_server(servers, start, path):
    """The Server that is this host, whose ranks begin with `start`.  Raises Refusal."""
    ours = [server for server in servers if host.owns(server.name)]
    ours = ours or [server for server in servers if has_cards_of(server)]
    if not ours:
        names = ", ".join(one_line(server.name) for server in servers[:8]) + (", ..." if len(servers) > 8 else "")
        raise Refusal(
            REFUSED,
            f"{one_line(path)}: this host is none of its servers ({names}); type the command on those, or build the "
            "table anew with hccl_tools/hccl_tools.py --hostfile",
        )
    for server in ours:
        if server.first == start:
            return server
    others = [server for server in servers if server.first == start]
    whose = f"is where {one_line(others[0].name)} begins" if others else "is where no server of the table begins"
    here = "; ".join(server.words() for server in ours)
    raise Refusal(REFUSED, f"RANK_START {start} {whose}; this host is another: {here}; type {ours[0].first} here")


def has_cards_of(server):
    """In a container the host's address is not ours; the addresses of the devices tell it just as well."""
    try:
        found, _ = hccn.addresses(list(server.addresses), hccn.DEFAULT_CONF)
    except hccn.AddressError:
        return False
    return found == server.addresses


def scheduler(servers, digest):
    """(address, port) of MindSpore's scheduler, which the table says to every host alike.  Raises Refusal."""
    first = servers[0].name
    address = engines.ipv4(first, f"server {one_line(first)}, which has rank 0,", socket)
    if address.startswith("127.") and not all(host.owns(server.name) for server in servers):
        raise Refusal(REFUSED, f"server {one_line(first)} has rank 0, and the other servers cannot reach that address")
    port = os.environ.get("MS_SCHED_PORT") or str(10000 + int(digest, 16) % 20000)
    if not (port.isascii() and port.isdigit() and 1024 <= int(port[:6]) <= 65535):
        raise Refusal(REFUSED, f"MS_SCHED_PORT={one_line(port)} is no port; unset it, or set one of 1024 to 65535")
    return address, port


def check_port(address, port):
    """The scheduler can listen there, on the host where it will run.  Raises Refusal."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the scheduler does
        try:
            probe.bind((address, int(port)))
        except OSError as error:
            raise Refusal(
                REFUSED,
                f"MindSpore's scheduler cannot listen at {address} port {port}: {error.strerror}; "
                "set MS_SCHED_PORT to another one, the same on every host",
            ) from error


# ---- the table -----------------------------------------------------------------------------------


def read_table(path, asked):
    """(bytes, Servers in the order of their ranks) of the good table at `path`.  Raises Refusal."""
    try:
        data = rank_table.read_bytes(path)
    except rank_table.NotReadable as error:
        raise Refusal(REFUSED, f"the rank table {error}") from error
    table, problems = verdict.check_bytes(data, asked.get("generation"))
    # MindSpore numbers servers in dictionary order, whatever the table says: here that is an error.
    wrong = [problem for problem in problems if problem.severity == ERROR or problem.code == "server-order"]
    lines = [problem._replace(severity=ERROR).line(path) for problem in wrong] + launch_table.path_faults(path)
    if lines:
        raise Refusal(REFUSED, *lines)
    servers = servers_of(table)
    if not servers:
        raise Refusal(REFUSED, f"{one_line(path)} has no server_list; ranks are started from versions 1.0 and 1.2")
    return data, servers


def servers_of(table):
    """The Servers of a good table, in the order of their ranks."""
    return sorted(map(Server, rank_table.servers(table)), key=lambda server: server.first)


# ---- typed once for all hosts --------------------------------------------------------------------


def all_hosts(asked):
    """(Servers, the Table) for the hosts of the hostfile; the table is the one named, or built.  Raises Refusal."""
    use_options(asked)
    try:
        slots = hostfile.slots(asked["hostfile"])
        if "rank_table" in asked:
            data, servers = read_table(asked["rank_table"], asked)
            name = os.path.basename(asked["rank_table"])
            setup = ["cp", asked["rank_table"]]
        else:
            options = build_options(asked, slots)
            table = ask.collect(asked["hostfile"], options, asked.get("generation"), forget)
            setup = [sys.executable, os.path.join(launch_table.PROJECT, "hccl_tools", "hccl_tools.py")]
            setup += ["--hostfile", asked["hostfile"], *options, "--output"]
            data, servers = rank_table.dump(table).encode("utf-8"), servers_of(table)
            name = merging.file_name(table)
    except hostfile.HostfileError as error:
        raise Refusal(REFUSED, f"--hostfile {error}") from error
    except (ask.ClusterError, merging.Refused) as error:
        raise Refusal(REFUSED, *error.lines) from error
    check_hosts(slots, servers)
    path = os.path.join(asked["run_dir"], name)
    faults = launch_table.path_faults(path)
    if faults:
        raise Refusal(REFUSED, *faults)
    ranks = [pair for server in servers for pair in server.ranks]
    return servers, Table(path, ranks, data, data.decode("utf-8"), [*setup, path])


def forget(_line):
    """What the hosts say about their own parts; the whole is checked and told here."""


def use_options(asked):
    """--ssh and --network hold for the questions to the hosts as well."""
    for option, name in (("ssh", "plm_rsh_agent"), ("network", "oob_tcp_if_include")):
        if option in asked:
            os.environ["OMPI_MCA_" + name] = asked[option]


def build_options(asked, slots):
    """What hccl_tools.py is to build on every host, as its options."""
    conf = [f"--hccn_conf={os.path.abspath(asked['hccn_conf'])}"] if "hccn_conf" in asked else []
    if "devices" in asked:
        return [f"--device_num={asked['devices']}", *conf]
    counts = {count for _, count in slots}
    if None in counts:
        name = next(name for name, count in slots if count is None)
        raise Refusal(REFUSED, f"--hostfile: {name} has no slots=N; write how many devices it has: {name} slots=8")
    if len(counts) > 1:
        raise Refusal(
            REFUSED,
            f"--hostfile: the hosts have different numbers of slots ({', '.join(map(str, sorted(counts)))}); "
            "a job has the same number of devices on every server",
        )
    return [f"--device_num=[0,{counts.pop()})", *conf]


def check_hosts(slots, servers):
    """The hosts of the hostfile are the servers of the table, which have the same devices.  Raises Refusal."""
    hosts = {engines.ipv4(name, f"--hostfile: {one_line(name)}", socket): one_line(name) for name, _ in slots}
    table = {engines.ipv4(each.name, f"server {one_line(each.name)}", socket): each for each in servers}
    lines = [
        f"--hostfile: {hosts[address]} ({address}) is no server of the rank table; add it there, or take it out"
        for address in hosts
        if address not in table
    ]
    lines += [
        f"server {one_line(table[address].name)} of the rank table is not in the hostfile; add it: {address} slots="
        f"{len(table[address].ranks)}"
        for address in table
        if address not in hosts
    ]
    devices = [[device for _, device in server.ranks] for server in servers]
    if any(found != devices[0] for found in devices):
        lines.append("the servers of the rank table have different devices; type run_cluster.sh on each host instead")
    if lines:
        raise Refusal(REFUSED, *lines)


def engine_of(asked, servers):
    """What lib/engines/mpirun.sh needs to start all ranks, server by server in the table's order."""
    engine = engines.open_mpi(asked)
    engine["ranks"] = str(sum(len(server.ranks) for server in servers))
    engine["hosts"] = ",".join(f"{server.name}:{len(server.ranks)}" for server in servers)
    engine["devices"] = " ".join(str(device) for _, device in servers[0].ranks)
    engine["scheduler_host"] = way_to(servers)
    return engine


def way_to(servers):
    """This host's address on the way to the other servers: there they reach a scheduler that runs here."""
    away = next((server.name for server in servers if not host.owns(server.name)), servers[0].name)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # sends nothing
        try:
            probe.connect((away, 9))
        except OSError as error:
            raise Refusal(REFUSED, f"there is no way to server {one_line(away)}: {error.strerror}") from error
        return probe.getsockname()[0]


def distribute(asked, table):
    """Puts the Table to its path on every host.  Raises Refusal."""
    data = base64.b64encode(zlib.compress(table.text.encode("utf-8"), 9)).decode()
    answers, lines = ask.ask(asked["hostfile"], "commands/place_table.py", [table.path, data])
    lines += [
        f"{answer.host}: there is another table at {table.path}; take it away"
        for answer in answers
        if answer.content not in (None, table.digest)
    ]
    if lines:
        raise Refusal(REFUSED, *lines)
