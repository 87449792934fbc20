"""The ports on which HCCL listens on a host: two jobs of one host get ranges that do not overlap.

HCCL listens from HCCL_IF_BASE_PORT on, by default 60000: CANN 8.2 and later have 32 ports for it, older ones 16.  A
rank adds the physical number of its device.  On A2, A3 and 950, CANN 8.1 and later also read two ranges.
HCCL_HOST_SOCKET_PORT_RANGE takes precedence; the other is HCCL_NPU_SOCKET_PORT_RANGE.  On A2 operators that join a
computation with a collective cannot have them, so they are set only on A3 and 950.

A job that is alone on its host keeps HCCL's default, because firewalls may let only those ports through.  The range of
a job is in its lock file, next to its devices.  Launchers that were typed on each host of a job cannot ask one another.
So their range follows from what only they have in common, unless the job has all devices of the host.
"""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import clauses, one_line
from hccl_tools.machine import sockets
from tools.launch.devices import device_locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from tools.launch.devices.device_locks import Holder
    from tools.launch.engines.placement import Placement
    from tools.launch.request import Request

    Ranges = list[tuple[int, int]]  # (first, last) of each

VARIABLE, HOST_RANGE, NPU_RANGE = "HCCL_IF_BASE_PORT", "HCCL_HOST_SOCKET_PORT_RANGE", "HCCL_NPU_SOCKET_PORT_RANGE"
BASE = 60000  # where HCCL listens, if the variable names nothing else
COUNT = 32  # of the ports from there on
BOUNDS = (1024, 65520)  # what the variable may have, by HCCL's manual
LAST_DEVICE = 15  # of the largest server: a rank's port is the first one and the number of its device
AUTO = "auto"  # a range that the system chooses
DEFAULT, CHOSEN, DERIVED, USER = "default", "chosen", "derived", "user"


class HcclPorts(Record):
    """The ports of a job."""

    ranges: Ranges  # of the host; empty: the system chooses
    origin: str  # DEFAULT, CHOSEN, DERIVED or USER
    exports: dict[str, str] = {}
    remarks: Sequence[str] = ()  # lines for the user

    def words(self) -> str:
        """The ports of the host, such as ``60000-60031``."""
        return words(self.ranges) if self.ranges else AUTO

    def whence(self) -> str:
        """Who chose the ports."""
        return {
            DEFAULT: tr("HCCL's default"),
            CHOSEN: tr("chosen because others use its default"),
            DERIVED: tr("derived from what is the same on all hosts of the job"),
            USER: tr("from your environment"),
        }[self.origin]

    def record(self) -> dict[str, Any]:
        """The entry in launch.json."""
        return {"ports": self.words(), "origin": self.origin}


def base(environ: Mapping[str, str] | None = None) -> int:
    """The first port of HCCL: the variable's value, if it is a port."""
    text = (os.environ if environ is None else environ).get(VARIABLE, "")
    return whole_number(text, *BOUNDS) or BASE


class Others:
    """The other jobs of this host, and the servers that listen here.

    Not the jobs that have some of our devices: this launch does not start while they run.
    """

    def __init__(self, holders: Sequence[Holder], devices: set[int], path: str) -> None:
        """path: of our own lock file."""
        self._stay: list[Holder] = []
        self._end: Ranges = []
        self._listening: set[int] | None = None
        for holder in holders:
            if holder.path == path:
                continue
            if devices & set(holder.devices):
                self._end += holder.ports
            else:
                self._stay.append(holder)

    def has(self, ranges: Ranges) -> str:
        """The job that has some of these ports, for a message; empty if none has."""
        holder = next((each for each in self._stay if device_locks.meet(ranges, each.ports)), None)
        if holder is None:
            return ""
        ports = words(holder.ports)
        return tr("{job} has {ports} (process {pid})", job=one_line(holder.job), ports=ports, pid=holder.pid)

    def busy(self, ports: Collection[int]) -> set[int]:
        """The ports among these on which a lasting server listens."""
        if self._listening is None:
            self._listening = sockets.listening(range(sockets.MOST + 1))
        found = self._listening & set(ports)
        return {port for port in found if not device_locks.meet([(port, port)], self._end)}

    def fault(self, first: int) -> str:
        """Why the ports from `first` on cannot be this job's; empty if they can."""
        busy = self.busy(range(first, first + COUNT))
        return self.has([range_from(first)]) or (listens(min(busy)) if busy else "")


def listens(port: int) -> str:
    """The text of a message that a server listens there."""
    return tr("port {port} is in use: {who}", port=port, who=sockets.holder(port))


# ---- what the user has set -------------------------------------------------------------------------


def of_user(request: Request) -> tuple[str, Ranges] | None:
    """(NAME=VALUE, its ports) of the variable that counts; None: the user has set none.  Raises Refusal."""
    found = None
    text = os.environ.get(VARIABLE, "")
    if text:
        first = whole_number(text, *BOUNDS)
        if first is None:
            least, most = BOUNDS
            what = tr(
                "{name}={value} is not a port of {least} to {most}",
                name=VARIABLE,
                value=one_line(text),
                least=least,
                most=most,
            )
            raise Refusal(REFUSED, clauses(what, tr("unset it, or set {port}", port=BASE)))
        found = f"{VARIABLE}={first}", [(first, min(first + COUNT - 1, sockets.MOST))]
    for name in (NPU_RANGE, HOST_RANGE):
        text = os.environ.get(name, "")
        ranges = _parsed(text) if text else None
        if text and ranges is None:
            what = tr(
                "{name}={value} is not a list of ports, such as 61000-61031 or auto", name=name, value=one_line(text)
            )
            raise Refusal(REFUSED, clauses(what, tr("correct it, or unset it: then the launch chooses HCCL's ports")))
        if name == HOST_RANGE and ranges is not None and request.chip != "910A":  # which does not read it
            found = f"{name}={text}", ranges
    return found


def _parsed(text: str) -> Ranges | None:
    """The ranges of ``61000,61050-61100``, sorted; none for ``auto``; None for another text, or where two meet."""
    found: Ranges = []
    for part in () if text == AUTO else text.split(","):
        first, dash, last = part.partition("-")
        least = whole_number(first, 1, sockets.MOST)
        most = whole_number(last, 1, sockets.MOST) if dash else least
        if least is None or most is None or most < least:
            return None
        found.append((least, most))
    found.sort()
    meets = any(one[1] >= other[0] for one, other in zip(found, found[1:]))
    return None if meets else found


def named(what: str, ranges: Ranges, placed: Placement, others: Others) -> HcclPorts:
    """The user's ports, which do not conflict with others.  Raises Refusal."""
    ports = {port for first, last in ranges for port in range(first, last + 1)}
    name = what.partition("=")[0]
    holder = others.has(ranges)
    if holder:
        remedy = tr("unset {name}: then the launch chooses free ones; or wait until that job has ended", name=name)
        raise Refusal(REFUSED, clauses(_taken(what, ranges, holder), remedy))
    busy = others.busy(ports) if not placed.hosts or _is_here(placed) else set()
    if name == VARIABLE:
        busy &= {ranges[0][0] + device for _, device in placed.ranks}
    if busy and (name == VARIABLE or busy == ports):
        remedy = tr("end that process, or unset {name}: then the launch chooses free ones", name=name)
        raise Refusal(REFUSED, clauses(_taken(what, ranges, listens(min(busy))), remedy))
    remarks = []
    if sockets.handed_out(ports):
        text = tr(
            "note: {what}: HCCL listens at {ports}, but the kernel may give these ports to any connection first",
            what=what,
            ports=words(ranges),
        )
        remedy = tr("as root, keep them free: {command}", command=sockets.to_keep_free(words(ranges)))
        remarks = [clauses(text, remedy)]
    return HcclPorts(ranges=ranges, origin=USER, remarks=remarks)


def _taken(what: str, ranges: Ranges, fault: str) -> str:
    return tr("{what}: HCCL listens at {ports}, but {fault}", what=what, ports=words(ranges), fault=fault)


def _is_here(placed: Placement) -> bool:
    from tools.launch.hosts import network  # it imports socket

    names = set(placed.hosts)
    return len(network.others(names)) < len(names)


def range_from(first: int) -> tuple[int, int]:
    """(first, last) of the ports from `first` on."""
    return first, first + COUNT - 1


def words(ranges: Ranges) -> str:
    """The ranges as the variables have them: ``61000,61050-61100``."""
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in ranges)
