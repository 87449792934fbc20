"""The machine: memory, processors, limits and the clock."""

from __future__ import annotations

from hccl_tools.common.language import marked
from tools.doctor.limits import FEW_FILES, FEW_PROCESSES
from tools.preflight.catalog.row import GIB, Equal, Near, Row, graded
from tools.preflight.difference import BLOCKS, SLOWS, SURPRISES

_MEMORY = marked("end what takes it, or start fewer ranks there")

SYSTEM = (
    Row(key="machine", collector="system", rule=Equal(), level=SURPRISES, text=marked("processors of type {value}")),
    Row(
        key="os",
        collector="system",
        rule=Equal(),
        level=SURPRISES,
        text="{value}",
        without=marked("a system without /etc/os-release"),
    ),
    Row(key="kernel", collector="system", rule=Equal(), level=SURPRISES, text=marked("kernel {value}")),
    *graded(
        {BLOCKS: GIB // 2, SURPRISES: 4 * GIB},
        key="memory_free",
        collector="system",
        text=marked("{value} of free memory"),
        unit="bytes",
        remedy=_MEMORY,
    ),
    Row(
        key="cpus",
        collector="system",
        rule=Equal(),
        level=SLOWS,
        text=marked("{value} processors"),
        one=marked("{value} processor"),
        remedy=marked("a job is as fast as its slowest host"),
    ),
    Row(
        key="cpu_limit",
        collector="system",
        rule=Equal(),
        level=SLOWS,
        text=marked("the time of {value} processors by the control group"),
        one=marked("the time of {value} processor by the control group"),
        without=marked("no limit of processor time"),
        remedy=marked("give all containers the same limit: docker run --cpus"),
    ),
    Row(
        key="memory",
        collector="system",
        rule=Near(0.1),
        level=SURPRISES,
        text=marked("{value} of memory"),
        unit="bytes",
    ),
    Row(
        key="memory_limit",
        collector="system",
        rule=Equal(),
        level=SURPRISES,
        text=marked("at most {value} of memory by the control group"),
        without=marked("no limit of memory"),
        unit="bytes",
    ),
    *graded(
        {BLOCKS: 256, SURPRISES: 1024},
        key="open_files",
        collector="limits",
        text=marked("{value} open files (ulimit -n)"),
        remedy=FEW_FILES,
    ),
    Row(
        key="open_files",
        collector="limits",
        rule=Equal(1 << 16),
        level=SURPRISES,
        text=marked("{value} open files (ulimit -n)"),
        without=marked("any number of open files (ulimit -n)"),
        remedy=FEW_FILES,
    ),
    *graded(
        {BLOCKS: 512, SURPRISES: 4096},
        key="processes",
        collector="limits",
        text=marked("room for {value} processes and threads"),
        remedy=FEW_PROCESSES,
    ),
    Row(
        key="locked_memory",
        collector="limits",
        rule=Equal(GIB),
        level=SURPRISES,
        text=marked("{value} of locked memory (ulimit -l)"),
        without=marked("any amount of locked memory (ulimit -l)"),
        unit="bytes",
        remedy=marked("raise memlock in /etc/security/limits.conf, or start the container with --ulimit memlock=-1"),
    ),
    Row(
        key="time_zone",
        collector="clock",
        rule=Equal(),
        level=SURPRISES,
        text=marked("time zone {value}"),
        remedy=marked("lines of several logs are hard to compare: set the same with timedatectl set-timezone"),
    ),
    Row(
        key="clock_kept",
        collector="clock",
        rule=Equal(),
        level=SURPRISES,
        text=marked("clock kept right by a time server: {value}"),
        remedy=marked("start chronyd or systemd-timesyncd there"),
    ),
)
