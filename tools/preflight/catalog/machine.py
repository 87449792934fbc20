"""The facts about a job's software, and about the machine: memory, processors, limits, clock, NPUs and GPUs."""

from __future__ import annotations

from hccl_tools.common.language import marked
from tools.doctor.limits import FEW_FILES, FEW_PROCESSES
from tools.preflight.catalog.row import END_HOLDER, GIB, Equal, Fact, Near, Nothing, graded
from tools.preflight.difference import BLOCKS, SLOWS, SURPRISES

_MEMORY = marked("end what takes it, or start fewer ranks there")
_SAME_VERSION = marked("install the same version on all hosts")
_HEALTH = marked(
    "npu-smi info -t health -i NPU -c CHIP shows more there; leave the host or the device out with --exclude"
)

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

NPUS = (
    Fact("short_of", "npus", Nothing(), BLOCKS).says(
        marked("NPUs that the ranks need are not there: {value}"),
        remedy=marked("start fewer ranks there; ls /dev/davinci* shows the devices"),
    ),
    Fact("generation", "npus", Equal(), BLOCKS).says(
        marked("NPUs of generation {value}"), remedy=marked("take hosts of one generation")
    ),
    Fact("ill", "npus", Nothing(), BLOCKS).says(marked("NPUs that are not healthy: {value}"), remedy=_HEALTH),
    Fact("held", "npus", Nothing(), BLOCKS).says(marked("NPUs that a process holds: {value}"), remedy=END_HOLDER),
    Fact("link_down", "npus", Nothing(), BLOCKS).says(
        marked("NPUs whose network link is down: {value}"),
        remedy=marked("check cable and switch; hccn_tool -i DEVICE -link_stat -g shows when it went down"),
    ),
    Fact("without_address", "npus", Nothing(), BLOCKS).says(
        marked("NPUs without an address: {value}"),
        remedy=marked("set one: hccn_tool -i DEVICE -ip -s address ADDRESS netmask MASK"),
    ),
    Fact("tls", "npus", Equal(), BLOCKS).says(
        marked("TLS switch {value} of the NPUs"),
        without=marked("no TLS switch of the NPUs"),
        remedy=marked("switch it off everywhere: hccn_tool -i DEVICE -tls -s enable 0"),
    ),
    Fact("devices", "npus", Equal(), SURPRISES).says(marked("NPUs {value}"), without=marked("no NPU")),
    Fact("hot", "npus", Nothing(), SLOWS).says(
        marked("NPUs that are hot: {value}"), remedy=marked("check the cooling: a hot chip slows itself down")
    ),
    Fact("hccp", "npus", Nothing(), SURPRISES).says(
        marked("HCCL processes that do not belong to a training: {value}"),
        remedy=marked("end them there if they are left over: kill PID"),
    ),
    Fact("ailing", "npus", Nothing(), SURPRISES).says(marked("NPUs with a warning: {value}"), remedy=_HEALTH),
    Fact("memory_errors", "npus", Nothing(), SURPRISES).says(
        marked("NPUs with uncorrected memory errors: {value}"),
        remedy=marked("ask the operator for a reset or another card"),
    ),
    Fact("npu_smi", "npus", Nothing(), SURPRISES).says(
        marked("npu-smi reports nothing: {value}"),
        remedy=marked("health and owners of the NPUs are not known; see npu-smi info there"),
    ),
)

GPUS = (
    Fact("short_of_gpus", "gpus", Nothing(), BLOCKS).says(
        marked("GPUs that the ranks need are not there: {value}"),
        remedy=marked("start fewer ranks there; nvidia-smi -L lists the GPUs"),
    ),
    Fact("gpus_held", "gpus", Nothing(), SLOWS).says(marked("GPUs that a process uses: {value}"), remedy=END_HOLDER),
    Fact("gpus_hot", "gpus", Nothing(), SLOWS).says(
        marked("GPUs that are throttled by heat: {value}"),
        remedy=marked("check the cooling; nvidia-smi -q -d PERFORMANCE,TEMPERATURE shows more there"),
    ),
    Fact("gpus", "gpus", Equal(), SURPRISES).says(marked("GPUs {value}"), without=marked("no GPU")),
    Fact("gpu_driver", "gpus", Equal(), SURPRISES).says(
        marked("driver {value} of the GPUs"),
        without=marked("no driver of GPUs"),
        remedy=marked("install one driver on all hosts"),
    ),
    Fact("gpu_memory_errors", "gpus", Nothing(), SURPRISES).says(
        marked("GPUs with uncorrected memory errors: {value}"),
        remedy=marked("nvidia-smi -q -d ECC,ROW_REMAPPER shows more there; leave the host out with --exclude"),
    ),
    Fact("nvidia_smi", "gpus", Nothing(), SURPRISES).says(
        marked("nvidia-smi reports nothing: {value}"),
        remedy=marked("health and owners of the GPUs are not known; see nvidia-smi there"),
    ),
)
