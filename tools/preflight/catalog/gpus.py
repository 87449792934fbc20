"""The GPUs of a host."""

from __future__ import annotations

from hccl_tools.common.language import marked
from tools.preflight.catalog.row import END_HOLDER, Equal, Nothing, Row
from tools.preflight.difference import BLOCKS, SLOWS, SURPRISES

GPUS = (
    Row(
        key="short_of_gpus",
        collector="gpus",
        rule=Nothing(),
        level=BLOCKS,
        text=marked("GPUs that the ranks need are not there: {value}"),
        remedy=marked("start fewer ranks there; nvidia-smi -L lists the GPUs"),
    ),
    Row(
        key="gpus_held",
        collector="gpus",
        rule=Nothing(),
        level=SLOWS,
        text=marked("GPUs that a process uses: {value}"),
        remedy=END_HOLDER,
    ),
    Row(
        key="gpus_hot",
        collector="gpus",
        rule=Nothing(),
        level=SLOWS,
        text=marked("GPUs that heat slows down: {value}"),
        remedy=marked("see to the cooling; nvidia-smi -q -d PERFORMANCE,TEMPERATURE says more there"),
    ),
    Row(
        key="gpus",
        collector="gpus",
        rule=Equal(),
        level=SURPRISES,
        text=marked("GPUs {value}"),
        without=marked("no GPU"),
    ),
    Row(
        key="gpu_driver",
        collector="gpus",
        rule=Equal(),
        level=SURPRISES,
        text=marked("driver {value} of the GPUs"),
        without=marked("no driver of GPUs"),
        remedy=marked("install one driver on all hosts"),
    ),
    Row(
        key="gpu_memory_errors",
        collector="gpus",
        rule=Nothing(),
        level=SURPRISES,
        text=marked("GPUs with memory errors that were not corrected: {value}"),
        remedy=marked("nvidia-smi -q -d ECC,ROW_REMAPPER says more there; leave the host out with --exclude"),
    ),
    Row(
        key="nvidia_smi",
        collector="gpus",
        rule=Nothing(),
        level=SURPRISES,
        text=marked("nvidia-smi says nothing: {value}"),
        remedy=marked("health and owners of the GPUs are not known; see nvidia-smi there"),
    ),
)
