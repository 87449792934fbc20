"""Reads GPU data from nvidia-smi in its CSV form; its --help-query-gpu lists the fields."""

from __future__ import annotations

from hccl_tools.common.grouping import grouped
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.words import clauses, one_line, short
from hccl_tools.machine import programs
from hccl_tools.machine.npu_use import Holder, Use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hccl_tools.machine.programs import Ended

SECONDS = 20  # of one answer: where no daemon keeps the driver awake, it first wakes each GPU
_MOST_HOLDERS = 4  # that are named
_CSV = "--format=csv,noheader,nounits"
_FIELDS = "index,gpu_uuid,memory.used,memory.total"


def ask(fields: str) -> list[str]:
    """The command that asks for these fields of all GPUs."""
    return ["nvidia-smi", f"--query-gpu={fields}", _CSV]


def ask_holders() -> list[str]:
    """The command that asks which processes compute on the GPUs; a container sees only its own."""
    return ["nvidia-smi", "--query-compute-apps=gpu_uuid,pid,used_memory", _CSV]


def rows(answer: Ended, columns: int) -> list[list[str]]:
    """The table that was printed, without the lines that are none of it; empty if nvidia-smi has failed."""
    if answer.status:
        return []
    found = [[cell.strip() for cell in one_line(line).split(",")] for line in answer.stdout.splitlines()]
    return [row for row in found if len(row) == columns]


def holders(answer: Ended) -> dict[str, str]:
    """{UUID of a GPU: "pid 4711, 536 MiB; ..."} of the answer to ask_holders()."""
    by_uuid = grouped((uuid, f"pid {short(pid)}, {short(mebibytes)} MiB") for uuid, pid, mebibytes in rows(answer, 3))
    return {uuid: _few(processes) for uuid, processes in by_uuid.items()}


def _few(processes: list[str]) -> str:
    """The first of them, and how many there are more."""
    more = [f"+{len(processes) - _MOST_HOLDERS}"] if len(processes) > _MOST_HOLDERS else []
    return clauses(*processes[:_MOST_HOLDERS], *more)


def use() -> Use:
    """The Use of this host's GPUs, by their numbers."""
    if not programs.on_path("nvidia-smi"):
        return Use(failure="nvidia-smi is not on PATH")
    wanted = {"gpus": ask(_FIELDS), "holders": ask_holders()}
    asked = programs.ask_all(wanted, SECONDS)
    for answer in asked.values():
        if answer.status:
            return Use(failure=f"nvidia-smi: {programs.said(answer)}")
    numbers: dict[str, int] = {}
    memory: dict[int, tuple[int, int]] = {}
    for index, uuid, used, of_all in rows(asked["gpus"], 4):
        number = whole_number(index)
        if number is not None:
            numbers[uuid] = number
            memory[number] = whole_number(used) or 0, whole_number(of_all) or 0
    holders = [
        Holder(numbers[uuid], pid, "", whole_number(mebibytes))
        for uuid, word, mebibytes in rows(asked["holders"], 3)
        if uuid in numbers and (pid := whole_number(word))
    ]
    return Use(holders=holders, memory=memory)
