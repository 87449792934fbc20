"""The network addresses of a host's devices: from hccn_tool, else from hccn.conf."""

import os
import re
import time

from hccl_tools.common.words import one_line
from hccl_tools.machine import programs
from hccl_tools.table.address import family

DEFAULT_CONF = "/etc/hccn.conf"
_SECONDS = 20  # for one hccn_tool; a healthy one answers in well under one
_BUSY_RETRIES = 5

_IP_LINE = re.compile(r"^\s*(?:ipaddr|ipv6_address)\s*:\s*(\S+)\s*$", re.MULTILINE)
_CONF_KEY = re.compile(r"(IPv6)?address_(0|[1-9][0-9]*)")


class AddressError(Exception):
    """A device has no usable address: the text names the device, what was asked, and what to do."""


def addresses(device_ids, conf=DEFAULT_CONF, address_optional=False):
    """({device id: address or None}, where they come from as words for a message).

    hccn_tool is asked where it is on PATH, for all devices at the same time; where it is not there,
    or cannot answer at all, the file `conf` is read.  An address that hccn_tool says is not set is
    an error even if `conf` has one (the card does not use it), unless `address_optional`: on A2 and
    A3 one server can do without, and the address is None.
    """
    if not programs.on_path("hccn_tool"):
        return _from_conf(device_ids, conf, "hccn_tool is not on PATH", address_optional)
    answers = _ask_all(device_ids)
    broken = [device for device in device_ids if answers[device].failed]
    if broken:
        why = f"hccn_tool failed for device {broken[0]}: {answers[broken[0]].text}"
        found, source = _from_conf(device_ids, conf, why, address_optional)
        return found, f"{source} ({why})"
    unset = [device for device in device_ids if answers[device].address is None]
    if unset and not address_optional:
        raise AddressError(_unset_message(unset, conf))
    return {device: answers[device].address for device in device_ids}, "hccn_tool"


# ---- hccn_tool -----------------------------------------------------------------------------------


class _Answer:
    """What one hccn_tool said: an address, or that none is set, or (failed) nothing usable."""

    def __init__(self, status, stdout, stderr):
        # Some failures go to stdout and some to stderr, and status 13 means "no address" or "not
        # supported": only the text tells.  An address counts only with status 0.
        self.text = one_line((stderr.strip() or stdout.strip() or "no output").splitlines()[0])
        match = _IP_LINE.search(stdout) if status == 0 else None
        self.address = match.group(1) if match else None
        no_address = "no ip was preset" in stdout + stderr
        usable = self.address is not None and family(self.address) is not None
        self.failed = not usable and not no_address
        if self.failed:
            self.text += f" (exit {status})"


def _ask_all(device_ids):
    answers = _ask(device_ids, ["-ip", "-g"])
    # A card may have an IPv6 address only.
    unset = [device for device in device_ids if not answers[device].failed and answers[device].address is None]
    for device, answer in _ask(unset, ["-ip", "-inet6", "-g"]).items():
        if answer.address and not answer.failed:
            answers[device] = answer
    return answers


def _ask(device_ids, question):
    """{device: _Answer}, all asked at once."""
    return {device: _Answer(*ended) for device, ended in ask({device: question for device in device_ids}).items()}


def ask(questions):
    """{device: programs.Ended} of the questions {device: arguments of hccn_tool}, all asked at once.

    Who is told that the tool is busy asks again.
    """
    answers, waiting = {}, list(questions)
    for attempt in range(_BUSY_RETRIES):
        commands = {device: ["hccn_tool", "-i", str(device), *questions[device]] for device in waiting}
        answers.update(programs.ask_all(commands, _SECONDS))
        waiting = [device for device in waiting if "is busy" in answers[device].stdout + answers[device].stderr]
        if not waiting:
            break
        time.sleep(0.1 * (attempt + 1))  # no event says when the tool's lock is free
    return answers


def _unset_message(unset, conf):
    first = unset[0]
    text = f"device {_listed(unset)} has no IP address (hccn_tool -i {first} -ip -g)"
    try:
        in_conf, _ = _parse_conf(conf)
    except (OSError, UnicodeDecodeError):
        in_conf = {}
    if first in in_conf:
        return f"{text}, though {conf} has {in_conf[first]}: apply it with `hccn_tool -i {first} -cfg recovery`"
    return f"{text}; set one with `hccn_tool -i {first} -ip -s address A netmask M`"


# ---- hccn.conf -----------------------------------------------------------------------------------


def read_conf(conf):
    """({device id: address}, first fault as words or None) of the file.  Raises OSError and UnicodeDecodeError."""
    return _parse_conf(conf)


def _from_conf(device_ids, conf, why_not_tool, address_optional):
    if not os.path.exists(conf):
        if address_optional:
            return dict.fromkeys(device_ids), "nowhere"
        raise AddressError(
            f"no address for device {_listed(device_ids)}: {why_not_tool}, and there is no {conf}; "
            "put hccn_tool on PATH (it is installed in /usr/local/Ascend/driver/tools), "
            "mount the host's /etc/hccn.conf into the container, or name a copy with --hccn_conf FILE"
        )
    try:
        found, fault = _parse_conf(conf)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        raise AddressError(f"{conf} cannot be read: {reason}; {why_not_tool}") from error
    if fault:
        raise AddressError(fault)
    missing = [device for device in device_ids if device not in found]
    if missing and not address_optional:
        raise AddressError(f"{conf} has no address_{missing[0]} (device {_listed(missing)}); {why_not_tool}")
    return {device: found.get(device) for device in device_ids}, conf


def _parse_conf(conf):
    """({device id: address}, first fault or None); IPv4 comes before IPv6, other keys are not ours."""
    found, found_v6 = {}, {}
    with open(conf, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            key, equals, value = line.partition("=")
            match = _CONF_KEY.fullmatch(key.strip())
            if not match or not equals:
                continue
            address = value.strip()
            if family(address) is None:
                return {}, f"{conf}:{number}: {key.strip()} is {one_line(address) or 'empty'}, not an IP address"
            (found_v6 if match[1] else found)[int(match[2])] = address
    return {**found_v6, **found}, None


def _listed(device_ids):
    return ",".join(map(str, device_ids))
