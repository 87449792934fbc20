"""Where this project is.  Kept to syntax that Python 2.7 reads, because machine/interpreter.py imports it."""

import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def path(*parts):  # type: (str) -> str
    """The absolute path of a file of the project: ``path("schemas", "launch.schema.json")``."""
    return os.path.join(ROOT, *parts)
