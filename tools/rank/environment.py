"""The environment of a rank (docs/environment.md): what the launch sets, and what it replaces of the caller's.

An environment is {name: value} of bytes: the caller's exported variables reach the ranks byte for byte.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Environment = dict[bytes, bytes]

# Every variable of the contract.  Those that the plan does not set are removed: the caller's shell may have them
# from an earlier job.  MINDSPORE_HCCL_CONFIG_PATH would override RANK_TABLE_FILE, and MS_SERVER_NUM would change
# the cluster.
CONTRACT = (
    "RANK_ID",
    "RANK_SIZE",
    "DEVICE_ID",
    "RANK_TABLE_FILE",
    "MS_WORKER_NUM",
    "MS_SCHED_HOST",
    "MS_SCHED_PORT",
    "MS_ROLE",
    "MS_NODE_ID",
    "LOG_DIR",
    "MINDSPORE_HCCL_CONFIG_PATH",
    "MS_SERVER_NUM",
)
# Other names of the same facts, which public trainers read.  MindSpore itself reads only LOCAL_RANK, and only before
# init.  So a value of the user counts.  The plan adds those that all ranks share: WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
DEFAULTS = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "SERVER_ID", "DEVICE_NUM")
FOR_RANKS = b"LAUNCH_FOR_RANKS_"  # before a name: a variable that an agent gives to its rank alone
# Variables of the scripts, which ranks would have under `set -a`.
OF_START = (b"LAUNCH_CALLER", b"LAUNCH_LIB", b"LAUNCH_PYTHON", b"LAUNCH_IGNORED", b"LAUNCH_SHOWN", b"LAUNCH_WORD")
MARK = b"LAUNCH_JOB"  # in the environment of every process of the job


def of_this_process() -> Environment:
    """The environment with which this process was started, from the kernel: Python adds LC_CTYPE in the locale C."""
    try:
        with open("/proc/self/environ", "rb") as file:
            text = file.read()
    except OSError:
        return dict(os.environb)
    pairs = (entry.partition(b"=") for entry in text.split(b"\0") if b"=" in entry)
    return {name: value for name, _, value in pairs if name}


def of_caller(environment: Environment, changed: str) -> Environment:
    """The same without what scripts/lib/start.sh has changed: see there.

    changed: "set" if POSIXLY_CORRECT was set, and after a slash the SHELLOPTS of the caller.
    """
    found = {name: value for name, value in environment.items() if name not in OF_START}
    posix, _, options = changed.partition("/")
    if not posix:
        found.pop(b"POSIXLY_CORRECT", None)
    if b"SHELLOPTS" in found:
        found[b"SHELLOPTS"] = os.fsencode(options)
    return found


def job(base: Environment, exports: Mapping[str, str]) -> Environment:
    """The part that all ranks share: the caller's without the contract, and the plan's `exports`."""
    found = dict(base)
    for name in CONTRACT:
        found.pop(name.encode(), None)
    found.update((os.fsencode(name), os.fsencode(value)) for name, value in exports.items())
    return found


def of_rank(
    base: Environment,
    *,
    rank: int,
    local_rank: int,
    device: int | str,
    sizes: str,
    mark: str,
    engine: str = "",
) -> Environment:
    """The variables of rank number `rank` in addition to `base`, the job's part, which a launch writes only once.

    sizes: ranks of the job's hosts, in order: "8x2 4x1" is two hosts with 8 ranks, then one with 4.
    """
    own = {"RANK_ID": str(rank), "DEVICE_ID": str(device)}
    if b"MS_SCHED_HOST" in base:  # MindSpore's dynamic cluster; a numeric MS_NODE_ID fixes the rank
        own.update(MS_ROLE="MS_WORKER", MS_NODE_ID=str(rank))
    host, each = host_of(rank, sizes)
    defaults = zip(DEFAULTS, (rank, local_rank, each, host, each))
    own.update((name, str(value)) for name, value in defaults if name.encode() not in base)
    # On import, MindSpore 2.10 replaces DEVICE_ID by this variable: a rank on device 4 would take device 0.
    if engine == "mpirun" and b"OMPI_COMM_WORLD_LOCAL_RANK" in base:
        own["OMPI_COMM_WORLD_LOCAL_RANK"] = str(device)
    found = {name.encode(): value.encode() for name, value in own.items()}
    found[MARK] = os.fsencode(mark)
    return found


def whole(base: Environment, own: Environment) -> Environment:
    """The trainer's environment: the job's part, with the additions and replacements of the rank."""
    return {**base, **own}


def host_of(rank: int, sizes: str) -> tuple[int, int]:
    """(the number of the host of this rank, the number of ranks on it)."""
    host, each = 0, 1
    for group in sizes.split():  # hosts of one size are one group, so there are few
        size, _, hosts = group.partition("x")
        each, count = int(size), int(hosts)
        if rank < each * count:
            break
        rank, host = rank - each * count, host + count
    return host + rank // each, each


def of_scheduler(base: Environment, mark: str) -> Environment:
    """The environment of MindSpore's scheduler.  If it saw the rank table, it would take the ranks' numbers from it."""
    found = {**base, b"MS_ROLE": b"MS_SCHED", MARK: os.fsencode(mark)}
    found.pop(b"RANK_TABLE_FILE", None)
    return found


def overridden(base: Mapping[bytes, bytes], exports: Mapping[str, str]) -> list[tuple[str, str]]:
    """(name, value) of the variables of the contract that the caller has and that the launch replaces."""
    found = []
    for name in CONTRACT:
        value = base.get(name.encode())
        if value is None:
            continue
        ours = exports.get(name, "")
        same = name.endswith("_FILE") and _same_file(os.fsdecode(value), ours)  # a path may be written in another way
        if os.fsdecode(value) != ours and not same:
            found.append((name, os.fsdecode(value)))
    return found


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


# ---- the file that keeps it ----------------------------------------------------------------------------------------


def as_shell(environment: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The variables as shell commands, ``declare -x NAME="value"``, in their order; what cannot be a name of a
    shell, as comments."""
    return b"".join(_declared(name, value) for name, value in environment)


_SPECIAL = bytes(range(32)).replace(b"\n", b"").replace(b"\t", b"") + b"\x7f"


def _declared(name: bytes, value: bytes) -> bytes:
    if not is_name(name):
        return b"# %s\n" % (name + b"=" + value).replace(b"\n", b"\n# ")
    if any(byte in _SPECIAL for byte in value):
        text = "".join(chr(b) if 32 <= b < 127 and b not in b"'\\" else f"\\{b:03o}" for b in value)
        return b"declare -x %s=$'%s'\n" % (name, text.encode())
    for byte in b'\\"$`':
        value = value.replace(bytes([byte]), b"\\" + bytes([byte]))
    return b'declare -x %s="%s"\n' % (name, value)


def is_name(name: bytes) -> bool:
    """Whether a shell can have a variable of this name."""
    text = name.decode("ascii", "replace")
    return text.isascii() and text.isidentifier()
