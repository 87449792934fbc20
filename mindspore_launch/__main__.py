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


def main() -> int:
    """The exit code of the command that was typed."""
    sys.path.insert(0, root())  # first, because the user's own folders may have modules of these names
    from tools.front import main as front

    return front.main(sys.argv)


if __name__ == "__main__":
    sys.exit(main())
