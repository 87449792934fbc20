"""The placement of ranks on hosts and devices: the record for every engine, and the function for ranks of this shell.

Open MPI, Slurm, msrun and tables of several servers have files of their own, each with a function `place`.
"""

from __future__ import annotations

from itertools import groupby

from hccl_tools.check import rules
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import USAGE, Refusal, misused
from hccl_tools.common.words import one_line
from hccl_tools.table import device_range
from tools.launch.devices import seen
from tools.launch.engines.facts import Cluster, EngineFacts, LocalFacts
from tools.launch.request import HOST_RANKS, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tools.launch.hosts.launchers import Meeting
    from tools.launch.pods.pod_table import WatchedTable


class Placement(Record):
    ranks: list[tuple[int, int]]  # (rank, device), in rank order
    world: int  # ranks of the whole job, some of which other commands may start
    hosts: list[str] = []  # the host of each rank; empty where all are on this one
    engine: EngineFacts  # what the file of the engine in tools/engines/ needs to know
    cluster: Cluster = Cluster()  # where the ranks meet
    spares: dict[str, list[int]] = {}  # the hosts that stand by, with the devices that their ranks would get
    job: list[int] = []  # the number of ranks of each host; empty where the job has no others than `ranks`
    meeting: Meeting | None = None  # of the launchers; None where this one has all ranks of the job
    watched_table: WatchedTable | None = None  # the operator's, in a pod; None: a table that does not change
    remarks: list[str] = []  # what to know of the places

    def sizes(self) -> list[int]:
        """The number of ranks of each host of the job, in the order of the ranks."""
        if self.hosts:
            return [len(list(group)) for _, group in groupby(self.hosts)]
        return self.job or [len(self.ranks)]

    def most_on_a_host(self) -> int:
        """The number of ranks on the host that has the most of them, of those that this command starts."""
        return max(self.sizes()) if self.hosts else len(self.ranks)

    def devices_by_host(self) -> dict[str, list[int]]:
        """{host: its ranks' devices, sorted}, where there are several hosts."""
        found: dict[str, set[int]] = {}
        for name, (_, device) in zip(self.hosts, self.ranks):
            found.setdefault(name, set()).add(device)
        return {name: sorted(devices) for name, devices in found.items()}


def local(request: Request) -> Placement:
    """Ranks of this shell: the number of devices for the script or RANK_SIZE, in a set that the chip can run."""
    if not request.rank_size and not request.script_devices:
        return any_number(request)
    own = f"[0,{request.rank_size})" if request.rank_size else request.script_devices
    count = len(device_range.parse(own))
    devices = named_devices(request, own)
    if len(devices) != count:
        named = names(request, devices)
        if request.rank_size:
            raise misused("{names}, RANK_SIZE is {number}; give the same number in both", names=named, number=count)
        remedy = tr("only 1, 2, 4 and 8 devices have a script of their own")
        if len(devices) in HOST_RANKS:
            remedy = tr("use scripts/ascend{number}p.sh", number=len(devices))
        named = f"{named} ({comma(devices)})"
        raise misused(
            "{names}, {script} starts {number}; {remedy}",
            names=named,
            script=request.script,
            number=count,
            remedy=remedy,
        )
    return _here(request, devices)


def any_number(request: Request) -> Placement:
    """Ranks of this shell: the number in -n or --devices, otherwise one for each device that is here."""
    if request.devices is None and request.n is None:
        present = seen.all_here(request)
        if present and request.exclude is not None:
            from tools.launch.devices import excluded

            present = excluded.all_left(request, excluded.here(request))
        if not present:
            if request.program:
                from tools.launch.programs import launchers

                launchers.check(request, None)
            raise misused("-n is missing: how many ranks? Write it before the program or the config, such as: -n 2")
        return _here(request, present)
    devices = named_devices(request, f"[0,{request.n})")
    if request.n not in (None, len(devices)):
        raise misused(
            "{names}, -n is {number}; give the same number in both, or only one of them",
            names=names(request, devices),
            number=request.n,
        )
    return _here(request, devices)


def _here(request: Request, devices: tuple[int, ...]) -> Placement:
    problem = rules.group_problem_910a(devices) if request.chip == "910A" else None
    if problem:
        raise Refusal(USAGE, f'--devices "{request.devices or comma(devices)}": {problem[0]}; {problem[1]}')
    return Placement(ranks=list(enumerate(devices)), world=len(devices), engine=LocalFacts())


def spread(
    request: Request,
    slots: list[tuple[str, int]],
    ranks: int,
    engine: EngineFacts,
    own: Mapping[str, Sequence[int]] | None = None,
) -> Placement:
    """`ranks` ranks on hosts with (name, slots), host by host: rank r of a host is on the host's r-th device.

    own: {host: its devices}, of hosts that have others than the rest.
    """
    own = own or {}
    alike = [count for name, count in slots if name not in own]
    most = min(ranks, max(alike, default=1))
    devices = all_named(request, f"[0,{most})")
    if alike and len(devices) < most:
        text = tr('--devices "{devices}" names {number}', devices=request.devices, number=len(devices))
        raise misused("{names}, but a host has {number} ranks; name as many", names=text, number=most)
    places = [(name, local_rank) for name, count in slots for local_rank in range(count)][:ranks]
    hosts = list(dict.fromkeys(name for name, _ in places))
    differing = {place: list(own[name]) for place, name in enumerate(hosts) if name in own}
    return Placement(
        ranks=[(rank, own.get(name, devices)[local_rank]) for rank, (name, local_rank) in enumerate(places)],
        world=ranks,
        hosts=[name for name, _ in places] if len(slots) > 1 or slots[0][0] != "localhost" else [],
        engine=engine.replace(devices=list(devices), named=request.devices is not None, differing=differing),
    )


def named_devices(request: Request, default: str) -> tuple[int, ...]:
    """The device ids of --devices, otherwise of the range `default` or as many others that the ranks see; of this host.

    Without those that --exclude leaves out.
    """
    devices = all_named(request, default)
    if request.exclude is None:
        return devices
    from tools.launch.devices import excluded

    return excluded.fitting(request, devices)


def all_named(request: Request, default: str) -> tuple[int, ...]:
    """The same with those that --exclude leaves out: of hosts that differ."""
    try:
        devices = device_range.parse(default if request.devices is None else request.devices)
    except device_range.RangeError as error:
        raise Refusal(USAGE, f"--devices {error}") from error
    return seen.fitting(request, devices)


def names(request: Request, devices: tuple[int, ...]) -> str:
    """The number of devices in --devices, as the beginning of a message."""
    if request.exclude is not None:
        return tr(
            '--devices "{devices}" without --exclude {exclude} names {number}',
            devices=request.devices,
            exclude=one_line(request.exclude),
            number=len(devices),
        )
    return tr('--devices "{devices}" names {number}', devices=request.devices, number=len(devices))


def comma(devices: tuple[int, ...] | list[int]) -> str:
    """The devices as --devices takes them."""
    return ",".join(map(str, devices))
