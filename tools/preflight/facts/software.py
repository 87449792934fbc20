"""The versions of a job's software: Python, MindSpore, packages, CANN, driver; and what each start compiles again."""

from __future__ import annotations

import os
import sys

from hccl_tools.machine import bytecode, cann, distributions, interpreter
from hccl_tools.machine.distributions import Distributions
from hccl_tools.machine.driver import root
from tools.doctor import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.preflight.difference import Value
    from tools.preflight.question import Question

_MOST_MODULES = 20  # of the program's modules
WITHOUT_VERSION = "?"  # a module that can be imported, and that no distribution has
_MINDSPORE = ("mindspore", "mindspore-ascend", "mindspore-gpu", "mindspore-dev")


def collect(question: Question) -> dict[str, Value]:
    """The versions; one of MindSpore that is installed and cannot be imported counts, too."""
    installed = Distributions()
    return {
        "python": sys.version.split()[0],
        "mindspore": next(filter(None, (_version(installed.find(name)) for name in _MINDSPORE)), None),
        "glibc": _glibc(),
        "cann": (cann.version(question.cann, files.ROOT) if question.cann else cann.installed(files.ROOT)[0]),
        **{part: files.setting(f"{root()}/{part}/version.info", "Version") for part in ("driver", "firmware")},
        **{f"package:{name}": version for name, version in _packages(question.modules, installed).items()},
    }


def _glibc() -> str | None:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").rpartition(" ")[2] or None
    except (OSError, ValueError):  # another C library
        return None


def _version(found: tuple[str, str] | None) -> str | None:
    return found and (found[1] or WITHOUT_VERSION)


def _packages(modules: Iterable[str], installed: Distributions) -> dict[str, str | None]:
    """{module: the version of its distribution, after its name where that is another one; None: not installed}."""
    found: dict[str, str | None] = {}
    for module in modules:
        name = interpreter.PACKAGES.get(module, module)
        version = _version(installed.find(name))
        found[module] = version and (version if name == module else f"{name} {version}")
    unknown = [module for module, version in found.items() if version is None]
    owners = installed.owners(unknown) if unknown else {}
    for module in unknown:
        if module in owners:
            found[module] = f"{owners[module][0]} {_version(owners[module])}"
        elif distributions.is_module(module):
            found[module] = WITHOUT_VERSION
    return found


def collect_bytecode(question: Question) -> dict[str, Value]:
    """Packages that each start of Python compiles again, because nothing keeps their compiled files (.pyc).

    A package whose files the next start writes is none of them.
    """
    modules = dict.fromkeys([*bytecode.OF_RANKS, *list(question.modules)[:_MOST_MODULES]])
    found = [each for each in bytecode.look(modules, os.environ) if each.stays]
    return {"uncompiled": [f"{each.name} ({each.folder})" for each in found]}
