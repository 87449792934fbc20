"""Chooses the TCP port of MindSpore's scheduler, and checks that it is free."""

from __future__ import annotations

import os

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.refusal import REFUSED, Refusal, refused
from hccl_tools.common.words import clauses, one_line
from hccl_tools.machine.host import LOOPBACK
from hccl_tools.table.address import family

LEAST, MOST = 1024, 65535  # what a user may name
SCHEDULER = range(10000, 30000)  # what a launch chooses from: below the kernel's ports for outgoing connections


def named() -> int | None:
    """The port in MS_SCHED_PORT; None where the variable is not set.  Raises Refusal."""
    text = os.environ.get("MS_SCHED_PORT", "")
    port = whole_number(text, LEAST, MOST)
    if text and port is None:
        raise refused(
            "MS_SCHED_PORT={value} is not a port; unset it, or set one of {least} to {most}",
            value=one_line(text),
            least=LEAST,
            most=MOST,
        )
    return port


def derived(number: int) -> int:
    """The port that follows from `number`: the same on every host of a job, another one for most other jobs."""
    return SCHEDULER[number % len(SCHEDULER)]


def beside(port: int) -> int:
    """The port at which the launchers of several hosts meet, if the scheduler has `port`."""
    return port + 1 if port < MOST else port - 1


def free(seed: int) -> int:
    """A port that is free on this host: the one in MS_SCHED_PORT, else one near that of `seed`.  Raises Refusal."""
    port = named()
    if port is not None:
        if fault(port):
            text = tr("MS_SCHED_PORT={port} is in use; unset it to have a free one chosen", port=port)
            raise Refusal(REFUSED, f"{text} ({_holder(port)})")
        return port
    return near(seed)


def check(option: str, port: int, address: str, hosts: int) -> None:
    """Refuses the scheduler's port, which this option names or has as its default, if we cannot listen there."""
    why = fault(port, address)
    if not why:
        return
    text = tr("{option} {port}: {why}: {who}", option=option, port=port, why=why, who=_holder(port))
    other = near(port)
    if hosts > 1:
        remedy = tr("write another one on all hosts, such as {option} {port}", option=option, port=other)
    else:
        remedy = tr(
            "write another one, such as {option} {port}, or leave it out: then a free one is taken",
            option=option,
            port=other,
        )
    raise Refusal(REFUSED, clauses(text, remedy))


def _holder(port: int) -> str:
    from hccl_tools.machine import sockets  # only a refusal needs it

    return sockets.holder(port)


def near(seed: int) -> int:
    """A free port on this host near the port of `seed`.  Raises Refusal."""
    for offset in range(1000):
        port = derived(seed * 7 + offset)
        if not fault(port):
            return port
    raise refused("no free port on this host from {port} on", port=derived(seed * 7))


def fault(port: int, address: str = LOOPBACK) -> str | None:
    """Why a server cannot listen on this port now; None if it can."""
    import _socket  # not at the top: few launches choose a port, and the module socket costs as much as the check

    probe = _socket.socket(family(address) or _socket.AF_INET, _socket.SOCK_STREAM)
    try:
        probe.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)  # as the scheduler does
        probe.bind((address, port))
    except OSError as error:
        return strerror(error)
    finally:
        probe.close()
    return None
