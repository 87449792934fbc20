"""Finds CANN, and the driver's programs hccn_tool and npu-smi, and suggests what to do when one of them fails.

The installation does not put them on PATH for every shell, so this module also searches their own folders.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from hccl_tools.machine import programs, system_files

INSTALL_INFO = "/etc/ascend_install.info"
DEFAULT_ROOT = "/usr/local/Ascend"
_GROUP = "HwHiAiUser"
HCCN_TOOL, NPU_SMI = "hccn_tool", "npu-smi"


def setting(key: str, default: str) -> str:
    """What /etc/ascend_install.info states about the installation, otherwise `default`."""
    return system_files.value(INSTALL_INFO, key) or default


def root() -> str:
    """The folder that the driver is installed in."""
    found = setting("Driver_Install_Path_Param", DEFAULT_ROOT).rstrip("/")
    return found if found.startswith("/") and found.isprintable() else DEFAULT_ROOT


def folders(name: str) -> list[str]:
    """Where the driver puts the program."""
    found = [f"{root()}/driver/tools", f"{DEFAULT_ROOT}/driver/tools"]
    found = found if name == HCCN_TOOL else ["/usr/local/sbin", "/usr/local/bin", *found]
    return list(dict.fromkeys(found))


def find(name: str) -> str | None:
    """The program's name where it is on PATH, otherwise its path in its own folder; None: it cannot be run here."""
    if programs.on_path(name):
        return name
    paths = (os.path.join(folder, name) for folder in folders(name))
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def word(name: str) -> str:
    """The first word of a command of the program; its bare name if it is not found."""
    return find(name) or name


def source(name: str) -> str:
    """The program for a message: its name, and where it is if that is not on PATH."""
    found = find(name)
    if found is None or found == name:
        return name
    return tr("{name} in {folder}, which is not on PATH", name=name, folder=os.path.dirname(found))


def missing(name: str) -> tuple[str, str]:
    """(why `find` has found no program, what to do): it may be there, but not for this user."""
    for folder in folders(name):
        path = os.path.join(folder, name)
        try:
            os.stat(path)
        except PermissionError:
            text = tr("this user may not look into {folder}, where {name} is", folder=one_line(folder), name=name)
            return text, _as_other_user()
        except OSError:
            continue
        return tr("this user may not run {path}", path=one_line(path)), _as_other_user()
    places = tr(" or ").join(map(one_line, folders(name)))
    mounted = folders(name)[0] if name == HCCN_TOOL else f"/usr/local/bin/{name}"
    remedy = tr("on a host install the driver; in a container mount {path} of the host", path=one_line(mounted))
    return tr("{name} is not on PATH, and not in {places}", name=name, places=places), remedy


# ---- what to do ------------------------------------------------------------------------------------------------------


def remedy(said: str) -> str:
    """The remedy when hccn_tool or npu-smi has failed with this message (see programs.said); it fits the cause."""
    for pattern, text in _remedies():
        if re.search(pattern, said, re.IGNORECASE):
            return text
    return tr("check the driver: npu-smi info, and dmesg")


def remedy_for(ended: programs.Ended) -> str:
    """The same for all output of the program: its first line may not name the cause."""
    return remedy(f"{ended.stderr}\n{ended.stdout}\n(exit {ended.status})")


def telling(ended: programs.Ended) -> programs.Ended:
    """The same with only the line that names the cause, if there is one: it need not be the first."""
    lines = [line.strip() for line in (ended.stderr + "\n" + ended.stdout).splitlines() if line.strip()]
    patterns = [pattern for pattern, _ in _remedies()]
    found = [line for line in lines if any(re.search(pattern, line, re.IGNORECASE) for pattern in patterns)]
    return programs.Ended(ended.status, "", found[0]) if found else ended


def _as_other_user() -> str:
    group = one_line(setting("UserGroup", _GROUP))
    return tr("run it as root, or as a member of the group {group}", group=group)


def _remedies() -> list[tuple[str, str]]:
    """(what it states, what to do), the surest first."""
    libraries = f"{root()}/driver/lib64"
    path = f"{libraries}/driver:{libraries}/common:$LD_LIBRARY_PATH"
    return [
        (r"permission|not permitted|-8002\b", _as_other_user()),
        (
            r"shared librar|cannot open shared object|libdrv\w*\.so|libascend\w*\.so|libdcmi\.so",
            tr(
                "it does not find the driver's libraries: export LD_LIBRARY_PATH={path}; in a container mount {folder} "
                "of the host",
                path=path,
                folder=libraries,
            ),
        ),
        (
            r"-8020\b|device is used|resource.*occupied",
            tr("another container or process has the device: end that one, or start this container with other devices"),
        ),
        (
            r"-8005\b",
            tr(
                "usually another container has the device, or this one lacks /dev/davinci_manager, /dev/devmm_svm or "
                "/dev/hisi_hdc, or the right to open them: ls -l /dev/davinci* /dev/devmm_svm /dev/hisi_hdc"
            ),
        ),
        (
            r"-8008\b|-8007\b|device is not exist|device does not exist",
            tr("there is no such device here: ls /dev/davinci*"),
        ),
        (
            r"-8006\b|exit 124",
            tr("the driver does not answer: see dmesg; a card that hangs needs a reset or a restart of the host"),
        ),
        (r"-8012\b|-8017\b|is busy|try again", tr("it is busy; try again in a moment")),
        (r"not support|-8255\b|-8013\b", tr("this product, or this container, cannot answer that")),
    ]


def active_cann() -> str:
    """The folder of the CANN that this environment names; empty without one."""
    return os.environ.get("ASCEND_HOME_PATH") or os.environ.get("ASCEND_TOOLKIT_HOME") or ""


def installed_cann(root: str = "") -> tuple[str | None, str]:
    """(version, folder) of the CANN in one of the usual folders; (None, "") without one.  root: see version()."""
    found = ((cann_version(folder, root), folder) for folder in _usual_folders())
    return next(((number, folder) for number, folder in found if number), (None, ""))


def _usual_folders() -> Iterator[str]:
    for base in (DEFAULT_ROOT, os.path.expanduser("~/Ascend")):
        for name in ("cann", "ascend-toolkit/latest", "nnae/latest"):
            yield f"{base}/{name}"


def cann_version(folder: str, root: str = "") -> str | None:
    """The release, such as 8.5.0; its parts (compiler/version.info) have other numbers in older releases.

    root: the folder that replaces / in tests.
    """
    # The toolkit's file comes first: packages of operators may have a version of their own.
    for path in sorted(_files_of_parts(root + folder), key=lambda path: ("toolkit" not in path[len(root) :], path)):
        number = system_files.value(path, "version")
        if number:
            return number
    return system_files.value(f"{root}{folder}/compiler/version.info", "Version")


def _files_of_parts(folder: str) -> Iterator[str]:
    """The files ascend_PART_install.info below the folder of each architecture, such as aarch64-linux."""
    for machine in _names(folder, "", "-linux"):
        for name in _names(f"{folder}/{machine}", "ascend_", "_install.info"):
            yield f"{folder}/{machine}/{name}"


def _names(folder: str, head: str, tail: str) -> list[str]:
    """Those in the folder that begin and end so; none if it is not there."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [name for name in names if name.startswith(head) and name.endswith(tail) and not name.startswith(".")]


def cann_release(text: str | None) -> tuple[int, int] | None:
    """The first two numbers of a version such as 8.1.RC1; None where it has none."""
    found = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", text or "")
    return (int(found.group(1)), int(found.group(2))) if found else None
