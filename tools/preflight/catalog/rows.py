"""All rows of the catalogue, in the order in which differences are reported, and the collectors of the facts."""

from __future__ import annotations

from hccl_tools.common.language import marked
from tools.preflight.catalog.machine import GPUS, NPUS, SOFTWARE, SYSTEM
from tools.preflight.catalog.reach import DISKS, FILES, NETWORK, TABLE
from tools.preflight.catalog.row import Row
from tools.preflight.difference import BLOCKS, SURPRISES

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
