"""The resources that a launch may use: files, processes, shared memory, disks."""

from __future__ import annotations

import os
import resource
import sys

from hccl_tools.common import project
from hccl_tools.common.language import marked, tr
from hccl_tools.common.record import Row
from hccl_tools.machine.programs import Ended
from tools.doctor import files, page
from tools.doctor.page import GIB, MIB, OK, PROBLEM, UNKNOWN, WARNING, Facts, Line, Options

TITLE = marked("Limits")

# What to do.
FEW_FILES = marked("raise nofile in /etc/security/limits.conf, or start the container with --ulimit nofile=65536")
FEW_PROCESSES = marked(
    "a rank starts hundreds of threads: raise nproc in /etc/security/limits.conf, or start "
    "the container with a larger --pids-limit"
)
NO_SHM = marked("mount a tmpfs on it: data loaders pass their data through it")


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
        return tr("{free:.1f} of {total:.1f} {unit} free", free=self.free / unit, total=self.total / unit, unit=word)


def questions(options: Options) -> dict[str, list[str]]:
    """One process per folder, because statvfs never returns if the file server is gone."""
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
        _disk(tr("current folder"), facts.answers["current"], "."),
        _disk(tr("log folder"), facts.answers["logs"], facts.options.log_dir),
    ]


def _least(name: str, found: int, text: str, remedy: str, problem: int, warning: int) -> Line:
    """The Line of a limit: a problem or a warning where `found` is below those numbers."""
    if found == resource.RLIM_INFINITY or found >= warning:
        return Line(name, OK, text)
    return Line(name, PROBLEM if found < problem else WARNING, text, remedy)


def _open_files() -> Line:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    text = tr("{number} (ulimit -n), at most {most}", number=_shown(soft), most=_shown(hard))
    remedy = f"ulimit -n {min(hard, 65536) if hard != resource.RLIM_INFINITY else 65536}"
    if hard != resource.RLIM_INFINITY and hard < 4096:
        remedy = tr(FEW_FILES)
    return _least(tr("open files"), soft, text, remedy, 256, 1024)


def _processes() -> Line:
    soft, _hard = resource.getrlimit(resource.RLIMIT_NPROC)
    text = f"{_shown(soft)} (ulimit -u)"
    if os.geteuid() == 0:
        text = tr("{limit}, which does not apply to root", limit=text)
        soft = resource.RLIM_INFINITY
    allowed, used = files.number("/sys/fs/cgroup/pids.max"), files.number("/sys/fs/cgroup/pids.current")
    if allowed is not None:
        text = tr(
            "{limit}, {allowed} by the control group, of which {used} are used",
            limit=text,
            allowed=allowed,
            used=used or 0,
        )
        left = allowed - (used or 0)
        soft = left if soft == resource.RLIM_INFINITY else min(soft, left)
    # MindSpore and its numeric libraries start threads by the hundred, and a thread counts as a process.
    remedy = tr(FEW_PROCESSES)
    return _least(tr("processes"), soft, text, remedy, 512, 4096)


def _locked() -> Line:
    soft, _hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    unit = "" if soft == resource.RLIM_INFINITY else " KiB"
    return Line(tr("locked memory"), OK, f"{_shown(soft, 1024)}{unit} (ulimit -l)")


def _shown(limit: int, unit: int = 1) -> str:
    return tr("unlimited") if limit == resource.RLIM_INFINITY else str(limit // unit)


def _shared_memory(ended: Ended) -> Line:
    found = _measured(ended)
    if not found:
        return Line("/dev/shm", UNKNOWN, page.failure(ended))
    if os.path.basename(found.folder) != "shm":
        remedy = tr(NO_SHM)
        return Line("/dev/shm", WARNING, tr("is not there"), remedy)
    remedy = tr("data loaders crash with a bus error if it is too small; start a container with --shm-size=8g")
    if found.free < 16 * MIB:
        remedy = tr("remove what fills it; {remedy}", remedy=remedy)
    return _least("/dev/shm", found.free, found.room, remedy, 16 * MIB, GIB)


def _disk(name: str, ended: Ended, asked: str) -> Line:
    found = _measured(ended)
    if not found:
        if ended.status == page.TIMED_OUT:
            return Line(name, UNKNOWN, page.failure(ended), tr("see whether the file server answers: df -h ."))
        return Line(name, PROBLEM, page.failure(ended), tr("change to a folder that is there"))
    text = found.room
    if asked != ".":
        text = tr("{room} in {folder}", room=text, folder=found.folder)
    if not found.writable:
        status = WARNING if asked == "." else PROBLEM
        text = tr("cannot be written; {room}", room=text)
        return Line(name, status, text, tr("change its permissions, or use another: --log_dir"))
    if found.inodes == 0:
        text = tr("no inode left for a new file; {room}", room=text)
        return Line(name, PROBLEM, text, tr("remove files, or use another disk"))
    remedy = tr("logs and checkpoints may need more")
    if found.free < 100 * MIB:
        remedy = tr("logs and checkpoints need room: remove files, or use another disk")
    return _least(name, found.free, text, remedy, 100 * MIB, GIB)


def _measured(ended: Ended) -> Disk | None:
    if ended.status != 0:
        return None
    total, free, inodes, writable, folder = ended.stdout.rstrip("\n").split(" ", 4)
    return Disk(int(total), int(free), int(inodes), writable == "1", folder)
