"""Records of what each engine needs to start its ranks, and of the place where the ranks of a cluster meet.

They are in a Placement and in the Plan.  The plan of a restart is pickled by a child of the launcher, so a field holds
only what can be pickled.
"""

from __future__ import annotations

from itertools import groupby

from hccl_tools.common.record import Record
from hccl_tools.machine.host import LOOPBACK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Kind = TypeVar("Kind", bound="EngineFacts")

# sbatch's own numbers of tasks, and its distribution, would contradict ours.
OF_SBATCH = ("SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_DISTRIBUTION")


class EngineFacts(Record):
    """The facts that every engine may need."""

    devices: list[int] = []  # of agents: the device of each rank of a host, by local rank; empty: there are none
    elsewhere: bool = False  # some host has this project in another folder: its agents look where it is
    differing: dict[int, list[int]] = {}  # of hosts that have others: {number of the host: its devices}
    named: bool = False  # the user or a rank table names the devices; else a host takes the first ones that it shows


class LocalFacts(EngineFacts):
    """The launcher itself starts the ranks."""

    device_ids: list[int] = []  # DEVICE_ID of each rank of this host; empty: the numbers of the devices


class OpenMpi(Record):
    """The Open MPI of this host, and how it gets to the others."""

    version: str  # such as 4.1.4
    prefix: str | None = None  # the folder of mpirun and its programs on all hosts; None: they are on PATH
    ssh: str | None = None  # the program instead of ssh, with its options; None: Open MPI chooses
    network: str | None = None  # --network: the interfaces or subnets to use; None: Open MPI chooses
    logs: str | None = None  # --output_filename: the folder for links to the logs, absolute; None: no links


class MpirunFacts(EngineFacts):
    """mpirun starts an agent for each rank."""

    mpi: OpenMpi
    ranks: int  # of the whole job
    hosts: list[str] = []  # the words of -H: NAME:SLOTS, or NAME for each rank; empty: `hostfile` has them
    hostfile: str | None = None  # its absolute path; None: `hosts` has them
    map_by: str = "slot"  # mpirun's --map-by: how it puts ranks on hosts, unless the user states


class SrunFacts(EngineFacts):
    """srun starts an agent for each rank."""

    nodes: list[str]  # with ranks, in the order of the ranks
    per_node: int  # ranks on each node
    kill_wait: int  # Slurm's KillWait: seconds from the SIGTERM of scancel to SIGKILL


class MsrunFacts(EngineFacts):
    """msrun starts an agent for each rank of this host; on every other host a launcher does the same."""

    world: int  # ranks on all hosts
    node: int  # the number of this host, from 0
    has_scheduler: bool  # msrun starts MindSpore's scheduler here


class Cluster(Record):
    """Where the ranks of MindSpore's dynamic cluster meet: at its scheduler.  Others may use the address, too."""

    is_needed: bool = False  # the ranks form a cluster, also where device target and engine do not ask for one
    scheduler_host: str = LOOPBACK  # an address, of IPv6 without brackets
    scheduler_port: int = 0  # 0: one that is free on this host
    scheduler_node: str = ""  # the other host or node that it runs on; empty: it runs here
    scheduler_is_shared: bool = False  # it runs here, and ranks that other launchers start need it, too


def of(kind: type[Kind], found: EngineFacts) -> Kind:
    """`found`, which are facts of this kind.  Raises TypeError: the ranks were placed for another engine."""
    if not isinstance(found, kind):
        raise TypeError(f"{kind.__name__} are needed, the plan has {type(found).__name__}")
    return found


def sizes_words(sizes: list[int]) -> str:
    """The numbers of ranks as tools/rank/environment.py reads them: "8x2 4x1" is two hosts with 8, then one with 4."""
    return " ".join(f"{size}x{len(list(group))}" for size, group in groupby(sizes))


def devices_words(facts: EngineFacts) -> str:
    """The devices for tools/rank/device.py: those of most hosts, then ";HOST:" and the devices of each other host."""
    others = (f";{host}:{words(devices)}" for host, devices in facts.differing.items())
    return words(facts.devices) + "".join(others)


def words(numbers: list[int]) -> str:
    """The numbers as tools/rank/beginning.py reads them."""
    return " ".join(map(str, numbers))
