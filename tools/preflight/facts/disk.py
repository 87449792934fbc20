"""Room on disks: /dev/shm, /tmp, the log folder; and whether the log folder is one for all hosts."""

from __future__ import annotations

import os

from tools.doctor import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.preflight.difference import Value
    from tools.preflight.question import Question

# File systems of a server, which has the same numbers for a folder on all hosts.
_SHARED = ("nfs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "fuse.glusterfs", "cifs", "smb3", "9p", "dpc")
_SHM = "/dev/shm"


def collect(_: Question) -> dict[str, Value]:
    """The two folders that every host has."""
    facts: dict[str, Value] = {"shm": os.path.ismount(_SHM), "tmp_free": _free(os.statvfs("/tmp"))}
    if facts["shm"]:
        facts["shm_free"] = _free(os.statvfs(_SHM))
    return facts


def collect_log_folder(question: Question) -> dict[str, Value]:
    """The folder of the logs, or that in which it would be made: this may hang where a file server is gone."""
    there = question.log_dir
    while not os.path.isdir(there):
        there = os.path.dirname(there)
    found = os.statvfs(there)
    return {
        "logs_writable": os.access(there, os.W_OK | os.X_OK),
        "logs_free": _free(found),
        "logs_inodes": found.f_favail if found.f_files else None,
        "logs_place": place(there),
        "folder": os.path.isdir(question.folder),
    }


def _free(found: os.statvfs_result) -> int:
    return found.f_frsize * found.f_bavail


def place(folder: str) -> str:
    """A text that is the same on two hosts exactly if the folder is one and the same for both."""
    state, kind = os.stat(folder), _kind(folder)
    if kind.startswith(_SHARED):
        found = os.statvfs(folder)
        return f"{kind.rstrip('4')} {state.st_ino} {found.f_blocks * found.f_frsize}"
    return f"{files.read('/proc/sys/kernel/random/boot_id')} {state.st_dev} {state.st_ino}"


def _kind(folder: str) -> str:
    """The type of the file system; empty if /proc does not show it."""
    device = os.stat(folder).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in (files.read("/proc/self/mountinfo") or "").splitlines():
        words, _, rest = line.partition(" - ")
        if words.split()[2:3] == [wanted]:
            return rest.split(" ", 1)[0]
    return ""
