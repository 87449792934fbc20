"""The machine: operating system, memory, shell and Python."""

from __future__ import annotations

import os
import platform
import sys

from hccl_tools.common import version
from hccl_tools.common.language import marked, tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.project import ROOT
from hccl_tools.common.quoting import quote
from hccl_tools.machine import distributions, interpreter
from hccl_tools.machine.programs import Ended
from tools.doctor import files, page
from tools.doctor.page import ABSENT, GIB, OK, PROBLEM, UNKNOWN, WARNING, Facts, Line, Options

OWN_CACHE = "export PYTHONPYCACHEPREFIX=$HOME/.cache/python-bytecode"
TITLE = marked("System")


def questions(_: Options) -> dict[str, list[str]]:
    """Asks git for the checkout's commit; the options allow another user's checkout, and nothing is written."""
    git = ["git", "--no-optional-locks", "-c", f"safe.directory={ROOT}", "-C", ROOT]
    return {"git": [*git, "describe", "--always", "--dirty", "--tags"]}


def lines(facts: Facts) -> list[Line]:
    """The system, memory, shell and Python of this machine."""
    return [
        _launcher(facts.answers["git"]),
        _os(),
        Line(tr("kernel"), OK, f"{platform.system()} {platform.release()} {platform.machine()}"),
        _container(),
        _processors(),
        _memory(),
        Line("bash", OK, facts.options.shell),
        Line("Python", OK, f"{'.'.join(map(str, sys.version_info[:3]))} ({sys.executable})"),
        compiled(),
        _packages(),
    ]


def _launcher(ended: Ended) -> Line:
    """The version, and in a checkout its commit."""
    number = version.number()
    if ended.status == 0:
        return Line(tr("launcher"), OK, f"{number} ({page.first_line(ended)})")
    if os.path.exists(os.path.join(ROOT, ".git")):
        text = tr("{version}; git does not name its commit: {reason}", version=number, reason=page.failure(ended))
        return Line(tr("launcher"), UNKNOWN, text)
    return Line(tr("launcher"), OK, number)


def _os() -> Line:
    name = files.setting("/etc/os-release", "PRETTY_NAME")
    return Line(tr("OS"), OK, name) if name else Line(tr("OS"), UNKNOWN, tr("there is no /etc/os-release"))


def _container() -> Line:
    found = files.read("/run/systemd/container") or os.environ.get("container")  # noqa: SIM112 - that is how container managers write it
    if not found and files.read("/.dockerenv") is not None:
        found = "docker"
    if not found and files.read("/run/.containerenv") is not None:
        found = "podman"
    if not found and "kubepods" in (files.read("/proc/1/cgroup") or ""):
        found = "kubernetes"
    return Line(tr("container"), OK, found) if found else Line(tr("container"), ABSENT, tr("no sign of one"))


def _processors() -> Line:
    text = tr("{usable} of {number}", usable=len(os.sched_getaffinity(0)), number=os.cpu_count())
    limit = [whole_number(word, 1) for word in (files.read("/sys/fs/cgroup/cpu.max") or "").split()]
    if len(limit) == 2 and limit[0] and limit[1]:
        text = tr(
            "{number}, limited by the control group to the time of {limit:g}", number=text, limit=limit[0] / limit[1]
        )
    return Line(tr("processors"), OK, text)


def _memory() -> Line:
    found = dict(line.split(":", 1) for line in (files.read("/proc/meminfo") or "").splitlines() if ":" in line)
    try:
        total, free = (int(found[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    except (KeyError, ValueError, IndexError):
        return Line(tr("memory"), UNKNOWN, tr("/proc/meminfo does not show it"))
    text = tr("{free:.1f} of {total:.1f} GiB available", free=free / GIB, total=total / GIB)
    limit = files.number("/sys/fs/cgroup/memory.max")
    if limit is not None:
        free = min(free, limit - (files.number("/sys/fs/cgroup/memory.current") or 0))
        text = tr("{free}, at most {limit:.1f} GiB by the control group", free=text, limit=limit / GIB)
    if free < GIB // 2:
        return Line(tr("memory"), PROBLEM, text, tr("a rank with MindSpore takes half a GiB; free memory first"))
    if free < 4 * GIB:
        return Line(tr("memory"), WARNING, text, tr("eight ranks take 4 GiB before they train anything; start fewer"))
    return Line(tr("memory"), OK, text)


def _packages() -> Line:
    uses = {"jsonschema": tr("rank tables"), "yaml": tr("training configs"), "rich": tr("tables on the screen")}
    missing = [name for name in uses if not _usable(name)]
    if not missing:
        return Line(tr("its packages"), OK, tr("{packages} installed", packages=", ".join(uses)))
    needed = tr(" and ").join(uses[name] for name in missing)
    install = " ".join(map(interpreter.requirement, missing))
    status = WARNING if missing == ["rich"] else PROBLEM  # a launch draws no tables on the screen
    text = tr("{packages} not installed or too old, needed for {needed}", packages=", ".join(missing), needed=needed)
    return Line(tr("its packages"), status, text, f"{sys.executable} -m pip install {install}")


def _usable(name: str) -> bool:
    try:
        interpreter.new_enough(name)
    except ImportError:
        return False
    return True


# ---- Whether ranks find the compiled files (.pyc) of MindSpore, of what it imports, and of Python.


def compiled() -> Line:
    """The Line about them.  The import of MindSpore by the doctor has written those that Python may write."""
    found = [each for each in distributions.look(distributions.OF_RANKS, os.environ) if each.stays]
    is_off = bool(os.environ.get(distributions.OFF))
    if not found:
        text = tr("nothing is compiled at each start")
        if is_off:
            text = tr("{name} is set: only your own modules are compiled at each start", name=distributions.OFF)
        return Line(".pyc", OK, text)
    why = tr("{name} is set", name=distributions.OFF)
    if not is_off:
        why = tr("this user cannot write {folder}", folder=found[0].cache)
    told = ", ".join(f"{each.name} ({state_of_compiled(each.state)})" for each in found)
    text = tr("each rank compiles at each start: {modules}; {why}", modules=told, why=why)
    return Line(".pyc", WARNING, text, _remedy(found, is_off))


def state_of_compiled(found: str) -> str:
    """What a package has instead of good compiled files, for people."""
    if found == distributions.NONE:
        return tr("no .pyc")
    if found == distributions.STALE:
        return tr(".pyc of other sources")
    return tr(".pyc of {tag}", tag=found)


def _remedy(found: list[distributions.Uncompiled], is_off: bool) -> str:
    command = " ".join([quote(sys.executable), "-m compileall -qq", *(quote(each.folder) for each in found)])
    has_prefix = bool(os.environ.get(distributions.PREFIX))
    if is_off and has_prefix:
        return f"unset {distributions.OFF}"
    if is_off:
        return tr("{command}; or leave the variable out: unset {name}", command=command, name=distributions.OFF)
    if has_prefix:
        return tr("name a folder that you can write: {command}", command=OWN_CACHE)
    return tr("as its owner: {command}; or as yourself: {own}", command=command, own=OWN_CACHE)
