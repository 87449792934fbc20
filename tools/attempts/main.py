#!/usr/bin/env python3
"""The process beside a launcher whose job has launchers on several hosts, and may start its ranks again.

Only scripts/lib/attempts.sh calls it.
"""

from __future__ import annotations

import os
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from tools.attempts.hub import Hub
from tools.attempts.launcher import Launcher, Left
from tools.attempts.spoke import Spoke


def main() -> None:
    """Ends when the launcher leaves the job."""
    try:
        launcher = Launcher()
        facts = launcher.facts()
        launcher.end_with_it(facts["launcher"])
        (Spoke if facts["number"] else Hub)(launcher, facts).serve()
    except Left:
        return


if __name__ == "__main__":
    main()
