"""--worker_log_name: links the ranks' logs in the run's folder under the names that msrun gives its logs."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import clauses, one_line
from tools.launch.planned import Plan
from tools.launch.request import Request

_LONGEST = 200  # bytes of a name; a number and .log come behind it


def check(request: Request) -> None:
    """Raises Refusal for names that a file cannot have."""
    name = request.worker_log_name or ""
    good = name.isprintable() and "/" not in name and name.strip() == name and not name.startswith((".", "-"))
    if not good or len(os.fsencode(name)) > _LONGEST:
        text = tr("--worker_log_name {name}: is not the name of a file", name=one_line(name))
        raise Refusal(USAGE, clauses(text, tr("write one such as worker_{ip}_{hostname}; --log_dir names the folder")))


def make(plan: Plan) -> None:
    """Makes the links of this host's ranks, to logs that are not there yet.  Raises OSError and Refusal."""
    name = plan.request.worker_log_name
    if name is None:
        return
    if "{ip}" in name:
        from tools.launch.hosts import network  # it imports socket

        name = name.replace("{ip}", network.own_address_towards([plan.cluster.scheduler_host]))
    name = name.replace("{hostname}", os.uname().nodename.replace("/", "_"))
    for rank, _ in plan.ranks:
        log, link = f"rank_{rank}.log", f"{name}_{rank}.log"
        if link != log:
            os.symlink(log, os.path.join(plan.run_dir, link))
