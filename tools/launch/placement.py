"""Which ranks run where: on this host's devices, or on the hosts that an engine reaches.

One function an engine; each takes the words of the launch (see planner.make_plan) and gives a
Placement.  Rank r of a host with several is on the host's r-th device: Open MPI, Slurm and msrun
number ranks host by host.
"""

import os

from hccl_tools.check import rules
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.hosts import hostfile
from hccl_tools.machine import host
from hccl_tools.table import device_range
from hccl_tools.table.address import family
from tools.launch import engines

MAX_RANKS = 1 << 16
RANK_SIZES = ("1", "2", "4", "8")


class Placement:
    """ranks: (rank, device) in rank order; hosts: the host of each, empty where all are on this one.

    world:  ranks of the whole job, where others start some of them.
    engine: what lib/engines/ needs to know, by name.
    table:  cluster_placement.Table, where the ranks come from a rank table of several servers.
    """

    def __init__(self, ranks, hosts=(), world=None, engine=None, table=None):
        self.ranks = ranks
        self.hosts = list(hosts)
        self.world = world or len(ranks)
        self.engine = engine or {}
        self.table = table

    def most_on_a_host(self):
        """The number of ranks on the host that has the most of them."""
        return max(map(self.hosts.count, set(self.hosts))) if self.hosts else len(self.ranks)


def place(asked):
    """The Placement of a launch.  Raises Refusal."""
    ways = {"local": local, "mpirun": mpirun, "msrun": msrun, "srun": srun, "server": server, "servers": servers}
    return ways[asked.get("placement") or asked.get("engine", "local")](asked)


def server(asked):
    """This host's ranks of a table of several servers; the command is typed on each of them."""
    from tools.launch import table_servers  # several milliseconds that other launches need not spend

    own, all_servers, table = table_servers.own_part(asked)
    address, port = table_servers.scheduler(all_servers, table.digest)
    engine = {"scheduler_host": address, "scheduler_port": port}
    if own is not all_servers[0]:
        engine["scheduler_node"] = all_servers[0].name
    else:
        if asked["device_target"] == "CPU":
            table_servers.check_port(address, port)
        engine.update({"scheduler_is_shared": "yes"} if len(all_servers) > 1 else {})
    world = sum(len(each.ranks) for each in all_servers)
    return Placement(own.ranks, world=world, engine=engine, table=table)


def servers(asked):
    """All ranks of all servers of a table, by mpirun from this host."""
    from tools.launch import table_servers

    all_servers, table = table_servers.all_hosts(asked)
    hosts = [each.name for each in all_servers for _ in each.ranks]
    return Placement(table.ranks, hosts, engine=table_servers.engine_of(asked, all_servers), table=table)


def local(asked):
    """Ranks of this shell: as many devices as the script or RANK_SIZE is for, and a set that the chip can run."""
    own = f"[0,{rank_size(asked)})" if "rank_size" in asked else asked["script_devices"]
    count = len(device_range.parse(own))
    devices = named_devices(asked, own)
    if len(devices) != count and "rank_size" in asked:
        raise Refusal(
            USAGE, f'--devices "{asked["devices"]}" names {len(devices)}, RANK_SIZE is {count}; make them one'
        )
    if len(devices) != count:
        named = ",".join(map(str, devices))
        text = f'--devices "{asked["devices"]}" names {len(devices)} ({named}), {asked["script"]} starts {count}'
        other = f"scripts/ascend{len(devices)}p.sh"
        fits = len(devices) in (1, 2, 4, 8)
        raise Refusal(USAGE, text + (f"; use {other}" if fits else "; 1, 2, 4 and 8 devices have a script each"))
    check_group(asked, devices)
    return Placement(list(enumerate(devices)))


def rank_size(asked):
    """The argument RANK_SIZE: a number of devices that a host has a group of."""
    if asked["rank_size"] not in RANK_SIZES:
        raise Refusal(
            USAGE, f"RANK_SIZE {one_line(asked['rank_size'])}: write {', '.join(RANK_SIZES[:-1])} or {RANK_SIZES[-1]}"
        )
    return int(asked["rank_size"])


def mpirun(asked):
    """Ranks under Open MPI: -n on this host, or hosts with slots as an argument or in a file."""
    if "hosts" in asked:
        slots = host_list(asked["hosts"])
    elif "hostfile" in asked:
        slots = host_file(asked["hostfile"])
    else:
        slots = [("localhost", number(asked, "n", 8))]
    room = sum(count for _, count in slots)
    ranks = number(asked, "n", room)
    if ranks > room:
        raise Refusal(USAGE, f"-n {ranks}: the hosts have {room} slots in all; give them more, or start fewer ranks")
    engine = engines.open_mpi(asked)
    engine["ranks"] = str(ranks)
    others = [name.rpartition("@")[2] for name, _ in slots if not host.owns(name.rpartition("@")[2])]
    if others:  # MindSpore's scheduler runs here, and takes no name
        engine["scheduler_host"] = engines.address_towards(others)
    if "hostfile" in asked:
        engine["hostfile"] = os.path.abspath(asked["hostfile"])
    else:
        engine["hosts"] = ",".join(f"{name}:{count}" for name, count in slots)
    return spread(asked, slots, ranks, engine)


def spread(asked, slots, ranks, engine):
    """The Placement of `ranks` ranks on hosts with (name, slots), host by host."""
    most = min(ranks, max(count for _, count in slots))
    devices = named_devices(asked, f"[0,{most})")
    if len(devices) < most:
        raise Refusal(
            USAGE, f'--devices "{asked["devices"]}" names {len(devices)}, but a host has {most} ranks; name as many'
        )
    places = [(name, local_rank) for name, count in slots for local_rank in range(count)][:ranks]
    engine["devices"] = " ".join(map(str, devices))
    hosts = [name for name, _ in places] if len(slots) > 1 or slots[0][0] != "localhost" else []
    return Placement([(rank, devices[place[1]]) for rank, place in enumerate(places)], hosts, engine=engine)


def srun(asked):
    """Ranks under Slurm, as many on each node of the allocation; MindSpore's scheduler is on the first."""
    nodes = engines.slurm_nodes()
    each = number(asked, "ntasks_per_node", tasks_per_node())
    first = nodes[0]
    address, kill_wait = engines.slurm_facts(first)
    engine = {
        "nodes": ",".join(nodes),
        "node_count": str(len(nodes)),
        "per_node": str(each),
        "scheduler_host": address,
        "kill_wait": kill_wait,
        # the same on every node without being told; of 20,000 jobs no two meet
        "scheduler_port": str(10000 + int(os.environ["SLURM_JOB_ID"]) % 20000),
    }
    if os.environ.get("SLURMD_NODENAME") != first:
        engine["scheduler_node"] = first
    return spread(asked, [(node, each) for node in nodes], each * len(nodes), engine)


def tasks_per_node():
    """How many tasks the allocation has for each node; 1 where it has not said."""
    said = os.environ.get("SLURM_NTASKS_PER_NODE") or os.environ.get("SLURM_TASKS_PER_NODE", "1")
    counts = {part.partition("(")[0] for part in said.split(",")}
    if len(counts) != 1:
        raise Refusal(
            REFUSED,
            f"the nodes have different numbers of tasks: {one_line(said)}; ask for them with "
            "sbatch --ntasks-per-node, or give --ntasks_per_node",
        )
    return counts.pop()


def msrun(asked):
    """This host's ranks under msrun; the same command runs on every other host with its own --node_rank."""
    import socket

    world = number(asked, "worker_num", 8)
    here = number(asked, "local_worker_num", world)
    hosts = check_workers(world, here)
    node = number(asked, "node_rank", 0, least=0)
    if hosts > 1 and "node_rank" not in asked:
        raise Refusal(USAGE, f"--node_rank is missing: {hosts} hosts have {here} of {world} ranks each; count from 0")
    if node >= hosts:
        raise Refusal(USAGE, f"--node_rank {node}: {world} ranks, {here} a host, are on hosts 0 to {hosts - 1}")
    address = engines.ipv4(asked.get("master_addr", host.LOOPBACK), f"--master_addr {asked.get('master_addr')}", socket)
    if hosts > 1 and address.startswith("127."):
        raise Refusal(
            USAGE, f"--master_addr {address} is reached from this host only; give the address of the host --node_rank 0"
        )
    master = host.owns(address)
    if master != (node == 0):
        where = "is not an address of this host" if node == 0 else "is an address of this host"
        raise Refusal(REFUSED, f"--master_addr {address} {where}, which has --node_rank {node}; it is the host 0's")
    devices = named_devices(asked, f"[0,{here})")
    if len(devices) != here:
        raise Refusal(USAGE, f'--devices "{asked["devices"]}" names {len(devices)}, this host has {here} ranks')
    engine = {"devices": " ".join(map(str, devices)), "world": str(world), "node": str(node), "scheduler_host": address}
    if "master_port" in asked or hosts > 1:
        engine["scheduler_port"] = str(number(asked, "master_port", 8118, least=1024))
    if master:
        engine["scheduler"] = "here"
    ranks = [(node * here + index, device) for index, device in enumerate(devices)]
    return Placement(ranks, world=world, engine=engine)


def check_workers(world, here):
    """The number of hosts that `world` ranks are on, `here` of them on each."""
    if here > world:
        raise Refusal(USAGE, f"--local_worker_num {here}: the job has --worker_num {world} ranks in all")
    if world % here:
        raise Refusal(USAGE, f"--worker_num {world} is no multiple of --local_worker_num {here}: msrun has equal hosts")
    return world // here


# ---- what the user typed ---------------------------------------------------------------------------


def number(asked, name, default, least=1):
    """The whole number that the user gave for an option."""
    text = asked.get(name, str(default))
    typed = f"-{name}" if len(name) == 1 else f"--{name}"
    if not (text.isascii() and text.isdigit() and least <= int(text[:9]) <= MAX_RANKS):
        raise Refusal(USAGE, f"{typed} {one_line(text)} is not a number from {least} to {MAX_RANKS}")
    return int(text)


def named_devices(asked, default):
    """The device ids of --devices, else of the range `default`."""
    try:
        return device_range.parse(asked.get("devices", default))
    except device_range.RangeError as error:
        raise Refusal(USAGE, f"--devices {error}") from error


def check_group(asked, devices):
    """The devices are a set that the chips of one host can run together, where the script knows the chips."""
    problem = rules.group_problem_910a(devices) if asked.get("generation") == "910A" else None
    if problem:
        named = ",".join(map(str, devices))
        raise Refusal(USAGE, f'--devices "{asked.get("devices", named)}": {problem[0]}; {problem[1]}')


def host_list(text):
    """[(host, slots)] of HOST:SLOTS,HOST:SLOTS."""
    slots = []
    for word in text.split(","):
        name, colon, count = word.rpartition(":")
        if family(word.strip("[]")) == family("::1"):
            raise Refusal(USAGE, f"HOSTS: {one_line(word)} is an IPv6 address, which -H cannot hold; write a name")
        if not colon or not (count.isascii() and count.isdigit()):
            raise Refusal(USAGE, f"HOSTS: {one_line(word)} has no number of ranks; write HOST:8,HOST:8")
        if not 1 <= int(count[:9]) <= MAX_RANKS:
            raise Refusal(USAGE, f"HOSTS: {one_line(word)} runs nothing; write HOST:8, or take it out")
        fault = hostfile.fault_of_host(name)
        if fault:
            raise Refusal(USAGE, f"HOSTS: {fault}")
        slots.append((name, int(count)))
    check_twice([name for name, _ in slots], "HOSTS")
    return slots


def host_file(path):
    """[(host, slots)] of a file in Open MPI's syntax."""
    try:
        slots = hostfile.slots(path)
    except hostfile.HostfileError as error:
        raise Refusal(REFUSED, f"HOSTFILE {error}") from error
    for name, count in slots:
        if count is None:
            text = f"HOSTFILE {one_line(path)}: {name} has no slots=N; write how many devices it has: {name} slots=8"
            raise Refusal(REFUSED, text)
    return slots


def check_twice(hosts, what):
    """No host is named twice: Open MPI would put the ranks of both on it, with the same devices."""
    twice = next((name for index, name in enumerate(hosts) if name in hosts[:index]), None)
    if twice:
        raise Refusal(USAGE, f"{what}: {one_line(twice)} stands there twice; give each host once, with all its ranks")
