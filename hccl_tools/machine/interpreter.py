"""Refuses a Python that is too old or lacks a package, with one line instead of a traceback.

Every command imports this module before all others of the project.  It uses only Python 2.7 syntax.
"""

import os
import sys

from hccl_tools.common.project import ROOT

if not sys.executable:  # Python does not find itself on a PATH that is not set, as under env -i
    try:
        sys.executable = os.readlink("/proc/self/exe")
    except OSError:
        sys.executable = "python"

SCHEMAS = os.path.join(ROOT, "schemas")
OLDEST = (3, 9)
USAGE = 2
PACKAGES = {"PIL": "Pillow", "sklearn": "scikit-learn", "yaml": "PyYAML"}  # whose modules have another name
LOWEST = {"jsonschema": "4.0.1", "rich": "9.4.0", "yaml": "5.1"}  # as pyproject.toml has them


def check(*modules):  # type: (str) -> None
    """Ends the command with one line if Python is too old or cannot import one of `modules`, or files are missing."""
    python()
    whole()
    import importlib.util

    for name in modules:
        if sys.modules.get(name) is None and importlib.util.find_spec(name) is None:
            refuse("has no " + PACKAGES.get(name, name), install(name))


def new_enough(name):  # type: (str) -> None
    """Raises ImportError if the package that has the module `name` is older than the lowest version."""
    from importlib.metadata import version

    if _numbers(version(PACKAGES.get(name, name))) < _numbers(LOWEST[name]):
        raise ImportError(needed(name) + " is needed", name=name)


def _numbers(version):  # type: (str) -> list[int]
    return [int(part) for part in version.split(".") if part.isdigit()]


def python(script=None, status=USAGE):  # type: (str | None, int) -> None
    """Ends `script` (default: this command) with `status` and one line if Python is too old."""
    if sys.version_info[:2] < OLDEST:
        now, least = (".".join(map(str, version[:2])) for version in (sys.version_info, OLDEST))
        remedy = "start it with a newer one, or create this project's environment with: make -C " + ROOT + " data"
        refuse("is Python " + now + "; " + least + " or later is needed", remedy, script, status)


def whole():  # type: () -> None
    """Ends the command with one line if only a folder of the project was copied."""
    if not os.path.isdir(SCHEMAS):
        name = os.path.basename(sys.argv[0])
        remedy = "it is one folder of a project, which must be there as a whole; run " + name + " in the project"
        sys.stderr.write(harmless(name + ": there is no " + SCHEMAS + "; " + remedy) + "\n")
        sys.exit(USAGE)


def of_user():  # type: () -> None
    """Adds the folders of the user's packages, which Python leaves out with -E -s: after its own, before others."""
    if not sys.flags.ignore_environment:
        return
    folders = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if not os.environ.get("PYTHONNOUSERSITE") and sys.prefix == sys.base_prefix:
        version = "python" + ".".join(map(str, sys.version_info[:2]))
        base = os.environ.get("PYTHONUSERBASE") or os.path.expanduser(os.path.join("~", ".local"))
        folders.append(os.path.join(base, "lib", version, "site-packages"))
    installed = [place for place, path in enumerate(sys.path) if path.endswith("-packages")]
    place = installed[0] if installed else len(sys.path)
    sys.path[place:place] = folders


def harmless(line):  # type: (str) -> str
    """The line without control characters; hccl_tools.common.quoting does the same, but needs a newer Python."""
    return "".join([repr(c)[1:-1] if c < " " or "\x7f" <= c <= "\x9f" else c for c in line])


def refuse(reason, remedy, script=None, status=USAGE):  # type: (str, str, str | None, int) -> None
    """Ends the command with one line about this interpreter, and what to do."""
    name = script or os.path.basename(sys.argv[0])
    if sys.version_info[:2] >= OLDEST:
        from hccl_tools.common import typed  # an older Python cannot read it

        name = script or typed.name_of(name)
    line = name + ": " + sys.executable + " " + reason + "; " + (ours() or remedy)
    sys.stderr.write(harmless(line) + "\n")
    sys.exit(status)


def remedy_for(name):  # type: (str) -> str
    return ours() or install(name)


def needed(name):  # type: (str) -> str
    """What a command needs that cannot import `name`: the package, and its lowest version where there is one."""
    return PACKAGES.get(name, name) + (" " + LOWEST[name] + " or later" if name in LOWEST else "")


def install(name):  # type: (str) -> str
    return "install it: " + sys.executable + " -m pip install " + requirement(name)


def requirement(name):  # type: (str) -> str
    """The package as an argument of pip; with its lowest version, so that pip replaces an older one."""
    package = PACKAGES.get(name, name)
    return "'" + package + ">=" + LOWEST[name] + "'" if name in LOWEST else package


def ours():  # type: () -> str | None
    """How to activate this project's environment; None if it does not exist or is active."""
    environment = os.path.join(ROOT, ".venv")
    activate = os.path.join(environment, "bin", "activate")
    if not os.path.exists(activate) or os.path.realpath(sys.prefix) == os.path.realpath(environment):
        return None
    return "activate this project's environment: source " + activate
