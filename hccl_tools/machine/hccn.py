"""Reads the network addresses of a host's devices from hccn_tool, otherwise from hccn.conf."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence

from hccl_tools.common import nearly
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.refusal import BAD, Refusal
from hccl_tools.common.words import named, one_line
from hccl_tools.machine import driver, programs
from hccl_tools.table.address import family

DEFAULT_CONF = "/etc/hccn.conf"
_SECONDS = 20  # limit of one hccn_tool; a healthy one answers in well under one second
_BUSY_RETRIES = 5
_MOST_TEXT = 1 << 20  # characters of hccn.conf

_IP_LINE = re.compile(r"^\s*(?:ipaddr|ipv6_address)\s*:\s*(\S+)\s*$", re.MULTILINE)
_CONF_KEY = re.compile(r"(IPv6)?address_(0|[1-9][0-9]*)")


class AddressError(Refusal):
    """A device has no usable address: the line names the device, what was asked, and what to do."""

    def __init__(self, line: str) -> None:
        super().__init__(BAD, line)


def addresses(
    device_ids: Sequence[int], conf: str = DEFAULT_CONF, address_optional: bool = False
) -> tuple[dict[int, str | None], str]:
    """({device id: address or None}, where they come from as text for a message).

    hccn_tool is asked where it can be found, for all devices at the same time.  The file `conf` is read where
    hccn_tool is missing or cannot answer.  An address that hccn_tool reports as not set is an error even if
    `conf` has one (the card does not use it), unless `address_optional`: one server of A2 or A3 works
    without, and the address is None.
    """
    if driver.find(driver.HCCN_TOOL) is None:
        why, remedy = driver.missing(driver.HCCN_TOOL)
        return _from_conf(device_ids, conf, why, remedy, address_optional)
    answers = _ask_all(device_ids)
    broken = [device for device in device_ids if answers[device].failed]
    if broken:
        why = tr("hccn_tool failed for device {device}: {text}", device=broken[0], text=answers[broken[0]].text)
        remedy = driver.remedy_for(answers[broken[0]].ended)
        found, source = _from_conf(device_ids, conf, why, remedy, address_optional)
        return found, f"{source} ({why})"
    unset = [device for device in device_ids if answers[device].address is None]
    if unset and not address_optional:
        raise AddressError(_unset_message(unset, conf))
    return {device: answers[device].address for device in device_ids}, driver.source(driver.HCCN_TOOL)


# ---- hccn_tool -----------------------------------------------------------------------------------


class _Answer:
    """What one hccn_tool printed: an address, or that none is set, or (failed) nothing usable."""

    def __init__(self, ended: programs.Ended) -> None:
        # Some failures go to stdout and some to stderr, and status 13 means "no address" or "not
        # supported": only the text tells.  An address counts only with status 0.
        told = driver.telling(ended) if ended.status else ended
        self.text = one_line((told.stderr.strip() or told.stdout.strip() or "no output").splitlines()[0])
        match = _IP_LINE.search(ended.stdout) if ended.status == 0 else None
        self.address = match[1] if match else None
        no_address = "no ip was preset" in ended.stdout + ended.stderr
        usable = self.address is not None and family(self.address) is not None
        self.failed = not usable and not no_address
        if self.failed:
            self.text += f" (exit {ended.status})"
        self.ended = ended


def _ask_all(device_ids: Sequence[int]) -> dict[int, _Answer]:
    answers = _ask(device_ids, ["-ip", "-g"])
    # A card may have an IPv6 address only.
    unset = [device for device in device_ids if not answers[device].failed and answers[device].address is None]
    for device, answer in _ask(unset, ["-ip", "-inet6", "-g"]).items():
        if answer.address and not answer.failed:
            answers[device] = answer
    return answers


def _ask(device_ids: Sequence[int], question: list[str]) -> dict[int, _Answer]:
    return {device: _Answer(ended) for device, ended in ask(dict.fromkeys(device_ids, question)).items()}


def ask(questions: Mapping[int, Sequence[str]]) -> dict[int, programs.Ended]:
    """What hccn_tool answers to the `questions`, {device: arguments}, all asked at once.

    A device whose tool is busy is asked again.
    """
    answers: dict[int, programs.Ended] = {}
    waiting = list(questions)
    program = driver.word(driver.HCCN_TOOL)
    for attempt in range(_BUSY_RETRIES):
        commands = {device: [program, "-i", str(device), *questions[device]] for device in waiting}
        answers.update(programs.ask_all(commands, _SECONDS))
        waiting = [device for device in waiting if "is busy" in answers[device].stdout + answers[device].stderr]
        if not waiting:
            break
        time.sleep(0.1 * (attempt + 1))  # no event states when the tool's lock is free
    return answers


def _unset_message(unset: Sequence[int], conf: str) -> str:
    first = unset[0]
    devices = named("device", unset)
    if len(unset) == 1:
        text = tr("{device} has no IP address (hccn_tool -i {first} -ip -g)", device=devices, first=first)
    else:
        text = tr("{devices} have no IP address (hccn_tool -i {first} -ip -g)", devices=devices, first=first)
    try:
        in_conf, _ = read_conf(conf)
    except (OSError, UnicodeDecodeError):
        in_conf = {}
    if first in in_conf:
        return tr(
            "{text}, though {conf} has {address}: apply it with `hccn_tool -i {first} -cfg recovery`",
            text=text,
            conf=conf,
            address=in_conf[first],
            first=first,
        )
    return tr("{text}; set one with `hccn_tool -i {first} -ip -s address A netmask M`", text=text, first=first)


# ---- hccn.conf -----------------------------------------------------------------------------------


def _from_conf(
    device_ids: Sequence[int], conf: str, why_not_tool: str, remedy: str, address_optional: bool
) -> tuple[dict[int, str | None], str]:
    if not os.path.exists(conf):
        if address_optional:
            return dict.fromkeys(device_ids), "nowhere"
        if conf != DEFAULT_CONF:
            text = tr(
                "no address for {devices}: {why_not_tool}, and there is no {conf}; correct the path behind "
                "--hccn_conf, or {remedy}",
                devices=named("device", device_ids),
                why_not_tool=why_not_tool,
                conf=one_line(conf),
                remedy=remedy,
            )
            raise AddressError(text + nearly.question(conf))
        raise AddressError(
            tr(
                "no address for {devices}: {why_not_tool}, and there is no {conf}; {remedy}; or name a copy of the "
                "host's /etc/hccn.conf with --hccn_conf FILE",
                devices=named("device", device_ids),
                why_not_tool=why_not_tool,
                conf=conf,
                remedy=remedy,
            )
        )
    try:
        found, fault = read_conf(conf)
    except (OSError, UnicodeDecodeError) as error:
        reason = strerror(error)
        raise AddressError(
            tr("{conf} cannot be read: {reason}; {why_not_tool}", conf=conf, reason=reason, why_not_tool=why_not_tool)
        ) from error
    if fault:
        raise AddressError(fault)
    missing = [device for device in device_ids if device not in found]
    if missing and not address_optional:
        raise AddressError(
            tr(
                "{conf} has no address_{first} ({devices}); {why_not_tool}",
                conf=conf,
                first=missing[0],
                devices=named("device", missing),
                why_not_tool=why_not_tool,
            )
        )
    return {device: found.get(device) for device in device_ids}, conf


def read_conf(conf: str) -> tuple[dict[int, str], str | None]:
    """({device id: address}, first fault as text or None) of the file.  Raises OSError and UnicodeDecodeError.

    An IPv4 address comes before an IPv6 address; other keys do not count.
    """
    found: dict[int, str] = {}
    found_v6: dict[int, str] = {}
    with open(conf, encoding="utf-8") as file:
        text = file.read(_MOST_TEXT + 1)
    if len(text) > _MOST_TEXT:
        return {}, tr(
            "{conf} has more than {limit} characters; it has a line for each setting of a device",
            conf=conf,
            limit=_MOST_TEXT,
        )
    for number, line in enumerate(text.split("\n"), 1):
        key, equals, value = line.partition("=")
        match = _CONF_KEY.fullmatch(key.strip())
        if not match or not equals:
            continue
        device = whole_number(match[2])
        if device is None:
            continue  # ten digits and more: of no device
        address = value.strip()
        if family(address) is None:
            return {}, tr(
                "{conf}:{number}: {key} is {address}, not an IP address",
                conf=conf,
                number=number,
                key=key.strip(),
                address=one_line(address) or "empty",
            )
        (found_v6 if match[1] else found)[device] = address
    return {**found_v6, **found}, None
