"""The release of CANN that is active or installed here; of few imports, because every host of a check runs it."""

from __future__ import annotations

import os

from hccl_tools.machine.driver import DEFAULT_ROOT
from tools.doctor import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def active() -> str:
    """The folder of the CANN that this environment names; empty without one."""
    return os.environ.get("ASCEND_HOME_PATH") or os.environ.get("ASCEND_TOOLKIT_HOME") or ""


def installed() -> tuple[str | None, str]:
    """(version, folder) of the CANN in one of the usual folders; (None, "") without one."""
    found = ((version(folder), folder) for folder in _folders())
    return next(((number, folder) for number, folder in found if number), (None, ""))


def _folders() -> Iterator[str]:
    for base in (DEFAULT_ROOT, os.path.expanduser("~/Ascend")):
        for name in ("cann", "ascend-toolkit/latest", "nnae/latest"):
            yield f"{base}/{name}"


def version(folder: str) -> str | None:
    """The release, such as 8.5.0; its parts (compiler/version.info) have other numbers in older releases."""
    # The toolkit's file comes first: packages of operators may have a version of their own.
    for path in sorted(_files_of_parts(folder), key=lambda path: ("toolkit" not in path, path)):
        number = files.setting(path, "version")
        if number:
            return number
    return files.setting(f"{folder}/compiler/version.info", "Version")


def _files_of_parts(folder: str) -> Iterator[str]:
    """The files ascend_PART_install.info below the folder of each architecture, such as aarch64-linux."""
    for machine in _names(folder, "", "-linux"):
        for name in _names(f"{folder}/{machine}", "ascend_", "_install.info"):
            yield f"{folder}/{machine}/{name}"


def _names(folder: str, head: str, tail: str) -> list[str]:
    """Those in the folder that begin and end so; none if it is not there."""
    try:
        names = os.listdir(files.ROOT + folder)
    except OSError:
        return []
    return [name for name in names if name.startswith(head) and name.endswith(tail) and not name.startswith(".")]
