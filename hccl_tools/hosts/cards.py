"""Queries the network of one host's cards with hccn_tool.

The health of a card's network (`-net_health`) depends on its detect address (`-netdetect`). So this address is first
set to a device that the card must reach, and restored afterwards.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from hccl_tools.common import how_far
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import count
from hccl_tools.machine import driver, hccn, programs
from hccl_tools.machine.programs import Ended

Gathered = dict[int, JsonObject]  # {device: the fields of its Card so far}

_OF_ALL = ("ip", "link", "tls", "gateway")  # questions to every device
_OF_HEALTH = 3  # steps: sets detect addresses, waits, restores them
_HEALTH_SECONDS = 10  # until the first probe of a new detect address has an answer
_ENOUGH_LOST = 4  # addresses
_NO_PROBE_YET = ("Init", "Detect ip set")

_ANSWERS = {
    "ip": (("-ip", "-g"), re.compile(r"^[ \t]*ipaddr[ \t]*:[ \t]*(\S+)[ \t]*$", re.M)),
    "ipv6": (("-ip", "-inet6", "-g"), re.compile(r"^[ \t]*ipv6_address[ \t]*:[ \t]*(\S+)[ \t]*$", re.M)),
    "link": (("-link", "-g"), re.compile(r"^[ \t]*link status[ \t]*:[ \t]*(\S+)[ \t]*$", re.M)),
    "tls": (("-tls", "-g"), re.compile(r"tls switch\[([01])\]")),
    "gateway": (("-gateway", "-g"), re.compile(r"^[ \t]*default gateway[ \t]*:[ \t]*([^,\s]+)", re.M)),
    "detect": (("-netdetect", "-g"), re.compile(r"^[ \t]*netdetect addr[ \t]*:[ \t]*(\S+)[ \t]*$", re.M)),
    "health": (("-net_health", "-g"), re.compile(r"^[ \t]*net health status[ \t]*:[ \t]*(.+?)[ \t]*$", re.M)),
}
_NETMASK = re.compile(r"^[ \t]*netmask[ \t]*:[ \t]*(\S+)[ \t]*$", re.M)  # in the answer about ip
_NOT_SET = "was preset there"  # "Get gateway failed, because no gateway was preset there!"
_NO_ANSWER = (11, 12, 124, 127)  # busy, no permission, no answer in time, not there
_LOST = re.compile(r"\b([0-9]{1,3}(?:\.[0-9]+)?)% packets? loss")


class Question(Record):
    """The questions to a device: the address of its partner, if it has one, and the addresses to ping."""

    device: int
    partner: str | None
    pings: Sequence[str]


class Card(Record):
    """The answers of a card; None where it gave none.

    tls:    "0" or "1".
    lost:   {address: lost packets in percent}.
    failed: {field: what hccn_tool printed instead}; restore: the detect address could not be restored.
    kept:   the detect address that stays, because there was none before.
    """

    ip: str | None
    netmask: str | None
    link: str | None
    tls: str | None
    gateway: str | None
    health: str | None
    lost: dict[str, float]
    failed: dict[str, str]
    kept: str | None = None


def ask(questions: Sequence[Question]) -> dict[int, Card]:
    """{device id: Card}; the detect addresses are as they were when this returns or raises."""
    facts: Gathered = {question.device: {"failed": {}, "lost": {}} for question in questions}
    pings = max((len(question.pings) for question in questions), default=0)
    with how_far.doing(tr("asking {devices}", devices=count(len(facts), "device")), len(_OF_ALL) + _OF_HEALTH + pings):
        for name in _OF_ALL:
            _ask(name, facts)
            how_far.more()
        _ask_ipv6(facts)
        _ask_health(questions, facts)
        _ping(questions, facts)
    return {device: Card(**found) for device, found in facts.items()}


def answered(name: str, devices: Sequence[int]) -> dict[int, str | None]:
    """What the devices answer to one question, such as link or tls; None: nothing, or that it is not set."""
    facts: Gathered = {device: {"failed": {}} for device in devices}
    _ask(name, facts)
    return {device: found[name] for device, found in facts.items()}


def _ask(name: str, facts: Gathered) -> None:
    """Puts what the devices answer to the question `name` into their facts; None: it is not set."""
    arguments, pattern = _ANSWERS[name]
    for device, ended in hccn.ask({device: arguments for device in facts}).items():
        match = pattern.search(ended.stdout) if ended.status == 0 else None
        facts[device][name] = match.group(1) if match else None
        if name == "ip":
            mask = _NETMASK.search(ended.stdout) if match else None
            facts[device]["netmask"] = mask.group(1) if mask else None
        if not match and not _is_not_set(name, ended):
            facts[device]["failed"][name] = programs.said(driver.telling(ended))


def _is_not_set(name: str, ended: Ended) -> bool:
    """Whether it answers that nothing is set.  What it prints where no detect address is set is not documented."""
    return _NOT_SET in ended.stderr + ended.stdout or (name == "detect" and ended.status not in _NO_ANSWER)


def _ask_ipv6(facts: Gathered) -> None:
    """The IPv6 address of the devices that have no other."""
    without = {device: found for device, found in facts.items() if not found["ip"] and "ip" not in found["failed"]}
    _ask("ipv6", without)
    for found in without.values():
        found["ip"] = found.pop("ipv6")


# ---- health --------------------------------------------------------------------------------------


def _ask_health(questions: Sequence[Question], facts: Gathered) -> None:
    """Whether each device reaches its partner; its detect address is restored whatever happens."""
    _ask("detect", facts)
    partners = {question.device: question.partner for question in questions if question.partner}
    before = {device: facts[device].pop("detect") for device in facts}
    for found in facts.values():
        found["health"] = None
    for device in facts:  # an address that is not known could not be restored: it is not changed
        if "detect" in facts[device]["failed"]:
            partners.pop(device, None)
    changed = {device: partner for device, partner in partners.items() if before[device] != partner}
    try:
        set_now = _set(changed)
        how_far.more()
        for device, ended in set_now.items():
            if ended.status:
                facts[device]["failed"]["health"] = programs.said(driver.telling(ended))
        asked = {device: facts[device] for device in partners if "health" not in facts[device]["failed"]}
        _wait_for_health(asked)
        how_far.more()
    finally:
        for device, ended in _set({device: before[device] for device in changed if before[device]}).items():
            if ended.status:
                text = tr(
                    "detect address {address} could not be restored: {said}",
                    address=before[device],
                    said=programs.said(driver.telling(ended)),
                )
                facts[device]["failed"]["restore"] = text
        how_far.more()
        for device in changed:
            facts[device]["kept"] = None if before[device] else partners[device]


def _set(addresses: dict[int, str]) -> dict[int, Ended]:
    return hccn.ask({device: ("-netdetect", "-s", "address", address) for device, address in addresses.items()})


def _wait_for_health(facts: Gathered) -> None:
    """Asks until every device has probed its detect address; no event states when it has."""
    deadline = time.monotonic() + _HEALTH_SECONDS
    waiting = facts
    while waiting:
        _ask("health", waiting)
        waiting = {device: found for device, found in waiting.items() if found["health"] in _NO_PROBE_YET}
        if time.monotonic() > deadline:
            break
        if waiting:
            time.sleep(0.3)


def _ping(questions: Sequence[Question], facts: Gathered) -> None:
    """The loss in percent to the addresses that lose packets, asked one at a time for each device.

    A device that has lost packets to some, or whose hccn_tool cannot ping, is not asked again: the fault is its
    own, and the answer of a host has to fit into one frame (see ask.py).
    """
    longest = max((len(question.pings) for question in questions), default=0)
    for turn in range(longest):
        asked = {
            question.device: question.pings[turn]
            for question in questions
            if turn < len(question.pings) and _is_to_be_pinged(facts[question.device])
        }
        commands = {device: ("-ping", "-g", "address", address) for device, address in asked.items()}
        for device, ended in hccn.ask(commands).items():
            match = _LOST.search(ended.stdout)
            if not match:
                facts[device]["failed"]["ping"] = f"{programs.said(driver.telling(ended))}, to {asked[device]}"
            elif float(match.group(1)):
                facts[device]["lost"][asked[device]] = float(match.group(1))
        how_far.more()


def _is_to_be_pinged(found: JsonObject) -> bool:
    return len(found["lost"]) < _ENOUGH_LOST and "ping" not in found["failed"]
