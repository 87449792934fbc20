"""The version of this project: the package's version, and in a checkout its commit."""

from __future__ import annotations

import os

from hccl_tools.common import project

UNKNOWN = "unknown"
_SECONDS = 5  # git describes at once, or the file system hangs


def number() -> str:
    """The version, such as ``1.0.0``; mindspore_launch/__init__.py alone has it, and without that it is unknown."""
    try:
        folder = [] if project.is_installed() else [project.PACKAGE]
        with open(project.path(*folder, "__init__.py"), encoding="utf-8") as file:
            for line in file:
                name, _, value = line.partition(" = ")
                if name == "__version__":
                    return value.strip().strip('"')
    except OSError:
        return UNKNOWN  # only the folders that a launch needs were copied
    return UNKNOWN


def described() -> str:
    """The version, and in a checkout what git reports about the commit: ``1.0.0 (v1.0.0-3-g1a2b3c4)``."""
    commit = of_commit()
    return f"{number()} ({commit})" if commit else number()


def of_commit() -> str:
    """What git reports about the checkout's commit; empty where there is no checkout or no git."""
    if not os.path.exists(project.path(".git")):
        return ""
    import subprocess  # few commands ask

    words = ["git", "-C", project.ROOT, "describe", "--always", "--dirty", "--tags"]
    try:
        answer = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    text = os.fsdecode(answer.stdout).strip()
    return text if answer.returncode == 0 and text.isprintable() else ""
