"""Finds what an ended attempt still holds: processes, devices, ports; until they are free, the next one would fail.

Anything that was in use before the first attempt did not hinder it, and is not waited for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record, Row
from hccl_tools.common.words import one_line, short
from hccl_tools.machine import npu_use, sockets
from hccl_tools.machine.npu_use import Use
from tools.launch.engines import hccl_ports, ports
from tools.supervise import proc
from tools.supervise.members import command
from tools.supervise.proc import signals

OURS = b"mindspore-launch-"  # how the command of a process next to the launcher begins
_HCCP = b"hccp_service"
_MORE = 1024  # MB that a device may have in use more than before the first attempt
_START = 19  # place of the time of its start, in what proc.stat returns
_SHOWN = 100  # characters of a command


class Held(Row):
    """One thing that is held."""

    what: str  # the sentence about it, without an end
    pids: tuple[int, ...]  # by which processes, as far as they are known
    remedy: str  # a command that helps or shows more; "": kill, for those processes


class Wanted(Record):
    """What the next attempt needs free on this host.

    mark: LAUNCH_JOB of the job's processes; launcher: the process from which those of an attempt descend; devices: NPUs
    by their physical ids, or GPUs by their numbers; scheduler: the address and the port where MindSpore's scheduler
    listens, None: not on this host; hccl: the first of HCCL's ports, None: the ranks do not use HCCL
    """

    mark: str
    launcher: int = 0
    since: int = 0  # when the job began, as now() has it; what began before is not of the job; 0: what is there now
    devices: Sequence[int] = ()
    gpus: bool = False  # the devices are GPUs
    scheduler: Sequence[str | int] | None = None
    hccl: int | None = None


class Watch:
    """Looks at this host: when it is made for what is in use anyway, later for what an attempt has left."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.note = ""  # what cannot be looked at, and why
        self._before = self._use() if wanted.devices else npu_use.Use()
        self._listened = _listened(wanted.hccl)
        # Process 1 of a container becomes the parent of what has nothing to do with the job.
        self._descends = wanted.launcher > 1
        there = descendants(wanted.launcher, ()) if self._descends else set()
        # A rank may have begun already: this process takes its time on a busy machine.
        self._strangers = {pid for pid in there if not wanted.since or _begun(pid) < wanted.since}
        self._hccp = set(_hccp()) if wanted.devices and not wanted.gpus else set()
        if self._before.failure:
            self.note = tr(
                "note: restarts do not wait until the devices are free: {reason}", reason=one_line(self._before.failure)
            )

    def look(self, own: Collection[int] = ()) -> list[Held]:
        """Everything that is held now. own: processes of the launcher itself.  It ends what can be ended.

        While processes of the attempt run, the rest is not checked: their devices and ports are theirs.
        """
        found = list(self._processes(own))
        return found or [*self._devices(), *self._ports()]

    # ---- processes -----------------------------------------------------------------------------------------------

    def _processes(self, own: Collection[int]) -> Iterator[Held]:
        found = {pid for pid in proc.marked(os.fsencode(self.wanted.mark)) if pid != os.getpid()}
        if self._descends:
            found |= descendants(self.wanted.launcher, own) - self._strangers
        yield from map(end, sorted(found))

    # ---- devices -------------------------------------------------------------------------------------------------

    def _use(self) -> Use:
        return npu_use.gpu_use() if self.wanted.gpus else npu_use.look()

    @property
    def _shows(self) -> str:
        """The command that shows more of the devices."""
        return "nvidia-smi" if self.wanted.gpus else "npu-smi info"

    def _devices(self) -> Iterator[Held]:
        if not self.wanted.devices or self._before.failure:
            return
        use = self._use()
        if use.failure:
            text = tr("the devices cannot be checked ({reason})", reason=one_line(use.failure))
            yield Held(text, (), self._shows)
            return
        anyway = {(holder.device, holder.pid) for holder in self._before.holders if self._was_before(holder.pid)}
        found = [holder for holder in holders(use, self.wanted.devices) if (holder.device, holder.pid) not in anyway]
        yield from map(device, found)
        if not found:
            yield from self._memory(use)
        if not use.holders and not self.wanted.gpus:
            yield from (_serving(pid) for pid in sorted(set(_hccp()) - self._hccp))

    def _was_before(self, pid: int) -> bool:
        """Whether it began before the launcher: the first look may come after the first attempt.

        About a process that this container does not see, this is unknown.
        """
        begun = _begun(pid)
        return not begun or not self.wanted.launcher or begun < _begun(self.wanted.launcher)

    def _memory(self, use: Use) -> Iterator[Held]:
        """Memory that no process has: the driver has not given it back yet."""
        for number in self.wanted.devices:
            used, _ = use.memory.get(number, (0, 0))
            before, _ = self._before.memory.get(number, (used, 0))
            if used > before + _MORE:
                text = tr(
                    "device {device} has {used} MB in use, {before} MB before the first attempt",
                    device=number,
                    used=used,
                    before=before,
                )
                yield Held(text, (), self._shows)

    # ---- ports ---------------------------------------------------------------------------------------------------

    def _ports(self) -> Iterator[Held]:
        if self.wanted.scheduler:
            address, number = self.wanted.scheduler
            if ports.fault(int(number), str(address)):
                who = sockets.holder(int(number))
                what = tr("port {port} of MindSpore's scheduler is in use ({who})", port=number, who=who)
                yield Held(what, (), _ss(int(number)))
        for number in sorted(_listened(self.wanted.hccl) - self._listened):
            who = sockets.holder(number)
            yield Held(tr("port {port} of HCCL is in use ({who})", port=number, who=who), (), _ss(number))


def _ss(port: int) -> str:
    return f"ss -ltnp 'sport = :{port}'"


def _listened(base: int | None) -> set[int]:
    """The ports of HCCL on which a process listens."""
    if base is None:
        return set()
    return sockets.listening(range(base, base + hccl_ports.LAST_DEVICE + 1))


def _hccp() -> Iterator[int]:
    """The processes that serve HCCL for a training."""
    return (int(number) for number in proc.numbers() if proc.name(int(number)).startswith(_HCCP))


def _serving(pid: int) -> Held:
    return Held(tr("process {pid} still serves HCCL ({command})", pid=pid, command=command_of(pid)), (pid,), "")


def end(pid: int) -> Held:
    """Ends a process of an attempt that has ended."""
    # Its state counts before the signal: while it ends, any process may be in D for a moment.
    remedy = f"ps -o pid,stat,wchan:20,args -p {pid}" if proc.state(pid) == "D" else ""
    text = tr("process {pid} of the last attempt runs ({command})", pid=pid, command=command_of(pid))
    proc.send(pid, signals.SIGKILL)
    return Held(text, (pid,), remedy)


def device(holder: npu_use.Holder) -> Held:
    """A device that a process has."""
    memory = "" if holder.memory is None else tr(", {size} MB", size=holder.memory)
    name = short(holder.name, _SHOWN) or command_of(holder.pid)
    text = tr(
        "process {pid} holds device {device} ({name}{memory})",
        pid=holder.pid,
        device=holder.device,
        name=name,
        memory=memory,
    )
    return Held(text, (holder.pid,), "")


def holders(use: Use, devices: Sequence[int]) -> list[npu_use.Holder]:
    """The processes that have one of these devices."""
    return [holder for holder in use.holders if holder.device in devices]


def command_of(pid: int) -> str:
    """The command of the process, for people."""
    words = proc.words(pid) or proc.name(pid)
    return short(command(os.fsdecode(words)), _SHOWN) or "?"


def descendants(launcher: int, own: Collection[int]) -> set[int]:
    """The launcher's descendants that still run, except processes of the launcher itself."""
    table = proc.table()
    children = proc.children(table)
    found = set()
    waiting = [launcher]
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            if pid in own or pid == os.getpid() or proc.words(pid).startswith(OURS):
                continue
            waiting.append(pid)
            if table[pid].state not in ("Z", "X"):
                found.add(pid)
    return found


def earlier(job: bytes, engine: int) -> list[int]:
    """The processes of a job that began before the process `engine`, which has begun with this attempt."""
    begun = _begun(engine)
    return [pid for pid in proc.marked(job) if pid != engine and 0 < _begun(pid) < begun]


def now() -> int:
    """This moment, in ticks since the machine began."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def _begun(pid: int) -> int:
    """When it began, in ticks since the machine did; 0: it is gone."""
    fields = proc.stat(pid)
    return int(fields[_START]) if len(fields) > _START else 0


def remedy(found: Sequence[Held]) -> str:
    """The command that ends what holds it, or shows more."""
    special = [held.remedy for held in found if held.remedy]
    if special:
        return special[0]
    pids = dict.fromkeys(pid for held in found for pid in held.pids)
    return f"kill -9 {' '.join(map(str, pids))}"
