#!/usr/bin/env python3
"""The first program in every rank that mpirun or srun starts with --import_once, instead of tools/rank/agent.py.

The agent of a host's first rank starts the process that imports.  The ranks of the host are its forks, and children of
that agent.  It reports to the other agents how their ranks end.  See first.py and other.py.
"""

from __future__ import annotations

import os
import sys

sys.path[:0] = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))]

from tools.forking.first import First
from tools.forking.other import Other
from tools.rank import agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.rank.told import Told


def kind(told: Told, log: str, away: bool) -> agent.Agent:
    """The agent of this rank."""
    return (Other if told.local_rank else First)(told, log, away)


if __name__ == "__main__":
    os._exit(agent.main(sys.argv[1:], kind))
