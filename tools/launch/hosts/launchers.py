"""What launchers on several hosts must have in common, and where they meet, to agree on the attempts of a job.

tools/features/hosts_attempts.py passes the Agreement to tools/attempts/.
"""

from __future__ import annotations

import hashlib
import json
import os

from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import one_line, short
from hccl_tools.hosts import elsewhere
from tools.launch.engines import ports
from tools.launch.programs import trainer_command
from tools.launch.request import Request

VERSION = 2  # of what the launchers report to each other
_OWN_PLACE = "train.resume_from="
WAIT = 600  # seconds


class Meeting(Record):
    """The hosts of a job that have a launcher each."""

    hosts: list[str]  # what a message calls them, in the order of their ranks
    number: int  # of this host
    address: str  # of the host of rank 0
    scheduler_port: int
    job: str  # what is the same on all hosts of this job only, as far as the hosts can know
    always: bool = False  # also without restarts: the first failure ends the ranks of all hosts
    late: int = REFUSED  # the exit code where a host is not ready for the first attempt within `wait`
    wait: int = WAIT  # seconds in which all hosts must be ready, where MS_TOPO_TIMEOUT does not state it


class Agreement(Record):
    """What this host's launcher needs to agree with the others on the attempts of the job."""

    launcher: int  # its process id
    hosts: list[str]  # one word for each, in the order of their ranks
    number: int  # of this host
    address: str  # of the host of rank 0, where the launchers meet
    port: int  # where its launcher listens
    job: str  # a digest of what only the hosts of this job have alike
    alike: list[tuple[str, str, str]]  # (what it is, its digest, its words) of what must be the same on every host
    restarts: int  # --max_restarts; 0: the first failure ends the job
    limit: int  # --restart_limit
    wait: int  # seconds in which all hosts must be ready
    late: int  # the exit code where a host is not ready for the first attempt within `wait`

    def line(self) -> str:
        """The JSON line that tools/attempts/launcher.py reads."""
        return json.dumps(self.as_dict())


def agreement(request: Request, meeting: Meeting, commands: list[list[str]], config: str | None) -> Agreement:
    """The Agreement of this host; `commands`: of the first attempt and of the others.  Raises Refusal."""
    port = ports.beside(meeting.scheduler_port)
    if meeting.number == 0 and (fault := ports.fault(port, meeting.address)):
        where = tr(
            "the launcher cannot listen at {address} port {port} for the other hosts",
            address=meeting.address,
            port=port,
        )
        remedy = tr("set MS_SCHED_PORT, or for msrun --master_port, to another one, the same on every host")
        text = tr("{fault}; it is the scheduler's port plus 1: {remedy}", fault=fault, remedy=remedy)
        raise Refusal(REFUSED, f"{where}: {text}" if meeting.always else f"--max_restarts: {where}: {text}")
    wait = whole_number(os.environ.get("MS_TOPO_TIMEOUT", ""), 1, 10**6) or meeting.wait
    return Agreement(
        launcher=request.job_pid,
        hosts=["_".join(one_line(name).split()) for name in meeting.hosts],
        number=meeting.number,
        address=meeting.address,
        port=port,
        job=digest_of(f"{VERSION} {meeting.job}"),
        alike=alike(request, commands, config),
        restarts=request.max_restarts,
        limit=request.restart_limit,
        wait=wait,
        late=meeting.late,
    )


def alike(request: Request, commands: list[list[str]], config: str | None) -> list[tuple[str, str, str]]:
    """(what it is, its digest, its words) of all that must be the same on every host."""
    restarts, limit, version = str(request.max_restarts), str(request.restart_limit), elsewhere.own()
    found = [
        (tr("the version of this project"), digest_of(" ".join(version.words())), version.shown()),
        ("--max_restarts", restarts, restarts),
        ("--restart_limit", limit, limit),
    ]
    for label, command in zip((tr("the command"), tr("the command of a restart")), commands):
        text = " ".join(map(_portable, command))
        found.append((label, digest_of(text), short(text, 200)))
    digest = "none"
    if config is not None:
        with open(config, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
    label = tr("the config {config}", config=short(config)) if config else tr("the config")
    found.append((label, digest, f"sha256 {digest[:16]}"))
    return found


def _portable(word: str) -> str:
    """A word of a command without what may differ between hosts: the places of Python, this project and checkpoints."""
    if word == trainer_command.python():
        return "python"
    if word.startswith(_OWN_PLACE):
        return _OWN_PLACE
    root = project.path("")
    return word[len(root) :] if word.startswith(root) else word


def digest_of(text: str) -> str:
    """The SHA-256 of the text, whose bytes may be any."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
