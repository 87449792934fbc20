"""--exclude in a launch over several hosts: the hosts that are left, and the devices of those that have fewer."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import named, one_line
from hccl_tools.table import device_range
from tools.launch.devices import excluded
from tools.launch.engines import placement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hccl_tools.hosts.hostfile import Host
    from tools.launch.request import Request

    Slots = list[tuple[str, int]]


def split(request: Request, hosts: Sequence[Host]) -> tuple[list[Host], dict[str, frozenset[int]]]:
    """(the hosts that are left, {[user@]host: its devices that are left out}).  Raises Refusal."""
    out, some_of = excluded.of_hosts(request, [host.login for host in hosts])
    return [host for host in hosts if host.login not in out], some_of


def devices(
    request: Request, hosts: Sequence[Host], slots: Slots, some_of: Mapping[str, frozenset[int]]
) -> tuple[Slots, dict[str, tuple[int, ...]]]:
    """(the slots without the devices `some_of`, {[user@]host: its devices} of the hosts that lose some).

    A number of slots in a list is that of a host's devices, so that fewer ranks run there.  Where the user asks for a
    number of ranks, other devices take the places of those.  Raises Refusal.
    """
    asked = {host.login for host in hosts if request.npernode or host.slots is None}
    alone = request.hosts is None and request.hostfile is None
    own: dict[str, tuple[int, ...]] = {}
    for name, count in slots:
        if name not in some_of:
            continue
        if alone:
            own[name] = _here(request, count)
        else:
            own[name] = _of_host(request, name, count, some_of[name], name in asked)
    return [(name, len(own[name]) if name in own else count) for name, count in slots], own


def _here(request: Request, count: int) -> tuple[int, ...]:
    """Those of this host, where it is the only one, and no list has it."""
    if request.n or request.npernode or request.devices is not None:
        return placement.named_devices(request, f"[0,{count})")
    return excluded.all_left(request, excluded.here(request))[:count]


def _of_host(request: Request, name: str, count: int, out: frozenset[int], is_asked: bool) -> tuple[int, ...]:
    every = tuple(range(count + len(out) if is_asked else count))
    if request.devices is not None:
        every = device_range.parse(request.devices)
    left = tuple(device for device in every if device not in out)[:count]
    if not left or (is_asked and len(left) < count):
        text = tr(
            "{host} would have {number} of {count} ranks without {devices}; leave out the host: --exclude {host}",
            host=one_line(name.rpartition("@")[2]),
            number=len(left),
            count=count,
            devices=named("device", sorted(out)),
        )
        raise Refusal(USAGE, f"--exclude {one_line(request.exclude)}: {text}")
    return left
