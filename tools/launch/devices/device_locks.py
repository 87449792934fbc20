"""Records which job of this host has which devices, so that a second launch on a device is refused.

With --bind_core a job also has cores of its own, see binding.py; on NPUs it has ports, see hccl_ports.py.

A job holds flock(2) on a file of its own, which names the job and its devices.  The launcher opens that file and its
ranks inherit it, so the kernel frees the devices when the last process of the job has ended.  A file without a holder
has no effect, however old or new it is.

Launches do not exclude one another by a lock that all users share, because any user could keep such a lock for ever.  A
launch first writes into its file that it asks for its devices, and then reads the files of the others.  If two launches
ask for the same device, at least one sees the other, and at most one continues.  The state in the file is one byte that
changes in place.  A reader of the folder could miss a file whose name changes meanwhile.
"""

from __future__ import annotations

import fcntl
import json
import os
import time

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import named, one_line
from tools.launch.devices import lock_folders
from tools.launch.devices.lock_folders import LockFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from tools.launch.engines.hccl_ports import Ranges

IDLE, ASKS, HAS = "i", "a", "h"  # a job has no devices, asks for its devices, has them
STATE_AT = len('{"state": "')
PATIENCE = 10  # seconds; a launch asks for some milliseconds only, unless it is stopped
LAST_TIME = 253402300799  # of the year 9999
MOST_DEVICES, MOST_CORES, MOST_PROCESSES, MOST_PORT = 1 << 16, 1 << 16, 1 << 22, 65535


class Holder(Record):
    """A job that has devices, or is about to take them."""

    path: str  # of its file
    owner: int  # the user of the file
    state: str
    job: str  # its run folder
    devices: list[int]  # sorted
    cores: list[int]  # sorted; that no other job may have
    ports: Ranges = []  # at which its ranks may listen for HCCL
    pid: int  # its launcher
    namespace: int  # in which the launcher has this number
    since: int


class Wanted(Record):
    """The devices and cores that a job asks for."""

    devices: set[int]
    cores: set[int]
    ports: Ranges

    def meets(self, holder: Holder) -> bool:
        """Whether the other job has some of it."""
        return bool(
            self.devices & set(holder.devices) or self.cores & set(holder.cores) or meet(self.ports, holder.ports)
        )


def meet(ours: Sequence[tuple[int, int]], theirs: Sequence[tuple[int, int]]) -> bool:
    """Whether two lists of ranges, (first, last) of each, have a number in common."""
    return any(one[0] <= other[1] and other[0] <= one[1] for one in ours for other in theirs)


def held() -> list[Holder]:
    """The Holder of every job that has devices on this host now, oldest first.  Raises OSError."""
    return sorted((holder for holder in _holders(None) if holder.state == HAS), key=lambda holder: holder.since)


def asked(path: str = "") -> list[Holder]:
    """The Holder of every other job that has devices or cores, or asks for them; `path`: the file of this job.

    Raises OSError.
    """
    return [holder for holder in _holders(None) if holder.path != path]


def take(
    descriptor: int | None,
    path: str,
    job: str,
    pid: int,
    devices: list[int],
    cores: set[int] | None = None,
    ports: Ranges | None = None,
) -> list[Holder]:
    """Takes `devices`, `cores` and `ports` for `job`, whose launcher is process `pid`.

    Returns the Holders that have some of them already; an empty list: the job has all of them now.
    descriptor: of the job's file at `path`, which the launcher has made and keeps open; None: it could not.
    Raises OSError where there can be no locks, and Refusal if the file is not there any more.
    """
    if descriptor is None:
        raise lock_folders.why_none(path)
    _lock(descriptor, path)
    wanted = Wanted(devices=set(devices), cores=cores or set(), ports=ports or [])
    _write(descriptor, job, pid, wanted)
    latest = time.monotonic() + PATIENCE
    while True:
        _set_state(descriptor, ASKS)
        others = _others(descriptor, wanted)
        if not others:
            _set_state(descriptor, HAS)
            return []
        has = [holder for holder in others if holder.state == HAS]
        if has or time.monotonic() > latest:
            _set_state(descriptor, IDLE)
            return has or others
        if any(holder.path < path for holder in others):
            _set_state(descriptor, IDLE)  # of those that ask for a device, the first in this order goes on
        time.sleep(0.02 + os.urandom(1)[0] / 1000)


def has_ended(holder: Holder) -> bool:
    """Whether the job has no devices any more.  Raises OSError."""
    return all(other.path != holder.path for other in _holders(None))


def words(holder: Holder, devices: list[int]) -> str:
    """The message that `holder` has some of `devices`."""
    return _in_use(named("device", set(holder.devices) & set(devices)), holder)


def core_words(holder: Holder) -> str:
    """The message that `holder` has cores."""
    return _in_use(named("core", holder.cores), holder)


def _in_use(what: str, holder: Holder) -> str:
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(holder.since))
    who = tr(
        "process {pid} of {user}, since {since}",
        pid=holder.pid,
        user=one_line(lock_folders.user(holder.owner)),
        since=since,
    )
    if holder.namespace == _namespace() and _is_gone(holder.pid):
        who += tr("; it has ended, but one of its ranks may still run: see fuser -v {path}", path=one_line(holder.path))
    return tr("{what} in use by {job} ({who})", what=what, job=one_line(holder.job), who=who)


def _lock(descriptor: int, path: str) -> None:
    """Locks the job's file for as long as the job lives; a launch that cleans up can have been faster."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise lock_folders.lost(path) from error
    lock_folders.check_mine(descriptor, path)


def _write(descriptor: int, job: str, pid: int, wanted: Wanted) -> None:
    """Writes what others may know of the job, which has no devices yet."""
    if os.fstat(descriptor).st_size:
        _set_state(descriptor, IDLE)  # while the rest changes
    entry: dict[str, Any] = {"state": IDLE, "job": job, "devices": sorted(wanted.devices)}
    entry.update(cores=sorted(wanted.cores), ports=wanted.ports, pid=pid)
    text = json.dumps({**entry, "namespace": _namespace(), "since": max(0, int(time.time()))}).encode()
    os.ftruncate(descriptor, len(text))
    os.pwrite(descriptor, text, 0)
    os.fchmod(descriptor, 0o1644)  # all can read it; systemd-tmpfiles leaves what has the sticky bit, however old


def _set_state(descriptor: int, state: str) -> None:
    os.pwrite(descriptor, state.encode(), STATE_AT)


def _others(descriptor: int, wanted: Wanted) -> list[Holder]:
    """The other jobs that have some of what is wanted, or ask for it.

    If we cannot see them, we ask for nothing.
    """
    try:
        holders = _holders(os.fstat(descriptor))
        return [holder for holder in holders if wanted.meets(holder)]
    except OSError:
        _set_state(descriptor, IDLE)
        raise


def _holders(mine: os.stat_result | None) -> Iterator[Holder]:
    """The Holders of all files but `mine`; removes the files that this user's jobs have left."""
    for file in lock_folders.files():
        if mine and os.path.samestat(mine, file.about):
            continue
        holder = _read(file)
        if holder and holder.state != IDLE and _is_held(file):
            yield holder
        elif file.about.st_uid == os.geteuid():
            _remove_left_over(file)


def _read(file: LockFile) -> Holder | None:
    """What the file states; None: it is not a job's, or not written yet."""
    try:
        entry = json.loads(os.pread(file.descriptor, lock_folders.MOST_BYTES, 0))
        job = str(entry["job"])
        os.fsencode(job)  # raises ValueError for what is not text
        return Holder(
            path=file.path,
            owner=file.about.st_uid,
            state=str(entry["state"]),
            job=job,
            devices=sorted(_number(device, MOST_DEVICES) for device in entry["devices"]),
            cores=sorted(_number(core, MOST_CORES) for core in entry.get("cores", ())),
            ports=[_range(pair) for pair in entry.get("ports", ())],
            pid=_number(entry["pid"], MOST_PROCESSES),
            namespace=_number(entry["namespace"], 1 << 64),
            since=_number(entry["since"], LAST_TIME),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _range(pair: Any) -> tuple[int, int]:
    first, last = (_number(port, MOST_PORT) for port in pair)
    return first, last


def _number(value: Any, most: int) -> int:
    if not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError
    return value


def _is_held(file: LockFile) -> bool:
    try:
        fcntl.flock(file.descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _remove_left_over(file: LockFile) -> None:
    """Removes the file of a launch that has ended, and of whose ranks none is left."""
    pid = os.path.basename(file.path).partition(".")[0]
    if pid.isdecimal() and int(pid) <= MOST_PROCESSES and _is_gone(int(pid)):
        try:
            fcntl.flock(file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(file.path)
        except OSError:
            return  # a rank has it, or another launch was faster


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)  # and no PermissionError, which another user's process gives
    return False


def _namespace() -> int:
    """The number of the namespace in which processes have the ids that we see; 0 where there is no /proc."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0
