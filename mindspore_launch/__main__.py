"""The command mslaunch, also as ``python -m mindspore_launch``: finds the project's files and passes the words on.

Installed, they are all in this folder, so that nobody's site-packages gets modules named tools or hccl_tools.  In a
checkout they are beside it.
"""

from __future__ import annotations

import os
import sys


def root() -> str:
    """The folder of the project: it has scripts, tools, hccl_tools, schemas and configs."""
    here = os.path.dirname(os.path.realpath(__file__))
    return here if os.path.isdir(os.path.join(here, "tools")) else os.path.dirname(here)


def _users_folders() -> set[str]:
    """The folders of PYTHONPATH, as Python has them in sys.path; an empty one is the current folder."""
    told = os.environ.get("PYTHONPATH")
    try:
        return {os.path.abspath(folder) for folder in told.split(os.pathsep)} if told else set()
    except OSError:  # the current folder is gone
        return set()


def _python_first() -> None:
    """Puts the folders of PYTHONPATH after Python's own modules: a signal.py of the user's is not Python's."""
    folders = _users_folders()
    others = [path for path in sys.path if path not in folders]
    ends = (index for index, path in enumerate(others) if path.endswith(("site-packages", "dist-packages")))
    place = next(ends, len(others))
    others[place:place] = [path for path in sys.path if path in folders]
    sys.path[:] = others


def main() -> int:
    """The exit code of the command that was typed."""
    _python_first()
    sys.path.insert(0, root())  # first, because the user's own folders may have modules of these names
    from tools.front import main as front

    return front.main(sys.argv)


if __name__ == "__main__":
    del sys.path[0]  # the current folder, or this one
    sys.exit(main())
