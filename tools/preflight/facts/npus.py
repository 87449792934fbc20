"""The devices of this host, from their drivers: their number, health, holders and addresses; the rank table."""

from __future__ import annotations

import os
import re

from hccl_tools.common.numbers import whole_number
from hccl_tools.common.words import ranges
from hccl_tools.machine import driver, hccn, host, npu_use, programs
from hccl_tools.table.address import is_one_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hccl_tools.machine.programs import Ended
    from tools.doctor.npu_smi import Npus
    from tools.preflight.difference import Value
    from tools.preflight.question import Question

_FIELDS = "index,gpu_uuid,name,driver_version,ecc.errors.uncorrected.volatile.total"
# The first name is that of drivers from 530 on, the second the older one.
_SLOWED = "index,clocks_{0}_reasons.hw_thermal_slowdown,clocks_{0}_reasons.sw_thermal_slowdown"
SECONDS = 10  # of one npu-smi
_MOST_PROCESSES = 1 << 16  # of this host that are looked at
_HCCP = "hccp_service"
_BAD = ("Alarm", "Critical")
# As npu-smi names errors that a card has not corrected: "HBM Double Bit Error Count", "DDR Double Bit Error Count".
_ECC = re.compile(r"^[ \t]*(?:HBM |DDR )?Double Bit Error Count[ \t]*:[ \t]*([0-9]{1,9})[ \t]*$", re.MULTILINE)
_TEMPERATURE = re.compile(r"^[ \t]*(?:NPU )?Temperature ?\(C\)[ \t]*:[ \t]*([0-9]{1,3})[ \t]*$", re.MULTILINE)
HOT = 90  # degrees: chips slow themselves down not far above


def collect(question: Question) -> dict[str, Value]:
    """Only their number if there are none, or if only the quick facts are requested."""
    devices = host.nodes() if question.quick else host.devices()
    facts: dict[str, Value] = {"devices": ranges(devices) or None}
    used = devices if question.devices is None else [device for device in devices if device in question.devices]
    facts["short_of"] = _missing(question, devices)
    if not devices or question.quick:
        return facts
    from tools.doctor import npu_smi  # a host without NPUs does not import it

    found = npu_smi.look(question.hccn_conf, SECONDS)
    facts.update(_of_smi(found, used), hccp=_left_over() if not found.smi.holders else [])
    if found.generation:
        facts["generation"] = found.generation
    facts.update(_measured(found, used))
    return {**facts, **(_of_network(found, used) if question.hosts > 1 else {})}


def _missing(question: Question, devices: list[int]) -> list[str]:
    """The devices that the ranks need and this host lacks: by their numbers, or so many of them."""
    if not devices and host.gpu_nodes():  # these are what the launch takes
        return []
    if question.devices is not None:
        return [str(device) for device in question.devices if device not in devices]
    if devices and question.slots is not None and question.slots > len(devices):
        return [f"{len(devices)} < {question.slots}"]
    return []


def _of_smi(found: Npus, used: list[int]) -> dict[str, Value]:
    """What the tables of npu-smi say of the devices that the ranks use."""
    smi = found.smi
    if smi.failure:
        return {"npu_smi": smi.failure}
    health = {device: smi.cards[device].health for device in used if device in smi.cards}
    facts: dict[str, Value] = {
        "npu_smi": None,
        "ill": [f"{device}: {state}" for device, state in health.items() if state in _BAD],
        "ailing": [f"{device}: {state}" for device, state in health.items() if state not in (*_BAD, "OK")],
        "held": [f"{device}: {', '.join(smi.holders[device])}" for device in used if device in smi.holders],
    }
    if smi.driver:
        facts["driver"] = smi.driver
    return facts


def _measured(found: Npus, used: list[int]) -> dict[str, Value]:
    """Errors in the memory and the temperature of each chip; nothing where npu-smi does not state it."""
    program = driver.find(driver.NPU_SMI)
    if program is None or found.smi.failure:
        return {}
    chips = {device: found.smi.places[device] for device in used if device in found.smi.places}
    asked = {
        (what, device): [program, "info", "-t", what, "-i", str(npu), "-c", str(chip)]
        for device, (npu, chip) in chips.items()
        for what in ("ecc", "temp")
    }
    answers = programs.ask_all(asked, SECONDS)
    errors = {device: sum(map(int, _ECC.findall(answers["ecc", device].stdout))) for device in chips}
    degrees = {device: _number(_TEMPERATURE, answers["temp", device]) for device in chips}
    return {
        "memory_errors": [f"{device}: {number}" for device, number in errors.items() if number],
        "hot": [f"{device}: {number} C" for device, number in degrees.items() if number and number >= HOT],
    }


def _number(pattern: re.Pattern[str], answer: Ended) -> int | None:
    found = pattern.search(answer.stdout) if answer.status == 0 else None
    return int(found[1]) if found else None


def _of_network(found: Npus, used: list[int]) -> dict[str, Value]:
    """Links, TLS switches and addresses, which matter where several hosts train together."""
    facts: dict[str, Value] = {"without_address": _numbers(d for d in used if not found.addresses[d][0])}
    if driver.find(driver.HCCN_TOOL) is None:
        return facts
    from hccl_tools.hosts import cards

    links, switches = cards.answered("link", used), cards.answered("tls", used)
    facts["link_down"] = _numbers(device for device, state in links.items() if state not in (None, "UP"))
    facts["tls"] = ", ".join(sorted({state for state in switches.values() if state})) or None
    return facts


def _numbers(devices: Iterable[int]) -> list[str]:
    return [str(device) for device in devices]


def _left_over() -> list[str]:
    """The processes that serve HCCL for a training, though npu-smi knows of none."""
    found = []
    for name in list(filter(str.isdigit, os.listdir("/proc")))[:_MOST_PROCESSES]:
        try:
            with open(f"/proc/{name}/comm", encoding="utf-8", errors="replace") as file:
                command = file.read(64).strip()
        except OSError:  # it has ended
            continue
        if command.startswith(_HCCP):
            found.append(f"{command} (pid {name})")
    return found


# ---- The rank table against this host: its address, its devices and theirs.


def collect_table(question: Question) -> dict[str, Value]:
    """Nothing without a table, or if the asker does not know which of its servers this host is."""
    place = question.place
    if not place:
        return {}
    here = host.devices()
    facts: dict[str, Value] = {
        "table_server": any(map(host.owns, place.names)),
        "table_devices": [device for device in place.devices if here and int(device) not in here],
    }
    wanted = {int(device): address for device, address in place.devices.items() if address and int(device) in here}
    if wanted and not question.quick:
        facts["table_addresses"] = _others(wanted, question.hccn_conf)
    return facts


def _others(wanted: dict[int, str], conf: str) -> list[str]:
    """``DEVICE: its address (in the table: ANOTHER)`` of the devices with another address."""
    try:
        found, _ = hccn.addresses(list(wanted), conf)
    except hccn.AddressError as error:
        return [str(error)]
    return [f"{device}: {found[device]} != {ip}" for device, ip in wanted.items() if not is_one_of(found[device], ip)]


# ---- The GPUs of this host: which are here, how they are, and who holds them, as nvidia-smi reports it.


def collect_gpus(question: Question) -> dict[str, Value]:
    """Only what is missing if there are no GPUs, or if only the quick facts are requested.

    A host with NPUs trains on these, so its GPUs, if it has some, do not matter.
    """
    number = len(host.gpu_nodes())
    if not number or host.nodes():
        return {"gpus": None, "short_of_gpus": []}
    facts: dict[str, Value] = {"short_of_gpus": _missing_gpus(question, number)}
    if question.quick:
        return facts
    asked = programs.ask_all(
        {
            "gpus": npu_use.ask_gpus(_FIELDS),
            "holders": npu_use.ask_gpu_holders(),
            "event": npu_use.ask_gpus(_SLOWED.format("event")),
            "throttle": npu_use.ask_gpus(_SLOWED.format("throttle")),
        },
        npu_use.GPU_SECONDS,
    )
    if asked["gpus"].status:
        return {**facts, "nvidia_smi": programs.said(asked["gpus"])}
    slowed = npu_use.gpu_rows(asked["throttle"] if asked["event"].status else asked["event"], 3)
    gpus = npu_use.gpu_rows(asked["gpus"], 5)
    return {**facts, **_of_gpus(gpus, npu_use.gpu_holders(asked["holders"]), slowed, question.devices)}


def _missing_gpus(question: Question, number: int) -> list[str]:
    """The GPUs that the ranks need and this host lacks: by their numbers, or so many of them."""
    if question.devices is not None:
        return [str(device) for device in question.devices if device >= number]
    return [f"{number} < {question.slots}"] if question.slots is not None and question.slots > number else []


def _of_gpus(
    gpus: list[list[str]], holders: dict[str, str], slowed: list[list[str]], used: Sequence[int] | None
) -> dict[str, Value]:
    """What the tables state of the GPUs that the ranks use."""
    mine = [row for row in gpus if used is None or whole_number(row[0]) in used]
    names = [row[2] for row in gpus]
    return {
        "nvidia_smi": None,
        "gpus": ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names)),
        "gpu_driver": mine[0][3] if mine else None,
        "gpus_held": [f"{row[0]}: {holders[row[1]]}" for row in mine if row[1] in holders],
        "gpu_memory_errors": [f"{row[0]}: {row[4]}" for row in mine if whole_number(row[4], 1) is not None],
        "gpus_hot": [row[0] for row in slowed if "Active" in row[1:] and row[0] in [own[0] for own in mine]],
    }
