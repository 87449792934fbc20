"""The facts about the versions of a job's software, and about the machine: memory, processors, limits, clock."""

from __future__ import annotations

from hccl_tools.common.language import marked
from tools.doctor.limits import FEW_FILES, FEW_PROCESSES
from tools.preflight.catalog.row import GIB, Equal, Fact, Near, Nothing, graded
from tools.preflight.difference import BLOCKS, SLOWS, SURPRISES

_MEMORY = marked("end what takes it, or start fewer ranks there")
_SAME_VERSION = marked("install the same version on all hosts")

SOFTWARE = (
    Fact("mindspore", "software", Equal(), BLOCKS).says(
        marked("MindSpore {value}"), without=marked("no MindSpore"), remedy=_SAME_VERSION
    ),
    Fact("cann", "software", Equal(), BLOCKS).says(
        marked("CANN {value}"), without=marked("no CANN"), remedy=_SAME_VERSION
    ),
    Fact("python", "software", Equal(), BLOCKS).says(marked("Python {value}"), remedy=_SAME_VERSION),
    Fact("package:", "software", Equal(), SURPRISES).says(
        marked("{name} {value}"),
        lacking=BLOCKS,
        without=marked("no {name}"),
        remedy=marked("the program imports it: install the same version on all hosts"),
    ),
    Fact("uncompiled", "bytecode", Nothing(), SLOWS).says(
        marked("each rank compiles at each start: {value}"),
        remedy=marked("there, as the owner: python -m compileall -qq FOLDER; and leave PYTHONDONTWRITEBYTECODE unset"),
    ),
    Fact("driver", "software", Equal(), SURPRISES).says(
        marked("driver {value}"), without=marked("no driver"), remedy=_SAME_VERSION
    ),
    Fact("firmware", "software", Equal(), SURPRISES).says(
        marked("firmware {value}"), without=marked("no firmware"), remedy=_SAME_VERSION
    ),
    Fact("glibc", "software", Equal(), SURPRISES).says(
        marked("glibc {value}"), without=marked("another C library than glibc")
    ),
)

SYSTEM = (
    Fact("machine", "system", Equal(), SURPRISES).says(marked("processors of type {value}")),
    Fact("os", "system", Equal(), SURPRISES).says("{value}", without=marked("a system without /etc/os-release")),
    Fact("kernel", "system", Equal(), SURPRISES).says(marked("kernel {value}")),
    *graded(
        {BLOCKS: GIB // 2, SURPRISES: 4 * GIB},
        key="memory_free",
        collector="system",
        text=marked("{value} of free memory"),
        unit="bytes",
        remedy=_MEMORY,
    ),
    Fact("cpus", "system", Equal(), SLOWS).says(
        marked("{value} processors"),
        one=marked("{value} processor"),
        remedy=marked("a job is as fast as its slowest host"),
    ),
    Fact("cpu_limit", "system", Equal(), SLOWS).says(
        marked("the time of {value} processors by the control group"),
        one=marked("the time of {value} processor by the control group"),
        without=marked("no limit of processor time"),
        remedy=marked("give all containers the same limit: docker run --cpus"),
    ),
    Fact("memory", "system", Near(0.1), SURPRISES).says(marked("{value} of memory"), unit="bytes"),
    Fact("memory_limit", "system", Equal(), SURPRISES).says(
        marked("at most {value} of memory by the control group"), without=marked("no limit of memory"), unit="bytes"
    ),
    *graded(
        {BLOCKS: 256, SURPRISES: 1024},
        key="open_files",
        collector="limits",
        text=marked("{value} open files (ulimit -n)"),
        remedy=FEW_FILES,
    ),
    Fact("open_files", "limits", Equal(1 << 16), SURPRISES).says(
        marked("{value} open files (ulimit -n)"),
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
    Fact("locked_memory", "limits", Equal(GIB), SURPRISES).says(
        marked("{value} of locked memory (ulimit -l)"),
        without=marked("any amount of locked memory (ulimit -l)"),
        unit="bytes",
        remedy=marked("raise memlock in /etc/security/limits.conf, or start the container with --ulimit memlock=-1"),
    ),
    Fact("time_zone", "clock", Equal(), SURPRISES).says(
        marked("time zone {value}"),
        remedy=marked("lines of several logs are hard to compare: set the same with timedatectl set-timezone"),
    ),
    Fact("clock_kept", "clock", Equal(), SURPRISES).says(
        marked("clock synchronized by a time server: {value}"),
        remedy=marked("start chronyd or systemd-timesyncd there"),
    ),
)
