"""The location of this project.  Uses only Python 2.7 syntax, because machine/interpreter.py imports it."""

import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
PACKAGE = "mindspore_launch"  # the folder in site-packages that has all of it


def path(*parts):  # type: (str) -> str
    """The absolute path of a file of the project: ``path("schemas", "launch.schema.json")``."""
    return os.path.join(ROOT, *parts)


def is_installed():  # type: () -> bool
    """Whether pip has installed it; otherwise it is a checkout, which has more files than the package."""
    return os.path.basename(ROOT) == PACKAGE and os.path.exists(path("__main__.py"))
