"""The commands that reach other hosts, by ssh or the replacement configured for Open MPI, and one that runs."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import time
from collections.abc import Iterator, Mapping, Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.record import Row
from hccl_tools.common.refusal import misused
from hccl_tools.common.words import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

    Process = subprocess.Popen[bytes]

# The names of Open MPI 4 and of 5.
_AGENT = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent")
_ARGUMENTS = ("OMPI_MCA_plm_rsh_args", "PRTE_MCA_plm_ssh_args")
# ssh asks nothing and forwards nothing.  It gives up on a host that does not answer, or no longer.
_OPTIONS = ("-T", "-x", "-a", "-oBatchMode=yes", "-oClearAllForwardings=yes")
_ALIVE = ("-oServerAliveInterval=5", "-oServerAliveCountMax=3")
CONNECT_SECONDS = 8
MOST_KEPT = 1 << 18  # bytes of a command's stdout, and of its stderr


def agent(command: str | None = None, version: str | None = None) -> list[str]:
    """The words before the name of a host.  Raises Refusal.

    command: the user's own (--ssh).  version: that of Open MPI, whose settings then count; otherwise those of any.
    """
    places = (0, 1) if version is None else (0,) if version.startswith("4.") else (1,)
    program = _split(command or "", [_AGENT[place] for place in places], "ssh")
    return [*program, *_split("", [_ARGUMENTS[place] for place in places], "")]


def _split(typed: str, names: Sequence[str], default: str) -> list[str]:
    """The words of what was typed, or of the first variable that is set.  Raises Refusal."""
    name = next((name for name in names if os.environ.get(name)), "")
    text = typed or os.environ.get(name, "") or default
    try:
        return shlex.split(text)
    except ValueError as error:
        where = "--ssh" if typed else name
        raise misused(
            "{where} {text} cannot be read as a command: {reason}; write it as for a shell",
            where=where,
            text=one_line(text),
            reason=error,
        ) from error


def words(agent: Sequence[str], host: str, command: str, listens: bool, connect: int = CONNECT_SECONDS) -> list[str]:
    """The command that runs the shell command on `host`; listens: it reads its stdin; connect: the limit in seconds."""
    options: tuple[str, ...] = ()
    if os.path.basename(agent[0]) == "ssh":
        options = (*_OPTIONS, f"-oConnectTimeout={connect}", *(_ALIVE if listens else ("-n",)))
    return [*agent, *options, host, command]


def command(folder: str, words: Sequence[str], environment: Mapping[str, str]) -> str:
    """A shell command for another host: the words, in that folder, with these variables.

    It begins with an empty line on stdout, which states that sshd has let us in.
    """
    return " ".join(_parts(folder, words, environment))


def _parts(folder: str, words: Sequence[str], environment: Mapping[str, str]) -> Iterator[str]:
    yield f"echo; cd {shlex.quote(folder)} && exec /usr/bin/env"
    for name, value in environment.items():
        yield shlex.quote(f"{name}={value}")
    yield from map(shlex.quote, words)


def hint(said: str) -> str:
    """What to do about a failure of ssh, as the end of a message; empty if that is not known."""
    if "Permission denied" in said:
        return tr(
            "; ssh must work without a password: ssh-keygen -t ed25519 (once), then ssh-copy-id HOST for each host"
        )
    if "Host key verification failed" in said:
        return tr("; ssh does not know the host yet: type ssh HOST once and compare its key")
    if any(words in said for words in ("exchange_identification", "Exceeded MaxStartups", "Not allowed at this time")):
        return tr("; an sshd drops connections when many log in at the same time: {remedy}", remedy=more_logins())
    return ""


def more_logins() -> str:
    """What to do where an sshd drops connections before their login."""
    return tr(
        "raise MaxStartups in the sshd_config of the hosts, or of their gateway, such as 1000:30:2000; or share one "
        "login to the gateway: ControlMaster auto, ControlPath and ControlPersist in ~/.ssh/config"
    )


class Call(Row):
    """A command, and what it gets on its stdin, which stays open until it ends; None: its stdin is empty.

    most: bytes of its stdout, and of its stderr, that are kept.
    """

    words: Sequence[str]
    sent: bytes | None = None
    most: int = MOST_KEPT


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Delays signals that raise until the end: everything that starts inside is then known and can be stopped."""
    came: list[int] = []
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    handlers = {number: handler for number, handler in found.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for late in map(signal.Signals, came):
        handlers[late](late, None)


class Running:
    """A command that runs."""

    def __init__(self, host: str, call: Call, process: Process) -> None:
        self.host, self.process, self.most = host, process, call.most
        self.to_send = memoryview(call.sent or b"")
        self.began = time.monotonic()
        self.kept: dict[int, bytearray] = {}  # {descriptor: its output}
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                os.set_blocking(pipe.fileno(), False)

    def take(self, pipe: int) -> bool:
        """Reads what the pipe has, and drops what exceeds the limit; False: it has ended."""
        try:
            data = os.read(pipe, 1 << 16)
        except BlockingIOError:
            return True
        kept = self.kept.setdefault(pipe, bytearray())
        kept += data[: self.most - len(kept)]
        return bool(data)

    def send(self) -> bool:
        """Writes as much as the pipe accepts; False: nothing is left to write."""
        assert self.process.stdin
        try:
            written = os.write(self.process.stdin.fileno(), self.to_send)
        except BlockingIOError:
            return True
        except OSError:  # it reads no more; its exit status will state why
            return False
        self.to_send = self.to_send[written:]
        return bool(self.to_send)

    def output(self, pipe: int) -> bytes:
        return bytes(self.kept.get(pipe, b""))

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.killpg(self.process.pid, signal.SIGKILL)
