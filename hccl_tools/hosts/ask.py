"""Asks every host of a hostfile: mpirun starts one of our commands once on each, and we collect the answers.

The table of a cluster is built this way, and its network checked.  A host answers with one frame on stdout,
whether it has a result or not:

    <<hccl_tools NONCE CRC DATA>>

NONCE distinguishes the frames of this run from anything else that a host prints.  DATA is base64 of deflated
JSON, CRC its checksum.  mpirun mixes the output of hosts even within a line, but does not cut what was
written at once in up to 4096 bytes; a frame of 16 devices has a quarter of that.  Damaged frames are ignored.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import signal
import socket
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence

from hccl_tools.build import merging
from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import BAD, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.hosts import hostfile, mpirun
from hccl_tools.machine import host, programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SSH_OPTIONS = "-o BatchMode=yes -o ConnectTimeout=8"
_SECONDS = 300  # for the whole cluster; a thousand hosts take half a minute


class Answer(Record):
    """What one host answered.

    entry:   the line of the hostfile that the host takes for itself; None where it found none.
    name:    what the host calls itself.
    content: its result, as JSON; None if it has none.
    lines:   remarks, or why there is no content.
    """

    entry: str | None
    name: str
    content: Any
    lines: list[str]

    @property
    def host(self) -> str:
        """What messages call the host."""
        return self.entry or self.name


class ClusterError(Refusal):
    """Not every host has answered with a result; one line per problem."""


# ---- where the command was typed -----------------------------------------------------------------


def collect(path: str, forwarded: Sequence[str], generation: str | None, tell: Callable[[str], None]) -> dict[str, Any]:
    """The merged table of the hosts in the hostfile `path`, checked by merging.merge.

    forwarded: the options of hccl_tools.py that every host gets.  generation: as for verdict.check.
    tell is called with each line that a host reports.
    Raises ClusterError, merging.Refused and hostfile.HostfileError.
    """
    answers, lines = ask(path, "hccl_tools.py", forwarded)
    lines += _without_address(answers)
    if lines:
        raise ClusterError(BAD, *lines)
    for answer in answers:
        for line in answer.lines:
            tell(f"{answer.host}: {line}")
    return merging.merge([merging.Named(name=answer.host, table=answer.content) for answer in answers], generation)


def ask(path: str, program: str, forwarded: Sequence[str]) -> tuple[list[Answer], list[str]]:
    """(the Answers of the hosts in the hostfile `path`, lines about hosts without a good answer).

    program: the command in the folder hccl_tools that every host runs, with --answer and --hosts; forwarded:
    its other options.  Raises ClusterError and hostfile.HostfileError.
    """
    hosts = hostfile.read(path)
    if not programs.on_path("mpirun"):
        merging_them = tr(", and merge the tables with hccl_tools/merge_hccl.py") if program == "hccl_tools.py" else ""
        words = tr(
            "{remedy}, or run this command on every host{merging_them}",
            remedy=mpirun.how_to_get(),
            merging_them=merging_them,
        )
        raise ClusterError(BAD, tr("mpirun is not on PATH; {words}", words=words))
    nonce = os.urandom(8).hex()
    status, stdout, stderr = _mpirun(command(path, hosts, nonce, forwarded, program))
    place = {name: number for number, name in enumerate(hosts)}  # they answer in any order
    answers = sorted(frames(stdout, nonce), key=lambda answer: place.get(answer.entry or "", len(hosts)))
    return answers, _faults(answers, hosts, status, stderr)


def command(path: str, hosts: Sequence[str], nonce: str, forwarded: Sequence[str], program: str) -> list[str]:
    """The mpirun command that asks every host once."""
    carried = [name for name in ("PATH", "PYTHONPATH") if name in os.environ]
    prefix = mpirun.prefix()
    # -wdir is the project: it must exist on every host, which the current folder may not.
    return [
        *("mpirun", "--hostfile", os.path.abspath(path), "--map-by", "ppr:1:node", "--bind-to", "none"),
        *("--timeout", str(_SECONDS)),
        *(("--prefix", prefix) if prefix else ()),
        *(word for name in carried for word in ("-x", name)),
        *("-wdir", project.ROOT, sys.executable, project.path("hccl_tools", program)),
        *("--answer", nonce, *forwarded),
        *("--hosts", *hosts),
    ]


def _mpirun(words: Sequence[str]) -> tuple[int, bytes, str]:
    """(exit code, stdout, stderr) of mpirun."""
    import subprocess

    try:
        with _signals_held() as let_go:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment(),
                start_new_session=True,  # away from the terminal, where ssh would ask for a password
            )
    except OSError as error:
        return 127, b"", tr("it cannot be started: {reason}", reason=error.strerror)
    try:
        let_go()
        # mpirun has its own time limit; ours is for an mpirun that hangs beyond it
        stdout, stderr = process.communicate(timeout=_SECONDS + 30)
    except subprocess.TimeoutExpired:
        process.kill()
        stdout, _ = process.communicate()
        return 124, stdout, tr("no answer within {seconds} s", seconds=_SECONDS + 30)
    except KeyboardInterrupt:
        process.terminate()  # mpirun passes it on to all hosts, which restore what they have changed
        process.communicate()
        raise
    return process.returncode, stdout, stderr.decode("utf-8", "replace")


@contextlib.contextmanager
def _signals_held() -> Iterator[Callable[[], None]]:
    """Delays signals that would raise: what starts inside is known before it must be stopped.

    Yields the function that handles those that came.
    """
    came: list[int] = []
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    handlers = {number: handler for number, handler in found.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda number, _: came.append(number))

    def let_go() -> None:
        for number in came:
            handlers[signal.Signals(number)](number, None)

    try:
        yield let_go
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _environment() -> dict[str, str]:
    """mpirun's environment: root is allowed, and ssh fails at once instead of asking or waiting for long."""
    environment = dict(os.environ)
    if os.geteuid() == 0:  # Open MPI needs two confirmations from root
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    for prefix, name in (("OMPI_MCA_plm_", "rsh_args"), ("PRTE_MCA_plm_", "ssh_args")):  # of Open MPI 4 and 5
        if not any(variable.startswith(prefix) for variable in environment):
            environment[prefix + name] = _SSH_OPTIONS
    return environment


def frames(stdout: bytes, nonce: str) -> list[Answer]:
    """The Answers in what mpirun printed; damaged frames are not among them."""
    found = re.findall(rb"<<hccl_tools %s ([0-9]{1,10}) ([A-Za-z0-9+/=]+)>>" % nonce.encode(), stdout)
    return list(filter(None, (_unframed(data) for crc, data in found if zlib.crc32(data) == int(crc))))


def _unframed(data: bytes) -> Answer | None:
    """The Answer in a frame; None, if it is of another version of this project."""
    try:
        answer = Answer(**json.loads(zlib.decompress(base64.b64decode(data))))
        return answer.replace(lines=[one_line(line) for line in answer.lines])
    except (ValueError, TypeError, zlib.error, RecursionError):
        return None


def _faults(answers: Sequence[Answer], hosts: Sequence[str], status: int, stderr: str) -> list[str]:
    """Why the answers are not those of all hosts, one line per problem."""
    lines = [f"{answer.host}: {line}" for answer in answers if answer.content is None for line in answer.lines]
    known = {answer.entry for answer in answers}
    silent = [name for name in hosts if name not in known]
    missing = len(hosts) - len(answers)
    if missing > 0:
        which = ", ".join(silent[:5]) + (tr(" and {number} more", number=len(silent) - 5) if len(silent) > 5 else "")
        which = which if len(silent) == missing else tr("one of {hosts}", hosts=which)
        lines.append(
            tr(
                "{hosts}: no answer; mpirun: {said} (exit {status}){hint}",
                hosts=which,
                said=_said(stderr),
                status=status,
                hint=_hint(stderr),
            )
        )
    elif missing < 0:
        lines.append(tr("{number} more answers than hosts; two lines of the hostfile may be one host", number=-missing))
    elif status and not lines:
        lines.append(
            tr("mpirun failed though all hosts answered: {said} (exit {status})", said=_said(stderr), status=status)
        )
    return lines


def _hint(stderr: str) -> str:
    """What to do about a failure of ssh, as the end of a message."""
    if "Permission denied" in stderr:
        return tr("; ssh must need no password: ssh-keygen -t ed25519 (once), then ssh-copy-id HOST for each host")
    if "Host key verification failed" in stderr:
        return tr("; ssh does not know the host yet: type ssh HOST once and compare its key")
    return ""


def _without_address(answers: Sequence[Answer]) -> list[str]:
    """Tables of several hosts with an address that only the host itself can reach, one line each."""
    if len(answers) < 2:
        return []
    return [
        tr(
            "{host}: its name resolves to no address that other hosts reach; write its address in the hostfile",
            host=answer.host,
        )
        for answer in answers
        if answer.content and answer.content["server_list"][0]["server_id"] == host.LOOPBACK
    ]


def _said(stderr: str) -> str:
    """The first line with words; Open MPI draws lines of dashes around its texts."""
    told = [line.strip() for line in stderr.splitlines() if line.strip(" -\t")]
    return one_line(told[0]) if told else "nothing"


# ---- on every host -------------------------------------------------------------------------------


def answer(nonce: str, hosts: Sequence[str], work: Callable[[str | None, Callable[[str], None]], object]) -> int:
    """Answers with what `work(entry, tell)` returns, or with why it raised Refusal; the exit code is 0 either way.

    mpirun ends all other hosts when one fails, and then only the first failure would be reported.
    """
    entry, content = own_entry(hosts), None
    lines: list[str] = []
    try:
        content = work(entry, lines.append)
    except Refusal as refusal:
        lines = list(refusal.lines)
    answered = Answer(entry=entry, name=socket.gethostname(), content=content, lines=lines)
    os.write(1, frame(answered, nonce))  # at once: mpirun may mix it with the output of other hosts otherwise
    return 0


def own_entry(hosts: Sequence[str]) -> str | None:
    """The entry of `hosts`, those of a hostfile, that is this host; None if that is uncertain.

    Open MPI does not tell a process under which name its host was listed.  An address is ours when
    it can be bound here; a name when it is the host's own.  If several are ours, the one at the place
    of our rank counts, which on most hostfiles is this host's line.
    """
    ours = [name for name in hosts if host.owns(name)]
    rank = whole_number(os.environ.get("OMPI_COMM_WORLD_RANK", ""), most=len(hosts) - 1)
    if len(ours) > 1 and rank is not None and hosts[rank] in ours:
        return hosts[rank]
    return ours[0] if ours else None


def frame(answer: Answer, nonce: str) -> bytes:
    """The Answer as bytes for one write, with line ends around it that keep it apart."""
    data = base64.b64encode(zlib.compress(json.dumps(answer.as_dict()).encode(), 9))
    return b"\n<<hccl_tools %s %d %s>>\n" % (nonce.encode(), zlib.crc32(data), data)
