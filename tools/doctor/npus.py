"""The NPUs: which are here, how they are, who holds them, and their addresses."""

import json
import os
import re
import sys
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

from hccl_tools.machine import hccn, host, programs
from hccl_tools.table.address import packed
from tools.doctor import answer, files
from tools.doctor.page import ABSENT, OK, PROBLEM, UNKNOWN, WARNING, Line, masked, worst

TITLE = "NPUs"
QUESTIONS = {"locks": [sys.executable, os.path.join(os.path.dirname(os.path.realpath(__file__)), "locks.py")]}
SECONDS = 30  # for one npu-smi, which takes a second or two on a busy host

# devices: physical ids.  generation: as host.generation.  driver: version or None.  board: {field: value} of
# `npu-smi info -t board`.  failure: why npu-smi says nothing, or None.  cards: {device: Card}.  holders: {device:
# [words]}.  places: {device: (NPU, chip)}, as npu-smi counts.  addresses: {device: (address or None, words)}; the
# words say where it comes from, or why there is none.
Npus = namedtuple("Npus", "devices generation driver board failure cards holders places addresses")
Card = namedtuple("Card", "name health")

# What npu-smi said, as in Npus.
_Answers = namedtuple("_Answers", "driver board failure cards holders places", defaults=(None, {}, None, {}, {}, {}))
_NOT_ON_PATH = "npu-smi is not on PATH (it is in /usr/local/bin or /usr/local/sbin of a host)"

_HEALTH = {"OK": OK, "Warning": WARNING, "Alarm": PROBLEM, "Critical": PROBLEM}
_MANAGER = "/dev/davinci_manager"


def look(conf):
    """The Npus of this host; conf: the file of addresses where there is no hccn_tool."""
    generation = host.generation()
    with ThreadPoolExecutor(max_workers=64) as pool:  # all at the same time: they wait for programs
        asked_npu_smi = pool.submit(_npu_smi)
        devices = host.devices()
        optional = generation in ("A2", "A3")  # one server of these can do without addresses
        asked = {device: pool.submit(_address, device, conf, optional) for device in devices}
        addresses = {device: future.result() for device, future in asked.items()}
    return Npus(devices, generation, *asked_npu_smi.result(), addresses)


def none(failure=None):
    """The Npus of a host without any, or where they cannot be known: `failure` says why."""
    return Npus([], None, *_Answers(failure=failure), {})


def _address(device, conf, optional):
    try:
        found, source = hccn.addresses([device], conf, optional)
    except hccn.AddressError as error:
        return None, str(error)
    return found[device], source


def _npu_smi():
    """The _Answers of npu-smi."""
    if not programs.on_path("npu-smi"):
        return _Answers(failure=_NOT_ON_PATH)
    asked = programs.ask_all({"info": ["npu-smi", "info"], "map": ["npu-smi", "info", "-m"]}, SECONDS)
    if asked["info"].status != 0:
        return _Answers(failure=f"npu-smi info: {answer.failure(asked['info'])}")
    text = asked["info"].stdout
    places = host.npu_chips(asked["map"].stdout)
    version = re.search(r"Version:\s*(\S+)", text)
    cards, holders = parse_info(text, {place: device for device, place in places.items()})
    board = _board(min(places.values())[0]) if places else {}
    return _Answers(version[1] if version else board.get("Software Version"), board, None, cards, holders, places)


def _board(npu):
    ended = programs.ask(["npu-smi", "info", "-t", "board", "-i", str(npu)], SECONDS)
    if ended.status != 0:
        return {}
    pairs = (line.split(":", 1) for line in ended.stdout.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs if value.strip() not in ("", "NA")}


def parse_info(text, ids):
    """({device: Card}, {device: [words]}) of the tables that ``npu-smi info`` prints.

    ids: {(NPU, chip): device}.  A chip has two rows, the first with NPU, name and health, the second with its
    number, on some generations its physical id, and its place on the bus.  A row of the second table is a process.
    """
    cards, holders, npu, card, in_processes = {}, {}, None, None, False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        words = cells[0].split()
        if len(cells) > 1 and cells[1].lower() == "process id":
            in_processes = True
        elif len(cells) < 3 or not words or not words[0].isdigit():
            continue
        elif in_processes:
            if len(words) > 1 and words[1].isdigit():
                device = ids.get((int(words[0]), int(words[1])), int(words[0]))
                holders.setdefault(device, []).append(_holder(cells))
        elif card is None:
            npu, card = int(words[0]), Card(" ".join(words[1:]), cells[1])
        else:
            shown = int(words[1]) if len(words) > 1 and words[1].isdigit() else npu
            cards[ids.get((npu, int(words[0])), shown)] = card
            card = None
    return cards, holders


def _holder(cells):
    name = cells[2] or "a process"
    memory = f", {cells[3]} MB" if len(cells) > 3 and cells[3].isdigit() else ""
    return f"{name} (pid {cells[1]}{memory})"


# ---- lines -----------------------------------------------------------------------------------------


def lines(npus, conf, answers):
    """conf: as for `look`."""
    found = [_summary(npus)]
    if npus.failure and (npus.devices or npus.failure != _NOT_ON_PATH):
        remedy = "in a container mount it from the host; on a host install the driver"
        if npus.failure != _NOT_ON_PATH:
            remedy = "the driver or a card may be at fault: see dmesg, and ask the operator"
        found.append(Line("npu-smi", WARNING, npus.failure, remedy))
    found += [_device(npus, device) for device in npus.devices]
    return [*found, _locks(answers["locks"]), _conf(npus, conf)]


def _summary(npus):
    if npus.devices:
        generation = f", {npus.generation}" if npus.generation else ""
        return Line("devices", OK, f"{','.join(map(str, npus.devices))}{generation}")
    if npus.generation:
        text = f"the bus has chips of {npus.generation}, but there is no /dev/davinci*"
        return Line("devices", PROBLEM, text, "load the driver; a container needs --device=/dev/davinci0 and so on")
    if os.path.exists(files.ROOT + _MANAGER):
        text = f"{_MANAGER} is there, but no /dev/davinci0 and so on"
        return Line("devices", PROBLEM, text, "the container needs --device=/dev/davinci0 and so on")
    text = "no Ascend NPU: no /dev/davinci*, nothing known on the bus, and npu-smi names none"
    return Line("devices", ABSENT, text, "launches run with --device_target CPU")


def _device(npus, device):
    card, held = npus.cards.get(device), npus.holders.get(device)
    address, source = npus.addresses[device]
    states, texts, remedies = [], [], []
    if card:
        states.append(_HEALTH.get(card.health, UNKNOWN))
        texts.append(f"{card.name}, health {card.health}")
        if card.health != "OK":
            npu, chip = npus.places.get(device, (device, 0))
            remedies.append(f"npu-smi info -t health -i {npu} -c {chip} says more; ask the operator")
    else:
        states.append(UNKNOWN)
        texts.append("health unknown")
    if address:
        texts.append(masked(f"address {address} ({source})"))
    elif npus.generation in ("A2", "A3") and source == "nowhere":
        texts.append("no address, which several servers need")
    else:
        states.append(PROBLEM if npus.generation == "910A" else WARNING)
        texts.append(masked(f"no address: {source}"))
    if held:
        states.append(WARNING)
        texts.append(f"held by {', '.join(held)}")
        remedies.append("wait for it, choose others with --devices, or end it if it is left over from a job of yours")
    elif card:
        texts.append("free")
    return Line(f"device {device}", worst(states), "; ".join(texts), "; ".join(remedies))


def _locks(ended):
    """ended: what locks.py says of this launcher's own jobs."""
    name = "launcher's locks"
    if ended.status != 0:
        remedy = "two launches on the same devices may not see each other; a launcher that was stopped may hold them up"
        return Line(name, UNKNOWN, answer.failure(ended), remedy)
    held = json.loads(ended.stdout)
    if not held:
        return Line(name, OK, "no job of this launcher holds a device")
    texts = [f"device {','.join(map(str, ids))} by {os.path.basename(job)} (pid {pid})" for job, pid, ids in held]
    return Line(name, WARNING, "; ".join(texts), "wait with --wait_for_devices, or choose others with --devices")


def _conf(npus, conf):
    """The file of addresses, and whether the cards use what it says."""
    try:
        in_file, fault = hccn.read_conf(conf)
    except FileNotFoundError:
        if npus.devices and not programs.on_path("hccn_tool"):
            return Line(
                "hccn.conf", PROBLEM, f"no {conf}, and no hccn_tool on PATH", "mount one of them into the container"
            )
        return Line("hccn.conf", ABSENT, f"no {conf}" + ("; hccn_tool answers" if npus.devices else ""))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        return Line(
            "hccn.conf", WARNING, f"{conf} cannot be read: {reason}", "make it readable, or name a copy: --hccn_conf"
        )
    if fault:
        return Line("hccn.conf", PROBLEM, masked(fault), "correct the line")
    for device, (address, source) in npus.addresses.items():
        if source == "hccn_tool" and address and device in in_file and packed(in_file[device]) != packed(address):
            text = masked(f"{conf} has {in_file[device]} for device {device}, which uses {address}")
            return Line("hccn.conf", WARNING, text, f"hccn_tool -i {device} -cfg recovery applies the file")
    return Line("hccn.conf", OK, f"{conf} has addresses of {len(in_file)} devices")
