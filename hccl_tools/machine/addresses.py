"""Looks up the addresses of many hosts in parallel, because the delays of a slow name server would add up."""

from __future__ import annotations

from collections.abc import Iterable

from hccl_tools.table.address import family

_AT_ONCE = 32  # look-ups


def of(names: Iterable[str]) -> dict[str, str | None]:
    """{name: its address, None if it has none}; an address is its own."""
    found: dict[str, str | None] = {name: name for name in names}
    unknown = [name for name in found if family(name) is None]
    if len(unknown) == 1:
        found[unknown[0]] = _of_name(unknown[0])
    elif unknown:
        from concurrent.futures import ThreadPoolExecutor  # only some hostfiles need it

        with ThreadPoolExecutor(min(_AT_ONCE, len(unknown))) as pool:
            found.update(zip(unknown, pool.map(_of_name, unknown)))
    return found


def _of_name(name: str) -> str | None:
    import socket  # not at the top: most launches look nothing up

    from hccl_tools.table import misspelt

    if misspelt.is_of_numbers(name):
        return None
    for kind in (socket.AF_INET, socket.AF_INET6):
        try:
            return str(socket.getaddrinfo(name, None, kind, socket.SOCK_STREAM)[0][4][0])
        except (OSError, UnicodeError):
            continue
    return None
