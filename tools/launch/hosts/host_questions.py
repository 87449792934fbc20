"""Queries the hosts of a hostfile for their parts of the rank table, and writes the whole table to them."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_tools.commands import boundary
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.hosts import ask, hostfile, ssh
from hccl_tools.machine import addresses
from tools.launch.request import Request
from tools.launch.tables.launch_table import LaunchTable


def asker(request: Request) -> ask.Asker:
    """Asks the hosts of the hostfile.  Raises HostfileError and Refusal."""
    return ask.Asker(
        logins=hostfile.logins(request.hostfile or ""),
        agent=ssh.agent(request.ssh),
        news=lambda line: boundary.say(request.script, line),
    )


def distribute(request: Request, table: LaunchTable, servers: Sequence[str]) -> None:
    """Puts the table at its path on the hosts of the `servers`.  Raises Refusal."""
    question = [table.path, table.text or ""]
    try:
        all_hosts = asker(request)
        found = addresses.of([*all_hosts.logins, *servers])
        wanted = {found[name] or name for name in servers}
        some = {name: login for name, login in all_hosts.logins.items() if (found[name] or name) in wanted}
        answers, lines = ask.ask(all_hosts.replace(logins=some), ["commands/place_table.py"], lambda _name: question)
    except hostfile.HostfileError as error:
        raise Refusal(REFUSED, f"--hostfile {error}") from error
    except ask.ClusterError as error:
        raise Refusal(REFUSED, *error.lines) from error
    lines += [
        tr("{host}: there is another table at {path}; remove it", host=answer.host, path=table.path)
        for answer in answers
        if answer.content not in (None, table.digest)
    ]
    if lines:
        raise Refusal(REFUSED, *lines)
