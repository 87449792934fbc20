"""Finds the NPUs of this host: devices, what npu-smi says about them, and their addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.record import Record, Row
from hccl_tools.machine import driver, hccn, host, programs
from tools.doctor import answer

SECONDS = 30  # limit of one npu-smi, which takes a second or two on a busy host


class Card(Row):
    name: str
    health: str


class NpuSmi(Record):
    """What npu-smi says; the keys are devices."""

    failure: str | None = None  # why it says nothing
    remedy: str = ""  # what to do then
    absent: bool = False  # there is none
    driver: str | None = None
    board: Mapping[str, str] = {}  # `npu-smi info -t board`
    cards: Mapping[int, Card] = {}
    holders: Mapping[int, list[str]] = {}  # processes, as text
    places: Mapping[int, tuple[int, int]] = {}  # NPU and chip, as npu-smi counts


class Npus(Record):
    devices: list[int] = []  # physical ids
    generation: str | None = None  # as host.generation
    smi: NpuSmi
    # the address of each device and where it comes from, or None and why there is none
    addresses: Mapping[int, tuple[str | None, str]] = {}


def look(conf: str, seconds: float | None = None) -> Npus:
    """The Npus of this host.

    conf: the file of addresses where there is no hccn_tool.  seconds: the limit of one npu-smi (default: SECONDS).
    """
    generation = host.generation()
    with ThreadPoolExecutor(max_workers=64) as pool:  # all at the same time: they wait for programs
        smi = pool.submit(_npu_smi, seconds or SECONDS)
        devices = host.devices()
        optional = generation in ("A2", "A3")  # one server of these can do without addresses
        asked = {device: pool.submit(_address, device, conf, optional) for device in devices}
        addresses = {device: future.result() for device, future in asked.items()}
    return Npus(devices=devices, generation=generation, smi=smi.result(), addresses=addresses)


def _address(device: int, conf: str, optional: bool) -> tuple[str | None, str]:
    try:
        found, source = hccn.addresses([device], conf, optional)
    except hccn.AddressError as error:
        return None, str(error)
    return found[device], source


def _npu_smi(seconds: float) -> NpuSmi:
    program = driver.find(driver.NPU_SMI)
    if program is None:
        why, remedy = driver.missing(driver.NPU_SMI)
        return NpuSmi(failure=why, remedy=remedy, absent=True)
    asked = programs.ask_all({"info": [program, "info"], "map": [program, "info", "-m"]}, seconds)
    if asked["info"].status != 0:
        failure = f"npu-smi info: {answer.failure(asked['info'])}"
        return NpuSmi(failure=failure, remedy=driver.remedy_for(asked["info"]))
    text = asked["info"].stdout
    places = host.npu_chips(asked["map"].stdout)
    version = re.search(r"Version:\s*(\S+)", text)
    cards, holders = parse_info(text, {place: device for device, place in places.items()})
    board = _board(min(places.values())[0], seconds) if places else {}
    release = version[1] if version else board.get("Software Version")
    return NpuSmi(driver=release, board=board, cards=cards, holders=holders, places=places)


def _board(npu: int, seconds: float) -> dict[str, str]:
    ended = programs.ask([driver.word(driver.NPU_SMI), "info", "-t", "board", "-i", str(npu)], seconds)
    if ended.status != 0:
        return {}
    pairs = (line.split(":", 1) for line in ended.stdout.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs if value.strip() not in ("", "NA")}


def parse_info(text: str, ids: Mapping[tuple[int, int], int]) -> tuple[dict[int, Card], dict[int, list[str]]]:
    """({device: Card}, {device: processes that hold it}) of the tables that ``npu-smi info`` prints.

    ids: {(NPU, chip): device}.  A chip has two rows, the first with NPU, name and health, the second with its
    number, on some generations its physical id, and its place on the bus.  A row of the second table is a process.
    """
    cards: dict[int, Card] = {}
    holders: dict[int, list[str]] = {}
    npu, card, in_processes = 0, None, False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        words = cells[0].split()
        numbers = [whole_number(word) for word in words[:2]] + [None, None]
        if len(cells) > 1 and cells[1].lower() == "process id":
            in_processes = True
        elif len(cells) < 3 or numbers[0] is None:
            continue
        elif in_processes:
            if numbers[1] is not None:
                device = ids.get((numbers[0], numbers[1]), numbers[0])
                holders.setdefault(device, []).append(_holder(cells))
        elif card is None:
            npu, card = numbers[0], Card(" ".join(words[1:]), cells[1])
        else:
            cards[ids.get((npu, numbers[0]), npu if numbers[1] is None else numbers[1])] = card
            card = None
    return cards, holders


def _holder(cells: list[str]) -> str:
    name = cells[2] or tr("a process")
    memory = f", {cells[3]} MB" if len(cells) > 3 and cells[3].isdigit() else ""
    return f"{name} (pid {cells[1]}{memory})"
