"""What a launch may use: files, processes, shared memory, disks."""

from __future__ import annotations

import os
import resource
import sys

from hccl_tools.common import project
from hccl_tools.common.record import Row
from hccl_tools.machine.programs import Ended
from tools.doctor import answer, files
from tools.doctor.page import GIB, MIB, OK, PROBLEM, UNKNOWN, WARNING, Line
from tools.doctor.section import Facts, Options

TITLE = "Limits"


class Disk(Row):
    """What disk.py prints."""

    total: int  # bytes
    free: int
    inodes: int  # free; -1: a file system that makes them as it needs them
    writable: bool
    folder: str

    @property
    def room(self) -> str:
        """Free and total bytes, as the page shows them."""
        unit, word = (GIB, "GiB") if self.total >= GIB else (MIB, "MiB")
        return f"{self.free / unit:.1f} of {self.total / unit:.1f} {word} free"


def questions(options: Options) -> dict[str, list[str]]:
    """One process per folder: statvfs never returns if the file server is gone."""
    folders = {"current": ".", "logs": options.log_dir, "shm": files.ROOT + "/dev/shm"}
    program = project.path("tools", "doctor", "disk.py")
    return {key: [sys.executable, program, folder] for key, folder in folders.items()}


def lines(facts: Facts) -> list[Line]:
    """What this user and this machine allow."""
    return [
        _open_files(),
        _processes(),
        _locked(),
        _shared_memory(facts.answers["shm"]),
        _disk("current folder", facts.answers["current"], "."),
        _disk("log folder", facts.answers["logs"], facts.options.log_dir),
    ]


def _least(name: str, found: int, text: str, remedy: str, problem: int, warning: int) -> Line:
    """The Line of a limit: a problem or a warning where `found` is below those numbers."""
    if found == resource.RLIM_INFINITY or found >= warning:
        return Line(name, OK, text)
    return Line(name, PROBLEM if found < problem else WARNING, text, remedy)


def _open_files() -> Line:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    text = f"{_shown(soft)} (ulimit -n), at most {_shown(hard)}"
    remedy = f"ulimit -n {min(hard, 65536) if hard != resource.RLIM_INFINITY else 65536}"
    if hard != resource.RLIM_INFINITY and hard < 4096:
        remedy = "raise nofile in /etc/security/limits.conf, or start the container with --ulimit nofile=65536"
    return _least("open files", soft, text, remedy, 256, 1024)


def _processes() -> Line:
    soft, _hard = resource.getrlimit(resource.RLIMIT_NPROC)
    text = f"{_shown(soft)} (ulimit -u)"
    if os.geteuid() == 0:
        text += ", which does not apply to root"
        soft = resource.RLIM_INFINITY
    allowed, used = files.number("/sys/fs/cgroup/pids.max"), files.number("/sys/fs/cgroup/pids.current")
    if allowed is not None:
        text += f", {allowed} by the control group, of which {used or 0} are used"
        left = allowed - (used or 0)
        soft = left if soft == resource.RLIM_INFINITY else min(soft, left)
    # MindSpore and its numeric libraries start threads by the hundred, and a thread counts as a process.
    remedy = (
        "a rank starts hundreds of threads: raise nproc in /etc/security/limits.conf, "
        "or start the container with a larger --pids-limit"
    )
    return _least("processes", soft, text, remedy, 512, 4096)


def _locked() -> Line:
    soft, _hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    unit = "" if soft == resource.RLIM_INFINITY else " KiB"
    return Line("locked memory", OK, f"{_shown(soft, 1024)}{unit} (ulimit -l)")


def _shown(limit: int, unit: int = 1) -> str:
    return "unlimited" if limit == resource.RLIM_INFINITY else str(limit // unit)


def _shared_memory(ended: Ended) -> Line:
    found = _measured(ended)
    if not found:
        return Line("/dev/shm", UNKNOWN, answer.failure(ended))
    if os.path.basename(found.folder) != "shm":
        return Line("/dev/shm", WARNING, "is not there", "mount a tmpfs on it: data loaders pass their data through it")
    remedy = "data loaders crash with a bus error if it is too small; start a container with --shm-size=8g"
    if found.free < 16 * MIB:
        remedy = f"remove what fills it; {remedy}"
    return _least("/dev/shm", found.free, found.room, remedy, 16 * MIB, GIB)


def _disk(name: str, ended: Ended, asked: str) -> Line:
    found = _measured(ended)
    if not found:
        if ended.status == answer.TIMED_OUT:
            return Line(name, UNKNOWN, answer.failure(ended), "see whether the file server answers: df -h .")
        return Line(name, PROBLEM, answer.failure(ended), "change to a folder that is there")
    text = found.room
    if asked != ".":
        text += f" in {found.folder}"
    if not found.writable:
        status = PROBLEM if name == "log folder" else WARNING
        return Line(name, status, f"cannot be written; {text}", "change its permissions, or use another: --log_dir")
    if found.inodes == 0:
        return Line(name, PROBLEM, f"no inode left for a new file; {text}", "remove files, or use another disk")
    remedy = "logs and checkpoints may need more"
    if found.free < 100 * MIB:
        remedy = "logs and checkpoints need room: remove files, or use another disk"
    return _least(name, found.free, text, remedy, 100 * MIB, GIB)


def _measured(ended: Ended) -> Disk | None:
    if ended.status != 0:
        return None
    total, free, inodes, writable, folder = ended.stdout.rstrip("\n").split(" ", 4)
    return Disk(int(total), int(free), int(inodes), writable == "1", folder)
