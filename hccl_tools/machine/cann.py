"""The CANN of this host: where its environment leads, and which release that is."""

from __future__ import annotations

import glob
import os
import re

_LONGEST = 1 << 20  # bytes of a file with a version


def active() -> str:
    """The folder of the CANN that this environment names; empty without one."""
    return os.environ.get("ASCEND_HOME_PATH") or os.environ.get("ASCEND_TOOLKIT_HOME") or ""


def version(folder: str, root: str = "") -> str | None:
    """The release, such as 8.5.0; its parts (compiler/version.info) have other numbers in older releases.

    root: the folder that replaces / in tests.
    """
    names = glob.glob(f"{glob.escape(root + folder)}/*-linux/ascend_*_install.info")
    # The toolkit's file comes first: packages of operators may have a version of their own.
    for path in sorted(sorted(names), key=lambda name: "toolkit" not in name[len(root) :]):
        found = _setting(path, "version")
        if found:
            return found
    return _setting(f"{root}{folder}/compiler/version.info", "Version")


def release(text: str | None) -> tuple[int, int] | None:
    """The first two numbers of a version such as 8.1.RC1; None where it has none."""
    found = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", text or "")
    return (int(found.group(1)), int(found.group(2))) if found else None


def _setting(path: str, key: str) -> str | None:
    """The value of ``key=value`` in a file; None where there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_LONGEST)
    except OSError:
        return None
    match = re.search(rf"^\s*{re.escape(key)}\s*=\s*(.*?)\s*$", text, re.MULTILINE | re.IGNORECASE)
    return match[1].strip("\"'") if match else None
