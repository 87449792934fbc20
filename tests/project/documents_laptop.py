"""The command mslaunch for the readers of documents, and the laptop that some of them have: no NPU and no MindSpore."""

import functools
import importlib.metadata
import os
import re
import sys
import venv
from pathlib import Path

from packaging.requirements import Requirement

_ROOT = Path(__file__).resolve().parents[2]
_COMMAND = """\
#!{python}
import sys

sys.path.insert(0, {project!r})
from mindspore_launch.__main__ import main

sys.exit(main())
"""


def install(folder, python, project):
    """Writes the program mslaunch, as pip does, into `folder`: it runs the checkout `project` with `python`."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "mslaunch"
    program.write_text(_COMMAND.format(python=python, project=str(project)), encoding="utf-8")
    program.chmod(0o755)


def environment(folder, project):
    """Makes in `folder` what `pip install PROJECT` makes, if it is not there: its own packages, and nothing else."""
    if not folder.exists():
        venv.create(folder, symlinks=True)
        packages = folder / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
        for path in _needed():
            (packages / path.name).symlink_to(path)
        install(folder / "bin", folder / "bin" / "python", project)
    return str(folder / "bin")


def path_without(program_folder, path):
    """PATH without a folder; in the bare profile that one has all programs, and stays."""
    same = os.path.realpath(program_folder)
    left = [name for name in path.split(os.pathsep) if os.path.realpath(name) != same]
    return os.pathsep.join(left) or path


@functools.cache
def _needed():
    """What lies in this Python's site-packages of the packages that the project needs, and of those that they need."""
    project = (_ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wanted = re.findall(r'"(.*?)"', re.search(r"(?m)^dependencies = (.*)$", project)[1])
    found, seen = set(), set()
    while wanted:
        requirement = Requirement(wanted.pop())
        if requirement.name in seen or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        seen.add(requirement.name)
        distribution = importlib.metadata.distribution(requirement.name)
        wanted += distribution.requires or ()
        tops = {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}
        found |= {Path(distribution.locate_file(top)) for top in tops}
    return sorted(found)
