"""Runs on every host of a check, by hosts/ask.py: answers with the facts of the catalogue, and changes nothing there.

A launch of many hosts waits for it, so it imports little.  A collector itself imports the modules that few hosts need.
"""

from __future__ import annotations

import gc
import os
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    gc.disable()  # it lives for milliseconds, and looking for garbage takes some of them
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

import functools

from hccl_tools.hosts import answering
from tools.preflight import collecting, question
from tools.preflight.collecting import Collector
from tools.preflight.facts import files, network, npus, software, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tools.preflight.difference import Value
    from tools.preflight.question import Question

QUICK, SLOW = 5.0, 30.0  # seconds for what reads files, and for what asks the driver
SECONDS = 40  # for all of it, with the start of Python on a busy host

# {collector: (its function, its limit)}; catalog/rows.py states what it means if one gives up.
COLLECTORS: Mapping[str, tuple[Callable[[Question], Mapping[str, Value]], float]] = {
    "software": (software.collect, QUICK),
    "bytecode": (software.collect_bytecode, QUICK),
    "system": (system.collect, QUICK),
    "limits": (system.collect_limits, QUICK),
    "clock": (system.collect_clock, QUICK),
    "disk": (files.collect_disk, QUICK),
    "log_folder": (files.collect_log_folder, QUICK),
    "files": (files.collect, QUICK),
    "data": (files.collect_data, QUICK),
    "environment": (files.collect_environment, QUICK),
    "network": (network.collect, QUICK),
    "npus": (npus.collect, SLOW),
    "gpus": (npus.collect_gpus, SLOW),
    "table": (npus.collect_table, SLOW),
}


def facts(asked: Question) -> dict[str, Any]:
    """The facts of this host, and {collector: why it has given none}."""
    collectors = {
        name: Collector(functools.partial(collect, asked), seconds, alone=seconds == SLOW and not asked.quick)
        for name, (collect, seconds) in COLLECTORS.items()
    }
    wanted = asked.links
    if wanted is not None:
        from tools.preflight import links  # a quick check has none

        collect = functools.partial(links.listen_and_connect, wanted)
        collectors["links"] = Collector(lambda: {"links": collect()}, wanted["seconds"] + QUICK, alone=True)
    found, failed = collecting.run(collectors)
    return {"links": found.pop("links", None), "facts": found, "failed": failed}


def main() -> int:
    """Answers the host that asks."""
    return answering.answer(lambda _host, asked, _tell: facts(question.read(asked)))


if __name__ == "__main__":
    os._exit(main())  # all is written; the end of Python would take longer than half of the facts
