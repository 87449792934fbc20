"""The job's own files on this host, the space on its disks, and whether all hosts share one log folder."""

from __future__ import annotations

import hashlib
import os
import re

from hccl_tools.common.documents import refuse_special
from hccl_tools.common.words import short
from tools.doctor import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.preflight.difference import Value
    from tools.preflight.question import Question

# File systems of a server, which has the same numbers for a folder on all hosts.
_SHARED = ("nfs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "fuse.glusterfs", "cifs", "smb3", "9p", "dpc")
_SHM = "/dev/shm"
DIGITS = 12  # of a digest
MOST_BYTES = 1 << 26  # of a file; a program's own files are smaller
_MOST_DIFFERENT = 20  # files that are named; the others have one digest together
_MOST_ENTRIES = 100_000  # of the folder of the data that are counted
WATCHED = ("HCCL_", "ASCEND_", "MS_", "GLOG_", "OMP_")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SHOWN = 120  # characters of a value; a digest stands for the rest
_DIGITS = 8
_MOST = 200  # variables


def collect(question: Question) -> dict[str, Value]:
    """The digests of files that are not as on the asking host; None: not there.  The asker knows the others."""
    found = {path: digest(path) for path in question.files}
    different = [path for path, own in found.items() if own != question.files[path]]
    facts: dict[str, Value] = {f"file:{path}": found[path] for path in different[:_MOST_DIFFERENT]}
    facts["more_files"] = None
    if different[_MOST_DIFFERENT:]:
        rest = "".join(f"{path}\0{found[path]}\0" for path in different[_MOST_DIFFERENT:])
        facts["more_files"] = hashlib.sha256(os.fsencode(rest)).hexdigest()[:DIGITS]
    if question.table:
        facts["table_file"] = digest(question.table[0])
    return facts


def collect_data(question: Question) -> dict[str, Value]:
    """Whether the data is there, and as much as on other hosts, as far as that is known at once."""
    if not question.data:
        return {}
    facts: dict[str, Value] = {"data": os.access(question.data, os.R_OK)}
    if os.path.isdir(question.data):
        names = 0
        with os.scandir(question.data) as entries:
            for entry in entries:
                names += not entry.name.startswith(".")
                if names == _MOST_ENTRIES:
                    break
        facts["data_entries"] = names
    elif facts["data"]:
        facts["data_bytes"] = os.path.getsize(question.data)
    return facts


def digest(path: str) -> str | None:
    """The beginning of the file's SHA-256, as sha256sum prints it; None where there is no file, or none to read."""
    found = hashlib.sha256()
    try:
        refuse_special(path)
        with open(path, "rb") as file:
            left = MOST_BYTES
            while left > 0 and (block := file.read(min(left, 1 << 20))):
                found.update(block)
                left -= len(block)
    except OSError:
        return None
    return found.hexdigest()[:DIGITS]


def collect_disk(_: Question) -> dict[str, Value]:
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


def collect_environment(question: Question) -> dict[str, Value]:
    """The watched variables that are set only here."""
    own = [name for name in watched(os.environ) if name not in question.set_here]
    return {f"variable:{name}": _shown(name, os.environ[name], question.salt) for name in own[:_MOST]}


def watched(environment: Mapping[str, str]) -> list[str]:
    """The names that matter to a job, sorted."""
    return sorted(name for name in environment if name.startswith(WATCHED) and _NAME.fullmatch(name))


def _shown(name: str, value: str, salt: str) -> str:
    """The value, as far as it may be known: a secret is compared by a digest that is of use in this check only."""
    from tools.diagnosis.bundle import names  # most hosts have no such variables

    found = hashlib.sha256(os.fsencode(salt + name + value)).hexdigest()[:_DIGITS]
    if names.is_secret(name):
        return f"<{found}>"
    return value if len(value) <= _SHOWN else f"{short(value, _SHOWN)} <{found}>"
