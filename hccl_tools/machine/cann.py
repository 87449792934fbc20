"""Finds the CANN of this host: the path in its environment, and the release there.

A check of all hosts runs this module on each of them, so it imports little.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from hccl_tools.machine import system_files
from hccl_tools.machine.driver import DEFAULT_ROOT


def active() -> str:
    """The folder of the CANN that this environment names; empty without one."""
    return os.environ.get("ASCEND_HOME_PATH") or os.environ.get("ASCEND_TOOLKIT_HOME") or ""


def installed(root: str = "") -> tuple[str | None, str]:
    """(version, folder) of the CANN in one of the usual folders; (None, "") without one.  root: see version()."""
    found = ((version(folder, root), folder) for folder in _usual_folders())
    return next(((number, folder) for number, folder in found if number), (None, ""))


def _usual_folders() -> Iterator[str]:
    for base in (DEFAULT_ROOT, os.path.expanduser("~/Ascend")):
        for name in ("cann", "ascend-toolkit/latest", "nnae/latest"):
            yield f"{base}/{name}"


def version(folder: str, root: str = "") -> str | None:
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


def release(text: str | None) -> tuple[int, int] | None:
    """The first two numbers of a version such as 8.1.RC1; None where it has none."""
    found = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", text or "")
    return (int(found.group(1)), int(found.group(2))) if found else None
