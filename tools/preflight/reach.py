"""The ways to reach the hosts of a check: over ssh those of a list or of a rank table; without one, only this host.

A way is a function that queries all hosts at once. by_srun.py has the one for Slurm's srun, pods/hub.py the one for
pods.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence

from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal
from hccl_tools.hosts import ask, hostfile, ssh
from hccl_tools.hosts.ask import Answer, Asker
from tools.preflight import probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.preflight.rank_table import Table

    Ask = Callable[[Callable[[str], object]], tuple[list[Answer], list[str]]]

_POD = "KUBERNETES_SERVICE_HOST"
_OF_JOBS = (
    "MS_SCHED_HOST",
    "JOB_COMPLETION_INDEX",
    "VC_TASK_INDEX",
    "VK_TASK_INDEX",
    "MA_NUM_HOSTS",
    "RANK_TABLE_FILE",
)


class Way(Record):
    """The hosts, and the function that queries them.

    slots: {host: its ranks}, as far as a list states it.
    logins: {host: [user@]host}, where they are reached over ssh.
    addresses: {host: its address}, where the hosts have told it; otherwise their names are looked up.
    ask:   takes a function that makes the question of a host; (answers, lines about hosts without one).
    """

    hosts: Sequence[str]
    slots: Mapping[str, int]
    ask: Ask
    logins: Mapping[str, str] = {}
    addresses: Mapping[str, str] | None = None
    slurm: bool = False


def over_ssh(
    logins: Mapping[str, str],
    slots: Mapping[str, int],
    command: str | None,
    say: Callable[[str], None],
    version: str | None = None,
) -> Way:
    """The hosts {name: [user@]host}; this host among them is asked without ssh.  Raises Refusal.

    command: as --ssh.  version: of the Open MPI that starts the ranks, see ssh.agent.
    """
    asker = Asker(logins=logins, agent=ssh.agent(command, version), news=say)

    def ask_all(question: Callable[[str], object]) -> tuple[list[Answer], list[str]]:
        try:
            return ask.ask(asker, [project.path("tools", "preflight", "probe.py")], question, probe.SECONDS)
        except ask.ClusterError as error:
            raise Refusal(REFUSED, *error.lines) from error

    return Way(hosts=list(logins), slots=slots, ask=ask_all, logins=logins)


def listed(hosts: Sequence[hostfile.Host]) -> tuple[dict[str, str], dict[str, int]]:
    """({host: how ssh takes it}, {host: its slots}) of a list."""
    logins = {host.name: host.login for host in hosts}
    return logins, {host.name: host.slots for host in hosts if host.slots is not None and not host.spare}


def words(text: str) -> list[hostfile.Host]:
    """The hosts of -H.  Raises Refusal."""
    try:
        return hostfile.parse_words(text)
    except ValueError as fault:
        raise Refusal(USAGE, f"-H: {fault}") from fault


def of_table(table: Table) -> dict[str, str]:
    """{name: itself} of the servers of a rank table.  Raises Refusal if one cannot be reached so."""
    names = [server.host for server in table.servers]
    for name in names:
        if fault := hostfile.fault_of_host(name):
            text = tr(
                "{fault}; the rank table does not say how this server is reached: name the hosts by -H or --hostfile",
                fault=fault,
            )
            raise Refusal(USAGE, text)
    return {name: name for name in names}


def this_host() -> dict[str, str]:
    """{its name: itself}"""
    name = socket.gethostname()
    return {name: name}


def is_pod_of_job() -> bool:
    """Whether this is one of the pods of a job: no ssh leads to the others."""
    return _POD in os.environ and any(map(os.environ.get, _OF_JOBS))
