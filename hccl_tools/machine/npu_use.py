"""Reads from npu-smi and nvidia-smi the NPUs and GPUs of this host, their processes, and how much memory is in use."""

from __future__ import annotations

import re

from hccl_tools.common.grouping import grouped
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.record import Record, Row
from hccl_tools.common.words import clauses, one_line, short
from hccl_tools.machine import driver, host, programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.machine.programs import Ended

    Place = tuple[int, int]  # NPU and chip, as npu-smi counts

SECONDS = 30  # limit of one npu-smi, which takes a second or two on a busy host
_MEMORY = re.compile(r"(\d{1,9}) */ *(\d{1,9})")
GPU_SECONDS = 20  # of one answer: where no daemon keeps the driver awake, it first wakes each GPU
_MOST_HOLDERS = 4  # that are named
_CSV = "--format=csv,noheader,nounits"
_FIELDS = "index,gpu_uuid,memory.used,memory.total"


class Card(Row):
    name: str
    health: str


class Holder(Row):
    """A process that has memory of a device."""

    device: int
    pid: int
    name: str
    memory: int | None  # MB


class Use(Record):
    """What npu-smi reports; failure: why it states nothing, "" if it does."""

    cards: Mapping[int, Card] = {}  # by device
    holders: Sequence[Holder] = ()
    memory: Mapping[int, tuple[int, int]] = {}  # device: MB in use, and of all
    failure: str = ""


def look(seconds: float = SECONDS) -> Use:
    """The Use of this host's NPUs."""
    program = driver.find(driver.NPU_SMI)
    if program is None:
        return Use(failure=driver.missing(driver.NPU_SMI)[0])
    asked = programs.ask_all({"info": [program, "info"], "map": [program, "info", "-m"]}, seconds)
    if asked["info"].status:
        return Use(failure=f"npu-smi info: {programs.said(driver.telling(asked['info']))}")
    places = host.npu_chips(asked["map"].stdout)
    return parse(asked["info"].stdout, {place: device for device, place in places.items()})


def parse(text: str, ids: Mapping[Place, int]) -> Use:
    """The Use of the tables that it prints.  ids: {(NPU, chip): device}.

    A chip has two rows, the first with NPU, name and health.  The second one has its number, on some generations its
    physical id, and at its end the memory: "used / all".  In the second table each process has a row.
    """
    cards: dict[int, Card] = {}
    holders: list[Holder] = []
    memory: dict[int, tuple[int, int]] = {}
    npu, card, in_processes = 0, None, False  # card: of a first row whose second one has not come
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        words = cells[0].split()
        numbers = [whole_number(word) for word in words[:2]] + [None, None]
        if len(cells) > 1 and cells[1].lower() == "process id":
            in_processes = True
        elif len(cells) < 3 or numbers[0] is None:
            continue
        elif in_processes:
            if numbers[1] is not None and (pid := whole_number(cells[1])):
                device = ids.get((numbers[0], numbers[1]), numbers[0])
                size = whole_number(cells[3]) if len(cells) > 3 else None
                holders.append(Holder(device, pid, cells[2], size))
        elif card is None:
            npu, card = numbers[0], Card(" ".join(words[1:]), cells[1])
        else:
            device = ids.get((npu, numbers[0]), npu if numbers[1] is None else numbers[1])
            cards[device], card = card, None
            if found := _MEMORY.findall(cells[2]):
                memory[device] = int(found[-1][0]), int(found[-1][1])
    return Use(cards=cards, holders=holders, memory=memory)


def ask_gpus(fields: str) -> list[str]:
    """The command that asks for these fields of all GPUs."""
    return ["nvidia-smi", f"--query-gpu={fields}", _CSV]


def ask_gpu_holders() -> list[str]:
    """The command that asks which processes compute on the GPUs; a container sees only its own."""
    return ["nvidia-smi", "--query-compute-apps=gpu_uuid,pid,used_memory", _CSV]


def gpu_rows(answer: Ended, columns: int) -> list[list[str]]:
    """The table that was printed, without the lines that are none of it; empty if nvidia-smi has failed."""
    if answer.status:
        return []
    found = [[cell.strip() for cell in one_line(line).split(",")] for line in answer.stdout.splitlines()]
    return [row for row in found if len(row) == columns]


def gpu_holders(answer: Ended) -> dict[str, str]:
    """{UUID of a GPU: "pid 4711, 536 MiB; ..."} of the answer to ask_holders()."""
    by_uuid = grouped(
        (uuid, f"pid {short(pid)}, {short(mebibytes)} MiB") for uuid, pid, mebibytes in gpu_rows(answer, 3)
    )
    return {uuid: _few(processes) for uuid, processes in by_uuid.items()}


def _few(processes: list[str]) -> str:
    """The first of them, and how many there are more."""
    more = [f"+{len(processes) - _MOST_HOLDERS}"] if len(processes) > _MOST_HOLDERS else []
    return clauses(*processes[:_MOST_HOLDERS], *more)


def gpu_use() -> Use:
    """The Use of this host's GPUs, by their numbers."""
    if not programs.on_path("nvidia-smi"):
        return Use(failure="nvidia-smi is not on PATH")
    wanted = {"gpus": ask_gpus(_FIELDS), "holders": ask_gpu_holders()}
    asked = programs.ask_all(wanted, GPU_SECONDS)
    for answer in asked.values():
        if answer.status:
            return Use(failure=f"nvidia-smi: {programs.said(answer)}")
    numbers: dict[str, int] = {}
    memory: dict[int, tuple[int, int]] = {}
    for index, uuid, used, of_all in gpu_rows(asked["gpus"], 4):
        number = whole_number(index)
        if number is not None:
            numbers[uuid] = number
            memory[number] = whole_number(used) or 0, whole_number(of_all) or 0
    holders = [
        Holder(numbers[uuid], pid, "", whole_number(mebibytes))
        for uuid, word, mebibytes in gpu_rows(asked["holders"], 3)
        if uuid in numbers and (pid := whole_number(word))
    ]
    return Use(holders=holders, memory=memory)
