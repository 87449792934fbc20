"""Checks the links between the hosts of a job: real connections to the ports that it will use, their speed, and clocks.

`plan` chooses which host connects to which, `listen_and_connect` makes the connections on each host, and `judge` reads
all answers.
"""

from __future__ import annotations

from tools.preflight.links.exchange import listen_and_connect
from tools.preflight.links.judging import judge
from tools.preflight.links.pairs import Ports, plan, question

__all__ = ["Ports", "judge", "listen_and_connect", "plan", "question"]
