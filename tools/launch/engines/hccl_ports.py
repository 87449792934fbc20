"""The ports at which HCCL listens on a host: two jobs of one host get ranges that do not meet.

HCCL listens from HCCL_IF_BASE_PORT on, which is 60000 where nobody has set it: CANN 8.2 and later has 32 ports for it,
older ones 16.  A rank adds the physical number of its device.  CANN 8.1 and later reads HCCL_HOST_SOCKET_PORT_RANGE,
which comes first, and HCCL_NPU_SOCKET_PORT_RANGE, on A2, A3 and 950.  On A2 operators that join a computation with a
collective cannot have them, so that they are set on A3 and 950 only.

A job that is alone on its host keeps HCCL's default, because firewalls may let only those ports through.  The range of
a job is in its lock file, beside its devices.  Launchers that were typed on each host of a job cannot ask one another:
their range follows from what only they have alike, unless the job has all devices of the host.
"""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import clauses, one_line
from hccl_tools.machine import host, kernel_ports
from tools.launch.devices import device_locks, seen

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
# Above the kernel's own ports for outgoing connections, as most hosts have them.
_OTHERS = range(BASE + 32 * COUNT, kernel_ports.MOST + 2 - COUNT, COUNT)
_NPU_FIRST = 17000  # of the devices' ports of other jobs; HCCL's own is 16666
_WITH_RANGES, _KNOWS_RANGES = ("A3", "950"), (8, 1)  # generations, and the CANN from which on


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
        """Who has chosen them."""
        return {
            DEFAULT: tr("HCCL's default"),
            CHOSEN: tr("chosen because others have its default"),
            DERIVED: tr("derived from what all hosts of the job have alike"),
            USER: tr("as your environment says"),
        }[self.origin]

    def record(self) -> dict[str, Any]:
        """For launch.json."""
        return {"ports": self.words(), "origin": self.origin}


def base(environ: Mapping[str, str] | None = None) -> int:
    """The first port of HCCL: that of the variable, where it is one."""
    text = (os.environ if environ is None else environ).get(VARIABLE, "")
    return whole_number(text, *BOUNDS) or BASE


def of_job(request: Request, placed: Placement) -> HcclPorts:
    """The ports of a job on NPUs.  Raises Refusal."""
    try:
        holders = [] if seen.is_away(request, placed.hosts) else device_locks.asked()
    except OSError:
        holders = []  # a remark says that the launch takes no locks
    mine = next((holder.ports for holder in holders if holder.path == request.lock_file), [])
    others = Others(holders, {device for _, device in placed.ranks}, request.lock_file)
    named = _of_user(request)
    if named:
        return _named(*named, placed, others)
    if request.attempt and mine:  # a restart keeps what the job has
        other = DERIVED if request.engine == "srun" else CHOSEN
        return _with(mine[0][0], request, DEFAULT if mine[0][0] == BASE else other)
    if placed.meeting:
        from zlib import crc32  # few launches need it

        number = crc32(placed.meeting.job.encode("utf-8", "surrogateescape"))
        return _of_launchers(request, placed, others, number)
    if request.engine == "srun":
        return _of_launchers(request, placed, others, whole_number(os.environ.get("SLURM_JOB_ID", "")) or 0)
    return _free(request, placed, others)


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
        """Those of the ports at which a server listens that stays."""
        if self._listening is None:
            self._listening = kernel_ports.listening(range(kernel_ports.MOST + 1))
        found = self._listening & set(ports)
        return {port for port in found if not device_locks.meet([(port, port)], self._end)}

    def fault(self, first: int) -> str:
        """Why the ports from `first` on cannot be this job's; empty if they can."""
        busy = self.busy(range(first, first + COUNT))
        return self.has([_range(first)]) or (_listens(min(busy)) if busy else "")


# ---- what the launch chooses -----------------------------------------------------------------------


def _free(request: Request, placed: Placement, others: Others) -> HcclPorts:
    """HCCL's own ports, else a range that nobody has.  Raises Refusal."""
    fault = others.fault(BASE)
    if not fault:
        return _with(BASE, request, DEFAULT)
    given = kernel_ports.handed_out(range(_OTHERS[0], kernel_ports.MOST + 1))
    quiet = sorted(_OTHERS, key=lambda first: bool(given & set(range(first, first + COUNT))))
    first = next((each for each in quiet if not others.fault(each)), None)
    if first is None:
        text = tr("HCCL has no free ports on this host: {fault}", fault=fault)
        raise Refusal(REFUSED, clauses(text, tr("wait until a job has ended, or set {name}", name=VARIABLE)))
    ports = words([_range(first)])
    text = tr("note: HCCL gets the ports {ports} in this job: {fault}", ports=ports, fault=fault)
    if placed.hosts:
        text = clauses(text, tr("firewalls between the hosts must let them through"))
    return _with(first, request, CHOSEN).replace(remarks=[text])


def _of_launchers(request: Request, placed: Placement, others: Others, number: int) -> HcclPorts:
    """The ports that follow from the job's `number` on every host, or HCCL's own where it has whole hosts.

    Raises Refusal.
    """
    if _has_whole_hosts(placed):
        return _with(BASE, request, DEFAULT)
    first = _OTHERS[number % len(_OTHERS)]
    own = words([_range(first)])
    fault = others.fault(first)
    if fault:
        text = tr("HCCL would get the ports {ports} on all hosts of this job, but {fault}", ports=own, fault=fault)
        other = next((each for each in _OTHERS if not others.fault(each)), BASE)
        remedy = tr("set others on every host: export {name}={port}", name=VARIABLE, port=other)
        raise Refusal(REFUSED, clauses(text, remedy))
    text = tr("note: HCCL gets the ports {ports} on all hosts of this job", ports=own)
    why = tr("it has some of their devices, and another job may have {first}", first=words([_range(BASE)]))
    remedy = tr("firewalls between the hosts must let them through; {name} chooses others", name=VARIABLE)
    return _with(first, request, DERIVED).replace(remarks=[clauses(f"{text}: {why}", remedy)])


def _has_whole_hosts(placed: Placement) -> bool:
    """Whether the ranks have all devices of every host, as far as this host can tell: there no other job can be."""
    present = host.devices()
    return not present or set(placed.sizes()) == {len(present)}


def _with(first: int, request: Request, origin: str) -> HcclPorts:
    """The ports from `first` on, with the variables that say so."""
    ranges = [_range(first)]
    if origin == DEFAULT:
        return HcclPorts(ranges=ranges, origin=origin)
    exports = {VARIABLE: str(first)}
    if request.chip in _WITH_RANGES and _knows_ranges():
        device = _NPU_FIRST + first - BASE
        exports[HOST_RANGE] = words(ranges)
        if not os.environ.get(NPU_RANGE):
            exports[NPU_RANGE] = words([(device, device + COUNT - 1)])
    return HcclPorts(ranges=ranges, origin=origin, exports=exports)


def _knows_ranges() -> bool:
    """Whether the CANN of this environment reads the two variables with ranges."""
    from hccl_tools.machine import cann  # few launches get there

    release = cann.release(cann.version(cann.active())) if cann.active() else None
    return release is not None and release >= _KNOWS_RANGES


def _listens(port: int) -> str:
    from tools.launch.engines import port_holder  # only a message needs it

    return tr("port {port} is in use: {who}", port=port, who=port_holder.words(port))


# ---- what the user has set -------------------------------------------------------------------------


def _of_user(request: Request) -> tuple[str, Ranges] | None:
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
        found = f"{VARIABLE}={first}", [(first, min(first + COUNT - 1, kernel_ports.MOST))]
    for name in (NPU_RANGE, HOST_RANGE):
        text = os.environ.get(name, "")
        ranges = _parsed(text) if text else None
        if text and ranges is None:
            what = tr(
                "{name}={value} is not a list of ports, such as 61000-61031 or auto", name=name, value=one_line(text)
            )
            raise Refusal(REFUSED, clauses(what, tr("correct it, or unset it: then HCCL's ports are chosen")))
        if name == HOST_RANGE and ranges is not None and request.chip != "910A":  # which does not read it
            found = f"{name}={text}", ranges
    return found


def _parsed(text: str) -> Ranges | None:
    """The ranges of ``61000,61050-61100``, sorted; none for ``auto``; None for another text, or where two meet."""
    found: Ranges = []
    for part in () if text == AUTO else text.split(","):
        first, dash, last = part.partition("-")
        least = whole_number(first, 1, kernel_ports.MOST)
        most = whole_number(last, 1, kernel_ports.MOST) if dash else least
        if least is None or most is None or most < least:
            return None
        found.append((least, most))
    found.sort()
    meets = any(one[1] >= other[0] for one, other in zip(found, found[1:]))
    return None if meets else found


def _named(what: str, ranges: Ranges, placed: Placement, others: Others) -> HcclPorts:
    """The user's ports, which are in nobody's way.  Raises Refusal."""
    ports = {port for first, last in ranges for port in range(first, last + 1)}
    name = what.partition("=")[0]
    holder = others.has(ranges)
    if holder:
        remedy = tr("unset {name}, and free ones are chosen; or wait until that job has ended", name=name)
        raise Refusal(REFUSED, clauses(_taken(what, ranges, holder), remedy))
    busy = others.busy(ports) if not placed.hosts or _is_here(placed) else set()
    if name == VARIABLE:
        busy &= {ranges[0][0] + device for _, device in placed.ranks}
    if busy and (name == VARIABLE or busy == ports):
        remedy = tr("end that process, or unset {name}, and free ones are chosen", name=name)
        raise Refusal(REFUSED, clauses(_taken(what, ranges, _listens(min(busy))), remedy))
    remarks = []
    if kernel_ports.handed_out(ports):
        kept = ",".join(filter(None, (kernel_ports.reserved(), words(ranges))))
        text = tr(
            "note: {what}: HCCL listens at {ports}, and the kernel may give these ports to any connection before",
            what=what,
            ports=words(ranges),
        )
        remedy = tr("as root, keep them free: {command}", command=f"sysctl -w net.ipv4.ip_local_reserved_ports={kept}")
        remarks = [clauses(text, remedy)]
    return HcclPorts(ranges=ranges, origin=USER, remarks=remarks)


def _taken(what: str, ranges: Ranges, fault: str) -> str:
    return tr("{what}: HCCL listens at {ports}, but {fault}", what=what, ports=words(ranges), fault=fault)


def _is_here(placed: Placement) -> bool:
    from tools.launch.hosts import network  # it imports socket

    names = set(placed.hosts)
    return len(network.others(names)) < len(names)


def _range(first: int) -> tuple[int, int]:
    return first, first + COUNT - 1


def words(ranges: Ranges) -> str:
    """The ranges as the variables have them: ``61000,61050-61100``."""
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in ranges)
