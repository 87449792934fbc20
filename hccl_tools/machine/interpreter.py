"""Refuses a Python that is too old or lacks a package, in one line instead of a traceback.

Every command imports this before anything else of the project.  Kept to syntax that Python 2.7 reads.
"""

import os
import sys

from hccl_tools.common.project import ROOT

OLDEST = (3, 9)
USAGE = 2
PACKAGES = {"PIL": "Pillow", "sklearn": "scikit-learn", "yaml": "PyYAML"}  # whose modules have another name


def check(*modules):  # type: (str) -> None
    """Ends the command with one line if Python is too old or cannot import one of `modules`."""
    python()
    import importlib.util

    for name in modules:
        if sys.modules.get(name) is None and importlib.util.find_spec(name) is None:
            refuse("has no " + PACKAGES.get(name, name), install(name))


def python(script=None, status=USAGE):  # type: (str | None, int) -> None
    """Ends `script` (default: this command) with `status` and one line if Python is too old."""
    if sys.version_info[:2] < OLDEST:
        now, least = (".".join(map(str, version[:2])) for version in (sys.version_info, OLDEST))
        remedy = "start it with a newer one, or create this project's environment with: make -C " + ROOT + " data"
        refuse("is Python " + now + "; " + least + " or later is needed", remedy, script, status)


def refuse(reason, remedy, script=None, status=USAGE):  # type: (str, str, str | None, int) -> None
    """Ends the command with one line about this interpreter, and what to do."""
    name = script or os.path.basename(sys.argv[0])
    sys.stderr.write(name + ": " + sys.executable + " " + reason + "; " + (ours() or remedy) + "\n")
    sys.exit(status)


def remedy_for(name):  # type: (str) -> str
    return ours() or install(name)


def install(name):  # type: (str) -> str
    return "install it: " + sys.executable + " -m pip install " + PACKAGES.get(name, name)


def ours():  # type: () -> str | None
    """How to activate this project's environment; None if it does not exist or is active."""
    environment = os.path.join(ROOT, ".venv")
    activate = os.path.join(environment, "bin", "activate")
    if not os.path.exists(activate) or os.path.realpath(sys.prefix) == os.path.realpath(environment):
        return None
    return "activate this project's environment: source " + activate
