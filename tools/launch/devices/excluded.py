"""--exclude: the devices and hosts that a launch leaves out.

    3            device 3 of this host             node2        all of a host
    3,5-7        these devices of this host        node2:3,5    these devices of that one
    node1:0,2@node3, as DeepSpeed writes it, is the same as node1:0,2,node3; node[1-4] is a set of hosts

A number belongs to the host before it that has a colon.
"""

from __future__ import annotations

import re

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import USAGE, Refusal, misused, refused
from hccl_tools.common.words import clauses, count, named, one_line, some
from hccl_tools.hosts import hostfile, node_sets
from hccl_tools.machine import host
from hccl_tools.table import device_range
from tools.launch.devices import seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tools.launch.engines.placement import Placement
    from tools.launch.request import Request

    Part = tuple[str, frozenset[int]]  # a host, empty: this one; its devices, none: all of the host

_DEVICES = re.compile(r"[0-9]{1,4}(?:-[0-9]{1,4})?")
_MOST_NAMED = 8  # hosts in a message


def parse(text: str) -> list[Part]:
    """The devices and hosts that the text leaves out.  Raises Refusal."""
    try:
        found = [part for group in text.split("@") for part in _parts(group)]
    except (ValueError, device_range.RangeError) as fault:
        raise _wrong(text, str(fault)) from fault
    if not found:
        raise _wrong(text, tr("it names nothing"))
    return found


def _parts(group: str) -> Iterator[Part]:
    """Those of a text without @.  Raises ValueError and RangeError."""
    hosts = [""]
    for word in node_sets.split(group):
        if _DEVICES.fullmatch(word):
            yield from ((name, frozenset(device_range.parse(word))) for name in hosts)
            continue
        name, colon, devices = word.partition(":")
        names = node_sets.expand(name)
        for fault in filter(None, map(hostfile.fault_of_host, names)):
            raise ValueError(fault)
        if colon and not _DEVICES.fullmatch(devices):
            raise ValueError(tr("{word}: a device is a number such as 3, or a range such as 0-3", word=one_line(word)))
        yield from ((each, frozenset(device_range.parse(devices) if colon else ())) for each in names)
        hosts = names if colon else [""]


def _wrong(text: str, fault: str) -> Refusal:
    how = tr("write devices of this host such as 3, and others as HOST or HOST:3")
    return Refusal(USAGE, clauses(f"--exclude {one_line(text)}: {fault}", how))


# ---- this host -----------------------------------------------------------------------------------


def here(request: Request) -> frozenset[int]:
    """The devices of this host that are left out, where each host has a command of its own.  Raises Refusal."""
    out: set[int] = set()
    for name, devices in parse(request.exclude) if request.exclude else ():
        is_ours = not name or host.owns(name)
        if not devices:
            raise _whole(request, name, is_ours)
        if is_ours:
            out |= devices
        elif request.engine != "msrun":  # there the same words may be typed on every host
            text = tr("{script} starts ranks on this host only", script=request.script)
            raise Refusal(USAGE, clauses(f"--exclude {one_line(name)}: {text}", _which_scripts()))
    return frozenset(out)


def _whole(request: Request, name: str, is_ours: bool) -> Refusal:
    """Refuses to leave out a host where each has a command of its own."""
    if request.engine == "msrun":
        text = tr(
            "each host has its own command: do not type it on that host, and set --worker_num to the ranks of "
            "the others"
        )
    elif is_ours:
        text = tr("this is the only host of the launch; name devices, such as --exclude 3")
    else:
        text = tr("{script} starts ranks on this host only", script=request.script)
        text = clauses(text, _which_scripts())
    return Refusal(USAGE, f"--exclude {one_line(name)}: {text}")


def _which_scripts() -> str:
    return tr("to exclude hosts, use run_mpirun.sh, run_cluster.sh --hostfile or run_slurm.sh")


def fitting(request: Request, devices: tuple[int, ...]) -> tuple[int, ...]:
    """`devices` without those that are left out; where the user names none, as many others in their place.

    Raises Refusal.
    """
    out = here(request)
    if request.devices is not None:
        left = tuple(device for device in devices if device not in out)
        if devices and not left:
            raise _too_few(request, len(devices), left)
        return left
    return devices if not out & set(devices) else first(request, len(devices), out)


def first(request: Request, number: int, out: frozenset[int]) -> tuple[int, ...]:
    """The first devices of this host without those.  Raises Refusal."""
    left = all_left(request, out)
    if len(left) < number:
        raise _too_few(request, number, left)
    return left[:number]


def all_left(request: Request, out: frozenset[int]) -> tuple[int, ...]:
    """All devices of this host without the excluded ones; if they are unknown, all possible ones.  Raises Refusal."""
    known = seen.all_here(request)
    missing = sorted(out - set(known)) if known else []
    if missing:
        raise misused(
            "--exclude {text}: this host has no {devices}; it has {known}",
            text=one_line(request.exclude),
            devices=named("device", missing),
            known=named("device", known),
        )
    left = tuple(device for device in known or range(device_range.MAX_DEVICE_ID + 1) if device not in out)
    if not left:
        raise _too_few(request, 0, left)
    return left


def _too_few(request: Request, ranks: int, left: tuple[int, ...]) -> Refusal:
    shown = one_line(request.exclude)
    if not left:
        return refused("--exclude {text} leaves no device; leave out fewer", text=shown)
    return refused(
        "{ranks} need as many devices, but --exclude {text} leaves {number}: {devices}; start that many ranks: "
        "scripts/launch.sh -n {number}",
        ranks=count(ranks, "rank"),
        text=shown,
        number=len(left),
        devices=named("device", left),
    )


# ---- all hosts of a job --------------------------------------------------------------------------


def of_hosts(request: Request, hosts: Sequence[str]) -> tuple[set[str], dict[str, frozenset[int]]]:
    """(the hosts among `hosts` that are left out, {host: its devices that are}).  Raises Refusal."""
    whole: set[str] = set()
    some_of: dict[str, frozenset[int]] = {}
    for name, devices in parse(request.exclude) if request.exclude else ():
        found = _host(request, name, hosts)
        if devices:
            some_of[found] = some_of.get(found, frozenset()) | devices
        else:
            whole.add(found)
    if hosts and whole.issuperset(hosts):
        raise misused("--exclude {text} leaves no host", text=one_line(request.exclude))
    return whole, {name: devices for name, devices in some_of.items() if name not in whole}


def whole_hosts(request: Request, hosts: Sequence[str], remedy: str) -> set[str]:
    """The same where only hosts can be left out; the `remedy` is for devices.  Raises Refusal."""
    for name, devices in parse(request.exclude) if request.exclude else ():
        if devices:
            shown = f"{one_line(name)}: " if name else ""
            raise Refusal(USAGE, f"--exclude {one_line(request.exclude)}: {shown}{named('device', devices)}: {remedy}")
    return of_hosts(request, hosts)[0]


def _host(request: Request, name: str, hosts: Sequence[str]) -> str:
    """The one of `hosts`, [user@]host, that is meant.  Raises Refusal."""
    bare = {login: login.rpartition("@")[2].lower() for login in hosts}
    found = next((login for login, other in bare.items() if other == name.lower()), None)
    if found is None and (not name or host.owns(name)):
        found = next((login for login in hosts if host.owns(login.rpartition("@")[2])), None)
    if found is not None:
        return found
    listed = some([one_line(each) for each in hosts], _MOST_NAMED)
    if not name:
        what = tr("this host is not one of the job's hosts ({hosts}); write HOST:3", hosts=listed)
        raise Refusal(USAGE, f"--exclude {one_line(request.exclude)}: {what}")
    what = tr("it is not one of the job's hosts: {hosts}", hosts=listed)
    raise Refusal(USAGE, f"--exclude {one_line(name)}: {what}")


# ---- for the user --------------------------------------------------------------------------------


def remarks(request: Request, placed: Placement, ranks: Sequence[tuple[int, int]]) -> list[str]:
    """Notes about where the ranks run without the excluded devices and hosts."""
    if not request.exclude or not ranks or request.attempt:
        return []
    text = one_line(request.exclude)
    if not placed.hosts:
        devices = named("device", sorted({device for _, device in ranks}))
        return [tr("--exclude {text}: the ranks run on {devices}", text=text, devices=devices)]
    hosts = some([one_line(name) for name in dict.fromkeys(placed.hosts)], _MOST_NAMED)
    ranks_left = count(len(ranks), "rank")
    return [tr("--exclude {text}: {ranks} on the hosts {hosts}", text=text, ranks=ranks_left, hosts=hosts)]
