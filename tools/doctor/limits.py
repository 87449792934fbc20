"""What a launch may use: files, processes, shared memory, disks."""

import os
import resource
import sys

from tools.doctor import answer, files
from tools.doctor.page import OK, PROBLEM, UNKNOWN, WARNING, Line

TITLE = "Limits"
_DISK = os.path.join(os.path.dirname(os.path.realpath(__file__)), "disk.py")
MIB, GIB = 1 << 20, 1 << 30


def questions(log_dir):
    """A process of its own a folder: statvfs on a server that is gone never comes back."""
    folders = {"current": ".", "logs": log_dir, "shm": files.ROOT + "/dev/shm"}
    return {key: [sys.executable, _DISK, folder] for key, folder in folders.items()}


def lines(answers, log_dir):
    """log_dir: where the logs of all runs go."""
    return [
        _open_files(),
        _processes(),
        _locked(),
        _shared_memory(answers["shm"]),
        _disk("current folder", answers["current"], "."),
        _disk("log folder", answers["logs"], log_dir),
    ]


def _open_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    text = f"{_shown(soft)} (ulimit -n), at most {_shown(hard)}"
    remedy = f"ulimit -n {min(hard, 65536) if hard != resource.RLIM_INFINITY else 65536}"
    if _below(hard, 4096):
        remedy = "raise nofile in /etc/security/limits.conf, of a container with --ulimit nofile=65536"
    if _below(soft, 256):
        return Line("open files", PROBLEM, text, remedy)
    return Line("open files", *((WARNING, text, remedy) if _below(soft, 1024) else (OK, text)))


def _processes():
    soft, _hard = resource.getrlimit(resource.RLIMIT_NPROC)
    text = f"{_shown(soft)} (ulimit -u)"
    if os.geteuid() == 0:
        text += ", which does not hold for root"
        soft = resource.RLIM_INFINITY
    allowed, used = files.number("/sys/fs/cgroup/pids.max"), files.number("/sys/fs/cgroup/pids.current")
    if allowed is not None:
        text += f", {allowed} by the control group, of which {used or 0} are used"
        left = allowed - (used or 0)
        soft = left if soft == resource.RLIM_INFINITY else min(soft, left)
    # MindSpore and its numeric libraries start threads by the hundred, and a thread counts as a process.
    remedy = "a rank starts hundreds of threads: raise nproc in /etc/security/limits.conf, of a container --pids-limit"
    if _below(soft, 512):
        return Line("processes", PROBLEM, text, remedy)
    return Line("processes", *((WARNING, text, remedy) if _below(soft, 4096) else (OK, text)))


def _locked():
    soft, _hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return Line(
        "locked memory", OK, f"{_shown(soft, 1024)}{'' if soft == resource.RLIM_INFINITY else ' KiB'} (ulimit -l)"
    )


def _below(limit, least):
    return limit != resource.RLIM_INFINITY and limit < least


def _shown(limit, unit=1):
    return "unlimited" if limit == resource.RLIM_INFINITY else str(limit // unit)


def _shared_memory(ended):
    found = _measured(ended)
    if isinstance(found, str):
        return Line("/dev/shm", UNKNOWN, found)
    if found["folder"].rstrip("/").rpartition("/")[2] != "shm":
        return Line("/dev/shm", WARNING, "is not there", "mount a tmpfs on it: data loaders pass their data through it")
    remedy = "data loaders pass their data through it, and die of a bus error without; of a container: --shm-size=8g"
    if found["free"] < 16 * MIB:
        return Line("/dev/shm", PROBLEM, _room(found), f"remove what fills it; {remedy}")
    return Line("/dev/shm", *((WARNING, _room(found), remedy) if found["free"] < GIB else (OK, _room(found))))


def _disk(name, ended, asked):
    found = _measured(ended)
    if isinstance(found, str):
        if ended.status == answer.TIMED_OUT:
            return Line(name, UNKNOWN, found, "look whether the file server answers: df -h .")
        return Line(name, PROBLEM, found, "change to a folder that is there")
    text = _room(found)
    if asked != ".":
        text += f" in {found['folder']}"
    if not found["writable"]:
        status = PROBLEM if name == "log folder" else WARNING
        return Line(name, status, f"cannot be written; {text}", "change its permissions, or use another: --log_dir")
    if found["files"] == 0:
        return Line(name, PROBLEM, f"no inode left for a new file; {text}", "remove files, or use another disk")
    if found["free"] < 100 * MIB:
        return Line(name, PROBLEM, text, "logs and checkpoints need room: remove files, or use another disk")
    if found["free"] < GIB:
        return Line(name, WARNING, text, "logs and checkpoints may need more")
    return Line(name, OK, text)


def _measured(ended):
    """What disk.py says as a dict, or why it says nothing as words."""
    if ended.status != 0:
        return answer.failure(ended)
    total, free, inodes, writable, folder = ended.stdout.rstrip("\n").split(" ", 4)
    # -1: a file system that makes inodes as it needs them
    return {
        "total": int(total),
        "free": int(free),
        "files": int(inodes),
        "writable": writable == "1",
        "folder": folder,
    }


def _room(found):
    free, total = found["free"], found["total"]
    unit, word = (GIB, "GiB") if total >= GIB else (MIB, "MiB")
    return f"{free / unit:.1f} of {total / unit:.1f} {word} free"
