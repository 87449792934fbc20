"""Versions of what a job runs on: Python, MindSpore, the packages of the program, CANN, driver and firmware."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from importlib.util import find_spec

from hccl_tools.machine import cann, interpreter
from hccl_tools.machine.driver import root
from tools.doctor import files, versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.preflight.difference import Value
    from tools.preflight.question import Question

WITHOUT_VERSION = "?"  # a module that can be imported, and that no distribution has
_MINDSPORE = ("mindspore", "mindspore-ascend", "mindspore-gpu", "mindspore-dev")


def collect(question: Question) -> dict[str, Value]:
    """The versions; one of MindSpore that is installed and cannot be imported counts, too."""
    return {
        "python": platform.python_version(),
        "mindspore": next(filter(None, map(_version, _MINDSPORE)), None),
        "glibc": _glibc(),
        "cann": cann.version(question.cann, files.ROOT) if question.cann else versions.installed_cann()[0],
        **{part: files.setting(f"{root()}/{part}/version.info", "Version") for part in ("driver", "firmware")},
        **{f"package:{name}": version for name, version in _packages(question.modules).items()},
    }


def _glibc() -> str | None:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").rpartition(" ")[2] or None
    except (OSError, ValueError):  # another C library
        return None


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution) or WITHOUT_VERSION
    except (metadata.PackageNotFoundError, ValueError):  # ValueError: no name of a distribution
        return None


def _packages(modules: Iterable[str]) -> dict[str, str | None]:
    """{module: the version of its distribution, after its name where that is another one; None: not installed}."""
    found: dict[str, str | None] = {}
    unknown = []
    for module in modules:
        name = interpreter.PACKAGES.get(module, module)
        version = _version(name)
        found[module] = version and (version if name == module else f"{name} {version}")
        if version is None:
            unknown.append(module)
    if unknown:
        owners = _owners(set(unknown))
        found.update({module: owners.get(module) or _of_no_distribution(module) for module in unknown})
    return found


def _owners(modules: set[str]) -> dict[str, str]:
    """{module: distribution and version} of those whose distribution has another name: cv2, say."""
    found: dict[str, str] = {}
    for distribution in metadata.distributions():
        listed = (distribution.read_text("top_level.txt") or "").split()
        for module in modules.intersection(listed):
            found.setdefault(module, f"{distribution.metadata['Name']} {distribution.version}")
    return found


def _of_no_distribution(module: str) -> str | None:
    try:
        return WITHOUT_VERSION if find_spec(module) else None
    except (ImportError, ValueError):  # ValueError: a module without a specification
        return None
