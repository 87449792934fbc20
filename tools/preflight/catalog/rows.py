"""All rows of the catalogue, in the order of reports, and the collectors; machine.py has the rows about the machine.

Those here are about what a host can reach: disks, log folder, data, program files, variables, network.
"""

from __future__ import annotations

from hccl_tools.common.language import marked
from tools.doctor.limits import NO_SHM
from tools.preflight.catalog.machine import GPUS, NPUS, SOFTWARE, SYSTEM
from tools.preflight.catalog.row import GIB, MIB, Equal, Fact, Least, Nothing, Row, Shared, Yes, graded
from tools.preflight.difference import BLOCKS, SLOWS, SURPRISES

_SAME_FILES = marked("copy the files to these hosts, or share their folder")
_SHM = marked("data loaders pass their data through it: start a container with --shm-size=8g, or remove what fills it")
_FULL = marked("remove files there, or name another folder: --log_dir")

DISKS = (
    Fact("shm", "disk", Yes(), SURPRISES).says(marked("no file system is mounted on /dev/shm"), remedy=NO_SHM),
    *graded(
        {BLOCKS: 16 * MIB, SURPRISES: GIB},
        key="shm_free",
        collector="disk",
        text=marked("{value} free in /dev/shm"),
        unit="bytes",
        remedy=_SHM,
    ),
    Fact("tmp_free", "disk", Least(16 * MIB), BLOCKS).says(
        marked("{value} free in /tmp"), unit="bytes", remedy=marked("remove what fills it")
    ),
    Fact("folder", "log_folder", Yes(), BLOCKS).says(
        marked("the folder in which this command was typed is not there"),
        remedy=marked("ranks run in it: share it between the hosts, or make it there"),
    ),
    Fact("logs_writable", "log_folder", Yes(), BLOCKS).says(
        marked("the log folder cannot be written"),
        remedy=marked("change its permissions, or name another folder: --log_dir"),
    ),
    *graded(
        {BLOCKS: 16 * MIB, SURPRISES: GIB},
        key="logs_free",
        collector="log_folder",
        text=marked("{value} free for the log folder"),
        unit="bytes",
        remedy=_FULL,
    ),
    Fact("logs_inodes", "log_folder", Least(100), BLOCKS).says(
        marked("{value} inodes free for the log folder"), remedy=_FULL
    ),
    Fact("logs_place", "log_folder", Shared(), SURPRISES).says(
        marked("the log folder is on another file system than that of most hosts"),
        remedy=marked("logs and checkpoints of these hosts will be only there: mount the shared file system"),
    ),
)

FILES = (
    Fact("file:", "files", Equal(), BLOCKS).says(
        marked("{name} has sha256 {value}"), without=marked("{name} is not there"), remedy=_SAME_FILES
    ),
    Fact("more_files", "files", Equal(), BLOCKS).says(
        marked("more files of the program differ (together {value})"),
        without=marked("these are the same as here"),
        remedy=_SAME_FILES,
    ),
    Fact("table_file", "files", Equal(), BLOCKS).says(
        marked("the rank table has sha256 {value}"),
        lacking=SURPRISES,
        without=marked("the rank table is not there"),
        remedy=marked("copy the table to all hosts, if you launch on each of them"),
    ),
    Fact("data", "data", Yes(), BLOCKS).says(
        marked("the data is not there, or cannot be read"),
        remedy=marked("copy it to these hosts, or mount the file system that has it"),
    ),
    Fact("data_entries", "data", Equal(), SURPRISES).says(
        marked("{value} files in the folder of the data"), remedy=marked("compare the folders; copy what is missing")
    ),
    Fact("data_bytes", "data", Equal(), SURPRISES).says(
        marked("{value} bytes of data"), remedy=marked("compare the files; copy the right one")
    ),
    Fact("variable:", "environment", Equal(), SURPRISES).says(
        "{name}={value}",
        without=marked("{name} is not set"),
        remedy=marked("set it where you launch, for all ranks; or take it out of ~/.bashrc and /etc/profile.d there"),
    ),
)

# the network of a host, as far as it can tell alone; the rank table against the host
NETWORK = (
    Fact("busy_ports", "network", Nothing(), BLOCKS).says(
        marked("a program listens on ports that the job needs: {value}"),
        remedy=marked("ss -ltnp shows it there; end it, or choose other ports by MS_SCHED_PORT and HCCL_IF_BASE_PORT"),
    ),
    Fact("first_address", "network", Equal(), BLOCKS).says(
        marked("the first host has the address {value}"),
        without=marked("the first host's name has no address"),
        remedy=marked("correct /etc/hosts there, or name hosts by their addresses"),
    ),
    Fact("mtu", "network", Equal(), SLOWS).says(
        marked("MTU {value}"), remedy=marked("set the same on all hosts and switches: ip link set dev NAME mtu NUMBER")
    ),
    Fact("link_speed", "network", Equal(), SLOWS).says(
        marked("a network of {value}"), unit="Mb/s", remedy=marked("check cable and switch: ethtool NAME")
    ),
    Fact("firewall", "network", Equal(), SURPRISES).says(
        marked("a firewall managed by {value}"),
        without=marked("no firewall that shows"),
        remedy=marked("let the hosts of the job reach all ports of one another"),
    ),
)

TABLE = (
    Fact("table_server", "table", Yes(), BLOCKS).says(
        marked("the host does not have the address that the rank table has for it"),
        remedy=marked("correct server_id, or build the table again"),
    ),
    Fact("table_devices", "table", Nothing(), BLOCKS).says(
        marked("devices of the rank table that are not there: {value}"), remedy=marked("build the table again")
    ),
    Fact("table_addresses", "table", Nothing(), BLOCKS).says(
        marked("devices with other addresses than in the rank table: {value}"), remedy=marked("build the table again")
    ),
)

ROWS: tuple[Row, ...] = (*SOFTWARE, *TABLE, *NPUS, *GPUS, *FILES, *NETWORK, *DISKS, *SYSTEM)
_KEYS = frozenset(row.key for row in ROWS)

# {collector: (the level if it gives up, what could not be looked at)}
COLLECTORS = {
    "software": (SURPRISES, marked("versions")),
    "bytecode": (SURPRISES, marked("compiled files (.pyc)")),
    "system": (SURPRISES, marked("memory and processors")),
    "limits": (SURPRISES, marked("limits")),
    "clock": (SURPRISES, marked("the clock")),
    "disk": (BLOCKS, marked("/dev/shm and /tmp")),
    "log_folder": (BLOCKS, marked("the log folder")),
    "files": (BLOCKS, marked("the files of the program")),
    "data": (BLOCKS, marked("the data")),
    "environment": (SURPRISES, marked("variables")),
    "network": (SURPRISES, marked("the network")),
    "links": (SURPRISES, marked("the links to other hosts")),
    "npus": (SURPRISES, marked("the NPUs")),
    "gpus": (SURPRISES, marked("the GPUs")),
    "table": (SURPRISES, marked("the rank table")),
}


def knows(key: str) -> bool:
    """Whether this is the name of a fact."""
    start, colon, name = key.partition(":")
    return start + colon in _KEYS and bool(name) == bool(colon)
