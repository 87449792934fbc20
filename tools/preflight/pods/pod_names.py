"""Names the pods of a check by their host names, which are the pod names that kubectl shows."""

from __future__ import annotations

import collections
import socket

from hccl_tools.hosts import hostfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LONGEST = 63  # characters of a host name


def own() -> str:
    """The name of this pod; empty if it is unknown."""
    name = socket.gethostname().partition(".")[0]
    return name if is_name(name) else ""


def is_name(text: str) -> bool:
    """Whether another pod may be called so."""
    return 0 < len(text) <= _LONGEST and "@" not in text and hostfile.fault_of_host(text) is None


def choose(pods: int, told: Mapping[int, str], known: Sequence[str]) -> list[str]:
    """The names by number. told: host names, which several pods of one node may share; known: others."""
    uses = collections.Counter(told.values())
    found = []
    for number in range(pods):
        name = told.get(number, "")
        usual = known[number] if number < len(known) else f"pod-{number}"
        found.append(name if name and uses[name] == 1 else usual)
    return found if len(set(found)) == pods else [f"pod-{number}" for number in range(pods)]
