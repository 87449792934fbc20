"""Addresses as HCCL reads them, by inet_pton: no leading zeros, no prefix length, no zone."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket as _socket
else:
    import _socket  # the module socket imports selectors and enum, for nothing that is needed here


def family(address: str) -> int | None:
    """socket.AF_INET or AF_INET6 of an address that inet_pton accepts, else None."""
    return {4: _socket.AF_INET, 16: _socket.AF_INET6}.get(len(packed(address)))


def packed(address: str) -> bytes:
    """The bytes of an address, so that two spellings of one compare equal; b"" if it is not an address."""
    try:
        return _socket.inet_pton(_socket.AF_INET, address)
    except (OSError, ValueError):  # ValueError: a NUL inside, or a character that is not ASCII
        pass
    try:
        return _socket.inet_pton(_socket.AF_INET6, address)
    except (OSError, ValueError):
        return b""


def is_one_of(address: str | None, listed: str) -> bool:
    """Whether `address` is in `listed`, a device_ip of one address or of several with commas, in any spelling."""
    return address is not None and packed(address) in map(packed, listed.split(","))


def is_placeholder(text: str) -> bool:
    """Whether `text` is an example that nobody replaced: 10.*.*.*, xx.xx.xx.xx, a.b.c.d, "Master节点IP地址".

    A placeholder has four parts, one of them a run of stars or of one letter; node1.a.example.com is a name.
    """
    if "地址" in text:  # Chinese for "address"
        return True
    parts = text.split(".")
    if len(parts) != 4:
        return False
    masked = [part for part in parts if set(part) <= {"*"} or _same_letter(part)]
    if set(masked) <= {"O", "o", "I", "l"} and len(masked) < len(parts):  # typed for 0 and 1
        return False
    return bool(masked) and ("*" in text or all(p.isdigit() or p in masked for p in parts))


def _same_letter(part: str) -> bool:
    return part.isalpha() and len(set(part.lower())) == 1
