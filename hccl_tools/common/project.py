"""Where this project is."""

import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def path(*parts: str) -> str:
    """The absolute path of a file of the project: ``path("schemas", "launch.schema.json")``."""
    return os.path.join(ROOT, *parts)
