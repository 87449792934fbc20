"""Records which job of this host has which devices, so that a second launch on a device is refused.

A job holds flock(2) on a file of its own, which names the job, in one folder for all users.  The launcher
opens that file and its ranks inherit it, so the kernel frees the devices when the last process of the job
has ended.  A launch that wants devices reads the files of the other jobs under a lock on the folder itself,
and removes files that nobody holds.
"""

from __future__ import annotations

import fcntl
import json
import os
import time

from hccl_tools.common.record import Record
from hccl_tools.common.words import named, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

FOLDER = "/tmp/mindspore-launch-locks"  # not TMPDIR: the same for every user; LAUNCH_LOCKS names another


class Holder(Record):
    """A job that has devices."""

    path: str  # of its file
    job: str  # its run folder
    devices: list[int]  # sorted
    pid: int  # its launcher
    user: str
    since: float


def folder() -> str:
    return os.environ.get("LAUNCH_LOCKS") or FOLDER


def held() -> list[Holder]:
    """The Holder of every job that has devices on this host now, oldest first.  Raises OSError."""
    try:
        with _LockedFolder():
            return sorted(_holders(None), key=lambda holder: holder.since)
    except FileNotFoundError:
        return []


def take(descriptor: int, job: str, pid: int, devices: list[int]) -> list[Holder]:
    """Takes `devices` for `job`, whose launcher is process `pid`.

    Returns the Holders that have some of them already; an empty list: the job has the devices now.
    descriptor: of the job's file in the folder, which the launcher has opened for writing and keeps open.
    Raises OSError.
    """
    with _LockedFolder():
        mine = os.fstat(descriptor).st_ino
        others = [holder for holder in _holders(mine) if set(holder.devices) & set(devices)]
        if not others:
            entry = {"job": job, "devices": sorted(devices), "pid": pid, "user": _user(), "since": time.time()}
            os.fchmod(descriptor, 0o644)  # others must be able to ask, whatever our umask
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(entry).encode(), 0)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return others


def wait_for(holder: Holder) -> None:
    """Sleeps until the job has ended.  Raises OSError."""
    try:
        with open(holder.path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
    except FileNotFoundError:
        pass  # it has ended


def words(holder: Holder, devices: list[int]) -> str:
    """The message that `holder` has some of `devices`."""
    shared = named("device", set(holder.devices) & set(devices))
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(holder.since))
    who = f"process {holder.pid} of {one_line(holder.user)}, since {since}"
    return f"{shared} in use by {one_line(holder.job)} ({who})"


class _LockedFolder:
    """Lets only one process at a time read the locks and take devices.  Raises OSError."""

    def __enter__(self) -> None:
        self.descriptor = os.open(folder(), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(self.descriptor, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)


def _holders(mine: int | None) -> Iterator[Holder]:
    """The Holders of all files but the one with inode `mine`; removes the user's files that nobody holds."""
    for name in os.listdir(folder()):
        path = os.path.join(folder(), name)
        try:
            with open(path, "rb") as file:
                if os.fstat(file.fileno()).st_ino != mine and _is_held(file):
                    yield _read(path, file)
                    continue
            _remove(path, mine)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue  # the job has ended meanwhile, or the file is not a job's


def _remove(path: str, mine: int | None) -> None:
    """An empty file is of a job that is about to take its devices, unless it is old."""
    about = os.stat(path)
    if about.st_ino != mine and about.st_uid == os.getuid() and (about.st_size or about.st_mtime < time.time() - 86400):
        os.unlink(path)


def _is_held(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _read(path: str, file: BinaryIO) -> Holder:
    entry = json.loads(file.read(1 << 16))
    return Holder(
        path=path,
        job=str(entry["job"]),
        devices=sorted(int(device) for device in entry["devices"]),
        pid=int(entry["pid"]),
        user=str(entry["user"]),
        since=float(entry["since"]),
    )


def _user() -> str:
    import pwd  # only a launch that takes devices needs it

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user often has no name
        return f"user {os.getuid()}"
