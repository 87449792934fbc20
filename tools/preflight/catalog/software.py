"""Versions of what a job runs on."""

from __future__ import annotations

from hccl_tools.common.language import marked
from tools.preflight.catalog.row import Equal, Nothing, Row
from tools.preflight.difference import BLOCKS, SLOWS, SURPRISES

_SAME_VERSION = marked("install the same version on all hosts")

SOFTWARE = (
    Row(
        key="mindspore",
        collector="software",
        rule=Equal(),
        level=BLOCKS,
        text=marked("MindSpore {value}"),
        without=marked("no MindSpore"),
        remedy=_SAME_VERSION,
    ),
    Row(
        key="cann",
        collector="software",
        rule=Equal(),
        level=BLOCKS,
        text=marked("CANN {value}"),
        without=marked("no CANN"),
        remedy=_SAME_VERSION,
    ),
    Row(
        key="python",
        collector="software",
        rule=Equal(),
        level=BLOCKS,
        text=marked("Python {value}"),
        remedy=_SAME_VERSION,
    ),
    Row(
        key="package:",
        collector="software",
        rule=Equal(),
        level=SURPRISES,
        lacking=BLOCKS,
        text=marked("{name} {value}"),
        without=marked("no {name}"),
        remedy=marked("the program imports it: install the same version on all hosts"),
    ),
    Row(
        key="uncompiled",
        collector="bytecode",
        rule=Nothing(),
        level=SLOWS,
        text=marked("each rank compiles at each start: {value}"),
        remedy=marked("there, as the owner: python -m compileall -qq FOLDER; and leave PYTHONDONTWRITEBYTECODE unset"),
    ),
    Row(
        key="driver",
        collector="software",
        rule=Equal(),
        level=SURPRISES,
        text=marked("driver {value}"),
        without=marked("no driver"),
        remedy=_SAME_VERSION,
    ),
    Row(
        key="firmware",
        collector="software",
        rule=Equal(),
        level=SURPRISES,
        text=marked("firmware {value}"),
        without=marked("no firmware"),
        remedy=_SAME_VERSION,
    ),
    Row(
        key="glibc",
        collector="software",
        rule=Equal(),
        level=SURPRISES,
        text=marked("glibc {value}"),
        without=marked("another C library than glibc"),
    ),
)
