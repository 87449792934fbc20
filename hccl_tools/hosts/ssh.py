"""The commands that reach other hosts: ssh, or the replacement that the user configured for Open MPI."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import misused
from hccl_tools.common.words import one_line

# The names of Open MPI 4 and of 5.
_AGENT = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent")
_ARGUMENTS = ("OMPI_MCA_plm_rsh_args", "PRTE_MCA_plm_ssh_args")
# ssh asks nothing and forwards nothing.  It gives up on a host that does not answer, or no longer.
_OPTIONS = ("-T", "-x", "-a", "-oBatchMode=yes", "-oClearAllForwardings=yes")
_ALIVE = ("-oServerAliveInterval=5", "-oServerAliveCountMax=3")
CONNECT_SECONDS = 8


def agent(command: str | None = None, version: str | None = None) -> list[str]:
    """The words before the name of a host.  Raises Refusal.

    command: the user's own (--ssh).  version: that of Open MPI, whose settings then count; otherwise those of any.
    """
    places = (0, 1) if version is None else (0,) if version.startswith("4.") else (1,)
    return [*_split(command or "", [_AGENT[place] for place in places], "ssh"), *_settings(places)]


def _settings(places: Sequence[int]) -> list[str]:
    return _split("", [_ARGUMENTS[place] for place in places], "")


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
