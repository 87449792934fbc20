"""The NPUs of this host: their health, the jobs that hold them, and their addresses."""

from __future__ import annotations

import json
import os
import sys

from hccl_tools.common import project
from hccl_tools.common.language import marked, strerror, tr
from hccl_tools.common.refusal import Refusal
from hccl_tools.common.words import clauses, count, named, ranges
from hccl_tools.machine import driver, hccn, visible
from hccl_tools.machine.programs import Ended
from hccl_tools.table.address import packed
from tools.doctor import files, page
from tools.doctor.npu_smi import Npus
from tools.doctor.page import ABSENT, OK, PROBLEM, UNKNOWN, WARNING, Facts, Line, Options, masked, worst

TITLE = marked("NPUs")

_HEALTH = {"OK": OK, "Warning": WARNING, "Alarm": PROBLEM, "Critical": PROBLEM}
_MANAGER = "/dev/davinci_manager"


def questions(_: Options) -> dict[str, list[str]]:
    """The command that reads the locks; npu_smi.py asks npu-smi and hccn_tool."""
    return {"locks": [sys.executable, project.path("tools", "doctor", "locks.py")]}


def lines(facts: Facts) -> list[Line]:
    """The devices together, each device, and lines about their holders and places."""
    npus, conf = facts.npus, facts.options.hccn_conf
    found = [_summary(npus)]
    found += _seen(npus)
    smi = npus.smi
    if smi.failure and (npus.devices or not smi.absent):
        found.append(Line("npu-smi", WARNING, smi.failure, smi.remedy))
    if npus.devices:
        found += _off_path()
    found += [_device(npus, device) for device in npus.devices]
    return [*found, _locks(facts.answers["locks"]), _conf(npus, conf)]


def _summary(npus: Npus) -> Line:
    if npus.devices:
        generation = f", {npus.generation}" if npus.generation else ""
        return Line(tr("devices"), OK, f"{ranges(npus.devices)}{generation}")
    if npus.generation:
        text = tr("the bus has chips of {generation}, but there is no /dev/davinci*", generation=npus.generation)
        remedy = tr("load the driver; a container needs --device=/dev/davinci0 and so on")
        return Line(tr("devices"), PROBLEM, text, remedy)
    if os.path.exists(files.ROOT + _MANAGER):
        text = tr("{path} is there, but no /dev/davinci0 and so on", path=_MANAGER)
        return Line(tr("devices"), PROBLEM, text, tr("the container needs --device=/dev/davinci0 and so on"))
    text = tr("no Ascend NPU: no /dev/davinci*, nothing known on the bus, and npu-smi names none")
    target = "GPU" if visible.number_of_gpus() and not visible.hides_all_gpus() else "CPU"
    return Line(tr("devices"), ABSENT, text, tr("launches run with --device_target {target}", target=target))


def _seen(npus: Npus) -> list[Line]:
    """By which numbers the ranks know the devices, where these are others than the physical ids."""
    name = tr("visible devices")
    if not npus.devices:
        return []
    try:
        seen = visible.npus()
    except Refusal as error:
        return [Line(name, PROBLEM, str(error))]
    lines = [Line(name, WARNING, text) for text in visible.without_effect(seen)]
    ids = list(seen.ids or ())
    if seen.limit or ids != list(range(len(ids))):
        lines.append(Line(name, OK, seen.numbering(ids)))
    return lines


def _off_path() -> list[Line]:
    """The driver's programs that are not on PATH, where we have found them all the same."""
    names = [name for name in (driver.HCCN_TOOL, driver.NPU_SMI) if driver.find(name) not in (None, name)]
    return [Line(name, OK, driver.source(name)) for name in names]


def _device(npus: Npus, device: int) -> Line:
    card, held = npus.smi.cards.get(device), npus.smi.holders.get(device)
    address, source = npus.addresses[device]
    states, texts, remedies = [], [], []
    if card:
        states.append(_HEALTH.get(card.health, UNKNOWN))
        texts.append(tr("{name}, health {health}", name=card.name, health=card.health))
        if card.health != "OK":
            npu, chip = npus.smi.places.get(device, (device, 0))
            more = f"npu-smi info -t health -i {npu} -c {chip}"
            remedies.append(tr("{command} shows more; ask the operator", command=more))
    else:
        states.append(UNKNOWN)
        texts.append(tr("health unknown"))
    if address:
        texts.append(masked(tr("address {address} ({source})", address=address, source=source)))
    elif npus.generation in ("A2", "A3") and source == "nowhere":
        texts.append(tr("no address, which several servers need"))
    else:
        states.append(PROBLEM if npus.generation == "910A" else WARNING)
        texts.append(masked(tr("no address: {reason}", reason=source)))
    if held:
        states.append(WARNING)
        texts.append(tr("held by {processes}", processes=", ".join(held)))
        end = tr("wait for it, choose others with --devices, or end it if it is left over from a job of yours")
        remedies.append(end)
    elif card:
        texts.append(tr("free"))
    return Line(tr("device {device}", device=device), worst(states), clauses(*texts), clauses(*remedies))


def _locks(ended: Ended) -> Line:
    """The devices, and with --bind_core the cores, that this launcher's jobs hold; ended: the answer of locks.py."""
    name = tr("launcher's locks")
    if ended.status != 0:
        remedy = tr(
            "two launches on the same devices might not notice each other; LAUNCH_LOCKS can name another folder"
        )
        return Line(name, UNKNOWN, page.failure(ended), remedy)
    held = json.loads(ended.stdout)
    if not held:
        return Line(name, OK, tr("no job of this launcher holds a device"))
    texts = [
        tr("{held} by {job} (pid {pid})", held=_held(ids, cores), job=os.path.basename(job), pid=pid)
        for job, pid, ids, cores in held
    ]
    return Line(name, WARNING, clauses(*texts), tr("wait with --wait_for_devices, or choose others with --devices"))


def _held(devices: list[int], cores: list[int]) -> str:
    texts = [named("device", devices)] * bool(devices) + [named("core", cores)] * bool(cores)
    return tr(" and ").join(texts)


def _conf(npus: Npus, conf: str) -> Line:
    """The file of addresses, and whether the cards use what it states."""
    name = "hccn.conf"
    try:
        in_file, fault = hccn.read_conf(conf)
    except FileNotFoundError:
        if npus.devices and driver.find(driver.HCCN_TOOL) is None:
            why, remedy = driver.missing(driver.HCCN_TOOL)
            return Line(name, PROBLEM, tr("no {path}; {why}", path=conf, why=why), remedy)
        answers = tr("no {path}; hccn_tool answers", path=conf)
        return Line(name, ABSENT, answers if npus.devices else tr("no {path}", path=conf))
    except (OSError, UnicodeDecodeError) as error:
        reason = strerror(error)
        text = tr("{path} cannot be read: {reason}", path=conf, reason=reason)
        return Line(name, WARNING, text, tr("make it readable, or name a copy: --hccn_conf"))
    if fault:
        return Line(name, PROBLEM, masked(fault), tr("correct the line"))
    for device, (address, source) in npus.addresses.items():
        if (
            source.startswith(driver.HCCN_TOOL)
            and address
            and device in in_file
            and packed(in_file[device]) != packed(address)
        ):
            text = tr(
                "{path} has {other} for device {device}, which uses {address}",
                path=conf,
                other=in_file[device],
                device=device,
                address=address,
            )
            remedy = tr("hccn_tool -i {device} -cfg recovery applies the file", device=device)
            return Line(name, WARNING, masked(text), remedy)
    return Line(name, OK, tr("{path} has addresses of {devices}", path=conf, devices=count(len(in_file), "device")))
