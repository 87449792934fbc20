"""The facts about the NPUs and GPUs of a host."""

from __future__ import annotations

from hccl_tools.common.language import marked
from tools.preflight.catalog.row import END_HOLDER, Equal, Fact, Nothing
from tools.preflight.difference import BLOCKS, SLOWS, SURPRISES

_HEALTH = marked(
    "npu-smi info -t health -i NPU -c CHIP shows more there; leave the host or the device out with --exclude"
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
