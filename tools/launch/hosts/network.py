"""The other hosts of a launch, their addresses, and the address at which they see this host."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.refusal import REFUSED, Refusal, refused
from hccl_tools.common.words import clauses, one_line
from hccl_tools.machine import addresses, host
from hccl_tools.table import misspelt
from hccl_tools.table.address import bare, family, is_of_one_link


def others(entries: Iterable[str]) -> list[str]:
    """The entries of ``[user@]host`` that are not this host, each once."""
    return [entry for entry in dict.fromkeys(entries) if not host.owns(entry.rpartition("@")[2])]


def address_of(name: str, what: str, remedy: str = "") -> str:
    """The address of `name`, without brackets: of IPv4 if it has one, otherwise of IPv6, which MindSpore takes, too.

    Raises Refusal: `what` has none, and the `remedy`.
    """
    reason: object = None
    name = bare(name)
    if not misspelt.is_of_numbers(name):
        for kind in (socket.AF_INET, socket.AF_INET6):
            try:
                found = str(socket.getaddrinfo(name, None, kind)[0][4][0])
            except (OSError, UnicodeError) as error:
                reason = reason or strerror(error)
                continue
            if is_of_one_link(found.partition("%")[0]):
                text = tr("{what}: {address} is a link-local address", what=what, address=one_line(found))
                remedy = tr("give an address that all hosts reach, such as one that begins with fd or 2")
                raise Refusal(REFUSED, clauses(text, remedy))
            return found
    if misspelt.is_nearly_an_address(name):
        raise refused("{what} has no address: it looks like a mistyped IP address; correct it", what=what)
    remedy = remedy or tr("add it to /etc/hosts")
    raise refused("{what} has no address ({reason}); {remedy}", what=what, reason=reason, remedy=remedy)


def own_address_towards(names: Iterable[str]) -> str:
    """The address at which the hosts reach this one.  Raises Refusal, also if one of them has no address."""
    found = {name: address or address_of(name, one_line(name)) for name, address in addresses.of(names).items()}
    name, first = next(iter(found.items()))
    with socket.socket(family(first) or socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((first, 9))  # sends nothing: it only looks up the route
        except OSError as error:
            raise refused(
                "no route to {name} ({address}): {reason}; is the network up?",
                name=one_line(name),
                address=first,
                reason=strerror(error),
            ) from error
        return str(probe.getsockname()[0])
