"""Reads from nvidia-smi which processes use the GPUs of this host, and how much GPU memory is in use."""

from __future__ import annotations

from hccl_tools.common.numbers import whole_number
from hccl_tools.machine import nvidia_smi, programs
from hccl_tools.machine.npu_use import Holder, Use

_FIELDS = "index,gpu_uuid,memory.used,memory.total"


def look() -> Use:
    """The Use of this host's GPUs, by their numbers."""
    if not programs.on_path("nvidia-smi"):
        return Use(failure="nvidia-smi is not on PATH")
    wanted = {"gpus": nvidia_smi.ask(_FIELDS), "holders": nvidia_smi.ask_holders()}
    asked = programs.ask_all(wanted, nvidia_smi.SECONDS)
    for answer in asked.values():
        if answer.status:
            return Use(failure=f"nvidia-smi: {programs.said(answer)}")
    numbers: dict[str, int] = {}
    memory: dict[int, tuple[int, int]] = {}
    for index, uuid, used, of_all in nvidia_smi.rows(asked["gpus"], 4):
        number = whole_number(index)
        if number is not None:
            numbers[uuid] = number
            memory[number] = whole_number(used) or 0, whole_number(of_all) or 0
    holders = [
        Holder(numbers[uuid], pid, "", whole_number(mebibytes))
        for uuid, word, mebibytes in nvidia_smi.rows(asked["holders"], 3)
        if uuid in numbers and (pid := whole_number(word))
    ]
    return Use(holders=holders, memory=memory)
