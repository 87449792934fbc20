"""The NPUs of a host."""

from __future__ import annotations

from hccl_tools.common.language import marked
from tools.preflight.catalog.row import END_HOLDER, Equal, Nothing, Row
from tools.preflight.difference import BLOCKS, SLOWS, SURPRISES

_HEALTH = marked(
    "npu-smi info -t health -i NPU -c CHIP says more there; leave the host or the device out with --exclude"
)

NPUS = (
    Row(
        key="short_of",
        collector="npus",
        rule=Nothing(),
        level=BLOCKS,
        text=marked("NPUs that the ranks need are not there: {value}"),
        remedy=marked("start fewer ranks there; ls /dev/davinci* shows the devices"),
    ),
    Row(
        key="generation",
        collector="npus",
        rule=Equal(),
        level=BLOCKS,
        text=marked("NPUs of generation {value}"),
        remedy=marked("take hosts of one generation"),
    ),
    Row(
        key="ill",
        collector="npus",
        rule=Nothing(),
        level=BLOCKS,
        text=marked("NPUs that are not well: {value}"),
        remedy=_HEALTH,
    ),
    Row(
        key="held",
        collector="npus",
        rule=Nothing(),
        level=BLOCKS,
        text=marked("NPUs that a process holds: {value}"),
        remedy=END_HOLDER,
    ),
    Row(
        key="link_down",
        collector="npus",
        rule=Nothing(),
        level=BLOCKS,
        text=marked("NPUs whose network link is down: {value}"),
        remedy=marked("see cable and switch; hccn_tool -i DEVICE -link_stat -g says when it went down"),
    ),
    Row(
        key="without_address",
        collector="npus",
        rule=Nothing(),
        level=BLOCKS,
        text=marked("NPUs without an address: {value}"),
        remedy=marked("set one: hccn_tool -i DEVICE -ip -s address ADDRESS netmask MASK"),
    ),
    Row(
        key="tls",
        collector="npus",
        rule=Equal(),
        level=BLOCKS,
        text=marked("TLS switch {value} of the NPUs"),
        without=marked("no TLS switch of the NPUs"),
        remedy=marked("switch it off everywhere: hccn_tool -i DEVICE -tls -s enable 0"),
    ),
    Row(
        key="devices",
        collector="npus",
        rule=Equal(),
        level=SURPRISES,
        text=marked("NPUs {value}"),
        without=marked("no NPU"),
    ),
    Row(
        key="hot",
        collector="npus",
        rule=Nothing(),
        level=SLOWS,
        text=marked("NPUs that are hot: {value}"),
        remedy=marked("see to the cooling: a hot chip slows itself down"),
    ),
    Row(
        key="hccp",
        collector="npus",
        rule=Nothing(),
        level=SURPRISES,
        text=marked("processes of HCCL that no training owns: {value}"),
        remedy=marked("end them there if they are left over: kill PID"),
    ),
    Row(
        key="ailing",
        collector="npus",
        rule=Nothing(),
        level=SURPRISES,
        text=marked("NPUs with a warning: {value}"),
        remedy=_HEALTH,
    ),
    Row(
        key="memory_errors",
        collector="npus",
        rule=Nothing(),
        level=SURPRISES,
        text=marked("NPUs with memory errors that were not corrected: {value}"),
        remedy=marked("ask the operator for a reset or another card"),
    ),
    Row(
        key="npu_smi",
        collector="npus",
        rule=Nothing(),
        level=SURPRISES,
        text=marked("npu-smi says nothing: {value}"),
        remedy=marked("health and owners of the NPUs are not known; see npu-smi info there"),
    ),
)
