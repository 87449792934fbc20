"""Finds the NPUs of this host: the devices, npu-smi's data about them, and their addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.machine import driver, hccn, host, npu_use, programs
from hccl_tools.machine.npu_use import Card, Use
from tools.doctor import page


class NpuSmi(Record):
    """What npu-smi reports; the keys are devices."""

    failure: str | None = None  # why it states nothing
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

    conf: the file of addresses where there is no hccn_tool.  seconds: the limit of one npu-smi, else that of npu_use.
    """
    generation = host.generation()
    with ThreadPoolExecutor(max_workers=64) as pool:  # all at the same time: they wait for programs
        smi = pool.submit(_npu_smi, seconds or npu_use.SECONDS)
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
        failure = f"npu-smi info: {page.failure(asked['info'])}"
        return NpuSmi(failure=failure, remedy=driver.remedy_for(asked["info"]))
    text = asked["info"].stdout
    places = host.npu_chips(asked["map"].stdout)
    version = re.search(r"Version:\s*(\S+)", text)
    use = npu_use.parse(text, {place: device for device, place in places.items()})
    board = _board(min(places.values())[0], seconds) if places else {}
    release = version[1] if version else board.get("Software Version")
    return NpuSmi(driver=release, board=board, cards=use.cards, holders=holders(use), places=places)


def _board(npu: int, seconds: float) -> dict[str, str]:
    ended = programs.ask([driver.word(driver.NPU_SMI), "info", "-t", "board", "-i", str(npu)], seconds)
    if ended.status != 0:
        return {}
    pairs = (line.split(":", 1) for line in ended.stdout.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs if value.strip() not in ("", "NA")}


def holders(use: Use) -> dict[int, list[str]]:
    """{device: processes that hold it, as text}"""
    found: dict[int, list[str]] = {}
    for one in use.holders:
        memory = "" if one.memory is None else f", {one.memory} MB"
        found.setdefault(one.device, []).append(f"{one.name or tr('a process')} (pid {one.pid}{memory})")
    return found
