"""Parses addresses as HCCL does, with inet_pton: no leading zeros, no prefix length, no zone."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket as _socket
else:
    import _socket  # the module socket imports selectors and enum, for nothing that is needed here


_OWN = bytes(15) + b"\1"  # ::1


def family(address: str) -> int | None:
    """socket.AF_INET or AF_INET6 of an address that inet_pton accepts, otherwise None."""
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


def bare(text: str) -> str:
    """The address in ``[::1]``, as URLs have it; any other text is its own."""
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    return inner if family(inner) == _socket.AF_INET6 else text


def is_loopback(address: str) -> bool:
    """Whether only this host reaches itself at the address; False for a name."""
    return family(address) is not None and (address.startswith("127.") or packed(address) == _OWN)


def is_of_one_link(address: str) -> bool:
    """Whether it is an IPv6 address that names a different host on every network, such as fe80::1."""
    found = packed(address)
    return len(found) == len(_OWN) and found[0] == 0xFE and found[1] & 0xC0 == 0x80


def is_one_of(address: str | None, listed: str) -> bool:
    """Whether `address` is in `listed`, a device_ip of one address or of several with commas, in any spelling."""
    return address is not None and packed(address) in map(packed, listed.split(","))


def is_placeholder(text: str) -> bool:
    """Whether `text` is an example that was not replaced: 10.*.*.*, xx.xx.xx.xx, a.b.c.d, "Master节点IP地址".

    A placeholder has four parts, one of them a run of stars or of one letter; node1.a.example.com is a name.
    """
    if "地址" in text:  # Chinese for "address"
        return True
    parts = text.split(".")
    if len(parts) != 4:
        return False
    masked = [part for part in parts if set(part) <= {"*"} or (part.isalpha() and len(set(part.lower())) == 1)]
    if set(masked) <= {"O", "o", "I", "l"} and len(masked) < len(parts):  # typed for 0 and 1
        return False
    return bool(masked) and ("*" in text or all(p.isdigit() or p in masked for p in parts))
